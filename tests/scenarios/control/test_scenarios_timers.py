"""Kafka's timers as a whole cluster shows them: when a dead or a lagging replica is given up.

Source: ``broker.session.timeout.ms`` and the controller's fencing task; ``replica.lag.time.max.ms``
and the leader's check every half of it.
"""

import pytest

from tests.scenarios.run_kit import S, go

JOIN_US = S // 10
"""Allowance for commits and round trips beside a timer."""

NOTHING = {"p50": "0ms", "p99": "0ms"}
AT_ONCE = {"metadata.load": NOTHING, "metadata.publish": NOTHING}
"""Brokers apply metadata in no time."""


def last_heartbeat(ran, broker, before):
    """Instant at which the active controller handled the broker's last heartbeat."""
    told = ran.rows("requests", client=broker, kind="BrokerHeartbeat")
    assert told
    return max(row["decided_us"] for row in told if row["decided_us"] < before)


@pytest.mark.parametrize("at", ["2s", "2.5s", "3.1s", "3.7s"])
def test_a_dead_broker_is_fenced_9_to_10_125_s_after_its_last_heartbeat(at, tmp_path):
    faults = [{"at": at, "do": "crash", "target": "broker-2"}]
    ran = go(tmp_path, faults=faults, lasts="16s", then="stop", producer={"rate": "50/s"})
    (fenced,) = ran.times("broker_states", broker=2, state="fenced")
    waited = fenced - last_heartbeat(ran, "broker-2", fenced)
    assert 9 * S <= waited <= 10.125 * S + JOIN_US


def test_a_shorter_session_fences_sooner(tmp_path):
    """The limit: it is the setting that decides, and half a second is not nine."""
    faults = [{"at": "2s", "do": "crash", "target": "broker-2"}]
    ran = go(
        tmp_path, faults=faults, lasts="8s", then="stop",
        config={"broker.session.timeout.ms": 3000, "broker.heartbeat.interval.ms": 500},
    )  # fmt: skip
    (fenced,) = ran.times("broker_states", broker=2, state="fenced")
    waited = fenced - last_heartbeat(ran, "broker-2", fenced)
    assert 3 * S <= waited <= 3 * S * 9 / 8 + JOIN_US


@pytest.mark.parametrize(("lag_ms", "lasts"), [(30_000, "50s"), (6_000, "14s")])
def test_a_follower_that_lives_but_does_not_fetch_leaves_the_isr_in_1_to_1_5_times_the_lag(
    lag_ms, lasts, tmp_path
):
    cut = {
        "at": "2s", "do": "partition", "between": "leader of orders-0",
        "and": "follower of orders-0",
    }  # fmt: skip
    ran = go(
        tmp_path, faults=[cut], lasts=lasts, then="stop", topic={"partitions": 1},
        producer={"rate": "50/s"}, config={"replica.lag.time.max.ms": lag_ms},
    )  # fmt: skip
    leader, follower = ran.faults[0]["resolved"].split(" <-> ")
    (shrunk,) = [row for row in ran.rows("partition_changes", topic="orders") if row["t_us"] > 0]
    assert shrunk["leader"] == int(leader.removeprefix("broker-"))
    assert follower.removeprefix("broker-") not in shrunk["in_sync"].split(",")
    lag_us = lag_ms * 1_000
    assert lag_us < shrunk["t_us"] - 2 * S <= lag_us * 1.5 + JOIN_US
    assert ran.rows("broker_states", state="fenced") == [], "its heartbeats arrive"


def test_a_follower_that_comes_back_in_time_stays_in_the_isr(tmp_path):
    """The limit: less than the lag is allowed."""
    cut = {
        "at": "2s", "do": "partition", "between": "leader of orders-0",
        "and": "follower of orders-0", "for": "3s",
    }  # fmt: skip
    ran = go(
        tmp_path, faults=[cut], lasts="14s", topic={"partitions": 1}, producer={"rate": "50/s"},
        config={"replica.lag.time.max.ms": 10_000},
    )  # fmt: skip
    assert [row for row in ran.rows("partition_changes", topic="orders") if row["t_us"] > 0] == []


def test_an_isolated_controller_leader_is_replaced_and_sessions_begin_anew(tmp_path):
    """A broker that dies with the controller is fenced 9 s after the next one is active."""
    faults = [
        {"at": "2s", "do": "crash", "target": "controller leader"},
        {"at": "2s", "do": "crash", "target": "broker-2"},
    ]
    ran = go(tmp_path, faults=faults, lasts="20s", then="stop", producer={"rate": "50/s"})
    elected = min(row["t_us"] for row in ran.rows("quorum", role="leader") if row["t_us"] > 2 * S)
    assert 1.5 * S <= elected - 2 * S <= 5 * S
    (fenced,) = ran.times("broker_states", broker=2, state="fenced")
    assert 9 * S <= fenced - elected <= 10.125 * S + S // 2


