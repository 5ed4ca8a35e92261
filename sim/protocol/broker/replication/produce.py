"""How a leader takes in records: append, wait for the high watermark, acknowledge.

A request appends to one partition after the other. ``flush.messages`` puts an fsync between an
append and everything that follows it, and whoever wants to append to that log meanwhile waits.

Source: ``ReplicaManager.appendRecords``, ``DelayedProduce``; KIP-98 for duplicates.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol

from sim.error_codes import ErrorCode
from sim.errors import CorruptRecord, StorageFailed
from sim.ids import OFFSETS_TOPIC, SHARE_STATE_TOPIC, Offset, TopicPartition
from sim.protocol import effects as fx
from sim.protocol.broker.purgatory import DelayedProduce, ProducePurgatory
from sim.protocol.broker.replica import Replica
from sim.protocol.broker.replication.events import AppendInternal
from sim.protocol.messages import ProduceRequest, ProduceResponse, ProduceResult
from sim.protocol.offset_runs import places_in
from sim.protocol.ports import NO_GUARD, Appended, Batch
from sim.units import Micros, timestamp_ms

if TYPE_CHECKING:
    from sim.protocol.broker.replication.replica_manager import ReplicaManager


_MARKER_TOKENS = -(1 << 40)
"""Tokens from here downwards belong to requests for markers."""


@dataclass(frozen=True, slots=True)
class InternalAppended:
    """Effect: the outcome of an ``AppendInternal``; another one follows if it is not ``final``."""

    token: int
    error: ErrorCode
    base_offset: Offset
    final: bool = True


@dataclass(frozen=True, slots=True)
class StorageBroke:
    """Effect: a log directory failed under this partition; the broker decides what that means."""

    partition: TopicPartition
    reason: str


class SpecialWrite(Protocol):
    """Writes of a transaction; see ``sim.protocol.broker.replication.transactions``."""

    def write(
        self, replica: Replica, batch: Batch | None, now: Micros, out: list[object]
    ) -> Appended:
        """Append to a partition that this broker leads."""


@dataclass(slots=True)
class ProduceWork:
    """A request between its appends and its answer."""

    token: int
    acks: int
    timeout_us: Micros
    """Of the wait for followers, which begins after the last append."""
    batches: Sequence[tuple[TopicPartition, Batch | None]]
    """To append one after the other: each waits for its log, and for the fsync of the former."""
    special: SpecialWrite | None = None
    guard: int = NO_GUARD
    follows_watermark: bool = False
    appended: list[tuple[Replica, Appended]] = field(default_factory=list)
    failed: list[ProduceResult] = field(default_factory=list)
    done: int = 0
    """How many of the batches are decided."""


class ProducePath:
    """Produce requests on one broker. Internal appends and markers have negative tokens."""

    def __init__(self, manager: "ReplicaManager") -> None:
        self._manager = manager
        self._purgatory = ProducePurgatory()

    def request(self, token: int, request: ProduceRequest, now: Micros, out: list[object]) -> None:
        """Append every batch; answer, or wait for the high watermark."""
        if request.acks not in (-1, 0, 1):
            results = tuple(
                ProduceResult(p, ErrorCode.INVALID_REQUIRED_ACKS) for p, _ in request.batches
            )
            out.append(fx.Reply(token, ProduceResponse(results)))
            return
        work = ProduceWork(token, request.acks, request.timeout_us, request.batches)
        self._append_all(work, now, out)

    def append_internal(self, event: AppendInternal, now: Micros, out: list[object]) -> None:
        """A coordinator's write: as with acks=all, or following the high watermark."""
        work = ProduceWork(
            _internal_token(event.token),
            -1,
            event.timeout_us,
            ((event.partition, event.batch),),
            guard=event.guard,
            follows_watermark=event.follows_watermark,
        )
        self._append_all(work, now, out)

    def special(
        self,
        token: int,
        acks: int,
        timeout_us: Micros,
        special: SpecialWrite,
        batches: Sequence[tuple[TopicPartition, Batch | None]],
        refused: list[ProduceResult],
        now: Micros,
        out: list[object],
    ) -> None:
        """Append what belongs to a transaction; ``refused`` is decided already."""
        work = ProduceWork(token, acks, timeout_us, batches, special, failed=refused)
        self._append_all(work, now, out)

    @staticmethod
    def marker_token(token: int) -> int:
        """The token of a request for markers, which is answered in its own way."""
        return _MARKER_TOKENS - token

    def high_watermark_moved(self, replica: Replica, now: Micros, out: list[object]) -> None:
        """Let go whatever waited for offsets that are committed now."""
        watching = self._purgatory.watching(replica.partition)
        high_watermark = replica.high_watermark
        while watching and watching[0].waiting[replica.partition][0] <= high_watermark:
            operation = watching[0]
            _, base, last = operation.waiting[replica.partition]
            error = ErrorCode.NONE
            too_few = len(replica.maximal_in_sync) < replica.min_in_sync
            if too_few and not operation.follows_watermark:
                error = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
            asked = 1 if operation.follows_watermark else -1
            self._acknowledge(replica, asked, error, base, last, out)
            result = ProduceResult(replica.partition, error, base, replica.log.log_start_offset)
            self._decided(operation, result, out)
        del now

    def leadership_lost(
        self,
        partition: TopicPartition,
        now: Micros,
        out: list[object],
        *,
        spares_coordinators: bool = False,
    ) -> None:
        """This broker no longer leads: waiting requests fail, but for a coordinator's if spared."""
        del now
        manager = self._manager
        error = manager.led(partition)
        assert isinstance(error, ErrorCode), "leadership has been taken from it already"
        for operation in list(self._purgatory.watching(partition)):
            if spares_coordinators and _MARKER_TOKENS < operation.token < 0:
                continue
            hint = manager.hint(partition, error)
            self._decided(operation, ProduceResult(partition, error, hint=hint), out)

    def taken_for_committed(self, replica: Replica, out: list[object]) -> None:
        """A coordinator's appends below a follower's high watermark, whatever lies there now."""
        for operation in list(self._purgatory.watching(replica.partition)):
            required, base, _ = operation.waiting[replica.partition]
            if required <= replica.high_watermark:
                start = replica.log.log_start_offset
                result = ProduceResult(replica.partition, ErrorCode.NONE, base, start)
                self._decided(operation, result, out)

    def expire(self, now: Micros, out: list[object]) -> None:
        """Requests whose time is over answer REQUEST_TIMED_OUT; their records stay in the log."""
        for operation in self._purgatory.expired(now):
            if operation.follows_watermark:
                token = _internal_token(operation.token)
                out.append(InternalAppended(token, ErrorCode.REQUEST_TIMED_OUT, -1, final=False))
                continue
            for partition in list(operation.waiting):
                result = ProduceResult(partition, ErrorCode.REQUEST_TIMED_OUT)
                self._decided(operation, result, out)
        self._set_timer(out)

    # -- inside -----------------------------------------------------------------------------------

    def _append_all(self, work: ProduceWork, now: Micros, out: list[object]) -> None:
        """Append what is left, until a log's lock or an fsync has to be waited for.

        Source: ``ReplicaManager.appendToLocalLog``: one partition after the other.
        """
        locks = self._manager.locks
        while work.done < len(work.batches):
            partition, batch = work.batches[work.done]
            if locks.is_held(partition):
                locks.wait(partition, partial(self._go_on, work, now))
                return
            work.done += 1
            if self._append(work, partition, batch, now, out):
                rest = partial(self._append_all, work)
                locks.flush(partition, rest, out, by_handler=_by_handler(work, partition))
                return
        self._after_appends(work, now, out)

    def _go_on(self, work: ProduceWork, since: Micros, now: Micros, out: list[object]) -> None:
        """It is this request's turn at a log."""
        if _by_handler(work, work.batches[work.done][0]):
            out.append(fx.KeptWaiting(since))
        self._append_all(work, now, out)

    def _append(
        self,
        work: ProduceWork,
        partition: TopicPartition,
        batch: Batch | None,
        now: Micros,
        out: list[object],
    ) -> bool:
        """Append one batch, or refuse it; returns whether an fsync is due."""
        manager = self._manager
        replica = manager.led(partition)
        if isinstance(replica, ErrorCode):
            hint = manager.hint(partition, replica)
            work.failed.append(ProduceResult(partition, replica, hint=hint))
            return False
        needs_in_sync = work.acks == -1 and not work.follows_watermark
        if needs_in_sync and len(replica.in_sync) < replica.min_in_sync:
            self._refuse(work, replica, ErrorCode.NOT_ENOUGH_REPLICAS, out)
            return False
        before = replica.log.log_end_offset
        try:
            special = work.special
            if special is None:
                assert batch is not None, "only a marker is made by the leader"
                appended = replica.leader_write(batch, now, timestamp_ms(now), work.guard)
            else:
                appended = special.write(replica, batch, now, out)
        except CorruptRecord:
            # A header of the log itself, not of the batch; the client tries again, as with Kafka.
            self._refuse(work, replica, ErrorCode.CORRUPT_MESSAGE, out)
            return False
        except StorageFailed as failure:
            end = replica.log.log_end_offset
            if end > before:  # its file took the batch, and an index refused
                for taken in replica.log.read(before, end, 1):
                    note_append(manager.broker, partition, taken, out, as_leader=True)
            out.append(StorageBroke(partition, str(failure)))
            self._refuse(work, replica, ErrorCode.KAFKA_STORAGE_ERROR, out)
            return False
        if appended.error is not ErrorCode.NONE:
            self._refuse(work, replica, appended.error, out)
            return False
        work.appended.append((replica, appended))
        if appended.batch is None:
            return False
        note_append(manager.broker, partition, appended.batch, out, as_leader=True)
        return appended.flush_due

    def _refuse(
        self, work: ProduceWork, replica: Replica, error: ErrorCode, out: list[object]
    ) -> None:
        work.failed.append(ProduceResult(replica.partition, error))
        self._acknowledge(replica, work.acks, error, -1, -1, out)

    def _after_appends(self, work: ProduceWork, now: Micros, out: list[object]) -> None:
        manager = self._manager
        if manager.directories.offline:
            self._without_offline(work, out)
        for replica, _ in work.appended:
            if replica.is_leader:
                manager.advance(replica, now, out)
                manager.fetch.appended(replica.partition)
        if work.acks == -1 and work.appended:
            self._wait(work, now, out)
            return
        results = list(work.failed)
        for replica, appended in work.appended:
            base, last = appended.base_offset, appended.last_offset
            self._acknowledge(replica, work.acks, ErrorCode.NONE, base, last, out)
            start = replica.log.log_start_offset
            results.append(ProduceResult(replica.partition, ErrorCode.NONE, base, start))
        if work.acks == 0:
            out.append(fx.Reply(work.token, None, close=bool(work.failed)))
        else:
            self._answer(work.token, results, out)

    def _without_offline(self, work: ProduceWork, out: list[object]) -> None:
        """What was appended to a log directory that has failed since is not acknowledged."""
        offline = self._manager.directories.offline
        gone = [replica for replica, _ in work.appended if replica.partition in offline]
        work.appended = [pair for pair in work.appended if pair[0].partition not in offline]
        for replica in gone:
            self._refuse(work, replica, ErrorCode.KAFKA_STORAGE_ERROR, out)

    def _wait(self, work: ProduceWork, now: Micros, out: list[object]) -> None:
        waiting = {
            replica.partition: (a.last_offset + 1, a.base_offset, a.last_offset)
            for replica, a in work.appended
        }
        deadline = now + work.timeout_us
        operation = DelayedProduce(
            work.token, deadline, waiting, list(work.failed), work.follows_watermark
        )
        self._purgatory.park(operation)
        for replica, _ in work.appended:
            if not replica.is_leader:
                self.leadership_lost(replica.partition, now, out)
            elif replica.high_watermark >= waiting[replica.partition][0]:
                self.high_watermark_moved(replica, now, out)
        if not operation.is_done:
            self._set_timer(out)

    def _decided(self, operation: DelayedProduce, result: ProduceResult, out: list[object]) -> None:
        self._purgatory.decided(operation, result)
        if operation.is_done:
            self._answer(operation.token, operation.results, out)

    def _answer(self, token: int, results: list[ProduceResult], out: list[object]) -> None:
        if token >= 0:
            out.append(fx.Reply(token, ProduceResponse(tuple(results))))
        elif token > _MARKER_TOKENS:
            out.append(
                InternalAppended(_internal_token(token), results[0].error, results[0].base_offset)
            )
        else:
            self._manager.transactions.marked(_MARKER_TOKENS - token, results, out)

    def _acknowledge(
        self,
        replica: Replica,
        acks: int,
        error: ErrorCode,
        base: Offset,
        last: Offset,
        out: list[object],
    ) -> None:
        partition = replica.partition
        out.append(
            fx.Emit(
                "acknowledgements",
                (
                    self._manager.broker,
                    partition.topic,
                    partition.partition,
                    replica.leader_epoch,
                    acks,
                    error.name,
                    base,
                    last,
                    replica.high_watermark,
                    len(replica.maximal_in_sync),
                    replica.min_in_sync,
                ),
            )
        )

    def _set_timer(self, out: list[object]) -> None:
        out.append(fx.SetTimer("produce", self._purgatory.next_deadline()))


