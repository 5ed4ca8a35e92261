"""Leading and following in the metadata quorum: KIP-595, KIP-1166 (wake-ups)."""

import pytest

from sim.error_codes import ErrorCode as E
from sim.ids import METADATA_PARTITION
from sim.protocol.effects import Flush, Reply, Send
from sim.protocol.events import RequestFailed, ResponseReceived
from sim.protocol.kraft.batch_accumulator import BatchAccumulator
from sim.protocol.kraft.leader_state import Leadership
from sim.protocol.kraft.types import (
    AppendMetadata,
    Committed,
    Halt,
    LeadershipChanged,
    QuorumState,
    Resign,
    Role,
)
from sim.protocol.kraft.votes import end_quorum_backoff_us
from sim.protocol.messages.quorum import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    QuorumEpochResponse,
    QuorumFetchRequest,
    QuorumFetchResponse,
)
from sim.protocol.metadata.records import NoOpRecord
from sim.protocol.ports import EpochEnd
from tests.protocol.kraft.quorum_kit import (
    ME,
    MS,
    SECOND,
    VOTERS,
    B,
    C,
    Member,
    active,
    append,
    batch,
    fetch,
    follower,
    leader,
)

# -- leadership -----------------------------------------------------------------------------------


def test_nothing_commits_before_a_record_of_the_leaders_own_epoch_does():
    member = leader(1, 1)
    epoch = member.quorum.epoch
    member.ask(fetch(B, epoch, 2, 1))
    assert member.of(Committed) == []
    member.ask(fetch(B, epoch, 3, epoch))
    (committed,) = member.of(Committed)
    assert (committed.base_offset, committed.end_offset) == (0, 3)
    change = member.of(LeadershipChanged)[0]
    assert (change.is_leader, change.log_end_offset) == (True, 3)


def test_the_controller_hears_of_the_commit_before_it_hears_that_it_leads():
    member = leader()
    member.ask(fetch(B, 1, 1, 1))
    kinds = [type(e) for e in member.out]
    assert kinds.index(Committed) < kinds.index(LeadershipChanged)


@pytest.mark.parametrize(
    ("ends", "committable"),
    [
        ({}, -1),
        ({B: 3}, 3),
        ({B: 9}, 5),
        ({B: 3, C: 4}, 4),
        ({B: 9, C: 8}, 8),
    ],
)
def test_a_majority_commits(ends, committable):
    leadership = Leadership(ME, VOTERS, 0, VOTERS, BatchAccumulator(0, 0), dict(ends))
    assert leadership.committable(5) == committable


def test_records_are_written_when_the_linger_of_the_first_of_them_is_over():
    member = active()
    begin = member.now
    append(member)
    assert (member.log.log_end_offset, member.timers["drain"]) == (1, begin + 25 * MS)
    member.now += 20 * MS
    append(member, after=1)
    assert (member.log.log_end_offset, member.of(Flush)) == (1, [])
    member.fire("drain")
    assert (member.now, member.log.log_end_offset) == (begin + 25 * MS, 3)
    assert len(member.of(Flush)) == 1
    member.now += 40 * MS
    append(member)
    assert member.timers["drain"] == member.now + 25 * MS


def test_the_linger_begins_when_the_controller_decided_though_the_quorum_was_busy():
    member = active()
    decided, member.now = member.now, member.now + 30 * MS
    member.feed(AppendMetadata(1, 1, (NoOpRecord(),), decided))
    assert member.log.log_end_offset == 2


def test_a_full_batch_does_not_wait():
    member = active(batch_bytes_max=3 * 72)
    append(member, *[NoOpRecord()] * 2)
    append(member, NoOpRecord(), after=2)
    assert member.log.log_end_offset == 1
    append(member, NoOpRecord(), after=3)
    assert member.log.log_end_offset == 5
    assert len(member.of(Flush)) == 1


def test_what_waits_to_be_written_ends_with_the_leadership():
    member = active()
    append(member)
    member.feed(Resign())
    member.fire("drain")
    assert member.log.log_end_offset == 1


def test_a_parked_fetch_is_answered_by_an_append_before_the_leader_fsyncs():
    member = active(append_linger_us=0)
    assert member.ask(fetch(B, 1, 1, 1, hw=1)) is None
    append(member)
    kinds = [type(e) for e in member.out]
    assert kinds.index(Reply) < kinds.index(Flush)
    assert len(member.of(Reply)[0].response.batches) == 1


