"""An application that sends in transactions, by records or by time.

It begins a transaction with its next send, sends until the transaction is full, and then waits in
``commitTransaction()`` or ``abortTransaction()``. Sends intended meanwhile happen late, once it
continues. An application that is blocked in ``send()`` beyond a transaction's time sends all that
waited before it ends the transaction.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sim.protocol.clients.producer.accumulator import Accumulator
from sim.protocol.clients.producer.config import ProducerSetup
from sim.protocol.clients.producer.events import ArrivalBlock, ArrivalSource
from sim.units import NEVER, Bytes, Micros


@dataclass(frozen=True, slots=True)
class TransactionPlan:
    """Transactions of an application's sends.

    ``records``: so many in each, the last one fewer; 0: by time, ``every_us`` after its first send.
    ``aborts`` is called once for each transaction; true if the application aborts it.
    """

    records: int
    every_us: Micros
    aborts: Callable[[], bool]
    adds_partitions: bool = True
    """True if the client adds every partition; see ``TransactionManager``."""

    def __post_init__(self) -> None:
        assert (self.records > 0) != (self.every_us > 0), "by records or by time"


class RationedSource:
    """A source that ends when a transaction is full, until it is granted the next."""

    def __init__(self, source: ArrivalSource, records: int) -> None:
        self._source = source
        self._records = records
        self._left = records
        self._rest = source.next_block()

    @property
    def value_bytes(self) -> Bytes:
        """Size of every record's value."""
        return self._source.value_bytes

    @property
    def keyed(self) -> bool:
        """True if records have keys."""
        return self._source.keyed

    @property
    def header_bytes(self) -> Bytes:
        """Encoded size of every record's headers."""
        return self._source.header_bytes

    @property
    def header_count(self) -> int:
        """Headers of every record."""
        return self._source.header_count

    @property
    def has_ended(self) -> bool:
        """True if the workload has ended."""
        return self._rest is None

    def grant(self) -> None:
        """Releases the records of the next transaction."""
        self._left = self._records

    def next_block(self) -> ArrivalBlock | None:
        """Next arrivals of this transaction; ``None`` when it is full, or at the end."""
        if self._records and not self._left:
            return None
        block = self._rest
        if block is None:
            # A source may have more later than at the last call.
            block = self._source.next_block()
        if block is None:
            return None
        count = len(block.instants_us)
        if self._records and count > self._left:
            self._rest = _cut(block, self._left, count)
            block = _cut(block, 0, self._left)
        else:
            self._rest = self._source.next_block()
        self._left -= len(block.instants_us)
        return block


class TransactionalAccumulator(Accumulator):
    """An accumulator that takes records in only while a transaction is open."""

    def __init__(self, setup: ProducerSetup, source: ArrivalSource, plan: TransactionPlan) -> None:
        self._ration = RationedSource(source, plan.records)
        super().__init__(setup.config, self._ration, setup.unit, setup.next_records)
        self._every_us = plan.every_us or NEVER
        self._until: Micros = NEVER
        self.is_open = False
        """True if the application may send: a transaction is open, or would begin with a send."""
        self.flushing = False
        """True if every batch is sendable at once: the transaction is ending."""
        self.begun_us: Micros | None = None
        """Begin of the open transaction, by the scenario's clock; ``None``: with its first send."""
        self.starts: tuple[int, ...] = ()
        """By partition, the number of the first record that is not of an earlier transaction."""

    @property
    def exhausted(self) -> bool:
        """True if every batch is sendable: memory is short, or the transaction is ending."""
        return self.flushing or super().exhausted

    @property
    def is_spent(self) -> bool:
        """True if every record of the workload was appended."""
        return self._ration.has_ended and super().is_spent

    def learn_partitions(self, count: int) -> None:
        """As the base does; an open transaction begins in a new partition with its first record."""
        super().learn_partitions(count)
        if self.starts:
            new = self.queues[len(self.starts) :]
            self.starts = (*self.starts, *(queue.next_record for queue in new))

    def open(self, instant: Micros) -> None:
        """The application continues at the instant; sends that waited happen then."""
        self.is_open = True
        self.flushing = False
        self.begun_us = None
        self.starts = self.next_record_numbers
        self._until = NEVER
        if self._feed.block_end == NEVER:
            self._ration.grant()
            self._next_block()
        self.resume_at(instant)

    def close(self) -> None:
        """The application ends the transaction and waits."""
        self.is_open = False
        self.flushing = True

    def is_full(self, limit: Micros) -> bool:
        """True if the application ends the open transaction now."""
        if self.begun_us is None or self.blocked:
            return False
        return self._feed.block_end == NEVER or limit >= self._until

    def absorb(self, limit: Micros) -> None:
        """Appends the intended sends, within one transaction."""
        if not self.is_open:
            return
        if self.begun_us is None:
            first = max(self._feed.first_instant(), self._floor)
            if first > limit:
                return
            self.begun_us = first
            self._until = first + self._every_us
        super().absorb(limit if self.blocked else min(limit, self._until))

    def abandon(self, limit: Micros) -> None:
        """Drops the sends that the application could not make; later ones are not due yet."""
        if self.is_open:
            super().abandon(limit)

    def next_instant(self, is_sendable: Callable[[int], bool]) -> Micros:
        """Instant of the sender's next turn; NEVER while the application waits for an outcome."""
        if not self.is_open:
            return NEVER
        instant = super().next_instant(is_sendable)
        if self.begun_us is not None:
            return instant if self.blocked else min(instant, self._until)
        first = max(self._feed.first_instant(), self._floor)
        return min(instant, first + self._every_us)

    def first_send(self) -> Micros:
        """Instant of the next send; NEVER if there is none or it is not known."""
        if not self.is_open or self.blocked:
            return NEVER
        return max(self._feed.first_instant(), self._floor)


def _cut(block: ArrivalBlock, start: int, stop: int) -> ArrivalBlock:
    keys = None if block.key_ids is None else block.key_ids[start:stop]
    sizes = None if block.value_sizes is None else block.value_sizes[start:stop]
    return ArrivalBlock(block.instants_us[start:stop], keys, sizes)


def partitions_between(starts: Sequence[int], ends: Sequence[int]) -> list[tuple[int, int, int]]:
    """Partition, first and last record number, for each with records from start to end."""
    spans = []
    for partition, end in enumerate(ends):
        start = starts[partition] if partition < len(starts) else 0
        if end > start:
            spans.append((partition, start, end - 1))
    return spans
