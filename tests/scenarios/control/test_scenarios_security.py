"""Authentication in whole runs: who gets in, what a client sees that does not, and its time.

Source of the outcomes: Kafka's own ``SaslClientsWithInvalidCredentialsTest``, KIP-152, KIP-306.
"""

from itertools import pairwise

import pytest

from sim.errors import InvariantBroken, ScenarioError
from sim.protocol.security import server
from sim.scenario.loader import load_text
from sim.scenario.model.authentication import listener_security
from sim.scenario.run.runner import run
from tests.scenarios.run_kit import S, go, text_of

MS = 1_000
DELAY_US = 100 * MS
"""``connection.failed.authentication.delay.ms``."""

ROUND_US = 20 * MS
"""Allowance for round trips, SCRAM's iterations and a handshake."""

USERS = {"shop": "shop-secret", "billing": "billing-secret"}
RIGHT = {"sasl.mechanism": "SCRAM-SHA-512", "user": "shop", "password": "shop-secret"}
WRONG = RIGHT | {"password": "wrong"}
FAILED = "SASL_AUTHENTICATION_FAILED"


KAFKA = {
    "principal": "User:kafka",
    "config": {"authorizer.class.name": "StandardAuthorizer", "super.users": "User:kafka"},
}


def listener(protocol="SASL_PLAINTEXT", **more):
    if protocol.startswith("SASL"):
        more = {"sasl.enabled.mechanisms": ["SCRAM-SHA-512", "PLAIN"], "users": USERS} | more
    return {"protocol": protocol, **more}


def shop(login=None, protocol="SASL_PLAINTEXT", *, name="shop", **config):
    found = {"name": name, "topic": "orders", "rate": "50/s", "record.size": "100B",
             "config": {"security.protocol": protocol, **config}}  # fmt: skip
    return found | ({"login": login} if login else {})


def reader(login=None, protocol="SASL_PLAINTEXT", name="reader"):
    config = {"security.protocol": protocol, "auto.offset.reset": "earliest"}
    found = {"name": name, "group": name, "topics": ["orders"], "config": config}
    return found | ({"login": login} if login else {})


def secured(tmp_path, security, clients, consumers=(), **more):
    more = {"lasts": "3s", "then": "stop"} | more
    cluster = {"security": security, **more.pop("cluster", {})}
    return go(tmp_path, cluster=cluster, producers=clients, consumers=consumers, **more)


@pytest.mark.parametrize("kafka", ["3.5", "4.1", "4.2"])
def test_a_mechanism_that_is_named_twice_counts_once_in_every_version(kafka):
    """No release refuses it: 4.2 and newer remove it with a warning (KIP-1161)."""
    given = listener(**{"sasl.enabled.mechanisms": ["PLAIN", "SCRAM-SHA-512", "PLAIN"]})
    cluster = {"security": given, "kafka": kafka}
    found = load_text(text_of(cluster=cluster, producers=[shop(RIGHT)]))
    built = listener_security(found.cluster, found.producers, found.consumers)
    assert built.mechanisms == ("PLAIN", "SCRAM-SHA-512")


def outcomes(ran, client):
    """Outcome and error of a producer's batches, but for what waits when the run ends."""
    rows = [row for row in ran.rows("client_batches", producer=client) if row["t_us"] < 3 * S]
    return {(row["outcome"], row["error"]) for row in rows}


def events(ran, client, event):
    return ran.rows("authentications", client=client, event=event)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """Clients that log in, and clients that cannot, at one listener."""
    plain = {"sasl.mechanism": "PLAIN", "user": "billing", "password": "billing-secret"}
    return secured(
        tmp_path_factory.mktemp("mixed"),
        listener(),
        [
            shop(RIGHT, name="right"),
            shop(WRONG, name="wrong"),
            shop(WRONG, name="plain-wrong", **{"enable.idempotence": False}),
            shop(RIGHT | {"sasl.mechanism": "SCRAM-SHA-256"}, name="unsupported",
                 **{"enable.idempotence": False}),
            shop(WRONG, name="pays", **{"transactional.id": "pay"})
            | {"transaction": {"records": 5}},
            shop(protocol="PLAINTEXT", name="nobody", **{"max.block.ms": 1_000}),
        ],
        [reader(plain, name="billing"), reader(WRONG, name="stranger")],
        lasts="5s",
    )  # fmt: skip


