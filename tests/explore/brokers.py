"""One broker's data plane as a search sees it: a frozen state, an event, the next frozen state.

The machine is the real ``ReplicaManager`` over a ``ListLog``. A state is its *key*: a tuple of all
that can influence what the machine does next. What only names things is left out: correlation
numbers, fetch sessions (each fetch is expanded to a full one), tokens. Steps are remembered by key
and event, for machines do nothing else but decide: equal state and equal event, equal outcome.
``test_explore_exactness.py`` holds this against machines that were never looked up.
"""

import pickle
from dataclasses import dataclass
from typing import NamedTuple

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition
from sim.protocol import effects as fx
from sim.protocol.broker.replication.config import ReplicaManagerConfig
from sim.protocol.broker.replication.events import (
    ControllerChanged,
    MetadataApplied,
    RegisteredWithEpoch,
)
from sim.protocol.broker.replication.fetcher import FetcherConfig
from sim.protocol.broker.replication.follower.path import FollowerPath
from sim.protocol.broker.replication.replica_manager import ReplicaManager
from sim.protocol.events import RequestFailed, RequestReceived, ResponseReceived, TimerFired
from sim.protocol.messages.cluster import AlterPartitionRequest
from sim.protocol.messages.data import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchResult,
    ListOffsetsRequest,
    ProduceRequest,
)
from sim.protocol.messages.leader_epochs import OffsetForLeaderEpochRequest
from sim.protocol.metadata.image import BrokerRegistration, MetadataImage, PartitionRegistration
from sim.units import MIB, SECOND
from tests.log.list_log import ListBatch, ListLog

P = TopicPartition("orders", 0)
NOW = 0
"""Time stands still: nobody lags, back-offs are over at once; who is late, the search chooses."""


class Metadata(NamedTuple):
    """What the controller has committed: hashable, and small."""

    partition: PartitionRegistration
    brokers: tuple[BrokerRegistration, ...]
    min_in_sync: int
    elr: bool

    def image(self) -> MetadataImage:
        image = MetadataImage()
        image.brokers = {b.broker: b for b in self.brokers}
        image.partitions[P] = self.partition
        image.topic_ids["orders"] = self.partition.topic_id
        image.topic_configs["orders"] = {"min.insync.replicas": str(self.min_in_sync)}
        image.features["eligible.leader.replicas.version"] = int(self.elr)
        return image


class Disk(NamedTuple):
    """What a process leaves behind: batches as (epoch, record), epochs, checkpointed HW."""

    records: tuple[tuple[int, int], ...]
    epochs: tuple[tuple[int, int], ...]
    high_watermark: int

    def log(self) -> ListLog:
        log = ListLog()
        log.batches = [
            ListBatch(base_offset=at, leader_epoch=epoch, first_record=record, crc=record)
            for at, (epoch, record) in enumerate(self.records)
        ]
        log.log_end_offset = len(self.records)
        log.epochs = list(self.epochs)
        return log

    def without(self, start: int) -> "Disk":
        """A power loss took everything from the offset on; recovery cut the epochs."""
        epochs = tuple(e for e in self.epochs if e[1] < start)
        return Disk(self.records[:start], epochs, min(self.high_watermark, start))


EMPTY = Disk((), (), 0)


class _Open:
    """Opens the one log; a class, so that a machine can be pickled."""

    def __init__(self, log):
        self.log = log

    def __call__(self, partition, topic_id, configs):
        return self.log


@dataclass(frozen=True)
class View:
    """What properties look at, made once for each state of a broker."""

    key: tuple
    disk: Disk
    alive: bool
    is_leader: bool = False
    leader_epoch: int = -1
    in_sync: tuple[int, ...] = ()
    maximal_in_sync: tuple[int, ...] = ()
    remote_ends: tuple[tuple[int, int, int], ...] = ()
    """Of each follower: its log end and its broker epoch, as its last fetch had them."""
    broker_epoch: int = -1

    @property
    def high_watermark(self) -> int:
        return self.disk.high_watermark

    @property
    def end(self) -> int:
        return len(self.disk.records)


class Step(NamedTuple):
    """What an event did: the next state, messages to put on the wire, and facts for the trace."""

    state: int
    sends: tuple[tuple[int, object], ...]
    closed: tuple[int, ...]
    """Leaders whose connections it closed before anything that it sends them now."""
    reply: object
    facts: tuple[str, ...]


class BusyFollowerPath(FollowerPath):
    """The fetchers of a broker that follows other partitions of every leader as well."""

    def shut_down_idle(self, out: list) -> None:
        """None is idle."""


