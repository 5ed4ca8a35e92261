"""A sink task of Connect: a consumer that writes to an external system, and commits afterwards.

Polled records are put into the external system, or into a buffer that is written when it is full;
every ``offset.flush.interval.ms`` the task flushes the buffer, then commits asynchronously what it
has put. Before partitions are revoked and at the end it waits for the commit. An exactly-once sink
keeps the next offset of each partition with its data: it begins there, whatever the group has
committed, and writes nothing twice.

Left out: ``RetriableException``, pausing, errors of the external system.

Source: ``connect.runtime.WorkerSinkTask.{iteration,commitOffsets,closePartitions,rewind}``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from sim.error_codes import ErrorCode
from sim.ids import NO_EPOCH, Offset, TopicPartition
from sim.protocol.clients.consumer.commits import Offsets
from sim.protocol.clients.consumer.config import ConsumerSetup
from sim.protocol.clients.consumer.consumer import Consumer
from sim.protocol.clients.consumer.effects import Deliver, ExternalWrite
from sim.units import Micros

Then: TypeAlias = Callable[[Micros], None]


@dataclass(frozen=True, slots=True)
class SinkPlan:
    """Delivery of a sink task."""

    flush_interval_us: Micros
    """``offset.flush.interval.ms``."""
    flush_timeout_us: Micros
    """``offset.flush.timeout.ms``: a commit that is not acknowledged by then has failed."""
    buffer: int = 0
    """Records that it buffers before it writes; 0: it writes each poll's records."""
    exactly_once: bool = False
    """True if offsets are kept with the data."""
    flushes_first: bool = True
    """True if it flushes before it commits; false is a defect."""


class SinkTask(Consumer):
    """The consumer of one sink task.

    Args:
        setup: As of every consumer; its commits are asynchronous.
        plan: How it delivers.
        stored: The next offset that the external system keeps of a partition; -1 for none.
    """

    def __init__(
        self,
        setup: ConsumerSetup,
        plan: SinkPlan,
        stored: Callable[[TopicPartition], Offset],
    ) -> None:
        assert setup.config.commit_async, "a sink commits on its own"
        super().__init__(setup)
        self._plan = plan
        self._stored_at = stored
        self._buffer: list[Deliver] = []
        self._next_commit: Micros = -1
        self._committing_until: Micros = 0
        self._commit_number = 0

    @property
    def is_idle(self) -> bool:
        """True if every polled record is in the external system."""
        return not self._buffer and not self._link.is_set("processed")

    # -- put --------------------------------------------------------------------------------------

    def _poll(self, now: Micros) -> None:
        if self._next_commit < 0:
            self._arm(now)
        elif now >= self._next_commit:
            self._arm(now)
            self._commit_put(now)
        super()._poll(now)

    def _process(self, count: int, now: Micros) -> None:
        fresh = self._fetcher.collected
        took = count * self.config.processing_us
        if not took:
            self._put(fresh)
            return
        self._busy(took, partial(self._put_after, fresh), now)

    def _put_after(self, fresh: list[Deliver], now: Micros) -> None:
        self._put(fresh)
        if self._close_due:
            self._close(now)
        else:
            self._polling = True

    def _put(self, fresh: list[Deliver]) -> None:
        self._buffer += fresh
        if sum(piece.record_count for piece in self._buffer) >= self._plan.buffer:
            self._flush()

    def _flush(self) -> None:
        if self._buffer:
            self._link.effects.append(ExternalWrite(tuple(self._buffer)))
            self._buffer.clear()

    # -- commits ----------------------------------------------------------------------------------

    def _arm(self, now: Micros) -> None:
        self._next_commit = now + self._plan.flush_interval_us
        # The poll that this wakes commits.
        self._link.set_timer("offsets-due", self._next_commit, lambda _now: None)

    def _commit_put(self, now: Micros) -> None:
        """Flushes, then commits what is not committed yet; not while a commit is in flight."""
        if now < self._committing_until:
            return
        self._pre_commit()
        committed = self._commits.committed
        places = self._positions.processed()
        if all(committed.get(place, -1) == offset for place, offset, _ in places):
            return
        self._committing_until = now + self._plan.flush_timeout_us
        self._commit_number += 1
        self._commits.commit_async(partial(self._on_commit, self._commit_number), now)

    def _pre_commit(self) -> None:
        if self._plan.flushes_first:
            self._flush()

    def _on_commit(self, number: int, _offsets: Offsets, _error: ErrorCode, now: Micros) -> None:
        """Handles the end of a commit; ignored after its timeout."""
        if number == self._commit_number:
            self._committing_until = now

    def _prepare(self, then: Then, now: Micros) -> None:
        """Before a rebalance: flushes, commits and waits, then gives up all partitions."""
        self._pre_commit()
        done = partial(self._give_up, then)
        self._commits.commit_and_wait(done, self.config.api_timeout_us, now)

    def _give_up(self, then: Then, now: Micros) -> None:
        self._buffer.clear()  # its partitions are read again from what is committed
        super()._give_up(then, now)

    def _close(self, now: Micros) -> None:
        if not self._link.is_set("processed"):
            self._pre_commit()
        super()._close(now)

    # -- where it begins --------------------------------------------------------------------------

    def _assigned(self, partitions: tuple[TopicPartition, ...], now: Micros) -> bool:
        given_up = super()._assigned(partitions, now)
        if self._plan.exactly_once:
            places = self._positions.without_committed()
            kept = [(place, self._stored_at(place), NO_EPOCH) for place in places]
            self._positions.take_committed([each for each in kept if each[1] >= 0])
        return given_up
