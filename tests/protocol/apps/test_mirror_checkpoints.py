"""A mirror's checkpoints: asked for at the source, committed at the target, never taken back.

Source: ``MirrorCheckpointTask``; KIP-382, KIP-545.
"""

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition
from sim.protocol.effects import Emit, Send, SetTimer
from sim.protocol.events import RequestFailed, ResponseReceived, TimerFired
from sim.protocol.messages.group import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from sim.protocol.mirror.checkpoints import (
    Checkpoint,
    CheckpointPlan,
    Checkpoints,
    MirrorCheckpointTask,
    MirrorGroupSync,
    Started,
    SyncsWritten,
)
from sim.protocol.mirror.offsets import OffsetSync
from sim.units import SECOND

HERE, THERE = TopicPartition("orders", 0), TopicPartition("us.orders", 0)
PLAN = CheckpointPlan(("billing",), {HERE: THERE}, 60 * SECOND, 60 * SECOND)
NONE = ErrorCode.NONE


class Talk:
    """A machine and the brokers that answer it: broker 2 coordinates every group."""

    def __init__(self, machine, committed=-1, refusal=NONE):
        self.machine = machine
        self.committed = committed
        self.refusal = refusal
        self.asked = []
        self.seen = []
        self.now = 0

    def tell(self, event):
        out = list(self.machine.handle(event, self.now))
        while out:
            effect = out.pop(0)
            if isinstance(effect, Send):
                self.asked.append((effect.to, effect.request))
                answer = self._answer(effect.request)
                event = ResponseReceived(effect.to, effect.correlation, answer)
                out += self.machine.handle(event, self.now)
            else:
                self.seen.append(effect)

    def _answer(self, request):
        if isinstance(request, FindCoordinatorRequest):
            return FindCoordinatorResponse(NONE, 2)
        if isinstance(request, OffsetFetchRequest):
            offsets = tuple((partition, self.committed, -1) for partition in request.partitions)
            return OffsetFetchResponse(NONE, offsets)
        assert isinstance(request, OffsetCommitRequest)
        return OffsetCommitResponse(self.refusal)

    def found(self, kind):
        return [effect for effect in self.seen if isinstance(effect, kind)]

    def commits(self):
        return [request for _, request in self.asked if isinstance(request, OffsetCommitRequest)]


def task(committed, *syncs, emitted=None):
    talk = Talk(MirrorCheckpointTask(PLAN, (1, 2, 3), {} if emitted is None else emitted))
    talk.committed = committed
    talk.tell(Started())
    talk.tell(SyncsWritten(tuple(OffsetSync(HERE, *pair) for pair in syncs)))
    return talk


def test_a_group_s_offset_is_asked_of_its_coordinator_and_translated():
    talk = task(150, (100, 90))
    assert talk.found(SetTimer) == [SetTimer("interval", 60 * SECOND)]
    talk.tell(TimerFired("interval"))
    assert [to for to, request in talk.asked if isinstance(request, OffsetFetchRequest)] == [2]
    assert talk.found(Checkpoints) == [Checkpoints("billing", (Checkpoint(THERE, 150, 91),))]


def test_nothing_is_told_of_what_cannot_be_translated_or_was_never_committed():
    for talk in (task(150), task(50, (100, 90)), task(-1, (0, 0))):
        talk.tell(TimerFired("interval"))
        assert talk.found(Checkpoints) == []


def test_checkpoints_go_forward_unless_the_group_went_back():
    talk = task(150, (100, 90))
    for committed, told in ((150, 1), (160, 1), (120, 2)):
        talk.committed = committed
        talk.tell(TimerFired("interval"))
        assert len(talk.found(Checkpoints)) == told, committed


def test_what_an_earlier_process_told_is_not_told_again():
    talk = task(150, (100, 90), emitted={("billing", THERE): Checkpoint(THERE, 150, 91)})
    talk.tell(TimerFired("interval"))
    assert talk.found(Checkpoints) == []


def test_a_broker_that_does_not_answer_is_asked_again():
    machine = MirrorCheckpointTask(PLAN, (1, 2, 3), {})
    (_, first) = machine.handle(TimerFired("interval"), 0)
    assert isinstance(first, Send)
    failed = RequestFailed(first.to, first.correlation, ErrorCode.NETWORK_EXCEPTION)
    (again,) = machine.handle(failed, SECOND)
    assert again.name == "retry"
    (second,) = machine.handle(TimerFired("retry"), again.at)
    assert second.to != first.to
    late = RequestFailed(second.to, second.correlation, ErrorCode.REQUEST_TIMED_OUT)
    assert machine.handle(late, 60 * SECOND) == [], "given up until the next round"


def commits(there, refusal=NONE, plan=PLAN):
    talk = Talk(MirrorGroupSync(plan, (1, 2, 3), "mm2", {}), there, refusal)
    talk.tell(Started())
    talk.tell(Checkpoints("billing", (Checkpoint(THERE, 150, 91),)))
    talk.tell(TimerFired("interval"))
    return talk


def test_a_group_that_has_committed_nothing_there_gets_the_translated_offset():
    talk = commits(-1)
    (request,) = talk.commits()
    assert (request.member_id, request.generation) == ("", -1)
    assert request.offsets == ((THERE, 91, -1),)
    assert [effect.row[-1] for effect in talk.found(Emit)] == ["NONE"]


def test_a_group_that_is_further_there_is_not_taken_back():
    assert commits(91).commits() == []
    assert commits(500).commits() == []


def test_a_group_with_members_there_refuses_and_that_is_told():
    talk = commits(-1, ErrorCode.UNKNOWN_MEMBER_ID)
    assert [effect.row[-1] for effect in talk.found(Emit)] == ["UNKNOWN_MEMBER_ID"]


def test_without_sync_group_offsets_nothing_is_ever_due():
    plan = CheckpointPlan(("billing",), {HERE: THERE}, 60 * SECOND, 0)
    machine = MirrorGroupSync(plan, (1,), "mm2", {})
    assert machine.handle(Started(), 0) == []
