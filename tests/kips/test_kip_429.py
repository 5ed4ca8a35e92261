"""KIP-429: in a cooperative rebalance only what moves is given up, and nobody else stops reading.

A partition that moves takes two generations: one that takes it from its owner, one that gives it.
"""

import pytest

from sim.ids import TopicPartition
from sim.protocol.clients.consumer.classic_protocol import MemberState
from sim.protocol.messages.group import JoinGroupRequest
from sim.trace.rows.clients import Assignments, Groups
from sim.units import MS, SECOND
from tests.protocol.apps.task_bench import COOPERATIVE as COOPERATIVE_TASKS
from tests.protocol.apps.task_bench import Tasks
from tests.protocol.coordinator.group_bench import Bench

COOPERATIVE = ("cooperative-sticky",)


def bench_of(*names, partitions=6, strategy=COOPERATIVE, **settings):
    bench = Bench({"orders": partitions})
    for name in names:
        bench.consumer(name, start_at=100 * MS, partition_assignment_strategy=strategy, **settings)
    bench.elect(1)
    return bench


def join(bench, name, at, strategy=COOPERATIVE, **settings):
    bench.consumer(name, start_at=at, partition_assignment_strategy=strategy, **settings)


def held(bench):
    return {name: [place.partition for place in share] for name, share in bench.shares().items()}


def history(bench, name):
    """What a consumer took over, one assignment after the other."""
    return [
        row[Assignments.PARTITIONS]
        for row in bench.table("assignments")
        if row[Assignments.CONSUMER] == name
    ]


def test_a_newcomer_takes_two_rebalances_and_the_others_keep_what_stays():
    bench = bench_of("a", "b")
    bench.run(8 * SECOND)
    before = held(bench)
    assert sorted(map(len, before.values())) == [3, 3]
    join(bench, "c", 10 * SECOND)
    bench.run(30 * SECOND)
    after = held(bench)
    assert sorted(map(len, after.values())) == [2, 2, 2]
    assert all(set(after[name]) <= set(before[name]) for name in ("a", "b"))
    # The first of the two generations gives the newcomer nothing: all is with the others still.
    assert history(bench, "c")[0] == ""
    stable = [
        row[Groups.GENERATION] for row in bench.table("groups") if row[Groups.STATE] == "Stable"
    ]
    assert stable == [1, 2, 3]


@pytest.mark.parametrize(
    ("strategy", "stops"), [(COOPERATIVE, False), (("range",), True), (("sticky",), True)]
)
def test_who_cooperates_reads_on_while_the_group_waits_for_a_slow_member(strategy, stops):
    bench = bench_of("a", strategy=strategy, enable_auto_commit=False)
    # It polls again only after 5 s, so the rebalance takes that long.
    join(bench, "slow", 100 * MS, strategy, processing_us=5 * SECOND, auto_offset_reset="earliest")
    bench.run(8 * SECOND)
    mine, its = held(bench)["a"][0], held(bench)["slow"][0]
    bench.produce(TopicPartition("orders", its), 1)
    bench.run(9 * SECOND)
    join(bench, "c", 9 * SECOND, strategy)
    bench.at(12 * SECOND, bench.produce, TopicPartition("orders", mine), 1)
    bench.run(12_900 * MS)  # the slow member is done at 13 s
    read = [at for at, name, what in bench.delivered if name == "a" and at > 12 * SECOND]
    assert (read == []) is stops
    bench.run(30 * SECOND)
    assert sorted(map(len, held(bench).values())) == [2, 2, 2]


def test_a_member_that_lost_its_membership_gives_up_all_it_had():
    bench = bench_of("a", "b", session_timeout_us=10 * SECOND, poll_interval_us_max=20 * SECOND)
    bench.run(8 * SECOND)
    machine = bench.consumers["a"].machine
    machine._membership.forget()
    bench.run(9 * SECOND)
    assert machine.assignment() == () or machine.generation > 1
    bench.run(60 * SECOND)
    assert sorted(map(len, held(bench).values())) == [3, 3]


