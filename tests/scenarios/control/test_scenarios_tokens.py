"""Delegation tokens in whole runs: what clients see of an end, a renewal and a removal (KIP-48)."""

import pytest

from sim.errors import InvariantBroken, ScenarioError
from sim.protocol.security import tokens
from sim.protocol.security.server import ServerAuthenticator
from sim.protocol.security.tokens import TokenCache
from sim.scenario.loader import load_text
from sim.scenario.run.runner import run
from tests.scenarios.control.test_scenarios_security import (
    FAILED,
    KAFKA,
    RIGHT,
    events,
    listener,
    reader,
    secured,
    shop,
)
from tests.scenarios.run_kit import S, text_of

MS = 1_000
MADE_US = -1 * S
"""When the first tokens are requested."""

LIFE_US, CHECK_US = 6 * S, 2 * S
END_US = MADE_US + LIFE_US
"""The earliest end of a token that nobody renews."""

COMMIT_US = 500 * MS
"""Allowance for a request to the controller and its record's way to the brokers."""

SETTINGS = {
    "delegation.token.secret.key": "hush",
    "delegation.token.expiry.time.ms": LIFE_US // MS,
    "delegation.token.expiry.check.interval.ms": CHECK_US // MS,
}
USERS = {"users": {"shop": "shop-secret", "billing": "billing-secret", "ops": "ops-secret"}}


def held(token):
    return {"sasl.mechanism": "SCRAM-SHA-512", "token": token}


def owned(*names, **more):
    return {name: {"owner": "shop", "renewers": "ops", **more} for name in names}


def do(at, what, token, **more):
    return {"at": at, "do": what, "token": token, **more}


def with_tokens(tmp_path, found, clients, consumers=(), *, config=SETTINGS, **more):
    cluster = {"config": config, **more.pop("cluster", {})}
    security = listener(tokens=found, **USERS)
    return secured(tmp_path, security, clients, consumers, cluster=cluster, **more)


def changes(ran, change, token):
    return ran.rows("delegation_tokens", change=change, token=tokens.token_id(token))


def ends(ran, client):
    """Outcome and error of a producer's batches that were made after the token's end."""
    rows = ran.rows("client_batches", producer=client)
    return {(row["outcome"], row["error"]) for row in rows if row["created_us"] > END_US + S}


BUSY = {"rate": "500/s", "record.size": "500B"}
"""Another partition about every 65 ms, with 16 KB each: one of each broker within a second."""

QUICK = {"delivery.timeout.ms": 1_500, "request.timeout.ms": 1_000}


@pytest.fixture(scope="module")
def forgotten(tmp_path_factory):
    """One token is renewed every few seconds, the other one never."""
    return with_tokens(
        tmp_path_factory.mktemp("forgotten"),
        owned("old", "kept"),
        [
            shop(held("old"), name="shop", **QUICK),
            shop(held("kept"), name="kept", **QUICK),
            shop(held("old"), name="late", **QUICK) | {"start": "9s"},
            shop(held("old"), name="pays", **QUICK, **{"transactional.id": "pay"})
            | {"transaction": {"records": 5}},
            shop(RIGHT, name="user"),
        ],
        [reader(held("old"), name="old"), reader(held("kept"), name="reads")],
        faults=[do(f"{at}s", "renew-token", "kept", by="ops") for at in (3, 7, 11)],
        lasts="14s",
    )


def test_brokers_know_a_token_when_they_have_replayed_its_record(forgotten):
    rows = changes(forgotten, "applied", "old")
    assert [row["broker"] for row in rows if row["t_us"] < 0].count(1) == 1
    assert {row["broker"] for row in rows} == {1, 2, 3}
    for row in rows:
        assert MADE_US < row["t_us"] < MADE_US + COMMIT_US
        assert END_US <= row["expires_us"] < END_US + COMMIT_US


def test_a_client_is_authenticated_as_the_owner_and_its_session_ends_with_the_token(forgotten):
    end = changes(forgotten, "applied", "old")[0]["expires_us"]
    for row in events(forgotten, "shop", "authenticated"):
        assert row["principal"] == "User:shop"
        assert row["expires_us"] <= max(end, row["t_us"]) + MS
    assert {row["expires_us"] for row in events(forgotten, "user", "authenticated")} == {-1}


