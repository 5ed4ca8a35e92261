"""What one member of a partition's Raft group decides: one event, its effects."""

import pytest

from sim.errors import CorruptRecord
from sim.ids import NO_LEADER, TopicPartition
from sim.protocol.broker.raft_storage import RaftVote
from sim.protocol.messages.raft_groups import (
    RaftAnswer,
    RaftAppend,
    RaftAppendRequest,
    RaftTimeoutNowRequest,
    RaftVoteRequest,
    RaftVoteResponse,
)
from sim.protocol.metadata.image import PartitionRegistration
from sim.protocol.ports import EpochEnd
from sim.protocol.raft_groups.group import RaftGroup
from sim.protocol.raft_groups.replica import RaftReplica
from sim.protocol.raft_groups.types import (
    FlushLog,
    Followed,
    Led,
    PersistedState,
    PersistVote,
    RaftConfig,
    RaftRole,
    ReplyToMember,
    SendToMember,
    StartLearned,
    Truncated,
    VisibleMoved,
    Wrote,
)
from tests.log.list_log import ListBatch, ListLog
from tests.protocol.raft_groups.raft_kit import ListRecords

P = TopicPartition("orders", 0)
VOTERS = (1, 2, 3)
S = 1_000_000
TIMEOUT = 1_500_000


def member(node=1, records=(), vote=RaftVote(), config=RaftConfig(), draw=0.0):  # noqa: B008
    """A member whose log holds a record of each of the given terms."""
    log = ListLog()
    for term in records:
        log.append_as_leader(ListBatch(), term, 0)
    replica = RaftReplica(P, node, log, 0)
    replica.adopt(PartitionRegistration("id", VOTERS, VOTERS, -1, 0, 0))
    group = RaftGroup(replica, VOTERS, config, ListRecords(), lambda: draw, PersistedState(vote))
    group.begin(0)
    return group


def only(effects, kind):
    return [effect for effect in effects if isinstance(effect, kind)]


def open_requests(effects, kind):
    return [
        effect.request for effect in only(effects, SendToMember) if isinstance(effect.request, kind)
    ]


def elected(group, now=0):
    """The member leads: its deadline passes, and broker 2 votes for it, twice."""
    out = group.due(max(now, group.deadline))
    (request, _) = open_requests(out, RaftVoteRequest)
    out = group.voted(2, request, RaftVoteResponse(P, group.term, granted=True), now)
    (request, _) = open_requests(out, RaftVoteRequest)
    out = group.voted(2, request, RaftVoteResponse(P, group.term, granted=True), now)
    assert only(out, Led)
    return out + group.open_term(now)


def flushed(group, effects, now=0):
    (flush,) = only(effects, FlushLog)
    return group.flushed(flush.up_to, flush.generation, now)


def wrote(group, durable=True, now=0):
    group.replica.leader_write(ListBatch(), now, 0)
    return group.written(now, durable=durable)


def append(**fields):
    base = {
        "partition": P, "term": 1, "prev_offset": 0, "prev_term": -1,
        "commit": 0, "visible": 0, "log_start": 0,
    }  # fmt: skip
    return RaftAppend(**base | fields)


def records(*terms, at=0):
    return tuple(ListBatch(base_offset=at + n, leader_epoch=t) for n, t in enumerate(terms))


# -- elections ------------------------------------------------------------------------------------


def test_the_first_replica_of_a_new_group_stands_at_once_and_others_leave_it_the_time():
    assert member(1).deadline == 0
    assert member(2).deadline == 2 * TIMEOUT


def test_a_candidate_asks_first_and_raises_its_term_only_when_it_could_win():
    group = member(1)
    out = group.due(0)
    assert group.term == 0
    assert {r.pre_vote for r in open_requests(out, RaftVoteRequest)} == {True}
    assert only(out, PersistVote) == []
    (request, _) = open_requests(out, RaftVoteRequest)
    out = group.voted(3, request, RaftVoteResponse(P, 0, granted=True), 0)
    assert group.term == 1
    assert only(out, PersistVote) == [PersistVote(RaftVote(1, 1))]
    assert isinstance(out[0], PersistVote), "durable before it is spoken of"