class Brokers:
    """All states of all brokers that a search has met, and the steps between them."""

    def __init__(
        self, truncation, *, joins_at_epoch_start=True, doubts=False, repeats=True, idle=False
    ):
        """What machines there are, and how they are watched.

        ``doubts``: do every step again, from the machine that came by the newest way.
        ``repeats``: metadata of a partition epoch that a leader has from the controller's answer
        is shown to it all the same, as in Kafka.
        ``idle``: a fetcher that has lost the partition ends; else other partitions keep it going.
        """
        self._idle = idle
        self.config = ReplicaManagerConfig(
            fetcher=FetcherConfig(wait_max_us=0, backoff_us=0),
            truncation=truncation,
            joins_at_epoch_start=joins_at_epoch_start,
        )
        self.views: list[View] = []
        self._blobs: list[bytes] = []
        self._numbers: dict[tuple, int] = {}
        self._steps: dict[tuple[int, tuple], Step] = {}
        self._doubts = doubts
        self._repeats = repeats

    # -- states -----------------------------------------------------------------------------------

    def dead(self, broker: int, disk: Disk) -> int:
        """The state of a process that does not run."""
        key = ("dead", broker, disk)
        return self._number(key, lambda: View(key, disk, False), lambda: b"")

    def start(self, broker: int, disk: Disk, metadata: Metadata) -> Step:
        """A process starts from its disk, with the metadata as committed."""
        manager = ReplicaManager(broker, self.config, _Open(disk.log()), {P: disk.high_watermark})
        if not self._idle:
            manager.follower = BusyFollowerPath(
                manager.hosted,
                manager.locks,
                manager.threads,
                manager.fetchers,
                manager.adopted,
                manager.cuts,
                manager.follower_quota,
            )
        epoch = next(b.epoch for b in metadata.brokers if b.broker == broker)
        out = manager.handle(RegisteredWithEpoch(epoch), NOW)
        out += manager.handle(ControllerChanged(3001), NOW)
        out += manager.handle(MetadataApplied(metadata.image(), (P,)), NOW)
        return self._after(manager, metadata, out)

    def step(self, state: int, event: tuple) -> Step:
        """What the event does in that state."""
        known = self._steps.get((state, event))
        if known is None or self._doubts:
            manager, metadata = pickle.loads(self._blobs[state])
            if event[0] == "apply":
                metadata = event[1]
                repeated = manager.replicas[P].partition_epoch == metadata.partition.partition_epoch
                if repeated and not self._repeats:
                    manager.image.partitions[P] = metadata.partition
            out = _perform(manager, event)
            found = self._after(manager, metadata, out)
            if known is not None and known != found:
                raise AssertionError(f"equal states part after {event}: {known} and {found}")
            known = self._steps[state, event] = found
        return known

    def _after(self, manager: ReplicaManager, metadata: Metadata, out: list) -> Step:
        while any(isinstance(e, fx.SetTimer) and e.name == "epochs" for e in out):
            out = [e for e in out if not (isinstance(e, fx.SetTimer) and e.name == "epochs")]
            out += manager.handle(TimerFired("epochs"), NOW)
        sends = tuple((e.to, _message(manager, e)) for e in out if isinstance(e, fx.Send))
        closed = tuple(e.to for e in out if isinstance(e, fx.Close))
        replies = [e.response for e in out if isinstance(e, fx.Reply)]
        assert len(replies) <= 1
        reply = replies[0] if replies else None
        if isinstance(reply, FetchResponse):
            (reply,) = reply.results
            # The session is as if it had never been: the next fetch is a full one again.
            manager.delayed_fetches.__init__()
        facts = tuple(f for e in out if isinstance(e, fx.Emit) for f in _fact(e))
        key = key_of(manager, metadata)
        number = self._number(
            key, lambda: _view(key, manager), lambda: pickle.dumps((manager, metadata), 5)
        )
        return Step(number, sends, closed, reply, facts)

    def _number(self, key, view, blob) -> int:
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.views)
            self.views.append(view())
            self._blobs.append(blob())
        elif self._doubts:
            self._blobs[number] = blob()
        return number