def test_until_the_end_nobody_notices_anything(forgotten):
    rows = forgotten.rows("client_batches", producer="shop")
    assert {row["outcome"] for row in rows if row["created_us"] < END_US - S} == {"ok"}


def test_after_the_end_each_login_succeeds_and_loses_its_connection_until_the_sweep(forgotten):
    end = changes(forgotten, "applied", "old")[0]["expires_us"]
    removed = {row["broker"]: row["t_us"] for row in changes(forgotten, "removed", "old")}
    for at in removed.values():
        assert end < at < end + CHECK_US + COMMIT_US
    between = [
        row
        for row in events(forgotten, "shop", "authenticated")
        if end < row["t_us"] < min(removed.values())
    ]
    assert len(between) > 3, "a login about every reconnect.backoff.ms"
    dropped = {(row["broker"], row["connection"]) for row in events(forgotten, "shop", "expired")}
    assert {(row["broker"], row["connection"]) for row in between} & dropped
    failed = [row for row in events(forgotten, "shop", "failed") if row["error"] == FAILED]
    assert failed
    assert all(row["t_us"] > removed[row["broker"]] for row in failed)


def test_a_producer_s_records_wait_for_a_connection_and_time_out(forgotten):
    """Not with the error of the login: it has its metadata and its producer id already."""
    assert ends(forgotten, "shop") == {("failed", "REQUEST_TIMED_OUT")}


def test_a_producer_that_starts_with_the_old_token_fails_with_each_send(forgotten):
    assert ends(forgotten, "late") == {("failed", FAILED)}


@pytest.mark.parametrize("client", ["old", "pays"])
def test_a_consumer_and_a_transactional_producer_end(forgotten, client):
    """The error reaches the application: a poll raises it, a transaction cannot go on."""
    end = changes(forgotten, "applied", "old")[0]["expires_us"]
    [stopped] = forgotten.times("node_states", node=client, state="stopped")
    # From the first handshake within a second of another one on, or from the sweep on. Without a
    # request to its coordinator a producer first waits for its batches, until they time out.
    assert end - LIFE_US * 15 // 100 < stopped < end + CHECK_US + COMMIT_US + 3 * S


def test_with_renewals_clients_live_on(forgotten):
    rows = forgotten.rows("client_batches", producer="kept")
    assert {row["outcome"] for row in rows if row["t_us"] < 13 * S} == {"ok"}
    assert not events(forgotten, "kept", "failed")
    assert not events(forgotten, "kept", "expired")
    assert max(forgotten.times("reads", consumer="reads")) > 13 * S
    ended = [row["expires_us"] for row in changes(forgotten, "applied", "kept")[::3]]
    assert ended == sorted(ended)
    assert ended[-1] - 11 * S >= LIFE_US


def test_the_check_met_its_subject(forgotten):
    assert forgotten.checked("tokens-limit-sessions") > 500
    assert forgotten.records["lost_acked"] == 0


@pytest.fixture(scope="module")
def removed(tmp_path_factory):
    """A token is removed in mid-life; another one is made late."""
    return with_tokens(
        tmp_path_factory.mktemp("removed"),
        owned("gone") | owned("new", later=True),
        [
            shop(held("gone"), **QUICK) | BUSY,
            shop(held("gone"), name="late", **QUICK) | {"start": "4s"},
            shop(held("new"), name="early", **QUICK, **{"enable.idempotence": False}),
        ],
        [],
        config=SETTINGS | {"delegation.token.expiry.time.ms": 20_000},
        faults=[
            do("1s", "create-token", "new"),
            do("2s", "expire-token", "gone", by="ops"),
            do("3s", "renew-token", "gone"),
        ],
        lasts="6s",
    )


def test_a_removal_cuts_no_connection_and_lets_nobody_in(removed):
    for row in changes(removed, "removed", "gone"):
        assert 2 * S < row["t_us"] < 2 * S + COMMIT_US
    before = events(removed, "shop", "authenticated")
    assert {row["broker"] for row in before} == {1, 2, 3}
    assert all(row["t_us"] < 2 * S for row in before)
    assert not events(removed, "shop", "failed")
    assert not events(removed, "shop", "expired")
    rows = removed.rows("client_batches", producer="shop")
    assert {row["outcome"] for row in rows if row["created_us"] < 5 * S} == {"ok"}
    assert {row["error"] for row in removed.rows("client_batches", producer="late")} == {FAILED}


