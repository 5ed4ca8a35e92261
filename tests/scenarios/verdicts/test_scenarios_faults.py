"""Each kind of fault takes effect in a whole cluster, with consequences that Kafka is known for.

Numbers come from Kafka's defaults: a session of 9 s, looked at every 1.125 s, heartbeats every 2 s.
"""

import pytest

from sim.faults.objects import OBJECT_FAULTS
from sim.faults.registry import KINDS
from sim.inspect.doctor import examine
from tests.scenarios.each_fault import EACH_KIND, ELSEWHERE, FOLLOWER, LEADER
from tests.scenarios.run_kit import S, go

ONE = {"partitions": 1}
"""So that every record goes where the fault is, and a gap is an outage."""
FLUSHED = {"config": {"min.insync.replicas": 2, "flush.messages": 1}}


def do(kind, at="2s", **more):
    return {"at": at, "do": kind, **more}


def number_of(fault):
    return int(fault["resolved"].removeprefix("broker-"))


def gap(ran):
    """Longest time without an acknowledgement; for topics of one partition."""
    return ran.verdict["availability"]["partitions"]["orders-0"]["produce_us"]


def slowest(ran, start, end):
    """Longest produce latency told between two instants."""
    return max(
        max(row["latency_us"]) for row in ran.rows("client_batches") if start <= row["t_us"] < end
    )


def no_replica_differs(ran):
    return (
        ran.records["divergent"] == 0
        and ran.verdict["internal_divergent"] == 0
        and not any(examine(directory) for directory in ran.log_dirs())
    )


ALONE = {"name": "alone", "group": "none", "topics": ["orders"]}


# -- the language ---------------------------------------------------------------------------------


def test_every_kind_of_the_language_is_tried():
    """An administrator's doings, and the object store's faults, have files of their own."""
    tried_there = {name for name, kind in KINDS.items() if kind.span == "operation"}
    tried_there |= {kind.kind for kind in OBJECT_FAULTS}
    assert {*EACH_KIND} == {*KINDS} - tried_there - ELSEWHERE


@pytest.mark.parametrize("kind", EACH_KIND)
def test_each_kind_takes_effect_and_costs_no_acknowledged_record(kind, tmp_path):
    """acks=all and two in-sync replicas survive any one of them; afterwards all is mended."""
    topic = {"config": FLUSHED["config"] | {"segment.ms": 600}}
    ran = go(
        tmp_path, faults=[do(kind, **EACH_KIND[kind])], topic=topic, producer={"rate": "200/s"},
        consumers=[ALONE] if KINDS[kind].hits == "consumer" else [], lasts="4s",
    )  # fmt: skip
    (fault,) = ran.faults
    assert fault["took_effect"], fault["effect"]
    assert fault["resolved"]
    (began, *healed) = ran.rows("faults", fault=0)
    assert (began["phase"], began["t_us"]) == ("began", 2 * S)
    ends = "for" in str(EACH_KIND[kind]) or KINDS[kind].span == "procedure"
    assert [row["phase"] for row in healed] == (["healed"] if ends else [])
    assert ran.records["lost_acked"] == ran.records["duplicated"] == ran.records["reordered"] == 0
    sent = 1_200 if kind == "load-surge" else 800
    assert ran.records["acked"] == ran.records["sent"] == sent
    assert no_replica_differs(ran)
    assert ran.verdict["held"]


def test_a_fault_that_changes_nothing_is_no_pass(tmp_path):
    ran = go(
        tmp_path,
        faults=[
            do("crash", at="1s", target="broker-1", **{"for": "3s"}),
            do("pause", target="broker-1", **{"for": "1s"}),
        ],
        lasts="4s",
    )
    assert [fault["took_effect"] for fault in ran.faults] == [True, False]
    assert ran.faults[1]["effect"] == "was not running"
    assert ran.card["complete"] is True
    assert ran.verdict["held"] is False


# -- processes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_leadership_of_a_crashed_broker_moves_in_7_to_12_seconds(seed, tmp_path):
    ran = go(
        tmp_path,
        faults=[do("crash", target=LEADER)],
        lasts="16s",
        seed=seed,
        then="stop",
        topic=ONE,
    )
    moved = ran.changed_leader(2 * S) - 2 * S
    assert 7 * S <= moved <= 12 * S
    assert moved <= gap(ran) <= moved + 2 * S, "the outage is the detection and little more"
    assert ran.leader_at(16 * S) != number_of(ran.faults[0])