def applied_after(tmp_path, **more):
    """How long after the wish of a controlled shutdown brokers apply who leads now."""
    stop = {"at": "3s", "do": "controlled-shutdown", "target": "leader of orders-0", "for": "1s"}
    ran = go(
        tmp_path, faults=[stop], lasts="4s", then="stop", topic={"partitions": 1},
        producer={"rate": "50/s"}, **more,
    )  # fmt: skip
    rows = ran.rows("leadership", topic="orders", leader_epoch=1)
    return [row["t_us"] - 3 * S for row in rows[:3]]


def test_brokers_apply_a_change_90_to_170_ms_after_the_controller_decided_on_it(tmp_path):
    """As measured on 4.3.1: the linger of 25 ms, a commit, a fetch, the loader, the publishers."""
    applied = applied_after(tmp_path)
    assert len(set(applied)) == 3, "each broker takes its own time"
    assert all(85_000 <= after <= 180_000 for after in applied)


@pytest.mark.parametrize(("linger_ms", "least"), [(25, 25_000), (0, 0)])
def test_without_costs_of_metadata_the_linger_is_all_that_a_change_waits_for(
    linger_ms, least, tmp_path
):
    applied = applied_after(
        tmp_path, config={"controller.quorum.append.linger.ms": linger_ms},
        cluster={"cpu": AT_ONCE},
    )  # fmt: skip
    assert all(least <= after <= least + 10_000 for after in applied)


@pytest.mark.parametrize(
    ("kafka", "controllers", "least", "most"),
    [("3.9", 3, 100_000, 555_000), ("4.1", 3, 25_000, 35_000), ("3.9", 1, 25_000, 35_000)],
)
def test_before_kip_1166_brokers_hear_of_a_commit_with_the_next_record_of_the_metadata(
    kafka, controllers, least, most, tmp_path
):
    """At the latest a no-op record, each 500 ms; an only controller commits as it writes."""
    applied = applied_after(
        tmp_path, cluster={"kafka": kafka, "controllers": controllers, "cpu": AT_ONCE}
    )
    assert len(applied) == 3
    assert all(least <= after <= most for after in applied)


# -- leaders that do not know that they are deposed ------------------------------------------------


PAUSE = {"at": "2s", "do": "pause", "target": "leader of orders-0", "for": "4s"}
KILL = PAUSE | {"do": "crash"}
CUT = {"at": "2s", "do": "partition", "between": ["leader of orders-0"], "for": "6150ms"}


def deposed(tmp_path, fault, *, lasts="7s", cpu=(), **producer):
    """A run with acks=1 and one partition, and what its first leader applied when it lost it."""
    ran = go(
        tmp_path, faults=[fault], lasts=lasts, acks=1,
        topic={"partitions": 1, "config": {"min.insync.replicas": 1}},
        config={"broker.session.timeout.ms": 1_000, "broker.heartbeat.interval.ms": 300},
        producer=producer, cluster={"cpu": dict(cpu)},
    )  # fmt: skip
    old = ran.leader_at(2 * S)
    rows = ran.rows("leadership", topic="orders", broker=old)
    return ran, next(row for row in rows if row["t_us"] > 2 * S)


def test_a_woken_leader_acknowledges_its_backlog_before_it_applies_that_another_one_leads(tmp_path):
    """What 4 s bring is acknowledged with acks=1 while the metadata is loaded, and all of it lost.

    Its high watermark stays: nobody follows it. So its consumers see none of it.
    """
    ran, row = deposed(tmp_path, PAUSE, rate="500/s")
    assert ran.changed_leader(2 * S) < 4 * S
    assert 70_000 <= row["t_us"] - 6 * S <= 160_000
    lost = ran.records["lost_acked"]
    assert 1_950 <= lost <= 2_200
    assert row["high_watermark"] <= 1_001
    assert row["log_end_offset"] - row["high_watermark"] >= lost


def test_a_woken_leader_that_applies_metadata_at_once_acknowledges_little_of_its_backlog(tmp_path):
    ran, row = deposed(tmp_path, PAUSE, cpu=AT_ONCE, rate="500/s")
    assert row["t_us"] - 6 * S <= 5_000
    assert 0 < ran.records["lost_acked"] <= 100


