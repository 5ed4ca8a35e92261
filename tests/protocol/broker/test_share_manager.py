"""Leaders of share partitions between members and the share coordinator (KIP-932)."""

from dataclasses import dataclass
from types import SimpleNamespace

from sim.error_codes import ErrorCode
from sim.ids import SHARE_STATE_TOPIC, TopicPartition, uuid_text
from sim.protocol.broker.replication.events import HighWatermarkMoved, LeadershipApplied
from sim.protocol.broker.share.config import ShareConfig
from sim.protocol.broker.share.manager import ShareConnectionClosed, SharePartitionManager
from sim.protocol.broker.share.partition import ACCEPT
from sim.protocol.coordinator.share.persister import ATTEMPTS_MAX
from sim.protocol.effects import Emit, Reply, Send, SetTimer
from sim.protocol.events import RequestFailed, RequestReceived, ResponseReceived, TimerFired
from sim.protocol.messages.share import (
    FINAL_EPOCH,
    PartitionAcknowledgements,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
    WriteShareGroupStateResponse,
)
from sim.protocol.messages.share_records import Acknowledgement, Acquired, RecordState, StateBatch
from sim.units import SECOND

JOBS = TopicPartition("jobs", 0)
WAIT = SECOND // 2


@dataclass
class Batch:
    base_offset: int
    last_offset: int
    size_bytes: int = 100


class Log:
    log_start_offset = 0

    def __init__(self):
        self.batches = []

    def read(self, start, end, max_bytes):
        del max_bytes
        return tuple(b for b in self.batches if b.last_offset >= start and b.last_offset < end)


class Broker:
    """One leader of a partition, beside a share coordinator that answers when it is told to."""

    def __init__(self):
        self.log = Log()
        self.replica = SimpleNamespace(
            log=self.log, high_watermark=0, leader_epoch=0, topic_id=uuid_text("jobs")
        )
        self.error = ErrorCode.NONE
        image = SimpleNamespace(
            partition_counts={SHARE_STATE_TOPIC: 1},
            leader_of=lambda _place: 1,
            brokers={1: SimpleNamespace(fenced=False)},
            group_configs={},
        )
        self.image = image
        self.machine = SharePartitionManager(
            1, ShareConfig(from_earliest=("g",)), self, lambda: image, lambda: 0.5
        )
        self.answers, self.sent, self.rows, self.timers = {}, [], [], {}
        self._token = 0

    def led(self, _partition):
        return self.replica if self.error is ErrorCode.NONE else self.error

    def hint(self, _partition, _error):
        return None

    def watch(self, _partition):
        pass

    def give(self, event, now=0):
        for effect in self.machine.handle(event, now):
            if isinstance(effect, Reply):
                self.answers[effect.token] = effect.response
            elif isinstance(effect, Send):
                self.sent.append(effect)
            elif isinstance(effect, Emit):
                self.rows.append((effect.table, *effect.row))
            elif isinstance(effect, SetTimer):
                self.timers[effect.name] = effect.at

    def produce(self, first, last, now=0):
        self.log.batches.append(Batch(first, last))
        self.replica.high_watermark = last + 1
        self.give(HighWatermarkMoved(JOBS), now)

    def ask(self, member, request, now=0):
        self._token += 1
        self.give(RequestReceived(self._token, member, request), now)
        return self._token

    def fetch(self, member, epoch, *said, now=0):
        told = (PartitionAcknowledgements(JOBS, said),) if said else ()
        places = (JOBS,) if epoch == 0 else ()
        request = ShareFetchRequest(
            "g", member, epoch, WAIT, 1 << 20, 500, places, acknowledgements=told
        )
        return self.ask(member, request, now)

    def answer(self, error=ErrorCode.NONE, now=0, start=0, batches=()):
        """The coordinator answers the oldest request."""
        sent = self.sent.pop(0)
        if isinstance(sent.request, ReadShareGroupStateRequest):
            response = ReadShareGroupStateResponse(error, 0, start, batches)
        else:
            response = WriteShareGroupStateResponse(error)
        self.give(ResponseReceived(sent.to, sent.correlation, response), now)

    def result(self, token):
        (result,) = self.answers[token].results
        return result


def ready():
    """Member a has offsets 0 to 9."""
    broker = Broker()
    broker.produce(0, 9)
    token = broker.fetch("a", 0)
    broker.answer(start=-1)
    assert broker.result(token).acquired == (Acquired(0, 9, 1),)
    return broker


def test_a_fetch_waits_for_the_state_and_then_for_records():
    broker = Broker()
    token = broker.fetch("a", 0)
    broker.answer(start=-1)
    assert token not in broker.answers
    broker.produce(0, 4)
    assert broker.result(token).acquired == (Acquired(0, 4, 1),)