def _perform(manager: ReplicaManager, event: tuple) -> list:
    match event:
        case ("apply", metadata):
            changed = () if manager.image.partitions[P] == metadata.partition else (P,)
            return manager.handle(MetadataApplied(metadata.image(), changed), NOW)
        case ("produce", record):
            batch = ListBatch(first_record=record, crc=record)
            request = ProduceRequest(1, 30 * SECOND, ((P, batch),))
            return manager.handle(RequestReceived(1, "shop", request), NOW)
        case ("request", sender, broker_epoch, asked):
            if isinstance(asked, FetchPartition):
                asked = FetchRequest(sender, broker_epoch, 0, 1, MIB, 0, 0, (asked,))
            return manager.handle(RequestReceived(1, f"broker-{sender}", asked), NOW)
        case ("response", leader, asked, answer):
            correlation = _correlation(manager, leader, asked)
            if isinstance(answer, FetchResult):
                answer = FetchResponse(ErrorCode.NONE, 1, (answer,))
            return manager.handle(ResponseReceived(leader, correlation, answer), NOW)
        case ("failure", leader, asked):
            correlation = _correlation(manager, leader, asked)
            return manager.handle(
                RequestFailed(leader, correlation, ErrorCode.NETWORK_EXCEPTION), NOW
            )
    raise AssertionError(event)


def _correlation(manager: ReplicaManager, leader: int, asked: object) -> int:
    """The machine's own number for its request in flight; there is one of each kind to a leader."""
    follower = manager.follower
    if isinstance(asked, AlterPartitionRequest):
        return manager.isr._correlation
    if isinstance(asked, FetchPartition):
        return manager.fetchers.get(leader, 0).correlation
    if isinstance(asked, OffsetForLeaderEpochRequest):
        open_ = [c for c, (f, _) in follower.epochs._open.items() if f.leader == leader]
    else:
        assert isinstance(asked, ListOffsetsRequest)
        open_ = [c for c, o in follower._lookups.items() if o.fetcher.leader == leader]
    (correlation,) = open_
    return correlation


def _message(manager: ReplicaManager, send: fx.Send) -> object:
    request = send.request
    if not isinstance(request, FetchRequest):
        return request
    # What the session would know is said again: the partition as the fetcher has it.
    fetcher = manager.fetchers.get(send.to, 0)
    return fetcher._fetch_item(P, fetcher.partitions[P])


def key_of(manager: ReplicaManager, metadata: Metadata) -> tuple:
    """Everything that the machine's future depends on."""
    replica = manager.replicas[P]
    isr = manager.isr
    follower = manager.follower
    fetchers = tuple(
        (
            leader,
            f.correlation >= 0,
            tuple(
                (s.offset, s.leader_epoch, s.last_epoch, s.requested, s.truncating)
                for s in f.partitions.values()
            ),
            tuple(f._delayed.values()),
        )
        for (leader, _), f in sorted(manager.fetchers._by_leader.items())
        if f.correlation >= 0 or f.partitions
    )
    remotes = tuple(
        (
            b,
            r.log_end_offset,
            r.last_fetch_leader_end,
            r.last_fetch_us,
            r.last_caught_up_us,
            r.broker_epoch,
            r.clock is not None,
        )
        for b, r in replica.remotes.items()
    )
    return (
        manager.broker,
        manager.hosted.broker_epoch,
        metadata,
        _disk(replica),
        replica.log.log_start_offset,
        replica.leader,
        replica.leader_epoch,
        replica.partition_epoch,
        replica.epoch_start_offset,
        replica.is_leader,
        replica.assigned,
        replica.min_in_sync,
        replica.in_sync,
        replica.maximal_in_sync,
        replica.pending,
        remotes,
        tuple(isr._pending.values()),
        tuple(isr._in_flight.values()),
        isr._correlation >= 0,
        isr._not_before,
        fetchers,
        tuple(sorted(f.leader for f, _ in follower.epochs._open.values())),
        tuple(sorted((o.fetcher.leader, o.timestamp) for o in follower._lookups.values())),
    )


def _disk(replica) -> Disk:
    log = replica.log
    records = tuple((b.leader_epoch, b.first_record) for b in log.batches)
    return Disk(records, tuple(log.epochs), replica.high_watermark)


def _view(key: tuple, manager: ReplicaManager) -> View:
    replica = manager.replicas[P]
    ends = tuple((b, r.log_end_offset, r.broker_epoch) for b, r in replica.remotes.items())
    return View(
        key,
        _disk(replica),
        True,
        replica.is_leader,
        replica.leader_epoch,
        replica.in_sync,
        replica.maximal_in_sync,
        ends,
        manager.hosted.broker_epoch,
    )


def _fact(emit: fx.Emit) -> list[str]:
    row = emit.row
    match emit.table:
        case "truncations":
            return [f"cuts its log {row[3]} → {row[4]} ({row[7]}, high watermark {row[5]})"]
        case "high_watermarks":
            return [f"high watermark → {row[4]}"]
        case "follower_watermarks":
            return [f"high watermark → {row[4]}"]
        case "appends" if row[6]:
            return [f"appends at offset {row[3]} in epoch {row[5]}"]
        case "appends":
            return [f"copies offset {row[3]} of epoch {row[5]}"]
    return []
