"""A stream task commits before it gives up partitions, and works while its group rebalances.

Source: ``TaskManager.{handleRevocation,handleLostAll}``, ``AbstractMembershipManager``; KIP-429,
KIP-848.
"""

import pytest

from sim.error_codes import ErrorCode
from sim.protocol.clients.consumer.classic_protocol import MemberState
from sim.protocol.clients.consumer.positions import Stage
from sim.protocol.messages.consumer_group import ConsumerGroupHeartbeatRequest
from sim.protocol.messages.group import JoinGroupRequest, OffsetCommitRequest
from sim.trace.rows.clients import Revocations
from sim.units import MS, SECOND
from tests.protocol.apps.task_bench import COOPERATIVE, EAGER, FLUSH_US, MODERN, PLACES, Tasks


def settled(*names, **more):
    """Tasks that have their shares at 8 s and get records from 9 s on; ``c`` comes at 10 s."""
    bench = Tasks(*names, **more)
    bench.run(8 * SECOND)
    bench.at(9 * SECOND, bench.feed, 40 * SECOND)
    bench.task("c", 10 * SECOND)
    return bench


def test_a_task_commits_its_round_before_it_gives_up_what_moves():
    bench = settled("a", "b")
    bench.run(40 * SECOND)
    for name in ("a", "b"):
        ((given_up, _, _, generation, moved),) = bench.rows_of("revocations", name)
        (_, (joined, again)) = bench.sent(JoinGroupRequest, name, 10 * SECOND)
        ((committed, commit),) = bench.sent(OffsetCommitRequest, name)
        (ended,) = [at for at, who, _ in bench.ends if who == name]
        assert ended < committed < given_up < joined
        assert ended + FLUSH_US <= committed, "what was made of it is written first"
        assert commit.generation == generation == 2, "the generation that takes it away"
        assert moved in [str(place) for place, _, _ in commit.offsets]
        assert moved not in [str(place) for place in again.subscription.owned]
    assert bench.read_twice() == 0, "nobody reads again what another has committed"
    assert bench.delivered


@pytest.mark.parametrize(("way", "stops"), [(COOPERATIVE, False), (EAGER, True), (MODERN, False)])
def test_a_task_works_on_while_its_group_waits_for_a_slow_one(way, stops):
    bench = Tasks("a", way=way)
    bench.task("slow", 100 * MS, processing_us=5 * SECOND)
    bench.run(8 * SECOND)
    theirs = bench.shares()["slow"]
    bench.produce(theirs[0], 1)
    bench.run(9 * SECOND)
    bench.feed(14 * SECOND, theirs)
    bench.task("c", 9 * SECOND)
    # It polls again, and so joins, 5 s after its record came.
    bench.run(12_900 * MS)
    assert (bench.worked("a", 10 * SECOND, 12_900 * MS) == []) is stops
    bench.run(40 * SECOND)
    assert sorted(map(len, bench.shares().values())) == [2, 2, 2]


def test_nothing_is_committed_while_the_group_rebalances_and_at_once_after_it():
    """``rebalanceInProgress``: a commit would name a generation that is about to end."""
    bench = Tasks("a", interval_us=500 * MS)
    bench.task("slow", 100 * MS, processing_us=5 * SECOND)
    bench.run(8 * SECOND)
    theirs = bench.shares()["slow"]
    bench.produce(theirs[0], 1)
    bench.run(9 * SECOND)
    bench.feed(30 * SECOND, theirs)
    bench.task("c", 9 * SECOND)
    bench.run(20 * SECOND)
    ((joined, _), *_) = bench.sent(JoinGroupRequest, "a", 9 * SECOND)
    completed = min(at for at, *_ in bench.rows_of("revocations", "a"))
    assert completed > joined + SECOND
    commits = [at for at, _ in bench.sent(OffsetCommitRequest, "a")]
    assert [at for at in commits if joined <= at < completed - FLUSH_US - 10 * MS] == []
    assert len([at for at in commits if at > completed]) >= 3


def test_a_task_that_lost_its_membership_commits_nothing_of_its_round():
    bench = Tasks("a", "b")
    bench.run(8 * SECOND)
    bench.feed(9 * SECOND)
    bench.run(9 * SECOND)
    machine = bench.consumers["a"].machine
    had = machine.assignment()
    assert machine._membership.state is MemberState.STABLE
    machine._membership.forget()
    bench.run(40 * SECOND)
    (first, *_) = [what for _, who, what in bench.ends if who == "a"]
    assert not first.commits
    (lost, *_) = bench.rows_of("revocations", "a")
    assert lost[Revocations.PARTITIONS] == ",".join(map(str, had))
    assert bench.rows_of("commits", "a") == []
    assert sorted(map(len, bench.shares().values())) == [3, 3]
    # Read again from the committed offsets, by the task that has them now.
    counts = [sum(place == each for _, _, place in bench.taken) for each in had]
    assert all(count >= 2 for count in counts)


