"""Faults beyond crash, cut and power: what each is known to do to a cluster, beside its control."""

import pytest

from sim.errors import ScenarioError
from sim.scenario.loader import load_text
from tests.scenarios.run_kit import S, go, text_of

FLUSHED = {"partitions": 1, "config": {"min.insync.replicas": 2, "flush.messages": 1}}
LEADER = "leader of orders-0"


def do(kind, at="2s", **more):
    return {"at": at, "do": kind, **more}


def for_(lasts):
    return {"for": lasts}


# -- disks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("lies", [True, False])
def test_a_lying_flush_loses_what_was_flushed_before_every_acknowledgement(lies, tmp_path):
    dark = do("power-loss", "3s", target="all brokers", **for_("1s"))
    lying = do("lying-flush", "0s", target="all brokers")
    ran = go(tmp_path, faults=[lying, dark] if lies else [dark], topic=FLUSHED, lasts="5s")
    assert (ran.records["lost_acked"] > 0) is lies
    assert all(fault["took_effect"] for fault in ran.faults)


def test_a_broker_on_new_disks_has_another_directory_id_and_fetches_everything_again(tmp_path):
    ran = go(tmp_path, faults=[do("wiped-disk", target="broker-2")], lasts="5s")
    assert ran.faults[0]["effect"].startswith("wiped broker-2 (")
    wiped = ran.rows("truncations", broker=2, topic="orders", reason="wiped")
    assert len(wiped) == 3
    assert {row["to_offset"] for row in wiped} == {0}
    assert ran.records["lost_acked"] == 0
    assert {row["in_sync"] for row in ran.rows("partition_changes", topic="orders")[-3:]} == {
        "1,2,3"
    }


def test_a_write_torn_by_a_kill_is_cut_and_costs_nothing_that_was_acknowledged(tmp_path):
    alone = {"partitions": 1, "replication.factor": 1, "config": {"min.insync.replicas": 1}}
    ran = go(
        tmp_path, faults=[do("torn-write", target=LEADER)], topic=alone, acks=1, lasts="5s",
    )  # fmt: skip
    who = int(ran.faults[0]["resolved"].removeprefix("broker-"))
    (recovery,) = ran.rows("recoveries", broker=who, topic="orders")
    assert recovery["truncated_bytes"] > 0
    assert ran.records["lost_acked"] == 0
    assert ran.rows("truncations", broker=who, topic="orders") == []


# -- hosts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
def test_connections_wait_in_the_backlog_until_there_are_descriptors(protocol, tmp_path):
    config = {"acks": "all", "security.protocol": protocol}
    late = {"start": "3s", "rate": "100/s", "config": config}
    none = do("no-file-descriptors", target="all brokers", **for_("2500ms"))
    ran = go(tmp_path, faults=[none], producer=late, lasts="6s")
    usual = go(tmp_path, producer=late, lasts="6s")
    assert min(usual.times("client_batches", outcome="ok")) < 3.2 * S
    assert min(ran.times("client_batches", outcome="ok")) > 4.5 * S
    assert ran.records["acked"] == ran.records["sent"] == usual.records["sent"]
    assert "could not be opened" in ran.faults[0]["effect"]


def test_without_descriptors_a_segment_cannot_roll_and_the_directory_goes_offline(tmp_path):
    rolls = {"partitions": 1, "config": {"min.insync.replicas": 2, "segment.ms": 500}}
    ran = go(
        tmp_path, faults=[do("no-file-descriptors", target=LEADER, **for_("2s"))], topic=rolls,
        lasts="5s",
    )  # fmt: skip
    (who,) = [fault["resolved"] for fault in ran.faults]
    assert ran.times("node_states", node=who, state="crashed")
    assert ran.records["lost_acked"] == 0


def test_a_slow_cpu_makes_every_request_late(tmp_path):
    slow = go(
        tmp_path,
        faults=[do("slow-cpu", target="all brokers", factor=200, **for_("1s"))],
        lasts="4s",
    )
    usual = go(tmp_path, lasts="4s")
    p99 = [ran.verdict["latency_us"]["produce"]["p99"] for ran in (slow, usual)]
    assert p99[0] > 5 * p99[1]
    assert slow.records["acked"] == slow.records["sent"]


# -- procedures and load --------------------------------------------------------------------------