def test_a_member_that_heard_its_leader_lately_refuses_whoever_that_leader_did_not_name():
    group = member(2)
    group.on_append_request(1, 1, append(), now=10 * S)
    request = RaftVoteRequest(P, 3, 2, 0, 0, pre_vote=False)
    (refused,) = only(group.on_vote_request(2, request, 10 * S + TIMEOUT - 1), ReplyToMember)
    assert not refused.response.granted
    assert group.term == 1
    named = RaftVoteRequest(P, 3, 2, 0, 0, pre_vote=False, transfer=True)
    (granted,) = only(group.on_vote_request(3, named, 10 * S + 1), ReplyToMember)
    assert granted.response.granted


def test_after_the_timeout_the_same_candidate_gets_the_vote_and_it_is_persisted_before():
    group = member(2)
    group.on_append_request(1, 1, append(), now=10 * S)
    request = RaftVoteRequest(P, 3, 2, 0, 0, pre_vote=False)
    out = group.on_vote_request(2, request, 10 * S + TIMEOUT)
    kinds = [type(effect) for effect in out]
    assert kinds.index(PersistVote) < kinds.index(ReplyToMember)
    assert only(out, ReplyToMember)[0].response.granted


def test_one_vote_in_a_term_across_a_restart():
    group = member(2, vote=RaftVote(5, 1))
    other = RaftVoteRequest(P, 3, 5, 9, 9, pre_vote=False)
    assert not only(group.on_vote_request(1, other, 0), ReplyToMember)[0].response.granted
    same = RaftVoteRequest(P, 1, 5, 9, 9, pre_vote=False)
    assert only(group.on_vote_request(2, same, 0), ReplyToMember)[0].response.granted


@pytest.mark.parametrize(("term", "end", "granted"), [(2, 1, True), (1, 9, False), (1, 2, False)])
def test_a_later_last_term_beats_a_longer_log(term, end, granted):
    group = member(2, records=(1, 2), vote=RaftVote(2, -1))
    request = RaftVoteRequest(P, 3, 3, term, end + (term == 2), pre_vote=False)
    assert only(group.on_vote_request(1, request, 0), ReplyToMember)[0].response.granted is granted


def test_a_later_replica_of_the_assignment_lets_one_round_pass():
    group = member(2, vote=RaftVote(1, 1), draw=0.5)
    first = group.deadline
    assert group.due(first) == []
    assert first < group.deadline <= first + TIMEOUT // 2 + 1
    assert open_requests(group.due(group.deadline), RaftVoteRequest)


def test_a_leader_that_no_majority_answers_steps_down_after_an_election_timeout():
    group = member(1)
    elected(group)
    assert group.heartbeats(TIMEOUT)[0]
    told, out = group.heartbeats(TIMEOUT + 1)
    assert told == []
    assert only(out, Followed) == [Followed(was_leader=True)]
    assert group.role is RaftRole.FOLLOWER
    assert not group.replica.is_leader


def test_one_answer_of_two_followers_keeps_a_leader():
    group = member(1)
    elected(group)
    told, _ = group.heartbeats(TIMEOUT)
    beat = dict(told)[3]
    group.answered(3, beat, RaftAnswer(P, 1, 0, 0), TIMEOUT, heartbeat=True)
    assert len(group.heartbeats(2 * TIMEOUT)[0]) == 2


def test_a_stopping_member_does_not_stand():
    group = member(1)
    group.silent = True
    assert group.due(group.deadline) == []
    assert group.role is RaftRole.FOLLOWER


# -- replication ----------------------------------------------------------------------------------


def test_a_leader_sends_at_the_same_time_as_it_flushes():
    group = member(1)
    out = elected(group)
    (opened,) = only(out, Wrote)
    assert opened.as_leader
    sent = open_requests(out, RaftAppendRequest)
    assert len(sent) == 2
    assert all(request.append.flush for request in sent)
    assert only(out, FlushLog) == [FlushLog(1, 0)]


