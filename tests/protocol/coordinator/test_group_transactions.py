"""Offsets in a transaction at the group's coordinator: who may commit them, and when."""

import pytest

from sim.error_codes import ErrorCode as E
from sim.ids import TopicPartition
from sim.protocol.assignors.subscription import Subscription
from sim.protocol.coordinator.group.context import GroupConfig
from sim.protocol.coordinator.group.coordinator import GroupCoordinator
from sim.protocol.coordinator.group.records import (
    GroupMetadataRecord,
    MemberRecord,
    TransactionEnded,
)
from sim.protocol.coordinator.log import (
    AppendRecords,
    PartitionElected,
    PartitionResigned,
    RecordsAppended,
    TransactionVerified,
    VerifyTransaction,
)
from sim.protocol.effects import Reply
from sim.protocol.events import RequestReceived, TimerFired
from sim.protocol.messages.group import OffsetFetchRequest
from sim.protocol.messages.transaction import TxnOffsetCommitRequest
from sim.units import SECOND

PLACE = TopicPartition("orders", 0)
HOME = 3  # of "g" among 50
GUARD = 41


class Desk:
    """A coordinator whose log and whose transactions' coordinator are played by hand."""

    def __init__(self, **config):
        self.machine = GroupCoordinator(1, 1, GroupConfig(append_linger_us=0, **config))
        self.now, self.answers, self.token = 0, {}, 0
        self.questions, self.writes = [], []
        member = MemberRecord("m", "c", "/h", SECOND, SECOND, Subscription(("orders",)), (PLACE,))
        self.tell(
            PartitionElected(HOME, 0, (GroupMetadataRecord("g", 2, "range", "m", 0, (member,)),))
        )

    def tell(self, event):
        for effect in self.machine.handle(event, self.now):
            match effect:
                case VerifyTransaction():
                    self.questions.append(effect)
                case AppendRecords():
                    self.writes.append(effect)
                case Reply(token, response):
                    self.answers[token] = response.error

    def ask(self, request):
        self.token += 1
        self.tell(RequestReceived(self.token, "c", request))
        return self.token

    def commit(self, offset=10, member="m", generation=2):
        offsets = ((PLACE, offset, 0),)
        return self.ask(TxnOffsetCommitRequest("till", "g", 7, 1, member, generation, offsets))

    def verify(self, error=E.NONE, guard=GUARD):
        for question in self.questions:
            self.tell(TransactionVerified(question.token, error, guard))
        self.questions.clear()

    def written(self, error=E.NONE):
        writes, self.writes = self.writes, []
        for write in writes:
            self.tell(RecordsAppended(write.token, error))
        return writes

    def end(self, *, committed=True):
        self.tell(TransactionEnded(HOME, 7, 1, committed))

    @property
    def offset(self):
        return self.machine.committed("g", PLACE)


def test_offsets_are_written_with_the_guard_and_count_from_the_marker_on():
    desk = Desk()
    token = desk.commit()
    assert desk.writes == []
    desk.verify()
    (write,) = desk.written()
    assert (write.partition, write.guard, write.transaction.producer_id) == (HOME, GUARD, 7)
    assert desk.answers == {token: E.NONE}
    assert desk.offset == -1
    desk.end()
    assert desk.offset == 10


def test_an_aborted_transaction_leaves_no_offsets():
    desk = Desk()
    desk.commit()
    desk.verify()
    desk.written()
    desk.end(committed=False)
    assert desk.offset == -1


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (E.COORDINATOR_LOAD_IN_PROGRESS, E.COORDINATOR_LOAD_IN_PROGRESS),
        (E.INVALID_PRODUCER_EPOCH, E.INVALID_PRODUCER_EPOCH),
        (E.NOT_LEADER_OR_FOLLOWER, E.NOT_COORDINATOR),
    ],
)
def test_what_the_coordinator_of_the_transaction_refuses_is_not_written(error, told):
    desk = Desk()
    token = desk.commit()
    desk.verify(error)
    assert desk.writes == []
    assert desk.answers == {token: told}


@pytest.mark.parametrize(
    ("member", "generation", "error"),
    [("m", 1, E.ILLEGAL_GENERATION), ("other", 2, E.UNKNOWN_MEMBER_ID)],
)
def test_a_member_of_another_time_may_not_commit(member, generation, error):
    desk = Desk()
    token = desk.commit(member=member, generation=generation)
    desk.verify()
    assert desk.writes == []
    assert desk.answers == {token: error}


def test_a_member_that_is_gone_when_its_transaction_is_verified_may_not_commit():
    """Its heir has read the committed offset meanwhile, and would process the same again."""
    desk = Desk()
    token = desk.commit()
    desk.now = 60 * SECOND
    desk.tell(TimerFired("session/g/m"))
    assert "m" not in desk.machine.group("g").members
    desk.writes.clear()
    desk.verify()
    assert desk.writes == []
    assert desk.answers == {token: E.UNKNOWN_MEMBER_ID}


def test_a_coordinator_that_has_moved_meanwhile_writes_nothing():
    desk = Desk()
    token = desk.commit()
    desk.tell(PartitionResigned(HOME))
    desk.verify()
    assert desk.writes == []
    assert desk.answers == {token: E.NOT_COORDINATOR}


def test_who_asks_for_stable_offsets_is_told_of_a_transaction_that_holds_one():
    desk = Desk()
    desk.commit()
    desk.verify()
    for _ in range(2):  # not yet committed, and then committed without its marker
        token = desk.ask(OffsetFetchRequest("g", (PLACE,), require_stable=True))
        assert desk.answers[token] is E.UNSTABLE_OFFSET_COMMIT
        desk.written()
    desk.end()
    token = desk.ask(OffsetFetchRequest("g", (PLACE,), require_stable=True))
    assert desk.answers[token] is E.NONE


def test_a_member_whose_instance_id_is_another_s_now_is_fenced():
    """KIP-345 in KIP-447: the group's metadata of a static consumer have its instance id."""
    desk = Desk()
    static = Subscription(("orders",), instance_id="i")
    heir = MemberRecord("heir", "c", "/h", SECOND, SECOND, static, (PLACE,))
    desk.tell(PartitionResigned(HOME))
    desk.tell(
        PartitionElected(HOME, 1, (GroupMetadataRecord("g", 2, "range", "heir", 0, (heir,)),))
    )
    answers = []
    for member in ("former", "heir"):
        offsets = ((PLACE, 5, 0),)
        token = desk.ask(TxnOffsetCommitRequest("till", "g", 7, 1, member, 2, offsets, "i"))
        desk.verify()
        desk.written()
        answers.append(desk.answers[token])
    assert answers == [E.FENCED_INSTANCE_ID, E.NONE]