def _by_handler(work: ProduceWork, partition: TopicPartition) -> bool:
    """Whether a request handler does it: groups' coordinators have threads of their own.

    Source: ``CoordinatorRuntime``, ``MultiThreadedEventProcessor``; the transaction coordinator
    appends in the handler of the request.
    """
    if work.special is not None or work.token >= 0:
        return True
    return partition.topic not in (OFFSETS_TOPIC, SHARE_STATE_TOPIC)


def _internal_token(token: int) -> int:
    """The token of a coordinator's append, which is no request."""
    return -1 - token


def note_append(
    broker: int, partition: TopicPartition, batch: Batch, out: list[object], *, as_leader: bool
) -> None:
    """The trace row of one batch written to one replica; another one if it has gaps."""
    base, last, count = batch.base_offset, batch.last_offset, batch.record_count
    out.append(
        fx.Emit(
            "appends",
            (
                broker,
                partition.topic,
                partition.partition,
                base,
                last,
                batch.leader_epoch,
                as_leader,
                batch.size_bytes,
                batch.crc,
                batch.producer_index,
                batch.first_record,
                count,
                batch.producer_id,
                batch.producer_epoch,
                batch.base_sequence,
            ),
        )
    )
    if count <= last - base:
        kept = places_in(batch.offset_runs(), base)
        where = (broker, partition.topic, partition.partition)
        out.append(fx.Emit("log_contents", (*where, base, last, kept, "fetched", -1, -1)))
