"""Authorisation in whole runs: who may do what, from when on, and what a client does without."""

import pytest

from sim.errors import InvariantBroken, ScenarioError
from sim.ids import FIRST_CONTROLLER_ID
from sim.inspect.doctor import examine
from sim.protocol import authorization
from sim.scenario.loader import load_text
from sim.scenario.run.runner import run
from sim.suite.explain.causes import causes
from sim.suite.explain.run_facts import RunFacts, Story
from tests.scenarios.run_kit import S, go, text_of

KAFKA = {"principal": "User:kafka"}
CONFIG = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:kafka",
}
WRITES = {"principal": "User:shop", "operation": "Write", "topic": "orders"}
READS = {"principal": "User:billing", "operation": "Read", "topic": "orders"}
JOINS = {"principal": "User:billing", "operation": "Read", "group": "bil", "pattern": "prefixed"}
SHOP = {"principal": "User:shop", "rate": "100/s"}
BILLING = {
    "group": "billing", "topics": ["orders"], "count": 2, "principal": "User:billing",
    "config": {"auto.offset.reset": "earliest"},
}  # fmt: skip
APPLIED_US = S // 2
"""Commit of the record, a loader's pass at each broker, and a client's next request."""


def guarded(tmp_path, *, acls=(WRITES, READS, JOINS), config=(), producer=SHOP, **more):
    return go(
        tmp_path,
        producer=producer,
        cluster=KAFKA,
        config=CONFIG | dict(config),
        acls=list(acls),
        **more,
    )


def do(at, kind, acl):
    return {"at": at, "do": kind, **acl}