def answer_open(group, voter, end, held, now=0):
    """The open append to a voter has been taken in up to ``end``, and flushed up to ``held``."""
    sent = append(term=group.term, batches=records(group.term))
    return group.answered(voter, sent, RaftAnswer(P, group.term, end, held), now, heartbeat=False)


def test_acks_all_is_committed_when_a_majority_has_flushed_it_this_leader_among_them():
    group = member(1)
    opened = elected(group)
    assert only(answer_open(group, 2, 1, 1), VisibleMoved) == []
    out = flushed(group, opened)
    assert only(out, VisibleMoved) == [VisibleMoved(1)]
    assert group.replica.high_watermark == group.commit == 1


def test_two_followers_on_disk_wait_for_the_leaders_own_disk():
    group = member(1)
    elected(group)
    answer_open(group, 2, 1, 1)
    answer_open(group, 3, 1, 0)
    assert group.commit == 0, "what one follower holds in memory does not count"


def test_relaxed_writes_may_be_read_once_a_majority_has_them_though_nobody_flushed():
    group = member(1)
    opened = elected(group)
    flushed(group, opened)
    answer_open(group, 2, 1, 1)
    out = wrote(group, durable=False)
    assert only(out, FlushLog) == []
    assert not open_requests(out, RaftAppendRequest)[0].append.flush
    out = answer_open(group, 2, 2, 1)
    assert only(out, VisibleMoved) == [VisibleMoved(2)]
    assert group.commit == 1


def test_a_relaxed_write_is_not_read_past_one_that_must_be_durable():
    group = member(1)
    opened = elected(group)
    flushed(group, opened)
    answer_open(group, 2, 1, 1)
    wrote(group, durable=True)
    wrote(group, durable=False)
    assert only(answer_open(group, 2, 3, 1), VisibleMoved) == []


def test_write_caching_flushes_for_nobody():
    group = member(1, config=RaftConfig(write_caching=True))
    opened = elected(group)
    flushed(group, opened)
    assert only(wrote(group), FlushLog) == []


def test_what_nobody_waits_for_is_flushed_by_age():
    group = member(1)
    flushed(group, elected(group))
    wrote(group, durable=False, now=0)
    assert only(group.heartbeats(99_000)[1], FlushLog) == []
    assert only(group.heartbeats(100_000)[1], FlushLog) == [FlushLog(2, 0)]


def test_what_nobody_waits_for_is_flushed_by_size():
    group = member(1, config=RaftConfig(flush_bytes=250))
    flushed(group, elected(group))
    assert only(wrote(group, durable=False), FlushLog) == []
    assert only(wrote(group, durable=False), FlushLog) == []
    assert only(wrote(group, durable=False), FlushLog) == [FlushLog(4, 0)]


def test_one_append_is_under_way_to_a_follower_and_the_next_takes_all_that_came_meanwhile():
    group = member(1)
    elected(group)
    assert open_requests(wrote(group), RaftAppendRequest) == []
    assert open_requests(wrote(group), RaftAppendRequest) == []
    (following,) = open_requests(answer_open(group, 2, 1, 1), RaftAppendRequest)
    assert [b.base_offset for b in following.append.batches] == [1, 2]


def test_a_lost_append_is_sent_again_with_the_next_heartbeat_not_before():
    group = member(1)
    (sent, _) = open_requests(elected(group), RaftAppendRequest)
    group.failed(2, sent.append)
    assert open_requests(wrote(group), RaftAppendRequest) == []
    again = open_requests(group.heartbeats(1_000)[1], RaftAppendRequest)
    assert [b.base_offset for b in again[0].append.batches] == [0, 1]


