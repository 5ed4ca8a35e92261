"""What a consumer reads, from where, and how it commits: conversations on the table-top cluster."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition
from sim.protocol.assignors.registry import partition_for_group
from sim.protocol.clients.consumer.fetcher import ConsumerFetcher
from sim.protocol.coordinator.group.classic_state import commit_error
from sim.protocol.coordinator.group.records import OffsetCommitRecord
from sim.protocol.messages.data import FetchRequest
from sim.protocol.messages.group import JoinGroupRequest, OffsetCommitRequest
from sim.trace.rows.clients import Assignments, Commits
from sim.units import MS, SECOND
from tests.protocol.coordinator.group_bench import Bench

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
JOINED = 4 * SECOND


def alone(partitions=1, **settings_of_consumer):
    """One consumer without a group, from the earliest offset unless told otherwise."""
    bench = Bench({"orders": partitions})
    told = {"group_id": "", "auto_offset_reset": "earliest"} | settings_of_consumer
    bench.consumer("a", **told)
    return bench


def grouped(names=("a",), partitions=1, **settings_of_consumer):
    bench = Bench({"orders": partitions})
    for name in names:
        told = {"auto_offset_reset": "earliest"} | settings_of_consumer
        bench.consumer(name, start_at=50 * MS, **told)
    bench.elect(1)
    return bench


def offsets(bench, partition=P0, name=None):
    """Offsets returned, in the order of their return."""
    return [
        offset
        for _, who, part in bench.delivered
        if part.partition == partition and name in {None, who}
        for offset in range(part.base_offset, part.last_offset + 1)
    ]


def fetches(bench, name="a"):
    return [r for _, who, r in bench.requests if who == name and isinstance(r, FetchRequest)]


def error_rows(bench):
    return [row[Commits.ERROR] for row in bench.table("commits")]


# -- fetching -------------------------------------------------------------------------------------


def test_every_record_is_returned_once_and_in_order():
    bench = alone()
    for records in (3, 5, 1):
        bench.produce(P0, records)
    bench.run(SECOND)
    assert offsets(bench) == list(range(9))


def test_a_batch_fetched_from_its_middle_is_returned_from_there():
    bench = grouped()
    bench.produce(P0, 10, producer_index=2)
    bench.produce(P0, 10, producer_index=3)
    bench.offsets_log[partition_for_group("g")].append(OffsetCommitRecord("g", P0, 16, 0, 0))
    bench.run(9 * SECOND)
    ((_, _, part),) = bench.delivered
    assert (part.base_offset, part.last_offset, part.record_count) == (16, 19, 4)
    assert (part.producer_index, part.first_record) == (3, 16)


def test_a_poll_returns_no_more_than_max_poll_records():
    bench = alone(poll_records_max=7, processing_us=10 * MS)
    bench.produce(P0, 20)
    bench.run(SECOND)
    assert [part.record_count for _, _, part in bench.delivered] == [7, 7, 6]
    times = [when for when, _, _ in bench.delivered]
    assert [times[1] - times[0], times[2] - times[1]] == [70 * MS, 70 * MS]


def test_nothing_is_asked_of_a_broker_while_something_of_it_is_buffered():
    bench = alone(2, poll_records_max=1, processing_us=100 * MS)
    bench.produce(P0, 5)
    bench.run(350 * MS)
    assert len(fetches(bench)) == 1
    bench.run(2 * SECOND)
    assert len(fetches(bench)) > 1
    assert offsets(bench) == list(range(5))


def test_the_next_fetch_is_sent_before_the_application_has_processed_the_last():
    bench = alone(processing_us=100 * MS)
    bench.produce(P0, 5)
    bench.run(100 * MS)
    assert len(fetches(bench)) == 2  # 5 records keep the application busy until 500 ms


def test_later_fetches_of_a_session_name_only_what_changed():
    bench = alone(2)
    bench.produce(P0, 1)
    bench.run(SECOND)
    first, second, third = fetches(bench)[:3]
    assert (first.session_id, first.session_epoch) == (0, 0)
    assert [p.partition for p in first.partitions] == [P0, P1]
    assert (second.session_id, second.session_epoch) == (7, 1)
    assert [(p.partition, p.fetch_offset) for p in second.partitions] == [(P0, 1)]
    assert (third.session_epoch, third.partitions) == (2, ())


def test_one_fetch_is_in_flight_per_broker():
    bench = alone(2)
    bench.leaders[P1] = 2
    bench.run(900 * MS)
    assert [len(fetch.partitions) for fetch in fetches(bench)[:2]] == [1, 1]
    assert 3 <= len(fetches(bench)) <= 4  # each waits 500 ms for data


def test_control_and_internal_batches_move_the_position_but_are_not_returned():
    bench = alone()
    bench.produce(P0, 1, is_control=True)
    bench.produce(P0, 2, producer_index=-1)
    bench.produce(P0, 3)
    bench.run(SECOND)
    assert offsets(bench) == [3, 4, 5]


def test_a_moved_leader_is_found_by_metadata():
    bench = alone()
    bench.produce(P0, 2)
    bench.run(SECOND)
    bench.leaders[P0] = 2
    bench.produce(P0, 2)
    bench.run(3 * SECOND)
    assert offsets(bench) == [0, 1, 2, 3]
    assert bench.delivered[-1][2].read_from == 2


def test_a_dead_broker_costs_time_but_no_record():
    bench = alone()
    bench.produce(P0, 2)
    bench.run(SECOND)
    bench.brokers[1].dead = True
    bench.produce(P0, 2)
    bench.run(3 * SECOND)
    assert offsets(bench) == [0, 1]
    bench.leaders[P0] = 2
    bench.run(6 * SECOND)
    assert offsets(bench) == [0, 1, 2, 3]


def test_errors_that_ask_for_metadata_are_tried_again_without_a_storm():
    bench = alone()
    bench.run(SECOND)
    bench.fetch_errors[P0] = ErrorCode.KAFKA_STORAGE_ERROR
    bench.produce(P0, 1)
    before = len(fetches(bench))
    bench.run(3 * SECOND)
    assert 2 <= len(fetches(bench)) - before <= 25
    bench.fetch_errors.clear()
    bench.run(6 * SECOND)
    assert offsets(bench) == [0]


@pytest.mark.parametrize("error", [ErrorCode.CORRUPT_MESSAGE, ErrorCode.UNKNOWN_SERVER_ERROR])
def test_errors_that_the_poll_raises_stop_the_consumer(error):
    bench = alone()
    bench.fetch_errors[P0] = error
    bench.run(2 * SECOND)
    assert bench.stopped == {"a": error}


def test_partitions_take_turns_in_a_poll():
    bench = alone(2, poll_records_max=2, processing_us=10 * MS)
    for partition in (P0, P1):
        for _ in range(8):
            bench.produce(partition, 1)
    bench.run(3 * SECOND)
    order = [part.partition.partition for _, _, part in bench.delivered]
    assert set(order[:8]) == {0, 1}  # a response holds four batches of each


# -- where to begin -------------------------------------------------------------------------------


@pytest.mark.parametrize(("policy", "seen"), [("earliest", [0, 1, 2]), ("latest", [2])])
def test_without_a_committed_offset_the_policy_says_where_to_begin(policy, seen):
    bench = alone(auto_offset_reset=policy)
    bench.produce(P0, 2)
    bench.run(SECOND)
    bench.produce(P0, 1)
    bench.run(2 * SECOND)
    assert offsets(bench) == seen


def test_the_policy_none_raises_without_a_committed_offset():
    bench = grouped(auto_offset_reset="none")
    bench.run(10 * SECOND)
    assert bench.stopped == {"a": ErrorCode.OFFSET_OUT_OF_RANGE}
    (row,) = bench.table("consumer_errors")
    assert row[1:] == ("a", "g", "OFFSET_OUT_OF_RANGE")


def test_a_position_beyond_the_log_is_reset():
    bench = alone()
    bench.produce(P0, 5)
    bench.run(SECOND)
    bench.data[P0] = []
    bench.run(2 * SECOND)
    bench.produce(P0, 2)
    bench.run(4 * SECOND)
    assert offsets(bench) == [0, 1, 2, 3, 4, 0, 1]


def test_a_truncated_log_that_grew_again_is_not_noticed_while_its_leader_stays():
    # The limit of KIP-320: positions are validated when another leader is known, not before.
    bench = alone()
    bench.produce(P0, 5)
    bench.run(SECOND)
    bench.data[P0] = []
    bench.produce(P0, 7)
    bench.run(3 * SECOND)
    assert offsets(bench) == [0, 1, 2, 3, 4, 5, 6]


def test_without_a_group_all_partitions_are_assigned_also_new_ones():
    bench = alone(2, metadata_age_us_max=SECOND)
    bench.run(500 * MS)
    bench.topics["orders"] = 3
    bench.run(3 * SECOND)
    assert [row[Assignments.PARTITIONS] for row in bench.table("assignments")] == [
        "orders-0,orders-1",
        "orders-0,orders-1,orders-2",
    ]


def test_a_topic_created_later_is_found():
    bench = Bench({})
    bench.consumer("a", topics=("orders",), group_id="", auto_offset_reset="earliest")
    bench.run(2 * SECOND)
    bench.topics["orders"] = 1
    bench.produce(P0, 2)
    bench.run(5 * SECOND)
    assert offsets(bench) == [0, 1]


# -- committing -----------------------------------------------------------------------------------


def test_auto_commit_says_what_earlier_polls_returned_every_five_seconds():
    bench = grouped()
    bench.produce(P0, 4)
    bench.run(20 * SECOND)
    took = bench.table("assignments")[0][Assignments.T_US]
    rows = bench.table("commits")
    assert [row[Commits.OFFSET] for row in rows] == [4, 4, 4]
    gaps = [round((row[Commits.T_US] - took) / SECOND, 1) for row in rows]
    assert gaps == [5.0, 10.0, 15.0]
    assert set(error_rows(bench)) == {"NONE"}


def test_no_commit_says_more_than_was_returned():
    bench = grouped(processing_us=400 * MS, poll_records_max=3)
    bench.produce(P0, 60)
    bench.run(40 * SECOND)
    returned = {}
    for when, _, part in bench.delivered:
        returned[part.last_offset + 1] = when
    commits = bench.table("commits")
    assert len(commits) >= 3
    for when, *_, offset, _, _ in commits:
        assert offset == 0 or returned[offset] < when


def test_without_auto_commit_nothing_is_committed():
    bench = grouped(enable_auto_commit=False)
    bench.produce(P0, 4)
    bench.run(20 * SECOND)
    bench.close("a")
    bench.run(22 * SECOND)
    assert bench.table("commits") == []
    assert bench.stopped == {"a": ErrorCode.NONE}


def test_commit_after_processing_covers_each_poll_before_the_next():
    bench = grouped(commit_after_processing=True, poll_records_max=2, processing_us=100 * MS)
    bench.produce(P0, 6)
    bench.run(10 * SECOND)
    assert [row[Commits.OFFSET] for row in bench.table("commits")] == [2, 4, 6]
    polls = [when for when, _, _ in bench.delivered]
    commits = [row[Commits.T_US] for row in bench.table("commits")]
    assert all(before <= poll for before, poll in zip(commits, polls[1:], strict=False))


def test_a_commit_that_fails_for_a_moment_is_tried_again_after_processing():
    bench = grouped(commit_after_processing=True, processing_us=10 * MS)
    bench.run(6 * SECOND)
    bench.commit_error = ErrorCode.NOT_ENOUGH_REPLICAS
    bench.produce(P0, 2)
    bench.run(8 * SECOND)
    bench.commit_error = ErrorCode.NONE
    bench.run(12 * SECOND)
    errors = error_rows(bench)
    assert errors[0] == "COORDINATOR_NOT_AVAILABLE"
    assert errors[-1] == "NONE"


def test_closing_commits_leaves_and_stops():
    bench = grouped()
    bench.produce(P0, 4)
    bench.run(6 * SECOND)
    bench.close("a")
    bench.run(7 * SECOND)
    assert bench.table("commits")[-1][5] == 4
    assert bench.stopped == {"a": ErrorCode.NONE}
    assert bench.brokers[1].machine.group("g").members == {}
    assert bench.brokers[1].machine.committed("g", P0) == 4


def test_closing_without_a_coordinator_ends_nevertheless():
    bench = grouped()
    bench.run(6 * SECOND)
    bench.brokers[1].dead = True
    bench.close("a")
    bench.run(40 * SECOND)
    assert bench.stopped == {"a": ErrorCode.NONE}


def test_before_a_rebalance_positions_are_committed_so_nothing_is_read_twice():
    bench = grouped(("a",), 2)
    bench.produce(P0, 5)
    bench.produce(P1, 5)
    bench.run(6 * SECOND)
    bench.consumer("b", start_at=6 * SECOND, auto_offset_reset="earliest")
    bench.run(14 * SECOND)
    for partition in (P0, P1):
        bench.produce(partition, 3)
    bench.run(16 * SECOND)
    for partition in (P0, P1):
        assert offsets(bench, partition) == list(range(8))
    assert {who for _, who, _ in bench.delivered} == {"a", "b"}


def test_after_a_crash_what_was_not_committed_is_read_again():
    bench = grouped(("a",), 1, session_timeout_us=10 * SECOND)
    bench.run(6 * SECOND)
    bench.produce(P0, 5)
    bench.run(7 * SECOND)
    bench.kill("a")
    bench.consumer(
        "b", start_at=8 * SECOND, auto_offset_reset="earliest", session_timeout_us=10 * SECOND
    )
    bench.run(40 * SECOND)
    assert offsets(bench, name="a") == [0, 1, 2, 3, 4]
    assert offsets(bench, name="b") == [0, 1, 2, 3, 4]


def test_a_member_thought_dead_commits_nothing_when_it_returns():
    bench = grouped(("a", "b"), 2, session_timeout_us=10 * SECOND)
    bench.run(6 * SECOND)
    zombie = bench.consumers["a"]
    zombie.dead = True
    bench.run(40 * SECOND)
    zombie.dead = False
    bench.produce(P0, 3)
    machine = zombie.machine
    request = OffsetCommitRequest("g", machine.member_id, machine.generation, ((P0, 99, 0),))
    error = commit_error(bench.brokers[1].machine.group("g"), request)
    assert error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_coordinator_that_moves_keeps_committed_offsets():
    bench = grouped()
    bench.produce(P0, 4)
    bench.run(10 * SECOND)
    bench.elect(2)
    bench.kill("a")
    bench.consumer("b", start_at=11 * SECOND, auto_offset_reset="earliest")
    bench.run(70 * SECOND)
    assert bench.brokers[2].machine.committed("g", P0) == 4
    assert offsets(bench, name="b") == []


def test_a_failed_coordinator_is_looked_for_with_a_back_off():
    bench = grouped(partitions=1)
    bench.run(6 * SECOND)
    bench.brokers[1].dead = True
    before = len(bench.requests)
    bench.run(16 * SECOND)
    asked = [
        r for _, who, r in bench.requests[before:] if type(r).__name__ == "FindCoordinatorRequest"
    ]
    assert 3 <= len(asked) <= 25


def test_a_rejoining_member_keeps_its_id():
    bench = grouped(("a",), 2)
    bench.run(6 * SECOND)
    bench.consumer("b", start_at=6 * SECOND)
    bench.run(14 * SECOND)
    joins = [r for _, who, r in bench.requests if who == "a" and isinstance(r, JoinGroupRequest)]
    ids = [join.member_id for join in joins if join.member_id]
    assert len(set(ids)) == 1
    assert len(ids) == 2


# -- any order of things --------------------------------------------------------------------------

HAPPENINGS = st.lists(
    st.tuples(
        st.sampled_from(["produce", "move leader", "storage error", "move coordinator", "join"]),
        st.integers(0, 1),
        st.integers(1, 40),
    ),
    min_size=1,
    max_size=8,
)


def at_least_once(bench, happenings):
    """Play; returns for each partition what was produced and the offsets that were returned."""
    now, number = 5 * SECOND, 0
    bench.run(now)
    for what, which, size in happenings:
        partition = (P0, P1)[which]
        bench.fetch_errors.clear()
        if what == "produce":
            bench.produce(partition, size)
        elif what == "move leader":
            bench.leaders[partition] = 3 - bench.leader_of(partition)
        elif what == "storage error":
            bench.fetch_errors[partition] = ErrorCode.KAFKA_STORAGE_ERROR
        elif what == "move coordinator":
            bench.elect(3 - bench.offsets_leader)
        else:
            number += 1
            bench.consumer(f"n{number}", start_at=now, auto_offset_reset="earliest")
        now += size * 100 * MS
        bench.run(now)
    bench.fetch_errors.clear()
    bench.run(now + 60 * SECOND)
    return [(bench.end_of(p), offsets(bench, p)) for p in (P0, P1)]


@settings(max_examples=25, deadline=None)
@given(HAPPENINGS)
def test_a_group_at_rest_has_read_everything(happenings):
    for end, seen in at_least_once(grouped(("a",), 2), happenings):
        assert sorted(set(seen)) == list(range(end))


def test_planted_a_position_that_jumps_is_caught(monkeypatch):
    drain = ConsumerFetcher._drain

    def hasty(self, item, limit):
        item.position.offset += 1
        return drain(self, item, limit)

    monkeypatch.setattr(ConsumerFetcher, "_drain", hasty)
    happenings = [("produce", 0, 1), ("produce", 0, 1), ("produce", 0, 5)]
    assert any(
        sorted(set(seen)) != list(range(end))
        for end, seen in at_least_once(grouped(("a",), 2), happenings)
    )