def test_a_client_with_the_right_password_is_authenticated_on_each_connection(mixed):
    assert outcomes(mixed, "right") == {("ok", "NONE")}
    opened, done = (events(mixed, "right", event) for event in ("opened", "authenticated"))
    assert [row["broker"] for row in opened] == [row["broker"] for row in done]
    assert 1 < len(done) == len({row["broker"] for row in done}), "one to each leader"
    assert {row["principal"] for row in done} == {"User:shop"}
    assert {row["mechanism"] for row in done} == {"SCRAM-SHA-512"}
    assert {row["mechanism"] for row in events(mixed, "billing", "authenticated")} == {"PLAIN"}
    assert mixed.rows("reads", consumer="billing")


def test_each_send_of_a_producer_with_a_wrong_password_fails_when_its_broker_has_answered(mixed):
    """``send()`` fails within the delay, and the next one tries again (not idempotent)."""
    assert outcomes(mixed, "plain-wrong") == {("failed", FAILED)}
    first = min(row["t_us"] for row in mixed.rows("client_batches", producer="plain-wrong"))
    assert DELAY_US <= first < DELAY_US + 2 * ROUND_US
    assert len(events(mixed, "plain-wrong", "failed")) > 2


def test_an_idempotent_producer_that_fails_before_it_has_its_id_never_recovers(mixed):
    """Each later ``send()`` fails at its own instant: TransactionManager is in FATAL_ERROR."""
    assert outcomes(mixed, "wrong") == {("failed", FAILED)}
    rows = mixed.rows("client_batches", producer="wrong")
    assert sum(row["record_count"] for row in rows) == 250
    assert all(max(row["latency_us"]) < MS for row in rows if row["t_us"] > S)


def test_a_transactional_producer_ends(mixed):
    """``initTransactions()`` raises it, and the application closes."""
    [stopped] = mixed.times("node_states", node="pays", state="stopped")
    assert DELAY_US <= stopped < DELAY_US + 2 * ROUND_US
    assert not mixed.rows("client_batches", producer="pays", outcome="ok")


def test_a_consumer_with_a_wrong_password_raises_it_from_its_first_poll(mixed):
    [stopped] = mixed.times("node_states", node="stranger", state="stopped")
    assert DELAY_US <= stopped < DELAY_US + ROUND_US
    assert not mixed.rows("reads", consumer="stranger")


def test_a_mechanism_that_is_not_enabled_has_an_error_of_its_own(mixed):
    assert outcomes(mixed, "unsupported") == {("failed", "UNSUPPORTED_SASL_MECHANISM")}


def test_a_plaintext_client_of_a_listener_with_sasl_finds_broken_connections_alone(mixed):
    """Its first request is no handshake: no answer comes, and ``max.block.ms`` passes."""
    assert outcomes(mixed, "nobody") == {("failed", "REQUEST_TIMED_OUT")}
    assert {row["error"] for row in events(mixed, "nobody", "failed")} == {"ILLEGAL_SASL_STATE"}


def test_who_is_not_authenticated_writes_and_reads_nothing(mixed):
    admitted = {row["client"] for row in mixed.rows("admitted_requests")}
    assert admitted == {"right", "billing"}
    assert {row["producer_index"] for row in mixed.rows("appends", topic="orders")} == {0}
    assert mixed.checked("clients-are-authenticated") > 100


def test_a_failure_is_answered_when_the_delay_has_passed_and_the_next_attempt_backs_off(mixed):
    failed = [row["t_us"] for row in events(mixed, "plain-wrong", "failed")]
    gaps = [late - early for early, late in pairwise(failed)]
    assert min(gaps) >= DELAY_US
    assert 100 * MS < max(gaps) < 1_400 * MS, "reconnect.backoff.max.ms, with its jitter"


def first_request(ran, client="shop"):
    """Instant at which a handler has a client's first request."""
    return min(ran.times("admitted_requests", client=client))