def test_a_follower_that_lost_what_it_had_is_sent_it_again():
    group = member(1)
    elected(group)
    answer_open(group, 2, 1, 1)
    beat = dict(group.heartbeats(1)[0])[2]
    lost = RaftAnswer(P, group.term, parts=EpochEnd(-1, -1))
    (again,) = open_requests(group.answered(2, beat, lost, 1, heartbeat=True), RaftAppendRequest)
    assert [b.base_offset for b in again.append.batches] == [0]
    assert group.followers[2].match == group.followers[2].flushed == 0


def test_a_follower_that_agreed_is_not_cut_when_the_leader_has_let_its_records_go():
    group = member(1)
    elected(group)
    answer_open(group, 2, 1, 1)
    group.replica.log.raise_log_start(1)
    beat = dict(group.heartbeats(1)[0])[2]
    follower = member(2, records=(1,), vote=RaftVote(1, 1))
    out = follower.on_append_request(7, 1, beat, now=0)
    assert only(out, Truncated) == []
    assert only(out, StartLearned) == [StartLearned(1)]


def test_an_answer_to_a_former_term_counts_for_nothing():
    group = member(1)
    elected(group)
    old = append(term=0)
    group.answered(2, old, RaftAnswer(P, 0, 9, 9), 0, heartbeat=False)
    assert group.followers[2].match == -1


# -- following ------------------------------------------------------------------------------------


def test_a_follower_answers_only_after_the_fsync_it_was_asked_for():
    group = member(2)
    out = group.on_append_request(7, 1, append(flush=True, batches=records(1)), now=0)
    assert only(out, ReplyToMember) == []
    (answer,) = only(flushed(group, out), ReplyToMember)
    assert (answer.token, answer.response.answer) == (7, RaftAnswer(P, 1, 1, 1))


def test_without_that_wish_it_answers_at_once_and_says_what_is_durable():
    group = member(2)
    (answer,) = only(
        group.on_append_request(7, 1, append(batches=records(1)), now=0), ReplyToMember
    )
    assert answer.response.answer == RaftAnswer(P, 1, 1, 0)


def test_a_follower_cuts_what_parts_from_its_leader_and_only_that():
    group = member(2, records=(1, 1, 1))
    sent = append(term=3, prev_offset=1, prev_term=1, batches=records(1, 3, at=1))
    out = group.on_append_request(7, 1, sent, now=0)
    assert only(out, Truncated) == [Truncated(3, 2, 0, 0, 0)]
    assert [b.leader_epoch for b in group.replica.log.batches] == [1, 1, 3]


class DamagedLog(ListLog):
    """Cuts as far as it can; then there is damage."""

    least = 0

    def truncate_to(self, offset):
        super().truncate_to(max(offset, self.least))
        raise CorruptRecord("orders-0: the batch at 0 declares -1 bytes")


def test_a_follower_that_cannot_cut_what_parts_from_its_leader_writes_and_promises_nothing():
    group = member(2, records=(1, 1, 1))
    group.replica.log.__class__ = DamagedLog
    group.replica.log.least = 3
    sent = append(term=3, prev_offset=1, prev_term=1, batches=records(1, 3, at=1))
    out = group.on_append_request(7, 1, sent, now=0)
    (answer,) = only(out, ReplyToMember)
    assert answer.response.answer == RaftAnswer(P, 0)
    assert not only(out, Truncated)
    assert not only(out, Wrote)
    group.replica.log.least = 0
    out = group.on_append_request(8, 1, sent, now=0)
    assert only(out, Truncated) == [Truncated(3, 2, 0, 0, 0)], (
        "damage further down keeps nobody from following"
    )
    assert [b.leader_epoch for b in group.replica.log.batches] == [1, 1, 3]


def test_a_leader_sends_nothing_that_it_cannot_read():
    group = member(records=(1,))
    elected(group)

    def read(*_):
        raise CorruptRecord("orders-0: the batch at 0 declares -1 bytes")

    group.replica.log.read = read
    assert not open_requests(wrote(group), RaftAppendRequest)


