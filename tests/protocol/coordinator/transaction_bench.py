"""Not a test: one transaction coordinator whose log, leaders and clients are played by hand."""

from itertools import count

from sim.error_codes import ErrorCode as E
from sim.ids import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, TopicPartition
from sim.protocol import effects as fx
from sim.protocol.assignors.registry import partition_for_group
from sim.protocol.coordinator.log import (
    AppendRecords,
    PartitionElected,
    PartitionLoading,
    PartitionResigned,
    RecordsAppended,
)
from sim.protocol.coordinator.transaction.config import TransactionConfig
from sim.protocol.coordinator.transaction.coordinator import TransactionCoordinator
from sim.protocol.coordinator.transaction.records import (
    MetadataPublished,
    ProducerIdAllocated,
    ProducerIdRequested,
    TransactionRecord,
)
from sim.protocol.events import RequestFailed, RequestReceived, ResponseReceived, TimerFired
from sim.protocol.messages.metadata import InitProducerIdRequest
from sim.protocol.messages.transaction import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    WriteTxnMarkersResponse,
)
from sim.protocol.metadata.image import BrokerRegistration, MetadataImage, PartitionRegistration
from sim.protocol.preemption import Preempt, Resumed
from sim.units import SECOND

T = "tx-1"
PLACE = partition_for_group(T)
P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


def record(state, *, epoch=5, pid=7, partitions=(), start=0, version=2, **more):
    return TransactionRecord(
        T, pid, epoch, 60 * SECOND, state, partitions, 0, start, version=version, **more
    )


class Desk:
    """A coordinator; ``log`` is what its partition holds, committed at once unless told not to."""

    def __init__(self, version=2, *, elected=True, records=(), epoch=3, **config):
        self.now = 0
        self.config = TransactionConfig(version=version, **config)
        self.machine = TransactionCoordinator(1, 0, self.config)
        self.log, self.rows, self.replies = [], [], {}
        self.timers, self.sent, self.waiting = {}, [], []
        self.interrupted = []  # tokens of threads, in their order
        self.holds = False
        self.append_error = E.NONE
        self.next_id = 1_000
        self.tokens = count(1)
        self.image = MetadataImage()
        for broker in (1, 2):
            self.image.brokers[broker] = BrokerRegistration(broker, 9, "i", "", False, False)
        self.lead(P0, 1)
        self.lead(P1, 2)
        self.image.partition_counts = {"orders": 2, OFFSETS_TOPIC: 50, TRANSACTIONS_TOPIC: 50}
        for number in range(50):
            self.lead(TopicPartition(OFFSETS_TOPIC, number), 2)
        self.tell(MetadataPublished(self.image))
        if elected:
            self.tell(PartitionLoading(PLACE, epoch))
            self.tell(PartitionElected(PLACE, epoch, tuple(records)))

    def lead(self, place, leader):
        self.image.partitions[place] = PartitionRegistration("t" * 22, (1, 2), (1, 2), leader, 0, 0)

    def tell(self, event):
        for effect in self.machine.handle(event, self.now):
            self.perform(effect)

    def perform(self, effect):
        match effect:
            case AppendRecords() if self.holds:
                self.waiting.append(effect)
            case AppendRecords():
                self.commit(effect)
            case ProducerIdRequested(token):
                self.next_id += 1
                self.tell(ProducerIdAllocated(token, self.next_id - 1))
            case fx.Reply(token, response):
                assert token not in self.replies, "one answer for one request"
                self.replies[token] = response
            case fx.Emit(table, row):
                self.rows.append((table, *row))
            case fx.SetTimer(name, at):
                self.timers[name] = at
            case fx.Send():
                self.sent.append(effect)
            case Preempt(token):
                self.interrupted.append(token)
            case _:
                raise AssertionError(effect)

    def commit(self, effect, error=None):
        error = self.append_error if error is None else error
        if error is E.NONE:
            self.log += effect.records
        self.tell(RecordsAppended(effect.token, error))

    def release(self, error=E.NONE):
        waiting, self.waiting = self.waiting, []
        for effect in waiting:
            self.commit(effect, error)

    def wake(self, threads=None):
        """The first so many interrupted threads go on, all that there are now if not told."""
        now = self.interrupted[:threads]
        del self.interrupted[:threads]
        for token in now:
            self.tell(Resumed(token))
        return len(now)

    def ask(self, request):
        token = next(self.tokens)
        self.tell(RequestReceived(token, "shop", request))
        self.token = token
        return self.replies.get(token)

    def init(self, producer_id=-1, epoch=-1, timeout=60 * SECOND, name=T):
        return self.ask(InitProducerIdRequest(name, timeout, producer_id, epoch))

    def add(self, ids, *places, verify=False, name=T):
        return self.ask(AddPartitionsToTxnRequest(name, *ids, places or (P0,), verify))

    def add_offsets(self, ids, group="g"):
        return self.ask(AddOffsetsToTxnRequest(T, *ids, group))

    def end(self, ids, *, committed=True):
        return self.ask(EndTxnRequest(T, *ids, committed))

    def begun(self, *places):
        """A producer whose transaction has the partitions."""
        ids = self.ids(self.init())
        assert self.add(ids, *(places or (P0, P1))).error is E.NONE
        return ids

    def ids(self, response):
        assert response.error is E.NONE, response
        return response.producer_id, response.producer_epoch

    def answer_markers(self, error=E.NONE):
        """Every leader asked so far answers the same for all its partitions."""
        sent, self.sent = self.sent, []
        for send in sent:
            errors = tuple((place, error) for place in send.request.partitions)
            self.tell(ResponseReceived(send.to, send.correlation, WriteTxnMarkersResponse(errors)))
        return [send.request for send in sent]

    def lose_markers(self):
        sent, self.sent = self.sent, []
        for send in sent:
            self.tell(RequestFailed(send.to, send.correlation, E.NETWORK_EXCEPTION))

    def pass_time(self, until):
        while self.timers and min(self.timers.values()) <= until:
            name = min(self.timers, key=lambda n: (self.timers[n], n))
            self.now = self.timers.pop(name)
            self.tell(TimerFired(name))
        self.now = until

    def resign(self):
        self.tell(PartitionResigned(PLACE))

    def states(self):
        """Of the rows: state, epoch, partitions."""
        return [(row[5], row[4], row[6]) for row in self.rows if row[0] == "transactions"]

    @property
    def state(self):
        return self.machine.transaction(T).state.value