def test_a_restart_waits_for_the_session_of_the_former_process(tmp_path):
    """DUPLICATE_BROKER_REGISTRATION until the session of 9 s is over, then a place in the ISR."""
    ran = go(tmp_path, faults=[do("restart", target=LEADER)], lasts="16s")
    name = ran.faults[0]["resolved"]
    states = [(row["state"], row["incarnation"]) for row in ran.rows("node_states", node=name)]
    assert states == [
        ("started", 1), ("running", 1), ("crashed", 1), ("started", 2), ("running", 2),
    ]  # fmt: skip
    (_, unfenced) = ran.times("node_states", node=name, state="running")
    assert 7 * S <= unfenced - 2 * S <= 14 * S
    assert ran.rows("partition_changes", topic="orders")[-1]["in_sync"] == "1,2,3"


def test_a_restarted_broker_answers_nobody_before_it_is_unfenced(tmp_path):
    """The session of the former process keeps it out for 7 s and more, though it runs.

    Then it leads again, and its producers come.
    """
    curious = {"count": 3, "config": {"acks": "all", "metadata.max.age.ms": 500}}
    ran = go(
        tmp_path, faults=[do("restart", target=LEADER)], lasts="20s", then="stop",
        producer={"rate": "20/s"} | curious,
        config={"leader.imbalance.check.interval.seconds": 2},
    )  # fmt: skip
    name = ran.faults[0]["resolved"]
    (_, again) = ran.times("node_states", node=name, state="started")
    (_, unfenced) = ran.times("node_states", node=name, state="running")
    assert unfenced - again > 5 * S
    answered = ran.times("requests", node=number_of(ran.faults[0]))
    assert [at for at in answered if again <= at < unfenced] == []
    assert [at for at in answered if at >= unfenced]


AT_ONCE = {"p50": "0ms", "p99": "0ms"}
METADATA_AT_ONCE = {"cpu": {"metadata.load": AT_ONCE, "metadata.publish": AT_ONCE}}


