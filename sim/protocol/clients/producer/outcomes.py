"""Outcomes of a producer's batches: success, retry, split, failure, expiry.

``failed`` is only the outcome of a batch that was certainly not written: it was never sent, or
every attempt ended with such an error. Other failures are ``unknown``.

Source: ``Sender.{completeBatch,canRetry,failBatch}``, ``RecordAccumulator.{reenqueue,
splitAndReenqueue,expiredBatches}``; KIP-91, KIP-98, KIP-126.
"""

from collections.abc import Iterable

from sim.error_codes import ErrorCode
from sim.protocol.clients.consumer.work import WorkEnded
from sim.protocol.clients.producer.accumulator import Accumulator
from sim.protocol.clients.producer.batch import NO_SEQUENCE, ProducerBatch
from sim.protocol.clients.producer.config import ProducerConfig
from sim.protocol.clients.producer.events import (
    NEVER_SENT,
    REFUSED_PARTITION,
    BatchDone,
    BatchesCompressed,
    ProducerStopped,
    SendProduce,
    TransactionDone,
    TransactionsReady,
)
from sim.protocol.clients.producer.metadata import Backoff, ProducerMetadata
from sim.protocol.clients.producer.network import OpenRequest
from sim.protocol.clients.producer.record_sizes import BATCH_OVERHEAD
from sim.protocol.clients.producer.sequences import ProducerSequences
from sim.protocol.effects import Send, SetTimer
from sim.protocol.messages.data import ProduceResponse, ProduceResult
from sim.units import NEVER, Micros

ProducerEffect = (
    Send
    | SetTimer
    | SendProduce
    | BatchDone
    | TransactionDone
    | ProducerStopped
    | WorkEnded
    | TransactionsReady
)
"""Effects of a producer; the last two only of a task or a source."""