def test_a_modern_task_commits_what_it_loses_by_its_epoch_before_it_says_so():
    bench = settled("a", "b", way=MODERN)
    before = bench.shares()
    bench.run(40 * SECOND)
    for name in ("a", "b"):
        ((given_up, owned),) = bench.acknowledged(name, 10 * SECOND)
        (moved,) = set(before[name]) - set(owned)
        ((committed, commit),) = bench.sent(OffsetCommitRequest, name)
        (ended,) = [at for at, who, _ in bench.ends if who == name]
        assert ended + FLUSH_US <= committed < given_up
        assert moved in [place for place, _, _ in commit.offsets]
        earlier = bench.sent(ConsumerGroupHeartbeatRequest, name)
        epochs = [what.member_epoch for at, what in earlier if at <= committed]
        assert commit.generation == epochs[-1], "the coordinator lets it keep that until then"
        assert [row for row in bench.rows_of("commits", name) if row[-1] != "NONE"] == []
    assert bench.read_twice() == 0
    assert bench.delivered


def test_a_modern_task_is_called_back_at_its_next_poll_and_gives_up_nothing_before():
    bench = Tasks("a", way=MODERN)
    bench.task("slow", 100 * MS, processing_us=6 * SECOND)
    bench.run(8 * SECOND)
    theirs = bench.shares()["slow"]
    bench.produce(theirs[0], 1)
    bench.run(9 * SECOND)
    bench.task("c", 9 * SECOND)
    bench.run(40 * SECOND)
    (took, *_) = [at for at, who, _ in bench.taken if who == "slow"]
    ((given_up, owned),) = bench.acknowledged("slow", 9 * SECOND)
    beats = bench.sent(ConsumerGroupHeartbeatRequest, "slow", took)
    assert len([at for at, _ in beats if at < took + 6 * SECOND]) > 0, "it beats meanwhile"
    assert took + 6 * SECOND <= given_up
    assert len(owned) == 2
    assert sorted(map(len, bench.shares().values())) == [2, 2, 2]


def test_a_modern_task_that_is_fenced_while_it_works_rolls_back_before_it_joins_again():
    bench = Tasks("a", way=MODERN, interval_us=SECOND)
    bench.run(8 * SECOND)
    bench.produce(PLACES[0], 1)
    bench.run(8200 * MS)
    task = bench.consumers["a"].machine
    task._link.set_timer("processed", bench.now + 3 * SECOND, task._processed)
    task._polling = False
    task._membership._failed(ErrorCode.FENCED_MEMBER_EPOCH, bench.now, answered=True)
    bench.run(30 * SECOND)
    ((rolled_back, _, end), *_) = bench.ends
    assert not end.commits
    joins = [at for at, what in bench.sent(ConsumerGroupHeartbeatRequest, "a", 8200 * MS)]
    assert rolled_back >= 11_200 * MS
    assert min(joins) > rolled_back
    assert [place for _, _, place in bench.taken].count(PLACES[0]) == 2, "it is read again"
    assert len(bench.shares()["a"]) == 6


@pytest.mark.parametrize("way", [COOPERATIVE, MODERN])
def test_planted_a_task_that_gives_up_without_a_commit_lets_its_heir_read_again(way):
    def read_twice(**plan):
        bench = Tasks("a", "b", way=way, **plan)
        bench.run(8 * SECOND)
        bench.feed(10 * SECOND)
        bench.task("c", 12 * SECOND)
        bench.run(60 * SECOND)
        assert sorted(map(len, bench.shares().values())) == [2, 2, 2]
        return bench.read_twice()

    assert read_twice() == 0
    assert read_twice(commits_revoked=False) > 0


def test_what_is_committed_before_it_is_processed_is_processed_while_another_partition_waits():
    """A position under validation is in no commit: what was committed beside it is not given up."""
    bench = Tasks("a", offsets="before", way=EAGER)
    bench.run(8 * SECOND)
    idle, read = PLACES[0], PLACES[1]
    bench.produce(idle, 1)
    bench.run(9 * SECOND)
    task = bench.consumers["a"].machine
    task._commits.committed.clear()  # as if it were a new process
    task._positions.all()[idle].stage = Stage.VALIDATING
    bench.produce(read, 3)
    bench.run(10 * SECOND)
    assert [place for _, _, place in bench.taken] == [idle, read]
    assert task.position(read) == 3