def test_a_rolling_restart_takes_one_broker_after_the_other_and_waits_for_the_isr(tmp_path):
    ran = go(
        tmp_path,
        faults=[do("rolling-restart", target="all brokers", down="300ms", settle="200ms")],
        lasts="8s",
        config={"broker.session.timeout.ms": 1_000, "broker.heartbeat.interval.ms": 200},
    )
    states = [
        (row["node"], row["state"])
        for row in ran.rows("node_states")
        if row["t_us"] >= 2 * S and row["state"] in ("stopped", "started")
        if row["node"].startswith("broker")
    ]
    order = [f"broker-{n}" for n in (1, 2, 3)]
    assert states == [(name, state) for name in order for state in ("stopped", "started")]
    asked = ran.times("broker_states", state="controlled_shutdown")
    assert len(asked) == 3
    for instant in asked:
        last = {
            row["partition"]: row["in_sync"]
            for row in ran.rows("partition_changes", topic="orders")
            if row["t_us"] < instant
        }
        assert set(last.values()) == {"1,2,3"}
    assert ran.faults[0]["effect"] == "restarted broker-1, broker-2, broker-3"
    assert ran.records["lost_acked"] == ran.records["failed"] == 0


def test_a_rolling_restart_that_cannot_go_on_says_so(tmp_path):
    """The second broker's ISR cannot be whole while the third is dead."""
    ran = go(
        tmp_path,
        faults=[
            do("crash", "1s", target="broker-3"),
            do("rolling-restart", "1500ms", target=["broker-1", "broker-2"]),
        ],
        lasts="4s",
        then="stop",
    )
    assert ran.faults[1]["effect"] == "restarted broker-1; not at its end"


def test_a_surge_of_load_is_sent_and_the_rest_is_as_before(tmp_path):
    surge = do("load-surge", target="shop", factor=4, **for_("1s"))
    ran = go(tmp_path, faults=[surge], producer={"rate": "200/s"}, lasts="4s")
    assert ran.records["sent"] == 200 * 3 + 800
    assert ran.faults[0]["effect"].endswith("records were sent meanwhile")


# -- the language ---------------------------------------------------------------------------------


def loaded(*faults):
    return load_text(text_of(faults=list(faults)))


def test_a_link_that_flaps_is_as_many_cuts_as_fit():
    flap = do("partition", "1s", between="broker-1", every="1s", **for_("300ms"))
    assert [fault.at_us for fault in loaded(flap).faults] == [S, 2 * S, 3 * S, 4 * S, 5 * S]
    twice = loaded(flap | {"times": 2}).faults
    assert [(fault.at_us, fault.index) for fault in twice] == [(S, 0), (2 * S, 1)]


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (do("crash", target="broker-1", times=3, **for_("1s")), "but no every"),
        (do("crash", target="broker-1", every="500ms", times=3, **for_("1s")), "overlaps"),
        (do("load-surge", target="broker-1", factor=2), "is no producer"),
        (do("delay", between="broker-1", by="1ms", message="Fetch"), "no message 'Fetch'"),
        (do("slow-cpu", target="shop", factor=2), "is a client"),
        (do("rolling-restart", target="rack x"), "no rack"),
    ],
)
def test_what_a_fault_cannot_mean_is_refused(fault, told):
    with pytest.raises(ScenarioError, match=told):
        loaded(fault)


def test_several_targets_are_hit_at_once(tmp_path):
    full = do("crash", target=["broker-1", "broker-3"], **for_("1s"))
    ran = go(tmp_path, faults=[full], lasts="4s")
    assert ran.faults[0]["resolved"] == "broker-1, broker-3"
    killed = [row["node"] for row in ran.rows("node_states", state="crashed")]
    assert killed == ["broker-1", "broker-3"]


def test_one_kind_of_message_is_delayed_and_the_others_are_not(tmp_path):
    slow = do("delay", "0s", between="all brokers", message="ProduceResponse", by="150ms")
    ran = go(tmp_path, faults=[slow], lasts="3s")
    assert ran.verdict["latency_us"]["produce"]["p50"] > 150_000
    by_kind = {row["kind"]: row for row in ran.rows("messages") if row["delayed_by"]}
    assert list(by_kind) == ["ProduceResponse"]