def test_what_is_removed_cannot_be_renewed(removed):
    outcome = [fault["effect"] for fault in removed.faults]
    assert outcome[2] == "refused: DELEGATION_TOKEN_NOT_FOUND"
    assert not removed.faults[2]["took_effect"]
    assert all(fault["took_effect"] for fault in removed.faults[:2])


def test_a_client_whose_token_is_made_later_is_refused_until_then(removed):
    known = {row["broker"]: row["t_us"] for row in changes(removed, "applied", "new")}
    assert set(known) == {1, 2, 3}
    failed = events(removed, "early", "failed")
    assert failed
    assert {row["error"] for row in failed} == {FAILED}
    assert all(row["t_us"] < known[row["broker"]] for row in failed)
    rows = removed.rows("client_batches", producer="early", outcome="ok")
    assert min(row["created_us"] for row in rows) > 1 * S


def test_a_broker_that_lags_does_not_know_what_the_others_take(tmp_path):
    ran = with_tokens(
        tmp_path,
        owned("new", later=True),
        [shop(held("new")) | BUSY | {"start": "2500ms"}],
        faults=[
            {"at": "1s", "do": "partition", "between": "broker-2", "for": "3s",
             "and": ["controller-1", "controller-2", "controller-3"]},
            do("2s", "create-token", "new"),
        ],
        lasts="6s",
    )  # fmt: skip
    known = {row["broker"]: row["t_us"] for row in changes(ran, "applied", "new")}
    assert max(known[1], known[3]) < 2 * S + COMMIT_US
    assert known[2] > 4 * S
    refused = {row["broker"] for row in events(ran, "shop", "failed")}
    assert refused == {2}
    assert not [row for row in events(ran, "shop", "authenticated")
                if row["broker"] == 2 and row["t_us"] < 4 * S]  # fmt: skip


@pytest.mark.parametrize(
    ("what", "more", "said"),
    [
        ("renew-token", {"by": "billing"}, "DELEGATION_TOKEN_OWNER_MISMATCH"),
        ("expire-token", {"by": "billing"}, "DELEGATION_TOKEN_OWNER_MISMATCH"),
        ("renew-token", {"by.token": True}, "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"),
        ("create-token", {"by.token": True}, "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"),
    ],
)
def test_a_refused_request_has_no_effect_and_the_verdict_says_why(tmp_path, what, more, said):
    ran = with_tokens(
        tmp_path, owned("a"), [shop(held("a"))], faults=[do("1s", what, "a", **more)], lasts="2s"
    )
    [fault] = ran.faults
    assert not fault["took_effect"]
    assert fault["effect"] == f"refused: {said}"
    assert not ran.verdict["held"]


def test_without_a_secret_key_the_controller_makes_no_token(tmp_path):
    ran = with_tokens(
        tmp_path, owned("a", later=True), [shop(RIGHT)], config={},
        faults=[do("1s", "create-token", "a")], lasts="2s",
    )  # fmt: skip
    assert ran.faults[0]["effect"] == "refused: DELEGATION_TOKEN_AUTH_DISABLED"


def test_an_acl_is_about_the_owner_of_the_token(tmp_path):
    config = KAFKA["config"] | SETTINGS
    ran = with_tokens(
        tmp_path,
        owned("a"),
        [
            shop(held("a")),
            shop(RIGHT | {"user": "billing", "password": "billing-secret"}, name="b"),
        ],
        cluster={"principal": KAFKA["principal"]},
        config=config,
        acls=[{"principal": "User:shop", "operation": "Write", "topic": "orders"}],
        lasts="2s",
    )
    assert ran.rows("client_batches", producer="shop", outcome="ok")
    assert {row["principal"] for row in ran.rows("denials")} == {"User:billing"}


def planted_run(tmp_path, producer, **more):
    cluster = {"security": listener(tokens=owned("a"), **USERS), "config": SETTINGS}
    text = text_of(cluster=cluster, producers=[producer], then="stop", **more)
    run(load_text(text, "planted"), out=tmp_path / "run")