def test_a_healed_leader_acknowledges_until_it_has_connected_to_the_controllers_again(tmp_path):
    """A segment of its producer goes again 6.2 s after the cut began, and that is soon enough.

    Its own quorum connection was given up after 2 s: the SYN of another goes each second.
    """
    ran, row = deposed(tmp_path, CUT, lasts="11s", rate="500/s")
    assert ran.changed_leader(2 * S) < 4 * S
    healed = 8.15 * S
    assert healed + 70_000 <= row["t_us"] <= healed + 3 * S
    unfetched = 5  # what the followers had not fetched when the cut began: 10 ms of records
    assert 3_000 <= ran.records["lost_acked"] <= (row["t_us"] - 2 * S) * 500 / S + unfetched
    assert row["high_watermark"] <= 1_001


def test_a_killed_leaders_requests_come_again_in_reverse_order_if_its_sockets_outlast_it(tmp_path):
    """As the accumulator of 4.1 takes batches back that have no sequences: each at the front.

    While the kernel frees the process's memory, five requests of five to seven records each come to
    wait for answers: all but those of the newest are written behind newer ones. No more than one
    waits if the process is gone at once.
    """
    slow, _ = deposed(tmp_path, KILL, rate="1000/s", **{"record.size": "500B"})
    quick, _ = deposed(
        tmp_path, KILL, cpu={"teardown": "0us"}, rate="1000/s",
        **{"record.size": "500B"},
    )  # fmt: skip
    assert 4 * 5 <= slow.records["reordered"] <= 4 * 7
    assert quick.records["reordered"] == 0


def test_a_broker_that_cannot_register_in_time_halts(tmp_path):
    """Its last session is valid for 9 s: a registration before that is a duplicate."""
    crash = {"at": "2s", "do": "crash", "target": "broker-3", "for": "1s"}
    config = {"initial.broker.registration.timeout.ms": 3_000}
    ran = go(tmp_path, faults=[crash], config=config, lasts="14s")
    (halt,) = ran.rows("halts")
    assert halt["reason"] == "not registered within initial.broker.registration.timeout.ms"
    (started,) = (
        row["t_us"] for row in ran.rows("node_states", node="broker-3", state="started")
        if row["incarnation"] == 2
    )  # fmt: skip
    # It looks at the clock at each attempt, every broker.heartbeat.interval.ms.
    assert 3 * S <= halt["t_us"] - started <= (3 + 2) * S + JOIN_US


@pytest.mark.parametrize(("kafka", "comes_back"), [("3.1", False), ("3.2", True)])
def test_before_3_2_a_kraft_controller_gives_no_leadership_back(kafka, comes_back, tmp_path):
    """KAFKA-13682: the preferred leader is in the ISR again 13 s after its restart or sooner."""
    ran = go(
        tmp_path, lasts="20s", then="stop", topic={"partitions": 1}, cluster={"kafka": kafka},
        config={"leader.imbalance.check.interval.seconds": 2},
        faults=[{"at": "2s", "do": "restart", "target": "leader of orders-0"}],
    )  # fmt: skip
    preferred = int(ran.faults[0]["resolved"].removeprefix("broker-"))
    last = ran.rows("partition_changes", topic="orders")[-1]
    assert len(last["in_sync"].split(",")) == 3
    assert (last["leader"] == preferred) is comes_back


# -- controllers that are silent -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kafka", "timeout", "waits"),
    [
        ("4.3", 2 * S, (2 * S,) * 5),  # broker.heartbeat.interval.ms, both
        ("4.0", 4.5 * S, (S / 10, S / 5, S / 2.5)),  # half a session; an exponential back-off
        ("3.3", 30 * S, ()),  # controller.socket.timeout.ms
    ],
)
def test_a_broker_gives_a_silent_controller_up_as_its_release_does(kafka, timeout, waits, tmp_path):
    """The controller is paused from 2 s to 14 s, and its sockets stay open.

    A heartbeat that is given up is never handled, as its connection is closed. So the first that
    is handled afterwards says how many were given up, and when: each was sent after the timeout of
    the one before, and a wait.
    """
    pause = {"at": "2s", "do": "pause", "target": "controller leader", "for": "12s"}
    ran = go(
        tmp_path, faults=[pause], lasts="20s", then="stop", producer={"rate": "20/s"},
        cluster={"kafka": kafka, "controllers": 1},
    )  # fmt: skip
    for broker in ("broker-1", "broker-2", "broker-3"):
        handled = ran.rows("requests", client=broker, kind="BrokerHeartbeat")
        expected = 2 * S + max(row["decided_us"] for row in handled if row["decided_us"] < 2 * S)
        for wait in waits:
            if expected + timeout < 14 * S:
                expected += timeout + wait
        sent = min(row["sent_us"] for row in handled if row["decided_us"] >= 14 * S)
        assert abs(sent - expected) <= S // 50, broker
