"""Identity and sequence numbers of an idempotent producer.

Left out: transactions.

Source: KIP-98, KIP-360; ``clients/producer/internals/{TransactionManager,TxnPartitionMap}.java``.
"""

from sim.error_codes import ErrorCode
from sim.ids import ProducerId
from sim.protocol.clients.producer.batch import NO_SEQUENCE, ProducerBatch

_SEQUENCES = 1 << 31

PRODUCER_EPOCH_MAX = (1 << 15) - 1
"""After this epoch a new producer id is requested."""


class PartitionSequences:
    """Sequence numbers of one partition (``TxnPartitionEntry``)."""

    __slots__ = (
        "in_flight",
        "last_acked",
        "next_sequence",
        "producer_epoch",
        "producer_id",
        "unresolved",
    )

    def __init__(self) -> None:
        self.producer_id: ProducerId = -1
        self.producer_epoch = -1
        self.next_sequence = 0
        self.last_acked = NO_SEQUENCE
        self.in_flight: list[ProducerBatch] = []
        """Batches with a sequence and without an outcome, by sequence; with those to be retried."""
        self.unresolved: int | None = None
        """Sequence after an expired batch of unknown outcome."""

    def track(self, batch: ProducerBatch) -> None:
        """Adds a batch to those in flight, by sequence."""
        in_flight = self.in_flight
        place = len(in_flight)
        while place and in_flight[place - 1].base_sequence > batch.base_sequence:
            place -= 1
        in_flight.insert(place, batch)

    def forget(self, batch: ProducerBatch) -> None:
        """The batch has its outcome."""
        for place, other in enumerate(self.in_flight):
            if other is batch:
                del self.in_flight[place]
                return

    def restart(self, producer_id: ProducerId, producer_epoch: int) -> None:
        """Numbers everything in flight from 0 again, under the given identity."""
        sequence = 0
        for batch in self.in_flight:
            batch.give_sequence(producer_id, producer_epoch, sequence)
            batch.sequence_reset = True
            sequence += batch.record_count
        self.producer_id, self.producer_epoch = producer_id, producer_epoch
        self.next_sequence = sequence
        self.last_acked = NO_SEQUENCE


class ProducerSequences:
    """The identity of an idempotent producer without transactions."""

    def __init__(self) -> None:
        self.producer_id: ProducerId = -1
        self.producer_epoch = -1
        self._partitions: dict[int, PartitionSequences] = {}
        self._rewrite: list[int] = []
        self._doubtful: list[int] = []

    @property
    def has_identity(self) -> bool:
        """True if the producer has an id."""
        return self.producer_id >= 0

    @property
    def is_doubtful(self) -> bool:
        """True if a sequence is unresolved, or a new epoch was requested."""
        return bool(self._doubtful or self._rewrite)

    def of(self, partition: int) -> PartitionSequences:
        """Sequences of one partition."""
        entry = self._partitions.get(partition)
        if entry is None:
            entry = self._partitions[partition] = PartitionSequences()
        return entry

    def identify(self, producer_id: ProducerId, producer_epoch: int) -> None:
        """Sets a new id."""
        self.producer_id, self.producer_epoch = producer_id, producer_epoch

    def may_drain(self, batch: ProducerBatch) -> bool:
        """True if the head of its queue may be sent now.

        A batch without sequence waits while its partition has an unresolved one; a retried one
        until every earlier one is done, so that retries go one at a time.

        Source: ``RecordAccumulator.shouldStopDrainBatchesForPartition``.
        """
        if self.producer_id < 0:
            return False
        entry = self.of(batch.partition)
        if batch.base_sequence == NO_SEQUENCE:
            stale = (
                entry.producer_id != self.producer_id or entry.producer_epoch != self.producer_epoch
            )
            return not (entry.in_flight and stale) and entry.unresolved is None
        return not entry.in_flight or entry.in_flight[0].base_sequence == batch.base_sequence

    def number(self, batch: ProducerBatch) -> None:
        """Gives a batch its sequence when it is drained for the first time."""
        entry = self.of(batch.partition)
        if entry.producer_id != self.producer_id or entry.producer_epoch != self.producer_epoch:
            entry.restart(self.producer_id, self.producer_epoch)
        batch.give_sequence(self.producer_id, self.producer_epoch, entry.next_sequence)
        entry.next_sequence = (entry.next_sequence + batch.record_count) % _SEQUENCES
        entry.track(batch)

    def on_acked(self, batch: ProducerBatch) -> None:
        """The broker has the batch."""
        entry = self.of(batch.partition)
        entry.last_acked = max(entry.last_acked, batch.last_sequence)
        entry.forget(batch)

    def on_failed(self, batch: ProducerBatch, *, adjust: bool) -> None:
        """The batch failed for good; ``adjust``: the broker certainly did not take its sequence."""
        entry = self.of(batch.partition)
        entry.forget(batch)
        if adjust:
            self.request_bump(batch.partition)

    def on_expired(self, batch: ProducerBatch) -> None:
        """The batch expired; if it was sent before, its outcome is unknown."""
        entry = self.of(batch.partition)
        entry.forget(batch)
        if batch.in_retry and batch.base_sequence != NO_SEQUENCE:
            after = batch.last_sequence + 1
            entry.unresolved = max(after, entry.unresolved or 0)
            if batch.partition not in self._doubtful:
                self._doubtful.append(batch.partition)

    def may_retry(self, batch: ProducerBatch, error: ErrorCode) -> bool:
        """True to send again after an error; may request a new epoch.

        Source: ``TransactionManager.canRetry``.
        """
        if error is ErrorCode.UNKNOWN_PRODUCER_ID:
            if not batch.sequence_reset:
                self.request_bump(batch.partition)
            return True
        if error is not ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            return error.retriable
        entry = self.of(batch.partition)
        if entry.unresolved is None:
            is_next = batch.base_sequence - entry.last_acked == 1
            if batch.sequence_reset or not is_next:
                return True
            self.request_bump(batch.partition)
        elif batch.base_sequence == entry.unresolved:
            self.request_bump(batch.partition)
        return True

    def request_bump(self, partition: int) -> None:
        """Requests a new epoch before the next send, with this partition's batches renumbered."""
        if partition not in self._rewrite:
            self._rewrite.append(partition)

    def settle(self) -> None:
        """Before each turn of the sender: resolves sequences, and begins a new epoch if requested.

        Source: ``maybeResolveSequences``, ``bumpIdempotentEpochAndResetIdIfNeeded``.
        """
        if self._doubtful:
            self._resolve()
        if not self._rewrite:
            return
        if self.producer_epoch >= PRODUCER_EPOCH_MAX:
            self.producer_id = self.producer_epoch = -1
        else:
            self.producer_epoch += 1
        for partition in self._rewrite:
            entry = self.of(partition)
            entry.restart(self.producer_id, self.producer_epoch)
            entry.unresolved = None
        self._rewrite.clear()

    def _resolve(self) -> None:
        """Resolves partitions without batches in flight by the last acknowledged sequence."""
        doubtful, self._doubtful = self._doubtful, []
        for partition in doubtful:
            entry = self.of(partition)
            if entry.unresolved is None:
                continue
            if entry.in_flight:
                self._doubtful.append(partition)
                continue
            if entry.next_sequence - entry.last_acked != 1:
                self.request_bump(partition)
            entry.unresolved = None
