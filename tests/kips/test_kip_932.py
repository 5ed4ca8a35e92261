"""KIP-932: members of a share group take records from the same partition, each its own.

The leader has the state of each record: acquired by one member for a time, acknowledged, given back
or, after too many deliveries, archived. The start offset moves behind what is done with.
"""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from sim.error_codes import ErrorCode
from sim.protocol.broker.share.limits import ShareLimits
from sim.protocol.broker.share.partition import ACCEPT, GAP, REJECT, RELEASE, SharePartition
from sim.protocol.coordinator.share.records import combine
from sim.protocol.messages.share_records import Acknowledgement, Acquired, RecordState, StateBatch
from sim.units import SECOND

AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVED = RecordState
LOCK = 30 * SECOND


def fresh(**limits):
    return SharePartition(ShareLimits(**limits), 0, ())


def say(share, member, first, last, *types, written=True, now=0):
    error, token, states = share.acknowledge(member, [Acknowledgement(first, last, types)], 0)
    if token:
        share.settle(token, written=written, now=now)
    return error, states


def test_new_records_are_acquired_in_whole_batches_up_to_about_the_limit():
    share = fresh()
    assert share.acquire("a", [(0, 4), (5, 9), (10, 14)], 7, 0) == [Acquired(0, 9, 1)]
    assert (share.start_offset, share.end_offset, share.next_fetch_offset()) == (0, 10, 10)


def test_what_was_given_back_is_acquired_in_whole_batches_too():
    share = SharePartition(ShareLimits(), 0, (StateBatch(20, 20, AVAILABLE, 1),))
    batches = [(0, 4), (5, 9), (10, 14), (15, 24)]
    assert share.acquire("a", batches, 7, 0) == [Acquired(0, 9, 1)]
    assert share.acquire("b", batches[2:], 7, 0) == [Acquired(10, 19, 1)]
    assert share.next_fetch_offset() == 20


def test_what_a_cleaner_took_meanwhile_is_passed_over():
    share = SharePartition(ShareLimits(), 0, (StateBatch(5, 9, AVAILABLE, 1),))
    assert share.acquire("a", [(7, 9)], 500, 0) == [Acquired(7, 9, 2)]
    assert share.start_offset == 7


def test_what_one_member_has_no_other_gets():
    share = fresh()
    share.acquire("a", [(0, 9)], 500, 0)
    assert share.acquire("b", [(0, 9), (10, 12)], 500, 0) == [Acquired(10, 12, 1)]
    assert share.acquire("c", [(0, 12)], 500, 0) == []


def test_accepted_records_move_the_start_offset_only_without_a_hole():
    share = fresh()
    share.acquire("a", [(0, 9)], 500, 0)
    assert say(share, "a", 5, 9, ACCEPT)[0] is ErrorCode.NONE
    assert share.start_offset == 0
    say(share, "a", 0, 4, ACCEPT)
    assert (share.start_offset, share.end_offset) == (10, 10)


def test_what_is_said_counts_when_it_is_written():
    share = fresh()
    share.acquire("a", [(0, 9)], 500, 0)
    _, token, states = share.acknowledge("a", [Acknowledgement(0, 9, (ACCEPT,))], 0)
    assert states == (StateBatch(0, 9, ACKNOWLEDGED, 1),)
    assert share.start_offset == 0
    assert share.acknowledge("a", [Acknowledgement(0, 9, (ACCEPT,))], 0)[0] is (
        ErrorCode.INVALID_RECORD_STATE
    )
    share.settle(token, written=False, now=1)
    assert share.states() == (StateBatch(0, 9, ACQUIRED, 1),)
    assert say(share, "a", 0, 9, ACCEPT)[0] is ErrorCode.NONE


def test_a_released_record_is_not_given_out_before_that_is_written():
    share = fresh()
    share.acquire("a", [(0, 0)], 1, 0)
    _, token, _ = share.acknowledge("a", [Acknowledgement(0, 0, (RELEASE,))], 0)
    assert share.acquire("b", [(0, 0)], 1, 0) == []
    share.settle(token, written=True, now=0)
    assert share.acquire("b", [(0, 0)], 1, 0) == [Acquired(0, 0, 2)]


def test_a_write_that_fails_after_the_lock_is_over_gives_the_records_back():
    share = fresh()
    share.acquire("a", [(0, 9)], 500, 0)
    _, token, _ = share.acknowledge("a", [Acknowledgement(0, 9, (ACCEPT,))], 0)
    assert share.expire(LOCK) == ()
    assert share.settle(token, written=False, now=LOCK) == (StateBatch(0, 9, AVAILABLE, 1),)