class Outcomes:
    """Decides on batches whose attempt has ended, or that have expired."""

    def __init__(
        self,
        config: ProducerConfig,
        accumulator: Accumulator,
        sequences: ProducerSequences | None,
        backoff: Backoff,
        refused_records: int,
    ) -> None:
        self._config = config
        self._accumulator = accumulator
        self._sequences = sequences
        self._backoff = backoff
        self.refused_records = refused_records
        """Records refused so far; their numbers are those of partition -1."""
        self.mutes = config.max_in_flight_requests_per_connection == 1
        """True if a partition is muted during its batch in flight."""
        self.muted: dict[int, bool] = {}
        """Muted partitions."""
        self.out: list[ProducerEffect] = []
        """Receives outcomes."""
        self.expiry_at: Micros = NEVER
        """No batch expires before."""

    def succeed(self, batch: ProducerBatch, base_offset: int) -> None:
        """The broker has it; for an expired batch this only settles its sequence."""
        if self._sequences is not None:
            self._sequences.on_acked(batch)
        if self.mutes:
            self.muted.pop(batch.partition, None)
        if not batch.done:
            batch.error = "NONE"
            self.end(batch, "ok", base_offset)

    def on_error(self, batch: ProducerBatch, error: ErrorCode, now: Micros) -> None:
        """One attempt ended with an error: splits, retries, accepts, or fails.

        Source: ``Sender.completeBatch``, ``Sender.canRetry``.
        """
        if self.mutes:
            self.muted.pop(batch.partition, None)
        if batch.done:
            if error is ErrorCode.DUPLICATE_SEQUENCE_NUMBER and self._sequences is not None:
                self._sequences.on_acked(batch)
            return
        batch.error = error.name
        if not error.definite:
            batch.may_be_written = True
        if (
            error is ErrorCode.MESSAGE_TOO_LARGE
            and batch.record_count > 1
            and self._config.splits_batches
        ):
            self._split(batch)
        elif self._can_retry(batch, error, now):
            self._retry(batch, now)
        elif error is ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            self.succeed(batch, -1)
        else:
            if self._sequences is not None:
                adjust = batch.attempts < self._config.retries
                self._sequences.on_failed(batch, adjust=adjust)
            self.end(batch, "unknown" if batch.may_be_written else "failed")

    def _can_retry(self, batch: ProducerBatch, error: ErrorCode, now: Micros) -> bool:
        if now - batch.created_us >= self._config.delivery_timeout_us:
            return False
        if batch.attempts >= self._config.retries:
            return False
        if self._sequences is not None:
            return self._sequences.may_retry(batch, error)
        return error.retriable

    def _retry(self, batch: ProducerBatch, now: Micros) -> None:
        batch.attempts += 1
        batch.last_attempt_us = now
        batch.backoff_us = self._backoff.draw(batch.attempts - 1)
        batch.in_retry = True
        if not self._config.skips_backoff_on_leader_hint:
            batch.wait_out_backoff()
        self._requeue(batch)

    def _split(self, batch: ProducerBatch) -> None:
        """Sends a batch that the broker found too large in parts (KIP-126).

        A part that is too large again is halved, down to its largest record (KAFKA-8350). Before
        4.2 it is split to ``batch.size`` again, which leaves one that is no larger as it is: it is
        sent at once, until it expires.
        """
        sizing, estimator, ratio = self._accumulator.sizing, self._accumulator.estimator, 1.0
        if estimator is not None and batch.packing is not None:
            estimator.reset(batch.packing.observed)
            self._accumulator.recompute_ends()
            ratio = estimator.ratio
        target = self._config.batch_size
        if batch.split and self._config.halves_parts:
            target = max(batch.record_bound(sizing), batch.size_bytes // 2)
        parts = batch.parts(sizing, target, ratio)
        if self._sequences is not None:
            self._sequences.of(batch.partition).forget(batch)
            for part in parts:
                self._sequences.of(batch.partition).track(part)
        batch.done = True
        self._accumulator.release(batch)
        for part in reversed(parts):
            self._requeue(part)

    def on_compressed(self, requests: dict[int, OpenRequest], event: BatchesCompressed) -> None:
        """A request's batches were compressed: updates the estimate for the next ones.

        Source: ``ProducerBatch.close``.
        """
        estimator = self._accumulator.estimator
        request = requests.get(event.correlation)
        if request is None or estimator is None:
            return
        for batch, (size, raw) in zip(request.batches, event.sizes, strict=True):
            batch.size_bytes = size
            if batch.packing is not None:
                batch.packing.observed = estimator.observe(size - BATCH_OVERHEAD, raw)
        self._accumulator.recompute_ends()

    def _requeue(self, batch: ProducerBatch) -> None:
        """Re-enqueues at the front, or, with sequences, at its place among them."""
        waiting = self._accumulator.queues[batch.partition].batches
        place = 0
        if self._sequences is not None:
            for other in waiting:
                if other.base_sequence == NO_SEQUENCE or other.base_sequence > batch.base_sequence:
                    break
                place += 1
        self._accumulator.backlog.put(batch, place)

    def end(self, batch: ProducerBatch, outcome: str, base_offset: int = -1) -> None:
        """Writes the outcome and returns the memory."""
        batch.done = True
        self._accumulator.release(batch)
        self.out.append(batch.outcome(outcome, base_offset))

    def give_up_all(self, requests: Iterable[OpenRequest], error: str = "") -> None:
        """Ends all batches: those in flight have unknown outcomes, others their last one.

        ``error`` is that of batches not in flight; empty: each batch's own, or :data:`NEVER_SENT`
        where no broker has answered, as its producer ended before it sent it.
        """
        for request in requests:
            for batch in request.batches:
                if not batch.done:
                    self.end(batch, "unknown")
        for queue in self._accumulator.backlog.queues():
            for batch in queue.batches:
                batch.error = error or batch.error
                if batch.error == "NONE" and not batch.may_be_written:
                    batch.error = NEVER_SENT
                self.end(batch, "unknown" if batch.may_be_written else "failed")
            queue.batches.clear()

    def on_disconnect(
        self, request: OpenRequest, error: ErrorCode, now: Micros, metadata: ProducerMetadata
    ) -> ErrorCode:
        """Returns the error of a request's batches when its connection has ended.

        If authentication failed, a send that waits for metadata fails, and the next one waits
        again; without a producer id the failure is fatal. With metadata, batches wait for a
        connection, or for ``delivery.timeout.ms``.

        Source: ``Metadata.fatalError``, ``ProducerMetadata.awaitUpdate``,
        ``TransactionManager.authenticationFailed``.
        """
        if not error.is_authentication:
            return error
        limit = now - self._accumulator.offset_us
        if request.kind == "identify":
            self.give_up_all((), error.name)
            self._accumulator.fail_for_good(limit, error.name)
        elif not metadata.is_known:
            self._accumulator.deny(limit, error.name)
        return ErrorCode.NETWORK_EXCEPTION

    def on_identity_refused(self, error: ErrorCode, now: Micros) -> Micros:
        """Returns the instant of the next request for a producer id; ``NEVER``: none follows.

        Without the right to one what waits fails. Before 3.6 (KAFKA-13668) that is fatal.

        Source: ``TransactionManager.InitProducerIdHandler``,
        ``Sender.shouldHandleAuthorizationError``.
        """
        if error is ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            self.give_up_all((), error.name)
            if not self._config.retries_refused_identity:
                self._accumulator.fail_for_good(now - self._accumulator.offset_us, error.name)
                return NEVER
        return now + self._config.retry_backoff_us

    def report_refused(self) -> None:
        """Writes rows of records that ``send()`` refused; they have partition -1."""
        for refused in self._accumulator.refused:
            count = len(refused.intended_us)
            self.out.append(
                BatchDone(
                    REFUSED_PARTITION,
                    self.refused_records,
                    count,
                    0,
                    refused.at,
                    None,
                    None,
                    0,
                    "failed",
                    refused.error,
                    -1,
                    -1,
                    -1,
                    refused.intended_us,
                )
            )
            self.refused_records += count
        self._accumulator.refused.clear()

    def watch_unsent(self) -> None:
        """Notes when the first unsent batch expires, where ``request.timeout.ms`` decides."""
        for queue in self._accumulator.backlog.queues():
            if queue.partition not in self.muted:
                self.expiry_at = min(self.expiry_at, self._unsent_until(queue.batches[0]))

    def _unsent_until(self, batch: ProducerBatch) -> Micros:
        """The instant at which a batch that is not in flight has waited too long.

        A full batch waits from its last record in Kafka, which is at most ``linger.ms`` earlier.

        Source: ``ProducerBatch.maybeExpire`` (2.0).
        """
        config = self._config
        if batch.in_retry:
            return batch.last_attempt_us + batch.backoff_us + config.request_timeout_us
        return batch.created_us + config.linger_us + config.request_timeout_us

    def _expire_unsent(self, now: Micros) -> None:
        """Expires what waits by ``request.timeout.ms``, and nothing in flight (before KIP-91).

        Source: ``RecordAccumulator.expiredBatches`` (2.0).
        """
        self.expiry_at = NEVER
        for queue in self._accumulator.backlog.queues():
            if queue.partition in self.muted:
                continue
            while queue.batches and self._unsent_until(queue.batches[0]) <= now:
                self.give_up(queue.batches.popleft())
        self.watch_unsent()

    def expire(self, requests: Iterable[OpenRequest], now: Micros) -> None:
        """``delivery.timeout.ms``: expires batches, in the queues and in flight (KIP-91)."""
        if not self._config.times_delivery:
            self._expire_unsent(now)
            return
        oldest = now - self._config.delivery_timeout_us
        first = NEVER
        for queue in self._accumulator.backlog.queues():
            batches = queue.batches
            while batches and batches[0].created_us <= oldest:
                self.give_up(batches.popleft())
            if batches:
                first = min(first, batches[0].created_us)
        for request in requests:
            for batch in request.batches:
                if batch.done:
                    continue
                if batch.created_us <= oldest:
                    self.give_up(batch)
                else:
                    first = min(first, batch.created_us)
        self.expiry_at = first + self._config.delivery_timeout_us if first < NEVER else NEVER

    def give_up(self, batch: ProducerBatch) -> None:
        """Expires the batch."""
        if self._sequences is not None:
            self._sequences.on_expired(batch)
        batch.error = ErrorCode.REQUEST_TIMED_OUT.name
        uncertain = batch.in_flight or batch.may_be_written
        self.end(batch, "unknown" if uncertain else "failed")


def result_of(response: ProduceResponse, batch: ProducerBatch) -> ProduceResult:
    """Part of the response for the batch."""
    for result in response.results:
        if result.partition.partition == batch.partition:
            return result
    raise AssertionError(f"no result for partition {batch.partition}")
