"""Which position a source task stores, and when: what is stored was acknowledged before.

Source: ``connect.runtime.{WorkerSourceTask,ExactlyOnceWorkerSourceTask,SubmittedRecords}``;
KIP-618.
"""

import pytest

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition
from sim.protocol.clients.consumer.work import WorkEnded, WorkEnding, WorkTaken
from sim.protocol.connect.source_task import (
    SourceAcked,
    SourceClosing,
    SourceEnded,
    SourcePlan,
    SourceRefused,
    SourceStarted,
    SourceTask,
)
from sim.protocol.effects import Emit, Send, SetTimer
from sim.protocol.events import ResponseReceived, TimerFired
from sim.protocol.messages.group import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from sim.units import SECOND

PLACE = TopicPartition("orders", 0)


class Desk:
    """A source task beside a coordinator that answers at once, and a log that only grows."""

    def __init__(self, offsets="acked", stored=-1, boundary=0, batch=100):
        self.stored = stored
        self.length = 0
        self.now = 0
        self.answers = True
        self.out = []
        plan = SourcePlan(
            "crm", 0, 0, "orders", "connect-crm", SECOND, batch, offsets,
            10 * SECOND, 5 * SECOND, boundary,
        )  # fmt: skip
        self.task = SourceTask(plan, (1,), lambda: self.length)

    def give(self, event):
        for effect in self.task.handle(event, self.now):
            self.out.append(effect)
            if isinstance(effect, Send) and (self.answers or not self._stores(effect)):
                self.give(ResponseReceived(effect.to, effect.correlation, self._answer(effect)))
        return self

    def _stores(self, effect):
        return isinstance(effect.request, OffsetCommitRequest)

    def _answer(self, effect):
        if isinstance(effect.request, FindCoordinatorRequest):
            return FindCoordinatorResponse(ErrorCode.NONE, 1)
        if isinstance(effect.request, OffsetFetchRequest):
            assert effect.request.require_stable
            return OffsetFetchResponse(ErrorCode.NONE, ((PLACE, self.stored, -1),))
        self.stored = effect.request.offsets[0][1]
        return OffsetCommitResponse(ErrorCode.NONE)

    def fire(self, name, at=None):
        self.now = self.now if at is None else at
        return self.give(TimerFired(name))

    def taken(self):
        pieces = [each.pieces[0] for each in self.out if isinstance(each, WorkTaken)]
        return [(piece.first_record, piece.record_count) for piece in pieces]

    def endings(self):
        return [each for each in self.out if isinstance(each, WorkEnding)]

    def ended(self):
        return [each.failed for each in self.out if isinstance(each, SourceEnded)]


def begun(length=50, **keys):
    desk = Desk(**keys)
    desk.length = length
    return desk.give(SourceStarted())


def test_it_begins_at_the_stored_position_and_at_0_without_one():
    assert begun().taken() == [(0, 50)]
    assert begun(stored=20).taken() == [(20, 30)]


def test_a_poll_returns_no_more_than_its_batch_and_nothing_twice():
    desk = begun(batch=30)
    desk.fire("poll", SECOND)
    desk.length = 55
    desk.fire("poll", 2 * SECOND)
    assert desk.taken() == [(0, 30), (30, 20), (50, 5)]


def test_what_is_stored_ends_where_the_first_unacknowledged_record_stands():
    """KAFKA-12226: acknowledgements come in any order, and do not hold polls back."""
    desk = begun()
    desk.give(SourceAcked(((10, 20), (30, 50))))
    desk.fire("flush", 10 * SECOND)
    assert desk.stored == -1
    desk.give(SourceAcked(((0, 10),)))
    desk.fire("flush", 20 * SECOND)
    assert desk.stored == 20
    desk.give(SourceAcked(((20, 30),)))
    desk.fire("flush", 30 * SECOND)
    assert desk.stored == 50
    assert desk.task.is_idle


def test_planted_a_position_of_unacknowledged_records_is_stored():
    desk = begun(offsets="taken")
    desk.fire("flush", 10 * SECOND)
    assert desk.stored == 50


def test_while_a_position_is_being_stored_no_other_is_until_the_timeout():
    desk = begun()
    desk.answers = False
    desk.give(SourceAcked(((0, 50),)))
    for at in (10, 12, 16):
        desk.fire("flush", at * SECOND)
    finds = [e for e in desk.out if isinstance(e, Send) and desk._stores(e)]
    assert len(finds) == 2, "at 10 s and, after 5 s, at 16 s"


def test_each_poll_is_a_transaction_with_the_position_behind_it():
    desk = begun(offsets="inside")
    (ending,) = desk.endings()
    assert ending.offsets == ((PLACE, 50, -1),)
    assert (ending.group, ending.member, ending.generation) == ("connect-crm", "", -1)
    desk.length = 80
    desk.fire("poll", SECOND)
    assert desk.taken() == [(0, 50)], "it waits for the end of its transaction"
    desk.give(WorkEnded(0, ok=True))
    desk.fire("poll", 2 * SECOND)
    assert desk.taken() == [(0, 50), (50, 30)]
    assert desk.stored == -1, "nothing is stored beside transactions"


def test_a_transaction_by_interval_holds_several_polls():
    desk = begun(offsets="inside", boundary=3 * SECOND)
    assert SetTimer("boundary", 3 * SECOND) in desk.out
    desk.length = 80
    desk.fire("poll", SECOND)
    assert not desk.endings()
    desk.fire("boundary", 3 * SECOND)
    assert desk.endings()[0].offsets == ((PLACE, 80, -1),)


def test_planted_a_position_is_stored_apart_from_its_transaction():
    desk = begun(offsets="apart")
    assert desk.endings()[0].offsets == ()
    desk.give(WorkEnded(0, ok=True))
    assert desk.stored == 50


@pytest.mark.parametrize("event", [SourceRefused(), WorkEnded(0, ok=False)])
def test_a_task_whose_records_failed_fails_and_does_nothing_more(event):
    desk = begun(offsets="inside")
    desk.give(event)
    assert desk.ended() == [True]
    told = len(desk.out)
    desk.fire("poll", SECOND)
    assert len(desk.out) == told


def test_at_the_end_everything_is_written_and_its_position_stored():
    desk = begun()
    desk.give(SourceClosing())
    desk.length = 90
    desk.fire("poll", SECOND)
    assert desk.taken() == [(0, 50)]
    assert desk.ended() == []
    desk.give(SourceAcked(((0, 50),)))
    desk.give(WorkEnded(0, ok=True))
    assert desk.ended() == [False]
    assert desk.stored == 50
    told = [effect.row for effect in desk.out if isinstance(effect, Emit)]
    assert told == [("crm", 0, 0, "begun"), ("crm", 0, 50, "stored")]
