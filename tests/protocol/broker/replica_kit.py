"""A log in a list, and three brokers' data planes whose messages are carried by hand."""

from dataclasses import dataclass, replace

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition
from sim.protocol import effects as fx
from sim.protocol.broker.replication.config import ReplicaManagerConfig
from sim.protocol.broker.replication.events import (
    ControllerChanged,
    MetadataApplied,
    RegisteredWithEpoch,
)
from sim.protocol.broker.replication.replica_manager import ReplicaManager
from sim.protocol.events import RequestReceived, ResponseReceived
from sim.protocol.messages.data import FetchRequest, ProduceRequest
from sim.protocol.metadata.image import BrokerRegistration, MetadataImage, PartitionRegistration
from sim.protocol.ports import Appended, EpochEnd
from sim.units import SECOND

P = TopicPartition("orders", 0)


@dataclass(frozen=True)
class ToyBatch:
    base_offset: int = 0
    last_offset: int = 0
    leader_epoch: int = -1
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    record_count: int = 1
    max_timestamp_ms: int = 0
    size_bytes: int = 100
    crc: int = 7
    is_control: bool = False
    producer_index: int = 0
    first_record: int = 0


class NoTransactions:
    has_unstable = False


class ToyLog:
    """Just enough of a log: batches in a list, epochs in a list."""

    transactions = NoTransactions()
    is_tiered = False

    @property
    def local_log_start_offset(self):
        return self.log_start_offset

    def __init__(self, epochs=(), end=0):
        self.log_start_offset = 0
        self.epochs = list(epochs)
        self.batches = []
        starts = [*[s for _, s in self.epochs[1:]], end]
        for (epoch, start), stop in zip(self.epochs, starts, strict=False):
            self.batches += [ToyBatch(o, o, epoch) for o in range(start, stop)]
        self.flush_due = False

    @property
    def log_end_offset(self):
        return self.batches[-1].last_offset + 1 if self.batches else 0

    @property
    def latest_epoch(self):
        return self.epochs[-1][0] if self.epochs else -1

    def begin_epoch(self, epoch):
        self.epochs = [e for e in self.epochs if e[1] < self.log_end_offset]
        self.epochs.append((epoch, self.log_end_offset))

    def end_offset_for_epoch(self, epoch):
        if epoch == self.latest_epoch:
            return EpochEnd(epoch, self.log_end_offset)
        later = [e for e in self.epochs if e[0] > epoch]
        if epoch < 0 or not later:
            return EpochEnd(-1, -1)
        earlier = [e for e in self.epochs if e[0] <= epoch]
        return EpochEnd(earlier[-1][0] if earlier else epoch, later[0][1])

    def append_as_leader(self, batch, epoch, now_ms, guard=0):
        end = self.log_end_offset
        stamped = replace(
            batch, base_offset=end, last_offset=end + batch.record_count - 1, leader_epoch=epoch
        )
        self.batches.append(stamped)
        return Appended(ErrorCode.NONE, end, stamped.last_offset, False, self.flush_due, stamped)

    def append_as_follower(self, batches):
        for batch in batches:
            assert batch.base_offset == self.log_end_offset
            if batch.leader_epoch > self.latest_epoch:
                self.epochs.append((batch.leader_epoch, batch.base_offset))
            self.batches.append(batch)
        return self.flush_due

    def read(self, start, end, max_bytes):
        return tuple(b for b in self.batches if b.last_offset >= start and b.last_offset < end)

    def bytes_between(self, start, end):
        return 100 * (end - start)

    def raise_log_start(self, offset):
        raised = offset > self.log_start_offset
        self.log_start_offset = max(offset, self.log_start_offset)
        return raised

    def truncate_to(self, offset):
        self.batches = [b for b in self.batches if b.last_offset < offset]
        self.epochs = [e for e in self.epochs if e[1] < offset]

    def truncate_fully_and_start_at(self, offset):
        raise AssertionError(offset)


def leader_log():
    """KIP-279's leader: epoch 1 to offset 20, nothing of epoch 2, epoch 3 from offset 21 on."""
    return ToyLog([(1, 0), (3, 21)], end=31)


def state(leader=1, epoch=0, partition_epoch=0, in_sync=(1, 2, 3), replicas=(1, 2, 3)):
    return PartitionRegistration("t" * 22, replicas, in_sync, leader, epoch, partition_epoch)


def image(registration=None, fenced=(), place=P):
    out = MetadataImage()
    for broker in (1, 2, 3):
        out.brokers[broker] = BrokerRegistration(
            broker, 100 + broker, "i", "", broker in fenced, False
        )
    if registration is not None:
        out.partitions[place] = registration
    out.topic_configs["orders"] = {"min.insync.replicas": "2"}
    return out


class Bench:
    """Three brokers' data planes; messages are carried by hand."""

    place = P

    def __init__(self, in_sync=(1, 2, 3), flush_due=False, log=ToyLog, **config):
        self.logs = {b: log() for b in (1, 2, 3)}
        self.managers = {}
        self.out = {b: [] for b in (1, 2, 3)}
        self.now = 0
        for broker in (1, 2, 3):
            log = self.logs[broker]
            log.flush_due = flush_due
            self.managers[broker] = ReplicaManager(
                broker, ReplicaManagerConfig(**config), lambda *_, log=log: log, {}
            )
            self.tell(broker, RegisteredWithEpoch(100 + broker))
            self.tell(broker, ControllerChanged(3001))
        self.apply(state(in_sync=in_sync))

    def apply(self, registration, fenced=(), brokers=(1, 2, 3)):
        for broker in brokers:
            made = image(registration, fenced, self.place)
            self.tell(broker, MetadataApplied(made, (self.place,)))

    def tell(self, broker, event):
        effects = self.managers[broker].handle(event, self.now)
        self.out[broker] += effects
        return effects

    def take(self, broker, kind):
        found = [e for e in self.out[broker] if isinstance(e, kind)]
        self.out[broker] = [e for e in self.out[broker] if not isinstance(e, kind)]
        return found

    def fetches(self, broker):
        return [s for s in self.take(broker, fx.Send) if isinstance(s.request, FetchRequest)]

    def produce(self, acks=-1, token=900, leader=1, batch=None):
        request = ProduceRequest(acks, 30 * SECOND, ((P, batch or ToyBatch()),))
        self.tell(leader, RequestReceived(token, "shop", request))

    def carry(self, broker):
        """One follower's open fetch goes to the leader; its answer, if any, comes back."""
        for send in self.fetches(broker):
            token = broker * 1_000 + send.correlation
            self.tell(send.to, RequestReceived(token, f"broker-{broker}", send.request))
            self.open = getattr(self, "open", {})
            self.open[token] = (broker, send)
        self.answers()

    def answers(self):
        for leader in (1, 2, 3):
            for reply in [r for r in self.out[leader] if isinstance(r, fx.Reply)]:
                if reply.token in getattr(self, "open", {}):
                    self.out[leader].remove(reply)
                    broker, send = self.open.pop(reply.token)
                    self.tell(broker, ResponseReceived(send.to, send.correlation, reply.response))

    def replies(self, leader=1):
        """Answers to clients; those to followers (tokens from 2000) are carried by ``answers``."""
        taken = self.take(leader, fx.Reply)
        self.out[leader] += [r for r in taken if r.token >= 2_000]
        return [r for r in taken if r.token < 2_000]

    def settle(self, rounds=4):
        for _ in range(rounds):
            for broker in (2, 3):
                self.carry(broker)