def test_a_fetch_that_finds_nothing_ends_after_its_time():
    broker = Broker()
    token = broker.fetch("a", 0)
    broker.answer(start=-1)
    broker.give(TimerFired("share-fetch"), WAIT)
    assert broker.answers[token].results == ()


def test_an_answer_waits_until_what_was_acknowledged_is_written():
    broker = ready()
    token = broker.fetch("a", 1, Acknowledgement(0, 9, (ACCEPT,)))
    broker.produce(10, 14)
    assert token not in broker.answers
    broker.answer()
    assert broker.result(token).acknowledge_error is ErrorCode.NONE
    assert broker.result(token).acquired == (Acquired(10, 14, 1),)
    assert broker.machine.share("g", JOBS).start_offset == 10


def test_a_coordinator_that_moves_is_asked_again_and_given_up_after_five_times():
    broker = ready()
    token = broker.fetch("a", 1, Acknowledgement(0, 9, (ACCEPT,)))
    now = 0
    for attempt in range(1, ATTEMPTS_MAX + 1):
        broker.answer(ErrorCode.NOT_COORDINATOR, now)
        if attempt == ATTEMPTS_MAX:
            break
        name, now = max(
            ((n, at) for n, at in broker.timers.items() if n.startswith("share-state")),
            key=lambda timer: timer[1],
        )
        broker.give(TimerFired(name), now)
    assert broker.result(token).acknowledge_error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert broker.machine.share("g", JOBS).start_offset == 0


def test_a_leader_that_was_deposed_knows_it_from_the_coordinator():
    broker = ready()
    token = broker.fetch("a", 1, Acknowledgement(0, 9, (ACCEPT,)))
    broker.answer(ErrorCode.FENCED_LEADER_EPOCH)
    assert broker.machine.share("g", JOBS) is None
    broker.answer(ErrorCode.FENCED_LEADER_EPOCH)
    assert broker.result(token).acknowledge_error is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_another_leader_reads_what_was_written():
    broker = Broker()
    broker.produce(0, 9)
    token = broker.fetch("a", 0)
    broker.answer(start=3, batches=(StateBatch(4, 5, RecordState.ACKNOWLEDGED, 1),))
    assert broker.result(token).acquired == (Acquired(3, 3, 1), Acquired(6, 9, 1))


def test_a_lock_that_is_over_gives_the_record_to_who_waits():
    broker = ready()
    token = broker.fetch("b", 0, now=30 * SECOND - 1)
    broker.give(TimerFired("share-lock/g/jobs-0"), 30 * SECOND)
    assert broker.result(token).acquired == (Acquired(0, 9, 2),)
    assert broker.sent, "the release is written too"


def test_a_member_whose_connection_breaks_gives_back_what_it_has():
    broker = ready()
    token = broker.fetch("b", 0)
    broker.give(ShareConnectionClosed("g", "a"))
    assert token not in broker.answers
    broker.answer()
    assert broker.result(token).acquired == (Acquired(0, 9, 2),)


def test_a_session_has_to_be_opened_and_goes_on_in_order():
    broker = ready()
    wrong = broker.fetch("a", 5)
    assert broker.answers[wrong].error is ErrorCode.INVALID_SHARE_SESSION_EPOCH
    unknown = broker.fetch("x", 1)
    assert broker.answers[unknown].error is ErrorCode.SHARE_SESSION_NOT_FOUND


def test_closing_a_session_says_the_rest_and_gives_back_what_is_left():
    broker = ready()
    said = (PartitionAcknowledgements(JOBS, (Acknowledgement(0, 3, (ACCEPT,)),)),)
    token = broker.ask("a", ShareAcknowledgeRequest("g", "a", FINAL_EPOCH, said))
    broker.answer()
    assert token not in broker.answers
    broker.answer()
    assert broker.answers[token].results == ((JOBS, ErrorCode.NONE),)
    later = broker.fetch("b", 0)
    assert broker.result(later).acquired == (Acquired(4, 9, 2),)


def test_who_does_not_lead_says_so_and_forgets():
    broker = ready()
    waiting = broker.fetch("a", 1)
    broker.error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    broker.give(LeadershipApplied(JOBS, is_leader=False, leader_epoch=1))
    assert broker.result(waiting).error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert broker.machine.share("g", JOBS) is None


def test_a_request_without_an_answer_is_sent_again():
    broker = Broker()
    broker.fetch("a", 0)
    sent = broker.sent.pop(0)
    broker.give(RequestFailed(sent.to, sent.correlation, ErrorCode.NETWORK_EXCEPTION))
    (name,) = [name for name in broker.timers if name.startswith("share-state")]
    broker.give(TimerFired(name), broker.timers[name])
    assert [each.request for each in broker.sent] == [sent.request]