def test_planted_a_broker_that_forgets_the_end_of_a_token_breaks_the_invariant(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(ServerAuthenticator, "_session_lifetime", lambda *_: None)
    with pytest.raises(InvariantBroken, match="whose delegation token had expired"):
        planted_run(tmp_path, shop(held("a")), lasts="8s")


def test_planted_a_broker_that_keeps_removed_tokens_breaks_the_invariant(tmp_path, monkeypatch):
    update = TokenCache.update

    def forgets_nothing(self, found):
        before = dict(self._tokens)
        changed = update(self, found)
        self._tokens = before | self._tokens
        return changed

    monkeypatch.setattr(TokenCache, "update", forgets_nothing)
    with pytest.raises(InvariantBroken, match="which it does not know"):
        planted_run(
            tmp_path, shop(held("a")) | {"start": "2s"}, faults=[do("1s", "expire-token", "a")],
            lasts="4s",
        )  # fmt: skip


def refused(security=None, config=SETTINGS, *, clients=(), faults=(), **cluster):
    found = {"security": security, "config": config, **cluster}
    found = {key: value for key, value in found.items() if value is not None}
    with pytest.raises(ScenarioError) as caught:
        load_text(text_of(cluster=found, producers=[*clients] or None, faults=faults))
    return str(caught.value)


GOOD = listener(tokens=owned("a"), **USERS)


@pytest.mark.parametrize(
    ("said", "parts"),
    [
        ("without cluster.security", {}),
        ("KAFKA-15219", {"security": listener(**USERS), "kafka": "3.5"}),
        ("an empty key", {"security": GOOD, "config": {"delegation.token.secret.key": ""}}),
        ("the controller refuses to make it", {"security": GOOD, "config": {}}),
        ("there are no tokens", {
            "security": listener(**USERS), "config": {"delegation.token.max.lifetime.ms": 5},
        }),
        ("without a mechanism of SCRAM", {
            "security": GOOD | {"sasl.enabled.mechanisms": ["PLAIN"]},
        }),
        ("tokens with PLAINTEXT", {"security": listener("PLAINTEXT", tokens=owned("a"))}),
        ("did you mean shop?", {
            "security": listener(tokens={"a": {"owner": "shopp"}}, **USERS),
        }),
        ("no user 'x'", {"security": listener(tokens=owned("a", renewers="x"), **USERS)}),
        ("less than a millisecond", {
            "security": listener(tokens=owned("a", **{"max.lifetime": "10us"}), **USERS),
        }),
        ("did you mean orders?", {
            "security": listener(tokens=owned("orders"), **USERS), "clients": [shop(held("order"))],
        }),
        ("user beside token", {
            "security": GOOD, "clients": [shop(held("a") | {"user": "shop"})],
        }),
        ("a token with PLAIN", {
            "security": GOOD, "clients": [shop(held("a") | {"sasl.mechanism": "PLAIN"})],
        }),
        ("no token 'b'", {"security": GOOD, "faults": [do("1s", "renew-token", "b")]}),
        ("no user 'x'", {"security": GOOD, "faults": [do("1s", "renew-token", "a", by="x")]}),
        ("changes nothing", {
            "security": GOOD, "faults": [do("1s", "renew-token", "a", period="0s")],
        }),
    ],
)  # fmt: skip
def test_what_means_nothing_is_refused_with_what_is_allowed(said, parts):
    assert said in refused(**parts)


def test_a_scenario_with_tokens_can_be_written_out_and_loaded_again():
    text = text_of(
        cluster={"security": listener(tokens=owned("a") | owned("b", later=True), **USERS),
                 "config": SETTINGS},
        producers=[shop(held("a"))],
        faults=[do("1s", "create-token", "b"), do("2s", "renew-token", "a", by="ops", period="3s"),
                do("3s", "expire-token", "a", **{"by.token": True})],
    )  # fmt: skip
    scenario = load_text(text)
    again = load_text(scenario.as_yaml())
    assert again.as_yaml() == scenario.as_yaml()
    assert again.faults == scenario.faults
    assert again.cluster.security == scenario.cluster.security
