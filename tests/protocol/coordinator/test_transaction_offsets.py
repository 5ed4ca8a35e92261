"""``sendOffsetsToTransaction``: which requests, in which order, and what its errors mean."""

import pytest

from sim.error_codes import ErrorCode as E
from sim.ids import TopicPartition
from sim.protocol.clients.producer.transaction_manager import TransactionManager
from sim.protocol.clients.producer.transaction_requests import TransactionState
from sim.protocol.messages.group import FindCoordinatorRequest, FindCoordinatorResponse
from sim.protocol.messages.metadata import InitProducerIdRequest, InitProducerIdResponse
from sim.protocol.messages.transaction import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    EndTxnRequest,
    EndTxnResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from sim.units import MS, SECOND

OFFSETS = ((TopicPartition("orders", 0), 17, 3),)
VERSIONS = pytest.mark.parametrize("version", [2, 0])


class Desk:
    """Answers what the manager asks, the next request as told, all others kindly."""

    def __init__(self, version):
        self.manager = TransactionManager("till", 60 * SECOND, 100 * MS, version)
        self.asked = []
        self.next = {}
        self.manager.initialize()
        self.serve()
        self.manager.begin()

    def serve(self, limit=20):
        manager = self.manager
        for _ in range(limit):
            ask = manager.next_request(has_incomplete=False)
            if ask is None:
                return
            if ask.coordinator is not None and manager.coordinator(ask.coordinator) < 0:
                manager.look_up(ask)
                continue
            self.asked.append(ask.request)
            manager.in_flight = ask
            errors = self.next.get(type(ask.request))
            manager.on_response(self.answer(ask.request, errors.pop(0) if errors else E.NONE))

    def answer(self, request, error):
        made = {
            FindCoordinatorRequest: lambda: FindCoordinatorResponse(error, 2),
            InitProducerIdRequest: lambda: InitProducerIdResponse(error, 1_000, 5),
            AddOffsetsToTxnRequest: lambda: AddOffsetsToTxnResponse(error),
            TxnOffsetCommitRequest: lambda: TxnOffsetCommitResponse(error),
            EndTxnRequest: lambda: EndTxnResponse(error),
        }
        return made[type(request)]()

    def send(self):
        self.asked.clear()
        self.manager.send_offsets("billing", "member-1", 4, OFFSETS)
        self.serve()

    def kinds(self):
        return [type(request).__name__ for request in self.asked]


@VERSIONS
def test_offsets_go_to_the_group_s_coordinator_before_the_transaction_ends(version):
    desk = Desk(version)
    desk.asked.clear()
    desk.manager.send_offsets("billing", "member-1", 4, OFFSETS)
    desk.manager.commit()
    desk.serve()
    added = [] if version == 2 else ["AddOffsetsToTxnRequest"]
    told = ["FindCoordinatorRequest", "TxnOffsetCommitRequest", "EndTxnRequest"]
    assert desk.kinds() == added + told
    find, commit = desk.asked[-3], desk.asked[-2]
    assert (find.key, find.kind) == ("billing", "group")
    assert (commit.producer_id, commit.producer_epoch) == (1_000, 5)
    assert (commit.member_id, commit.generation, commit.offsets) == ("member-1", 4, OFFSETS)
    assert desk.manager.outcome == "committed"


@VERSIONS
def test_a_transaction_of_offsets_alone_is_one_and_an_empty_one_is_not_ended(version):
    desk = Desk(version)
    desk.asked.clear()
    desk.manager.commit()
    desk.serve()
    assert desk.asked == []
    assert desk.manager.state is TransactionState.READY
    desk.manager.begin()
    desk.send()
    desk.manager.commit()
    desk.serve()
    assert desk.kinds()[-1] == "EndTxnRequest"


@VERSIONS
@pytest.mark.parametrize("error", [E.UNKNOWN_MEMBER_ID, E.ILLEGAL_GENERATION, E.FENCED_INSTANCE_ID])
def test_a_member_that_is_gone_must_abort(version, error):
    """KIP-447: the group has moved on, another member has the partitions."""
    desk = Desk(version)
    desk.next[TxnOffsetCommitRequest] = [error]
    desk.send()
    assert desk.manager.state is TransactionState.ABORTABLE_ERROR
    assert desk.manager.error is error
    assert not desk.manager.sends_offsets
    desk.manager.abort()
    desk.serve()
    assert desk.manager.outcome == "aborted"


@pytest.mark.parametrize(
    ("error", "finds"),
    [
        (E.COORDINATOR_LOAD_IN_PROGRESS, 1), (E.CONCURRENT_TRANSACTIONS, 1),
        (E.NOT_COORDINATOR, 2), (E.COORDINATOR_NOT_AVAILABLE, 2), (E.REQUEST_TIMED_OUT, 2),
    ],
)  # fmt: skip
def test_a_group_coordinator_that_is_not_ready_is_asked_again(error, finds):
    desk = Desk(2)
    desk.next[TxnOffsetCommitRequest] = [error]
    desk.send()
    assert desk.kinds().count("TxnOffsetCommitRequest") == 2
    assert desk.kinds().count("FindCoordinatorRequest") == finds
    assert desk.manager.state is TransactionState.IN_TRANSACTION
    assert not desk.manager.sends_offsets


@pytest.mark.parametrize("error", [E.INVALID_PRODUCER_EPOCH, E.PRODUCER_FENCED])
def test_a_fenced_producer_commits_no_offsets(error):
    desk = Desk(2)
    desk.next[TxnOffsetCommitRequest] = [error]
    desk.send()
    assert desk.manager.state is TransactionState.FATAL_ERROR
    assert desk.manager.error is E.PRODUCER_FENCED