def test_a_lock_is_over_after_its_time_and_the_record_goes_to_another():
    share = fresh()
    share.acquire("a", [(0, 9)], 500, 0)
    assert share.next_deadline() == LOCK
    assert share.expire(LOCK - 1) == ()
    assert share.expire(LOCK) == (StateBatch(0, 9, AVAILABLE, 1),)
    assert share.next_fetch_offset() == 0
    assert share.acquire("b", [(0, 9)], 500, LOCK) == [Acquired(0, 9, 2)]
    assert say(share, "a", 0, 9, ACCEPT)[0] is ErrorCode.INVALID_RECORD_STATE


def test_a_record_that_was_delivered_as_often_as_may_be_is_archived():
    share = fresh(deliveries_max=2)
    for now in (0, LOCK):
        share.acquire("a", [(0, 3)], 500, now)
        share.expire(now + LOCK)
    assert share.changes[-1].reason == "limit"
    assert (share.start_offset, share.next_fetch_offset()) == (4, 4)


def test_types_may_differ_from_record_to_record():
    share = fresh()
    share.acquire("a", [(0, 4)], 500, 0)
    _, states = say(share, "a", 0, 4, ACCEPT, RELEASE, REJECT, GAP, ACCEPT)
    assert states == (
        StateBatch(0, 0, ACKNOWLEDGED, 1),
        StateBatch(1, 1, AVAILABLE, 1),
        StateBatch(2, 2, ARCHIVED, 1),
        StateBatch(3, 3, ARCHIVED, 1),
        StateBatch(4, 4, ACKNOWLEDGED, 1),
    )
    assert (share.start_offset, share.next_fetch_offset()) == (1, 1)


def test_a_wrong_acknowledgement_changes_nothing():
    share = fresh()
    share.acquire("a", [(0, 4)], 500, 0)
    share.acquire("b", [(5, 9)], 500, 0)
    assert say(share, "a", 0, 9, ACCEPT)[0] is ErrorCode.INVALID_RECORD_STATE
    assert say(share, "a", 0, 10, ACCEPT)[0] is ErrorCode.INVALID_REQUEST
    assert say(share, "a", 0, 4, ACCEPT, ACCEPT)[0] is ErrorCode.INVALID_REQUEST
    assert share.states() == (StateBatch(0, 4, ACQUIRED, 1), StateBatch(5, 9, ACQUIRED, 1))


def test_a_member_that_closes_its_session_gives_back_what_it_has():
    share = fresh()
    share.acquire("a", [(0, 4)], 500, 0)
    share.acquire("b", [(5, 9)], 500, 0)
    token, states = share.release("a")
    assert states == (StateBatch(0, 4, AVAILABLE, 1),)
    share.settle(token, written=True, now=0)
    assert share.acquire("b", [(0, 9)], 500, 0) == [Acquired(0, 4, 2)]


def test_new_records_wait_when_the_window_is_full():
    share = fresh(in_flight_max=10)
    share.acquire("a", [(0, 9)], 500, 0)
    assert not share.can_acquire()
    assert share.acquire("a", [(10, 19)], 500, 0) == []
    say(share, "a", 0, 0, RELEASE)
    assert share.can_acquire()
    assert share.acquire("b", [(0, 19)], 500, 0) == [Acquired(0, 0, 2)]


def test_a_new_leader_gives_out_what_nobody_has_said_anything_of():
    known = (StateBatch(3, 4, ACKNOWLEDGED, 1), StateBatch(7, 7, AVAILABLE, 2))
    share = SharePartition(ShareLimits(), 2, known)
    assert share.states() == (
        StateBatch(2, 2, AVAILABLE, 0),
        StateBatch(3, 4, ACKNOWLEDGED, 1),
        StateBatch(5, 6, AVAILABLE, 0),
        StateBatch(7, 7, AVAILABLE, 2),
    )
    got = share.acquire("a", [(2, 9)], 500, 0)
    assert got == [Acquired(2, 2, 1), Acquired(5, 6, 1), Acquired(7, 7, 3), Acquired(8, 9, 1)]


def test_a_new_leader_moves_on_over_what_is_acknowledged():
    share = SharePartition(ShareLimits(), 0, (StateBatch(0, 4, ACKNOWLEDGED, 1),))
    assert (share.start_offset, share.end_offset) == (5, 5)