def test_a_login_takes_its_round_trips_before_the_first_request(tmp_path):
    """TCP, ApiVersions, SaslHandshake, then one round trip of PLAIN or two of SCRAM; 10 ms each."""
    slow = {"network": {"client": {"p50": "5ms", "p99": "5ms"}}}
    found = {}
    for name in ("PLAIN", "SCRAM-SHA-512"):
        login = RIGHT | {"sasl.mechanism": name}
        ran = secured(tmp_path, listener(), [shop(login)], cluster=slow, lasts="1s")
        found[name] = first_request(ran)
    ran = secured(tmp_path, listener("PLAINTEXT"), [shop(protocol="PLAINTEXT")], cluster=slow)
    found["PLAINTEXT"] = first_request(ran)
    assert 30 * MS <= found["PLAIN"] - found["PLAINTEXT"] < 33 * MS
    # And the client's 4,096 iterations.
    assert 12 * MS <= found["SCRAM-SHA-512"] - found["PLAIN"] < 16 * MS


CN = {"certificate": {"subject": "CN=shop,O=Acme"}}


@pytest.fixture(scope="module")
def mutual(tmp_path_factory):
    """TLS in which brokers demand a certificate."""
    return secured(
        tmp_path_factory.mktemp("mutual"),
        listener("SSL", **{"ssl.client.auth": "required"}),
        [
            shop(CN, "SSL", name="right"),
            shop(None, "SSL", name="bare", **{"enable.idempotence": False}),
            shop({"certificate": {"subject": "CN=x", "trusted": False}}, "SSL", name="stranger",
                 **{"enable.idempotence": False}),
            shop(None, "PLAINTEXT", name="plain", **{"max.block.ms": 1_000}),
        ],
        [reader(None, "SSL")],
    )  # fmt: skip


def test_a_certificates_subject_is_the_principal(mutual):
    assert outcomes(mutual, "right") == {("ok", "NONE")}
    principals = {row["principal"] for row in events(mutual, "right", "authenticated")}
    assert principals == {"User:CN=shop,O=Acme"}


def test_rules_make_another_principal_of_it(tmp_path):
    rules = {
        "ssl.client.auth": "required",
        "ssl.principal.mapping.rules": "RULE:^CN=(.*?),.*$/$1/U",
    }
    write = {"principal": "User:SHOP", "operation": "Write", "topic": "orders"}
    ran = secured(
        tmp_path, listener("SSL", **rules), [shop(CN, "SSL")], cluster=KAFKA, acls=[write]
    )
    assert outcomes(ran, "shop") == {("ok", "NONE")}
    assert {row["principal"] for row in events(ran, "shop", "authenticated")} == {"User:SHOP"}


def test_a_client_without_a_trusted_certificate_is_told_by_tls_at_once(mutual):
    """An alert does not wait for the delay, which holds up the end of the connection alone."""
    for name in ("bare", "stranger"):
        assert outcomes(mutual, name) == {("failed", "SSL_AUTHENTICATION_FAILED")}
        first = min(row["t_us"] for row in mutual.rows("client_batches", producer=name))
        assert first < 2 * ROUND_US
    [stopped] = mutual.times("node_states", node="reader", state="stopped")
    assert stopped < ROUND_US


def test_a_plaintext_client_of_a_tls_listener_finds_broken_connections_alone(mutual):
    assert outcomes(mutual, "plain") == {("failed", "REQUEST_TIMED_OUT")}


def test_a_tls_client_of_a_plaintext_listener_finds_broken_connections_alone(tmp_path):
    """Its hello is a request of 369 MB, so that the broker closes at once."""
    ran = secured(tmp_path, listener("PLAINTEXT"), [shop(None, "SSL", **{"max.block.ms": 1_000})])
    assert outcomes(ran, "shop") == {("failed", "REQUEST_TIMED_OUT")}
    assert events(ran, "shop", "opened")
    assert not ran.rows("admitted_requests")


def test_a_sasl_client_of_a_listener_without_is_told_illegal_sasl_state(tmp_path):
    ran = secured(tmp_path, listener("PLAINTEXT"), [shop(RIGHT)], lasts="1s")
    assert outcomes(ran, "shop") == {("failed", "ILLEGAL_SASL_STATE")}


def test_acls_are_those_of_the_principal_that_has_logged_in(tmp_path):
    write = {"principal": "User:shop", "operation": "Write", "topic": "orders"}
    billing = RIGHT | {"user": "billing", "password": "billing-secret"}
    ran = secured(
        tmp_path,
        listener(),
        [shop(RIGHT), shop(billing, name="other")],
        cluster=KAFKA,
        acls=[write],
    )  # fmt: skip
    assert outcomes(ran, "shop") == {("ok", "NONE")}
    assert outcomes(ran, "other") == {("failed", "TOPIC_AUTHORIZATION_FAILED")}
    assert {row["principal"] for row in ran.rows("denials")} == {"User:billing"}