def test_a_member_that_lost_its_membership_in_a_rebalance_gives_up_all_before_it_joins_again():
    """KAFKA-12983, since 2.7.2: what it held may have been read by others meanwhile."""
    bench = bench_of("a", "b")
    bench.run(8 * SECOND)
    join(bench, "c", 10 * SECOND)
    membership = bench.consumers["a"].machine._membership
    while membership.state is not MemberState.COMPLETING:
        bench.run(bench.now + 1 * MS)
    assert len(held(bench)["a"]) == 3, "it cooperates"
    lost_at = bench.now
    membership.forget()
    bench.run(60 * SECOND)
    joins = [
        each.subscription
        for at, name, each in bench.requests
        if name == "a" and at >= lost_at and isinstance(each, JoinGroupRequest)
    ]
    assert joins[0].owned == ()
    assert sorted(map(len, held(bench).values())) == [2, 2, 2]


def test_a_list_that_is_not_all_cooperative_is_eager_whatever_is_voted():
    both = ("cooperative-sticky", "range")
    bench = bench_of("a", "b", strategy=both)
    bench.run(8 * SECOND)
    join(bench, "c", 10 * SECOND, both)
    bench.run(30 * SECOND)
    assert {
        row[Groups.GENERATION] for row in bench.table("groups") if row[Groups.STATE] == "Stable"
    } == {1, 2}
    assert sorted(map(len, held(bench).values())) == [2, 2, 2]
    joins = [r for _, _, r in bench.requests if type(r).__name__ == "JoinGroupRequest"]
    assert all(r.subscription.owned == () for r in joins)


def test_the_default_list_lets_a_group_move_to_cooperation_member_by_member():
    default = ("range", "cooperative-sticky")
    bench = bench_of("a", strategy=default)
    bench.run(5 * SECOND)
    join(bench, "b", 6 * SECOND)
    bench.run(20 * SECOND)
    # Only one can do range: the other protocol is the common one.
    assert bench.brokers[1].machine.group("g").protocol == "cooperative-sticky"
    assert sorted(map(len, held(bench).values())) == [3, 3]


def test_positions_of_kept_partitions_are_not_read_again_from_the_committed_offset():
    bench = bench_of("a", auto_offset_reset="earliest", auto_commit_interval_us=60 * SECOND)
    for number in range(6):
        bench.produce(TopicPartition("orders", number), 5)
    bench.run(8 * SECOND)
    join(bench, "b", 9 * SECOND, auto_offset_reset="earliest")
    bench.run(30 * SECOND)
    reads = [(what.partition, what.base_offset) for _, name, what in bench.delivered]
    assert len(reads) == len(set(reads)) == 6


def test_a_listener_commits_what_is_revoked_and_keeps_what_is_not():
    """A task that has worked on all it has commits once, when it loses something, and only then."""
    bench = Tasks("a", "b", way=COOPERATIVE_TASKS)
    bench.run(8 * SECOND)
    bench.feed(30 * SECOND)
    bench.run(10 * SECOND)
    before = held(bench)
    bench.task("c", 10 * SECOND)
    bench.run(30 * SECOND)
    after = held(bench)
    assert all(set(after[name]) < set(before[name]) for name in ("a", "b"))
    for name in ("a", "b"):
        (commit,) = {row[0] for row in bench.rows_of("commits", name)}
        ((given_up, *_),) = bench.rows_of("revocations", name)
        assert commit <= given_up
    assert bench.read_twice() == 0


def test_a_listener_of_lost_partitions_commits_nothing():
    bench = Tasks("a", way=COOPERATIVE_TASKS)
    bench.run(8 * SECOND)
    bench.feed(9 * SECOND)
    bench.run(9 * SECOND)
    bench.consumers["a"].machine._membership.forget()
    bench.run(40 * SECOND)
    assert next(what.commits for _, _, what in bench.ends) is False
    assert bench.read_twice() > 0, "from the committed offsets, of which there are none"