def test_an_append_that_comes_twice_changes_nothing():
    group = member(2)
    sent = append(batches=records(1, 1))
    group.on_append_request(7, 1, sent, now=0)
    out = group.on_append_request(8, 1, sent, now=0)
    assert only(out, Wrote) == only(out, Truncated) == []
    assert group.replica.log.log_end_offset == 2


def test_a_follower_without_the_record_before_says_where_its_terms_end():
    group = member(2, records=(1, 2, 2))
    sent = append(term=5, prev_offset=4, prev_term=4, batches=records(5, at=4))
    (answer,) = only(group.on_append_request(7, 1, sent, now=0), ReplyToMember)
    assert answer.response.answer == RaftAnswer(P, 5, parts=EpochEnd(2, 3))


def test_a_leader_goes_back_to_where_the_terms_agree_in_one_step():
    group = member(1, records=(1, 1, 3, 3), vote=RaftVote(3, -1))
    elected(group)
    beat = dict(group.heartbeats(1)[0])[2]
    out = group.answered(
        2, beat, RaftAnswer(P, group.term, parts=EpochEnd(2, 4)), 1, heartbeat=True
    )
    assert group.followers[2].next_offset == 2
    assert out == []


def test_a_heartbeat_cuts_nothing():
    group = member(2, records=(1, 1))
    out = group.on_append_request(7, 1, append(term=1, prev_offset=1, prev_term=1), now=0)
    assert only(out, Truncated) == []
    assert group.replica.log.log_end_offset == 2


def test_a_follower_shows_what_is_visible_only_as_far_as_it_agrees():
    group = member(2, records=(1, 1, 1))
    sent = append(prev_offset=1, prev_term=1, commit=3, visible=3)
    group.on_append_request(7, 1, sent, now=0)
    assert group.replica.high_watermark == group.commit == 1


def test_a_follower_behind_the_leaders_log_start_starts_there():
    group = member(2, records=(1, 1))
    sent = append(term=2, prev_offset=9, log_start=9, batches=records(2, at=9))
    group.on_append_request(7, 1, sent, now=0)
    log = group.replica.log
    assert (log.log_start_offset, log.log_end_offset) == (9, 10)


def test_an_fsync_that_began_before_a_cut_promises_nothing():
    group = member(2)
    out = group.on_append_request(7, 1, append(flush=True, batches=records(1, 1)), now=0)
    (flush,) = only(out, FlushLog)
    sent = append(term=2, prev_offset=1, prev_term=1, batches=records(2, at=1))
    group.on_append_request(8, 3, sent, now=0)
    out = group.flushed(flush.up_to, flush.generation, 0)
    (answer,) = only(out, ReplyToMember)
    assert answer.response.answer.end == -1
    assert group.flushed_end == 0


# -- handing over ---------------------------------------------------------------------------------


def test_the_heir_stands_once_it_has_everything_and_nothing_is_written_until_then():
    group = member(1)
    elected(group)
    assert open_requests(group.transfer(2, 0), RaftTimeoutNowRequest) == []
    assert group.heir == 2
    out = answer_open(group, 2, 1, 1)
    assert open_requests(out, RaftTimeoutNowRequest) == [RaftTimeoutNowRequest(P, 1, 1)]


def test_a_transfer_that_does_not_happen_is_given_up_after_10_seconds():
    group = member(1)
    elected(group)
    group.transfer(2, 0)
    for now, heir in ((10 * S - 1, 2), (10 * S, NO_LEADER)):
        for follower in group.followers.values():
            follower.last_heard = now
        group.heartbeats(now)
        assert group.is_leader
        assert group.heir == heir


def test_whoever_is_told_to_stand_does_so_without_asking_first():
    group = member(2)
    group.on_append_request(1, 1, append(), now=0)
    out = group.timeout_now(1, 1)
    assert group.term == 2
    assert {(r.pre_vote, r.transfer) for r in open_requests(out, RaftVoteRequest)} == {
        (False, True)
    }
    assert group.timeout_now(1, 1) == [], "the wish of a former term"