def test_a_broker_that_restarts_authenticates_its_clients_anew(tmp_path):
    ran = secured(
        tmp_path, listener(), [shop(RIGHT)], [reader(RIGHT)], lasts="12s",
        cluster={"brokers": 1, "config": {"offsets.topic.replication.factor": 1}},
        topic={"replication.factor": 1, "config": {}},
        faults=[{"at": "3s", "do": "crash", "target": "broker-1", "for": "2s"}],
        then="heal and drain",
    )  # fmt: skip
    again = [row for row in events(ran, "shop", "authenticated") if row["t_us"] > 5 * S]
    assert again
    assert {row["connection"] for row in again} <= {1, 2, 3, 4}, "a process counts from 1"
    assert ran.records["lost_acked"] == 0
    assert ran.checked("clients-are-authenticated") > 100


def test_planted_a_broker_that_lets_everybody_in_breaks_the_invariant(tmp_path, monkeypatch):
    text = text_of(
        cluster={"security": listener()}, producers=[shop(None, "PLAINTEXT")], lasts="1s"
    )
    monkeypatch.setattr(
        server.ServerAuthenticator, "receive", lambda *_: server.Verdict(passes=True)
    )
    with pytest.raises(InvariantBroken, match="clients-are-authenticated"):
        run(load_text(text, "planted"), out=tmp_path / "run")


REFUSED = [
    ({"security": listener(), "zookeeper": {}, "kafka": "3.9"}, {}, "ZooKeeper mode"),
    ({"security": listener(), "replication": "raft"}, {}, "Raft groups"),
    ({"security": listener(), "kafka": "3.4"}, {}, "KIP-900"),
    ({"security": listener("SSL", users=USERS)}, {}, "users with SSL"),
    ({"security": listener("SASL_SSL", **{"ssl.client.auth": "required"})}, {}, "protocol: SSL"),
    ({"security": listener(**{"sasl.enabled.mechanisms": ["GSSAPI"]})}, {}, "GSSAPI"),
    ({"security": {"protocol": "SASL_SSL"}}, {}, "without mechanisms"),
    ({"security": listener("SSL", **{"ssl.client.auth": "required",
                                     "ssl.principal.mapping.rules": "RULE:x/y"})}, {}, "no rule"),
    ({"security": listener("SSL", **{"ssl.client.auth": "required",
                                     "ssl.principal.mapping.rules": "RULE:^CN=a$/a/"})},
     {"producers": [shop(CN, "SSL")]}, "no rule of ssl"),
    ({}, {"producers": [shop(RIGHT)]}, "without cluster.security"),
    ({}, {"producers": [shop(RIGHT, "PLAINTEXT")]}, "a login without cluster.security"),
    ({"security": listener(), **KAFKA}, {"producers": [shop(RIGHT) | {"principal": "User:x"}]},
     "a principal beside cluster.security"),
    ({"security": listener()}, {"producers": [shop()]}, "no sasl.mechanism"),
    ({"security": listener()}, {"producers": [shop(RIGHT, "SSL")]}, "with security.protocol SSL"),
    ({"security": listener()}, {"producers": [shop(RIGHT | CN)]}, "a certificate with"),
    ({"security": listener()}, {"quotas": [{"client.id": "shop", "producer_byte_rate": 1000}]},
     "quotas with cluster.security"),
]  # fmt: skip


@pytest.mark.parametrize(("cluster", "more", "said"), REFUSED, ids=[each[2] for each in REFUSED])
def test_what_does_not_go_together_is_refused_with_the_reason(cluster, more, said):
    clients = {"producers": [shop(protocol="PLAINTEXT")]}
    with pytest.raises(ScenarioError, match=said):
        load_text(text_of(cluster=cluster, **(clients | more)), "refused")


def test_the_written_scenario_is_read_alike():
    text = text_of(cluster={"security": listener("SASL_SSL")}, producers=[shop(RIGHT, "SASL_SSL")])
    scenario = load_text(text, "once")
    assert load_text(scenario.as_yaml(), "once").digest == scenario.digest