def test_a_parked_fetch_is_answered_by_a_new_high_watermark():
    member = active(append_linger_us=0)
    append(member)
    assert member.ask(fetch(9, 1, 2, 1, hw=1)) is None
    parked = member.tokens
    member.ask(fetch(B, 1, 2, 1, hw=1))
    answers = {e.token: e.response for e in member.of(Reply)}
    assert answers[parked].high_watermark == 2
    assert answers[parked].batches == ()


def test_before_kip_1166_a_commit_answers_no_parked_fetch_but_the_next_records_bring_it():
    member = active(append_linger_us=0, wakes_on_commit=False)
    append(member)
    assert member.ask(fetch(9, 1, 2, 1, hw=1)) is None
    parked = member.tokens
    assert member.ask(fetch(B, 1, 2, 1, hw=1)) is None  # commits, and waits though it knows less
    assert (member.quorum.high_watermark, member.of(Reply)) == (2, [])
    append(member)
    answers = {e.token: e.response for e in member.of(Reply)}
    assert (answers[parked].high_watermark, len(answers[parked].batches)) == (2, 1)


def test_before_kip_1166_an_expired_fetch_is_answered_with_the_high_watermark_of_its_arrival():
    member = active(append_linger_us=0, wakes_on_commit=False)
    append(member)
    member.ask(fetch(9, 1, 2, 1, hw=1))
    member.ask(fetch(B, 1, 2, 1, hw=1))
    member.fire("parked")
    assert [e.response.high_watermark for e in member.of(Reply)] == [1, 2]
    member.ask(fetch(9, 1, 2, 1, hw=1))
    member.fire("parked")
    assert [e.response.high_watermark for e in member.of(Reply)] == [2]


@pytest.mark.parametrize("wakes", [True, False])
def test_an_only_voters_records_reach_its_observers_with_their_commit(wakes):
    member = Member(voters=(ME,), append_linger_us=0, wakes_on_commit=wakes)
    assert member.ask(fetch(9, 1, 1, 1, hw=1)) is None
    append(member)
    (answer,) = [e.response for e in member.of(Reply)]
    assert (answer.high_watermark, len(answer.batches)) == (2, 1)


def test_a_parked_fetch_ends_after_half_a_second():
    member = active()
    assert member.ask(fetch(B, 1, 1, 1, hw=1)) is None
    assert member.timers["parked"] == member.now + 500 * MS
    member.fire("parked")
    assert member.of(Reply)[0].response.error is E.NONE


def test_a_follower_whose_log_parts_is_told_where():
    member = leader(1, 1, 3)
    epoch = member.quorum.epoch
    response = member.ask(fetch(B, epoch, 5, 2))
    assert response.diverging == EpochEnd(1, 2)
    assert response.batches == ()


def test_a_leader_without_a_majority_for_three_seconds_resigns():
    member = active()
    assert member.timers["role"] == member.now + 3 * SECOND
    member.now += 2 * SECOND
    member.ask(fetch(B, 1, 1, 1, hw=1))
    assert member.timers["role"] == member.now + 3 * SECOND
    member.fire()
    assert member.role is Role.RESIGNED
    assert member.of(LeadershipChanged)[0].is_leader is False
    assert member.of(Reply)[0].response.error is E.NOT_LEADER_OR_FOLLOWER
    member.fire()
    assert (member.role, member.quorum.epoch) == (Role.UNATTACHED, 2)


def test_a_resigning_leader_names_the_longest_log_first():
    member = leader()
    member.ask(fetch(C, 1, 1, 1))
    member.feed(Resign())
    ends = [s.request for s in member.of(Send)]
    assert ends == [EndQuorumEpochRequest(ME, 1, (C, B))] * 2


def test_records_of_an_older_epoch_of_the_controller_are_dropped():
    member = active()
    append(member, epoch=0)
    assert (member.out, member.log.log_end_offset) == ([], 1)


def test_a_leader_repeats_its_introduction_to_who_has_not_answered():
    member = leader()
    member.answer(B, QuorumEpochResponse(E.NONE, ME, 1), BeginQuorumEpochRequest)
    assert member.timers["begin"] == member.now + SECOND
    member.fire("begin")
    assert [s.to for s in member.of(Send)] == [C]


# -- following ------------------------------------------------------------------------------------