@pytest.mark.parametrize(
    ("cluster", "seed", "too_early"),
    [(METADATA_AT_ONCE, 1, False), ({}, 4, False), ({}, 1, True)],
    ids=["metadata_at_once", "leader_before_follower", "follower_before_leader"],
)
def test_a_controlled_shutdown_hands_over_at_once(cluster, seed, too_early, tmp_path):
    """Unless the remaining follower meets the new leader before that one knows that it leads.

    Then it is refused, and fetches again after replica.fetch.backoff.ms (AbstractFetcherThread).
    """
    stop = do("controlled-shutdown", at="3s", target=LEADER, **{"for": "1s"})
    ran = go(tmp_path, faults=[stop], lasts="5s", topic=ONE, cluster=cluster, seed=seed)
    assert ran.changed_leader(3 * S) - 3 * S < S // 5
    applied = ran.rows("leadership", topic="orders", leader_epoch=1)[:3]
    assert all(row["t_us"] - 3 * S < S // 5 for row in applied)
    when = {row["broker"]: row["t_us"] for row in applied}
    leader = ran.leader_at(4 * S)
    (follower,) = when.keys() - {leader, number_of(ran.faults[0])}
    backoff = S if too_early else 0
    assert (when[leader] - when[follower] > S // 100) == too_early, "more than a fetch takes"
    assert backoff - S // 100 < gap(ran) < backoff + S // 2


def test_a_controlled_shutdown_waits_for_the_others_and_leaves_clean_logs(tmp_path):
    stop = do("controlled-shutdown", at="3s", target=LEADER, **{"for": "5s"})
    ran = go(tmp_path, faults=[stop], lasts="16s", topic=ONE)
    name = ran.faults[0]["resolved"]
    assert ran.changed_leader(3 * S) - 3 * S < S // 5
    (stopped,) = ran.times("node_states", node=name, state="stopped")
    assert S // 2 < stopped - 3 * S < 4 * S, "granted with the others' next heartbeats"
    recoveries = ran.rows("recoveries", broker=number_of(ran.faults[0]), topic="orders")
    assert recoveries
    assert all(row["clean"] and row["scanned_bytes"] == 0 for row in recoveries)


def test_after_a_crash_the_logs_are_recovered_instead(tmp_path):
    """The twin: no marker, so the last segment is read."""
    ran = go(tmp_path, faults=[do("crash", target=LEADER, **{"for": "5s"})], lasts="8s")
    recoveries = ran.rows("recoveries", broker=number_of(ran.faults[0]), topic="orders")
    assert recoveries
    assert not any(row["clean"] for row in recoveries)
    assert any(row["scanned_bytes"] > 0 for row in recoveries)
    assert all(row["truncated_bytes"] == 0 for row in recoveries), "the page cache survives"


def test_a_leader_paused_for_less_than_its_session_keeps_its_partitions(tmp_path):
    ran = go(tmp_path, faults=[do("pause", target=LEADER, **{"for": "6s"})], lasts="14s", topic=ONE)
    assert len(ran.leader_changes()) == 1
    assert 6 * S <= gap(ran) <= 8 * S
    assert ran.rows("broker_states", state="fenced") == []


def test_a_leader_paused_for_longer_is_deposed_and_comes_back_as_a_follower(tmp_path):
    ran = go(tmp_path, faults=[do("pause", target=LEADER, **{"for": "16s"})], lasts="24s")
    who = number_of(ran.faults[0])
    assert 7 * S <= ran.changed_leader(2 * S) - 2 * S <= 12 * S
    assert [row["state"] for row in ran.rows("broker_states", broker=who)][-2:] == [
        "fenced", "unfenced",
    ]  # fmt: skip
    assert ran.rows("leadership", broker=who, topic="orders", partition=0)[-1]["role"] == "follower"
    assert ran.records["lost_acked"] == ran.records["divergent"] == 0


def test_another_controller_takes_over_within_four_seconds(tmp_path):
    ran = go(
        tmp_path,
        faults=[do("crash", target="controller leader", **{"for": "8s"})],
        lasts="12s",
        topic=ONE,
    )
    dead = ran.faults[0]["resolved"]
    terms = [row for row in ran.rows("quorum", role="leader") if row["t_us"] > 2 * S]
    assert terms[0]["t_us"] - 2 * S < 4 * S
    assert terms[0]["node"] != 3000 + int(dead.removeprefix("controller-"))
    assert terms[0]["epoch"] > 1
    assert len(ran.leader_changes()) == 1, "the brokers' partitions do not care"
    assert gap(ran) < S


def test_with_two_of_three_controllers_dead_nobody_is_deposed(tmp_path):
    """The twin: no majority, no active controller, no decision."""
    down = [
        do("crash", at="1s", target="controller-1"),
        do("crash", at="1s", target="controller-2"),
        do("crash", at="2s", target="broker-1"),
    ]
    ran = go(tmp_path, faults=down, lasts="18s", then="stop")
    assert [row for row in ran.rows("quorum", role="leader") if row["t_us"] > 3 * S] == []
    assert ran.rows("broker_states", state="fenced") == []


# -- power ----------------------------------------------------------------------------------------


def test_one_host_without_power_loses_its_page_cache_and_no_acknowledged_record(tmp_path):
    ran = go(tmp_path, faults=[do("power-loss", target=LEADER, **{"for": "3s"})], lasts="16s")
    (fault,) = ran.faults
    assert "went dark" in fault["effect"]
    assert "; 0 B of page cache" not in fault["effect"]
    short = ran.rows("truncations", broker=number_of(fault), topic="orders", reason="recovery")
    assert sum(row["from_offset"] - row["to_offset"] for row in short) > 100
    assert ran.records["lost_acked"] == 0
    assert no_replica_differs(ran)


@pytest.mark.parametrize(("topic", "loses"), [({}, True), (FLUSHED, False)])
def test_all_hosts_without_power_lose_what_was_not_flushed(topic, loses, tmp_path):
    ran = go(
        tmp_path, faults=[do("power-loss", target="all brokers", **{"for": "3s"})], topic=topic,
        lasts="16s",
    )  # fmt: skip
    assert (ran.records["lost_acked"] > 0) is loses
    assert ran.records["acked"] == ran.records["sent"]
    assert no_replica_differs(ran)


def test_with_acks_1_the_power_loss_of_a_leader_loses_records(tmp_path):
    """The limit of the promise: what was acknowledged before any follower had it."""
    faults = [
        do("delay", at="1s", between=LEADER, by="80ms", **{"and": "all brokers", "for": "2s"}),
        do("power-loss", target=LEADER, **{"for": "3s"}),
    ]
    ran = go(tmp_path, faults=faults, acks=1, lasts="16s", topic=ONE)
    assert ran.records["lost_acked"] > 0
    assert ran.records["divergent"] == 0


# -- links ----------------------------------------------------------------------------------------


def held_back(ran):
    """(sender, receiver) of every message that a cut held back and that arrived in the end."""
    rows = [row for row in ran.rows("messages") if row["delayed_by"]]
    return {(row["sender"], row["receiver"]) for row in rows}


def test_a_one_way_cut_holds_back_one_direction(tmp_path):
    cut = do("partition", between=LEADER, **{"and": "all brokers", "one-way": True, "for": "3s"})
    ran = go(tmp_path, faults=[cut], lasts="8s", topic=ONE)
    left, right = ran.faults[0]["resolved"].split(" -> ")
    assert held_back(ran) <= {(left, other) for other in right.split(", ")}
    assert held_back(ran)
    assert gap(ran) >= 3 * S, "followers ask, the answers do not come, the high watermark stands"
    assert ran.records["lost_acked"] == 0


def test_a_cut_both_ways_holds_back_both_directions(tmp_path):
    cut = do("partition", between=LEADER, **{"and": "all brokers", "for": "3s"})
    ran = go(tmp_path, faults=[cut], lasts="8s")
    left, right = ran.faults[0]["resolved"].split(" <-> ")
    held = held_back(ran)
    assert {pair for pair in held if pair[0] == left}
    assert {pair for pair in held if pair[1] == left}
    assert all(left in pair and set(pair) <= {left, *right.split(", ")} for pair in held)


def test_a_leader_cut_from_the_controllers_alone_is_fenced_though_it_lives(tmp_path):
    controllers = ["controller-1", "controller-2", "controller-3"]
    cut = do("partition", between=LEADER, **{"and": controllers, "one-way": True, "for": "14s"})
    ran = go(tmp_path, faults=[cut], lasts="22s")
    name = ran.faults[0]["resolved"].split(" -> ")[0]
    assert 7 * S <= ran.changed_leader(2 * S) - 2 * S <= 12 * S
    assert ran.times("node_states", node=name, state="crashed") == []
    assert ran.records["lost_acked"] == ran.records["duplicated"] == ran.records["divergent"] == 0


def test_a_delay_is_seen_in_the_latency_and_ends_with_the_fault(tmp_path):
    ran = go(
        tmp_path, faults=[do("delay", between=LEADER, by="60ms", **{"for": "2s"})], lasts="6s",
        topic=ONE,
    )  # fmt: skip
    assert slowest(ran, S, 2 * S) < 50_000
    assert slowest(ran, 2 * S + S // 2, 4 * S) > 120_000, "to the leader and back"
    assert slowest(ran, 5 * S, 6 * S) < 50_000


def test_loss_is_paid_in_retransmissions_not_in_records(tmp_path):
    ran = go(
        tmp_path, faults=[do("loss", between=LEADER, ratio=0.3, **{"for": "2s"})], lasts="6s",
        topic=ONE,
    )  # fmt: skip
    assert slowest(ran, S, 2 * S) < 50_000
    assert slowest(ran, 2 * S, 6 * S) > 200_000, "the first retransmission comes after 200 ms"
    assert "sent again" in ran.faults[0]["effect"]
    assert ran.records["acked"] == ran.records["survived"] == ran.records["sent"]


# -- disks ----------------------------------------------------------------------------------------


def test_a_stalled_disk_stalls_producers_that_wait_for_the_flush(tmp_path):
    stall = do("stalled-disk", target=LEADER, **{"for": "4s"})
    ran = go(tmp_path, faults=[stall], topic=FLUSHED | ONE, lasts="9s")
    assert 4 * S <= gap(ran) <= 6 * S
    assert len(ran.leader_changes()) == 1, "heartbeats need no disk"


def test_a_stalled_disk_is_not_noticed_by_producers_that_do_not_wait_for_it(tmp_path):
    """The twin: the page cache takes the writes."""
    stall = do("stalled-disk", target=LEADER, **{"for": "6s"})
    ran = go(tmp_path, faults=[stall], topic=ONE, lasts="9s")
    assert ran.faults[0]["took_effect"]
    assert gap(ran) < S // 2


def test_a_slow_disk_slows_whoever_waits_for_its_flush(tmp_path):
    slow = do("slow-disk", target=LEADER, factor=50, **{"for": "2s"})
    ran = go(tmp_path, faults=[slow], topic=FLUSHED | ONE, lasts="6s")
    assert slowest(ran, 2 * S, 4 * S) > 3 * slowest(ran, S, 2 * S)
    assert slowest(ran, 5 * S, 6 * S) < slowest(ran, 2 * S, 4 * S)


def test_a_slow_disk_may_say_how_long_an_fsync_takes(tmp_path):
    named = do("slow-disk", target=LEADER, flush={"p50": "50ms"}, **{"for": "2s"})
    ran = go(tmp_path, faults=[named], topic=FLUSHED | ONE, lasts="6s")
    assert ran.faults[0]["took_effect"]
    assert slowest(ran, 5 * S, 6 * S) < 50_000 <= slowest(ran, 2 * S, 4 * S)


def test_a_slow_disk_that_flushes_no_slower_than_before_never_took_effect(tmp_path):
    named = do("slow-disk", target=LEADER, flush={"p50": "1us"}, **{"for": "2s"})
    ran = go(tmp_path, faults=[named], topic=FLUSHED | ONE, lasts="6s")
    assert not ran.faults[0]["took_effect"]


@pytest.mark.parametrize("roles", [{}, {"combined": 3}])
def test_all_controllers_are_hit_at_once(roles, tmp_path):
    pause = do("pause", target="all controllers", **{"for": "1s"})
    ran = go(tmp_path, faults=[pause], cluster=roles, lasts="5s")
    kind = "broker" if roles else "controller"
    numbers = (1, 2, 3)
    assert ran.faults[0]["resolved"] == ", ".join(f"{kind}-{number}" for number in numbers)
    assert ran.faults[0]["effect"] == f"froze {ran.faults[0]['resolved']}"


def test_a_fault_may_follow_another_one_wherever_the_seed_has_it(tmp_path):
    first = do("crash", "2s..4s", name="crash", target="broker-1", **{"for": "1s"})
    then = do("pause", "end of crash + 500ms", target="broker-2", **{"for": "500ms"})
    begun = []
    for seed in (1, 2):
        ran = go(tmp_path, faults=[then, first], lasts="8s", seed=seed)
        (pause,) = ran.rows("faults", kind="pause", phase="began")
        (crash,) = ran.rows("faults", kind="crash", phase="began")
        assert pause["t_us"] - crash["t_us"] == 1_500_000
        begun.append(crash["t_us"])
    assert begun[0] != begun[1]


@pytest.mark.parametrize("kind", ["failed-disk", "full-disk"])
def test_a_disk_that_refuses_halts_its_broker(kind, tmp_path):
    """The only log directory is gone: the process ends, others lead, and it is filled up again."""
    ran = go(tmp_path, faults=[do(kind, target=LEADER, **{"for": "12s"})], lasts="20s")
    (fault,) = ran.faults
    name, who = fault["resolved"], number_of(fault)
    (halted, *_) = ran.times("node_states", node=name, state="crashed")
    assert 2 * S <= halted < 3 * S
    assert 7 * S <= ran.changed_leader(halted) - halted <= 12 * S
    assert ran.records["lost_acked"] == ran.records["divergent"] == 0
    wiped = ran.rows("truncations", broker=who, topic="orders", reason="wiped")
    assert bool(wiped) is (kind == "failed-disk"), "a new disk is empty, a full one is not"
    assert no_replica_differs(ran)
    ends = {row["in_sync"] for row in ran.rows("partition_changes", topic="orders")[-3:]}
    assert ends == {"1,2,3"}


@pytest.mark.parametrize(
    ("kind", "reason"), [("lost-replica", "wiped"), ("corrupt-replica", "recovery")]
)
@pytest.mark.parametrize("target", [LEADER, FOLLOWER])
def test_a_lost_or_corrupt_replica_is_fetched_again_from_the_leader(kind, reason, target, tmp_path):
    ran = go(tmp_path, faults=[do(kind, target=target)], lasts="6s", topic=ONE)
    who = number_of(ran.faults[0])
    (cut,) = ran.rows("truncations", broker=who, topic="orders", reason=reason)
    assert cut["to_offset"] < cut["from_offset"]
    again = [
        row
        for row in ran.rows("appends", broker=who, topic="orders", as_leader=False)
        if row["t_us"] > cut["t_us"]
    ]
    assert again[0]["base_offset"] == cut["to_offset"]
    assert ran.records["lost_acked"] == 0
    assert no_replica_differs(ran)
    assert ran.rows("partition_changes", topic="orders")[-1]["in_sync"] == "1,2,3"
