"""Kafka's timers as a whole cluster shows them: when a dead or a lagging replica is given up.

Source: ``broker.session.timeout.ms`` and the controller's fencing task; ``replica.lag.time.max.ms``
and the leader's check every half of it.
"""

import pytest

from tests.scenarios.run_kit import S, go

JOIN_US = S // 10
"""Allowance for commits and round trips beside a timer."""


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
    nothing = {"p50": "0ms", "p99": "0ms"}
    applied = applied_after(
        tmp_path, config={"controller.quorum.append.linger.ms": linger_ms},
        cluster={"cpu": {"metadata.load": nothing, "metadata.publish": nothing}},
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
    nothing = {"p50": "0ms", "p99": "0ms"}
    applied = applied_after(
        tmp_path,
        cluster={
            "kafka": kafka,
            "controllers": controllers,
            "cpu": {"metadata.load": nothing, "metadata.publish": nothing},
        },
    )
    assert len(applied) == 3
    assert all(least <= after <= most for after in applied)