def test_a_voter_flushes_before_it_commits_and_fetches_again():
    member = follower()
    response = QuorumFetchResponse(E.NONE, B, 5, 1, (batch(0, 5),))
    member.answer(B, response, QuorumFetchRequest)
    kinds = [type(e) for e in member.out if type(e) in {Flush, Committed, Send}]
    assert kinds == [Flush, Committed, Send]
    assert member.of(Flush)[0].partition == METADATA_PARTITION
    assert member.of(Send)[0].request.fetch_offset == 1


def test_an_observer_does_not_flush_and_never_stands():
    member = Member(node=7, state=QuorumState(5, B, -1))
    assert "role" not in member.timers
    member.answer(B, QuorumFetchResponse(E.NONE, B, 5, 1, (batch(0, 5),)), QuorumFetchRequest)
    assert member.of(Flush) == []
    assert member.of(Committed)[0].end_offset == 1


def test_a_follower_commits_no_more_than_it_has():
    member = follower()
    member.answer(B, QuorumFetchResponse(E.NONE, B, 5, 9, (batch(0, 5),)), QuorumFetchRequest)
    assert member.of(Committed)[0].end_offset == 1


def test_a_follower_truncates_where_the_logs_part():
    member = follower(1, 2, 2)
    response = QuorumFetchResponse(E.NONE, B, 5, -1, diverging=EpochEnd(1, 1))
    member.answer(B, response, QuorumFetchRequest)
    assert member.log.log_end_offset == 1
    request = member.of(Send)[0].request
    assert (request.fetch_offset, request.last_fetched_epoch) == (1, 1)


def test_truncating_what_is_committed_stops_the_process():
    member = follower(1, 2)
    member.answer(B, QuorumFetchResponse(E.NONE, B, 5, 2), QuorumFetchRequest)
    response = QuorumFetchResponse(E.NONE, B, 5, -1, diverging=EpochEnd(1, 1))
    member.answer(B, response, QuorumFetchRequest)
    assert len(member.of(Halt)) == 1
    assert member.log.log_end_offset == 2


def test_the_fetch_timeout_counts_from_the_last_success():
    member = follower()
    assert member.timers["role"] == 2 * SECOND
    member.now = 500 * MS
    member.answer(B, QuorumFetchResponse(E.NONE, B, 5, 0), QuorumFetchRequest)
    assert member.timers["role"] == 2_500 * MS
    sent = member.sent[-1]
    member.now = 900 * MS
    member.feed(RequestFailed(B, sent.correlation, E.NETWORK_EXCEPTION))
    assert member.timers["role"] == 2_500 * MS
    member.fire()
    assert member.role is Role.PROSPECTIVE


def test_a_member_whose_leader_fails_asks_the_other_voters_who_leads():
    member = Member(node=7, state=QuorumState(5, B, -1))
    asked = []
    for _ in range(4):
        sent = member.sent[-1]
        asked.append(sent.to)
        member.feed(RequestFailed(sent.to, sent.correlation, E.NETWORK_EXCEPTION))
        assert member.timers["fetch"] == member.now + 20 * MS
        member.fire("fetch")
    assert asked == [B, ME, B, C]
    member.answer(member.sent[-1].to, QuorumFetchResponse(E.FENCED_LEADER_EPOCH, C, 6))
    assert (member.quorum.leader, member.quorum.epoch, member.sent[-1].to) == (C, 6, C)


def test_the_first_successor_stands_at_once():
    member = follower()
    member.ask(EndQuorumEpochRequest(B, 5, (ME, C)))
    assert member.timers["role"] == member.now
    member.fire()
    assert member.role is Role.PROSPECTIVE


@pytest.mark.parametrize(
    ("preferred", "wait"),
    [
        ((ME,), 0),
        ((B, ME), 500),
        ((B, C, ME), 500),
        ((B, ME, C), 250),
        ((B, C), 1000),
        ((), 1000),
    ],
)
def test_later_successors_wait(preferred, wait):
    assert end_quorum_backoff_us(ME, preferred, 1000) == wait


def test_a_new_leader_is_followed_when_it_introduces_itself():
    member = Member()
    response = member.ask(BeginQuorumEpochRequest(C, 3))
    assert (response.error, response.leader, response.epoch) == (E.NONE, C, 3)
    assert member.sent[-1].to == C


def test_an_answer_that_matches_no_open_request_is_dropped():
    member = follower()
    assert member.feed(ResponseReceived(B, 99, QuorumFetchResponse(E.NONE, B, 5, 9))) == []
    assert member.feed(RequestFailed(B, 99, E.NETWORK_EXCEPTION)) == []