def test_what_is_gone_from_the_log_is_not_waited_for():
    share = fresh()
    share.acquire("a", [(0, 9)], 500, 0)
    share.log_start_moved(5)
    assert (share.start_offset, share.states()) == (5, (StateBatch(5, 9, ACQUIRED, 1),))
    assert say(share, "a", 0, 9, ACCEPT)[0] is ErrorCode.NONE
    share.log_start_moved(20)
    assert (share.start_offset, share.end_offset, share.next_fetch_offset()) == (20, 20, 20)


def test_of_two_batches_the_later_delivery_counts():
    known = (StateBatch(0, 9, AVAILABLE, 1), StateBatch(20, 29, ACKNOWLEDGED, 1))
    news = (StateBatch(5, 24, ACKNOWLEDGED, 2),)
    assert combine(known, news, 3) == (
        StateBatch(3, 4, AVAILABLE, 1),
        StateBatch(5, 24, ACKNOWLEDGED, 2),
        StateBatch(25, 29, ACKNOWLEDGED, 1),
    )
    assert combine(known, news, 100) == ()
    assert combine((), (StateBatch(0, 1, ARCHIVED, 1), StateBatch(2, 3, ARCHIVED, 1)), 0) == (
        StateBatch(0, 3, ARCHIVED, 1),
    )


class Model:
    """One entry for each record, to hold the runs against."""

    def __init__(self):
        self.state, self.count, self.owner, self.until = {}, {}, {}, {}

    def take(self, share, now):
        for change in share.changes:
            for offset in range(change.first, change.last + 1):
                before = self.state.get(offset, AVAILABLE)
                assert before not in {ACKNOWLEDGED, ARCHIVED}, "delivered again"
                if change.state is ACQUIRED:
                    assert before is AVAILABLE, "acquired by two"
                    self.count[offset] = self.count.get(offset, 0) + 1
                    assert self.count[offset] == change.delivery_count <= 3
                    self.owner[offset] = change.member
                self.state[offset] = change.state
        share.changes.clear()


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("fetch"), st.sampled_from("ab"), st.integers(0, 12), st.integers(1, 9)),
        st.tuples(
            st.just("say"), st.sampled_from("ab"), st.integers(0, 30), st.integers(0, 6),
            st.lists(st.integers(0, 3), min_size=7, max_size=7), st.booleans(),
        ),
        st.tuples(st.just("release"), st.sampled_from("ab")),
        st.tuples(st.just("wait"), st.integers(1, 20)),
        st.tuples(st.just("takeover")),
    ),
    max_size=40,
)  # fmt: skip


@given(STEPS)
@settings(max_examples=150, deadline=None)
def test_no_order_of_events_breaks_a_promise(steps):
    """Persisted state, kept as the share coordinator does, outlives each leader."""
    limits = ShareLimits(lock_us=10, deliveries_max=3, in_flight_max=15)
    share, model, now = SharePartition(limits, 0, ()), Model(), 0
    kept, start, done = (), 0, set()

    def write(states):
        nonlocal kept, start
        start = max(start, share.start_offset)
        kept = combine(kept, states, start)

    for step in steps:
        before = share.start_offset
        if step[0] == "fetch" and share.can_acquire():
            at = share.next_fetch_offset()
            share.acquire(step[1], [(at, at + step[2])], step[3], now)
        elif step[0] == "say":
            _, member, first, more, types, written = step
            said = [Acknowledgement(first, first + more, tuple(types[: more + 1]))]
            _, token, states = share.acknowledge(member, said, 0)
            if token:
                if written:
                    write(states)
                    done |= {
                        n for b in states if b.state.is_terminal for n in range(b.first, b.last + 1)
                    }
                share.settle(token, written=written, now=now)
        elif step[0] == "release":
            token, states = share.release(step[1])
            if token:
                write(states)
                share.settle(token, written=True, now=now)
        elif step[0] == "wait":
            now += step[1]
            write(share.expire(now))
        elif step[0] == "takeover":
            share.changes.clear()
            share = SharePartition(limits, start, kept)
            share.changes.clear()
            model = Model()
            for batch in share.states():
                for offset in range(batch.first, batch.last + 1):
                    model.state[offset], model.count[offset] = batch.state, batch.delivery_count
            model.state |= dict.fromkeys(range(share.start_offset), ACKNOWLEDGED)
            waiting = {n for b in share.states() if not b.state.is_terminal
                       for n in range(b.first, b.last + 1)}  # fmt: skip
            assert not waiting & done, "what was written is delivered again"
            continue
        model.take(share, now)
        assert share.start_offset >= before, "the start offset goes back"
        states = share.states()
        assert all(a.last + 1 == b.first for a, b in pairwise(states))
        assert not states or (states[0].first, states[-1].last + 1) == (
            share.start_offset, share.end_offset,
        )  # fmt: skip