def outcomes(ran, **where):
    """(second, outcome, error) of the batches."""
    rows = ran.rows("client_batches", **where)
    return {(row["t_us"] // S, row["outcome"], row["error"]) for row in rows}


@pytest.fixture(scope="module")
def changing(tmp_path_factory):
    return guarded(
        tmp_path_factory.mktemp("acls"),
        consumers=[BILLING],
        faults=[
            do("6s", "remove-acl", JOINS),
            do("3s", "remove-acl", WRITES),
            do("4s", "add-acl", {**WRITES, "topic": "*"}),
            do("5s", "add-acl", {**WRITES, "operation": "All", "permission": "deny"}),
            do("5500ms", "remove-acl", READS | {"principal": "User:nobody"}),
        ],
        then="stop",
        lasts="10s",
    )


def test_a_producer_without_write_gets_topic_authorization_failed_and_goes_on_when_it_has_it(
    changing,
):
    refused = "TOPIC_AUTHORIZATION_FAILED"
    assert {found[1:] for found in outcomes(changing) if found[0] in {0, 1, 2}} == {("ok", "NONE")}
    assert (3, "failed", refused) in outcomes(changing)
    assert {found[1:] for found in outcomes(changing) if found[0] >= 6} == {("failed", refused)}
    back = min(changing.times("acl_changes", resource_name="*"))
    again = [t for t in changing.times("client_batches", outcome="ok") if t > 4 * S]
    assert again, "it is not fatal: the next batch is tried"
    assert 0 < again[0] - back < APPLIED_US


def test_each_broker_applies_a_change_when_it_has_replayed_the_record(changing):
    for name, at in (("orders", 3 * S), ("bil", 6 * S)):
        applied = changing.times("acl_changes", resource_name=name, change="removed")
        assert len(applied) == len({*applied}) == 3, "each at an instant of its own"
        assert all(at < t < at + APPLIED_US for t in applied)


def test_the_members_of_a_group_close_when_they_lose_it(changing):
    stopped = {
        row["node"]: row["t_us"]
        for row in changing.rows("node_states", state="stopped")
        if row["node"].startswith("billing")
    }
    assert {*stopped} == {"billing-1", "billing-2"}
    latest = 6 * S + APPLIED_US + 3 * S
    assert all(6 * S < at < latest for at in stopped.values()), "at their next heartbeat"
    errors = {row["error"] for row in changing.rows("denials", resource_type="group")}
    assert errors == {"GROUP_AUTHORIZATION_FAILED"}
    assert changing.verdict["consumer_errors"]["consumers"] == 2
    (ended,) = changing.verdict["consumer_errors"]["ended"]
    assert sorted(ended["consumers"]) == ["billing-1", "billing-2"]
    assert (ended["group"], ended["error"]) == ("billing", "GROUP_AUTHORIZATION_FAILED")
    assert 6 * S < ended["from_us"] < latest
    assert "of group billing ended from 9." in changing.verdict["answer"]["down"]["text"]


def test_an_error_of_poll_that_ended_the_last_consumer_is_why_records_were_not_read(tmp_path):
    member = BILLING | {"count": 1}
    ran = guarded(
        tmp_path, consumers=[member], faults=[do("3s", "remove-acl", READS)], then="stop",
        lasts="12s",
    )  # fmt: skip
    facts = RunFacts(ran.directory)
    story = Story(facts, facts.pick())
    assert story.subject.kind == "unread"
    (row,) = ran.rows("consumer_errors")
    at = f"{row['t_us'] / S:.6f} s"
    assert causes(story)[0] == (
        f"billing, which read the partition, ended at {at}: poll() raised "
        "TOPIC_AUTHORIZATION_FAILED"
    )


def test_a_removal_that_removes_nothing_has_no_effect(changing):
    report = changing.faults[4]
    assert not report["took_effect"]
    assert report["effect"] == "committed, and it was so before"
    assert all(fault["took_effect"] for fault in changing.faults[:4])


def test_both_checks_met_their_subject(changing):
    assert changing.checked("writes-are-authorized") > 0
    assert changing.checked("reads-are-authorized") > 0


def test_the_metadata_log_on_the_disks_holds_the_acls_in_kafkas_bytes(changing):
    """The offline reader decodes every record, and finds nothing wrong."""
    directory = changing.directory / "disks"
    names = sorted(path.name for path in directory.iterdir() if path.name.startswith("controller"))
    assert len(names) == 3
    assert FIRST_CONTROLLER_ID > 0
    assert [found for found in examine(directory) if "metadata" in str(found).lower()] == []


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_consumer_that_loses_read_on_its_topic_gets_nothing_written_since(tmp_path, protocol):
    member = BILLING | {"count": 1, "config": BILLING["config"] | {"group.protocol": protocol}}
    ran = guarded(tmp_path, consumers=[member], faults=[do("3s", "remove-acl", READS)], then="stop")
    last = max(ran.times("reads"))
    assert 2 * S < last < 3 * S + APPLIED_US + S // 2, "a fetch that waits is answered yet"
    assert ran.rows("node_states", node="billing", state="stopped")
    errors = {(row["request"], row["error"]) for row in ran.rows("denials", client="billing")}
    assert ("Fetch", "TOPIC_AUTHORIZATION_FAILED") in errors
    assert ran.checked("reads-are-authorized") > 0


def test_the_existence_of_a_topic_is_hidden_from_who_may_not_describe_it(tmp_path):
    """send() fails with each response for metadata, and the consumer closes at its first one."""
    reader = {"group": "none", "name": "reader", "topics": ["orders"], "principal": "User:x"}
    ran = guarded(
        tmp_path,
        acls=[WRITES],
        producer=SHOP | {"principal": "User:x"},
        consumers=[reader],
        lasts="3s",
        faults=[do("1500ms", "add-acl", {**WRITES, "principal": "User:x"})],
        then="stop",
    )
    assert ran.rows("node_states", node="reader", state="stopped")
    refused = ran.rows("client_batches", outcome="failed")
    assert {row["error"] for row in refused} == {"TOPIC_AUTHORIZATION_FAILED"}
    assert {row["partition"] for row in refused} == {-1}, "by send(), before any partition"
    assert min(ran.times("client_batches", outcome="ok")) > 1_500_000
    assert not ran.rows("denials", request="Produce")


def test_an_idempotent_producer_without_any_write_gets_cluster_authorization_failed(tmp_path):
    """It may see the topic, but has no right that gives it a producer id (KIP-679)."""
    sees = {**WRITES, "operation": "Describe"}
    ran = guarded(
        tmp_path,
        acls=[sees],
        lasts="3s",
        then="stop",
        faults=[do("1500ms", "add-acl", {
            "principal": "User:shop", "operation": "IdempotentWrite", "on.cluster": True})],
    )  # fmt: skip
    early = {found[1:] for found in outcomes(ran) if found[0] == 0}
    late = {found[1:] for found in outcomes(ran) if found[0] == 2}
    assert early == {("failed", "CLUSTER_AUTHORIZATION_FAILED")}
    assert late == {("failed", "TOPIC_AUTHORIZATION_FAILED")}, "an id, but no right on the topic"


@pytest.mark.parametrize(("kafka", "is_fatal"), [("3.5", True), ("3.6", False)])
def test_before_3_6_a_producer_that_was_refused_an_id_once_never_sends_again(
    tmp_path, kafka, is_fatal
):
    """KAFKA-13668: the refusal was fatal, and the right that it gets later is of no use."""
    ran = guarded(
        tmp_path,
        acls=[{**WRITES, "operation": "Describe"}],
        producer=SHOP | {"kafka": kafka},
        lasts="3s",
        then="stop",
        faults=[do("1500ms", "add-acl", WRITES)],
    )
    late = {found[1:] for found in outcomes(ran) if found[0] == 2}
    failed = ("failed", "CLUSTER_AUTHORIZATION_FAILED")
    assert failed in {found[1:] for found in outcomes(ran) if found[0] == 0}
    assert late == ({failed} if is_fatal else {("ok", "NONE")})


PAYS = SHOP | {"transaction": {"records": 20}, "config": {"transactional.id": "pay"}}
OWNS = {"principal": "User:shop", "operation": ["Write", "Describe"], "transactional.id": "pay"}


def test_a_transaction_aborts_without_write_on_its_topic_and_the_next_ones_commit_again(tmp_path):
    ran = guarded(
        tmp_path,
        acls=[WRITES, OWNS],
        producer=PAYS,
        faults=[do("2s", "remove-acl", WRITES), do("4s", "add-acl", WRITES)],
    )
    assert not ran.rows("node_states", node="shop", state="stopped"), "abortable, not fatal"
    seconds = {
        (row["t_us"] // S, row["error"]) for row in ran.rows("client_batches", outcome="failed")
    }
    assert (3, "TOPIC_AUTHORIZATION_FAILED") in seconds
    assert ran.rows("client_batches", outcome="ok")[-1]["t_us"] > 5 * S
    assert ran.records["aborted_read"] == ran.records["lost_acked"] == 0


def test_a_transactional_producer_without_its_transactional_id_ends(tmp_path):
    ran = guarded(
        tmp_path, acls=[WRITES, OWNS], producer=PAYS, faults=[do("2s", "remove-acl", OWNS)]
    )
    assert ran.rows("node_states", node="shop", state="stopped")
    errors = {row["error"] for row in ran.rows("client_batches", outcome="failed")}
    assert "TRANSACTIONAL_ID_AUTHORIZATION_FAILED" in errors


def test_with_acks_0_the_connection_is_closed_and_the_producer_knows_nothing(tmp_path):
    blind = SHOP | {"config": {"acks": 0, "enable.idempotence": False}}
    ran = guarded(tmp_path, producer=blind, faults=[do("3s", "remove-acl", WRITES)], then="stop")
    assert ran.rows("denials", request="Produce")
    written = ran.times("appends", as_leader=True, topic="orders")
    assert max(written) < 3 * S + APPLIED_US
    assert {row["outcome"] for row in ran.rows("client_batches")} >= {"ok"}


def test_a_broker_that_starts_again_has_all_acls_before_its_port_opens(tmp_path):
    crash = {"at": "2s", "do": "crash", "target": "broker-1", "for": "2s"}
    ran = guarded(tmp_path, consumers=[BILLING], faults=[crash, do("3s", "remove-acl", WRITES)],
                  lasts="12s", then="stop")  # fmt: skip
    (known,) = ran.times("acl_changes", broker=1, change="removed")
    (*_, opened) = ran.times("node_states", node="broker-1", state="running")
    assert known <= opened
    assert ran.checked("writes-are-authorized") > 0


SHARES = {**BILLING, "group.type": "share", "config": {"share.auto.offset.reset": "earliest"}}


@pytest.mark.parametrize("lost", [READS, JOINS])
def test_members_of_a_share_group_that_lose_a_right_close_and_get_nothing_written_since(
    tmp_path, lost
):
    """Read on the topic is asked with each ShareFetch, Read on the group with each heartbeat."""
    ran = guarded(
        tmp_path,
        producer=SHOP | {"rate": "20/s"},
        consumers=[SHARES],
        faults=[do("6s", "remove-acl", lost)],
        lasts="14s",
        then="stop",
    )
    read = ran.times("reads")
    assert read
    assert all(ran.rows("node_states", node=f"billing-{n}", state="stopped") for n in (1, 2))
    errors = {(row["request"], row["error"]) for row in ran.rows("denials")}
    if lost is READS:
        assert max(read) < 6 * S + APPLIED_US
        assert ("ShareFetch", "TOPIC_AUTHORIZATION_FAILED") in errors
    else:
        assert ("ShareGroupHeartbeat", "GROUP_AUTHORIZATION_FAILED") in errors
    assert ran.checked("reads-are-authorized") > 0


@pytest.fixture
def blind(monkeypatch):
    """The planted defect: a broker that lets every request pass."""
    made = authorization.ApiAuthorizer.__init__

    def unchecked(self, config):
        made(self, authorization.AuthorizerConfig(config.clients, config.super_users, checks=False))

    monkeypatch.setattr(authorization.ApiAuthorizer, "__init__", unchecked)


@pytest.mark.parametrize("acl", [WRITES, READS])
def test_a_broker_that_lets_everything_pass_is_found(tmp_path, blind, acl):
    text = text_of(
        cluster=KAFKA, config=CONFIG, producer=SHOP, consumers=[BILLING], lasts="8s",
        acls=[WRITES, READS, JOINS], faults=[do("4s", "remove-acl", acl)],
    )  # fmt: skip
    name = "writes-are" if acl is WRITES else "reads-are"
    with pytest.raises(InvariantBroken, match=f"invariant {name}-authorized broken at "):
        run(load_text(text), out=tmp_path / "run")


def refused(**parts):
    with pytest.raises(ScenarioError) as caught:
        load_text(text_of(**{"cluster": KAFKA, "config": CONFIG, **parts}))
    return str(caught.value)


def test_what_does_not_go_with_an_authorizer_is_refused_with_the_reason():
    assert "not in it: they could not register" in refused(cluster={})
    assert "a principal without authorizer" in refused(cluster={}, config={}, producer=SHOP)
    assert "an ACL without authorizer" in refused(cluster={}, config={}, acls=[WRITES])
    assert "an ACL without authorizer" in refused(
        cluster={}, config={}, faults=[do("1s", "add-acl", WRITES)]
    )
    assert "super.users without authorizer" in refused(config={"super.users": "User:kafka"})
    assert "KIP-801" in refused(cluster=KAFKA | {"kafka": "3.1"})
    assert "quotas with authorizer" in refused(
        quotas=[{"client.id": "shop", "producer_byte_rate": "1MB/s"}]
    )
    assert "authorizer" in refused(cluster={"zookeeper": {}, "kafka": "2.8"} | KAFKA)


def test_an_acl_that_kafka_would_not_take_is_refused_with_what_it_may_be():
    assert "an ACL without a resource" in refused(
        acls=[{"principal": "User:x", "operation": "Read"}]
    )
    assert "topic beside group" in refused(acls=[READS | {"group": "x"}])
    assert "no operation 'Reed' on a topic" in refused(acls=[READS | {"operation": "Reed"}])
    assert "no operation 'Write' on a group" in refused(acls=[JOINS | {"operation": "Write"}])
    assert "'shop'" in refused(acls=[WRITES | {"principal": "shop"}])
    assert "twice" in refused(acls=[WRITES, WRITES])
    assert "prefixed with on.cluster" in refused(
        acls=[{"principal": "User:x", "operation": "All", "on.cluster": True,
               "pattern": "prefixed"}]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("resource", "operation", "why"),
    [
        ({"delegation.token": "t"}, "Describe", "delegation.token, which is not simulated: only"),
        ({"user.principal": "User:y"}, "CreateTokens", "tokens for themselves alone (KIP-373)"),
        ({"transactional.id": "t"}, "TwoPhaseCommit", "have one phase (KIP-939)"),
    ],
)
def test_an_acl_of_kafkas_that_would_have_no_effect_is_refused_with_the_reason(
    resource, operation, why
):
    """``AclEntry.supportedOperations`` (4.3)."""
    acl = {"principal": "User:x", "operation": operation, **resource}
    assert why in refused(acls=[acl])
    for kind in ("add-acl", "remove-acl"):
        assert why in refused(faults=[do("1s", kind, acl)])


def test_a_scenario_with_acls_can_be_written_out_and_loaded_again():
    text = text_of(
        cluster=KAFKA, config=CONFIG, producer=SHOP, consumers=[BILLING],
        acls=[WRITES | {"host": "shop"}, OWNS, JOINS | {"permission": "deny"}],
        faults=[do("1s", "remove-acl", OWNS), do("2s", "add-acl", READS)],
    )  # fmt: skip
    scenario = load_text(text)
    assert len(scenario.acls) == 4
    again = load_text(scenario.as_yaml())
    assert again.as_yaml() == scenario.as_yaml()
    assert (again.acls, again.faults) == (scenario.acls, scenario.faults)
