"""Results of a log's calls, and the least it requires of a batch.

Field by field these are the types of the log's port, which this package may not import.

Source: ``LogAppendInfo``, ``OffsetAndEpoch`` in Kafka.
"""

from typing import NamedTuple, Protocol

from sim.error_codes import ErrorCode
from sim.ids import LeaderEpoch, Offset
from sim.log.producers.snapshot import SeenBatch
from sim.units import Bytes
from sim.wire.record_batch import RecordBatch


class AnyBatch(Protocol):
    """A batch as the ports declare it, with or without bytes."""

    @property
    def base_offset(self) -> Offset:
        """Offset of the first record."""

    @property
    def last_offset(self) -> Offset:
        """Offset of the last record."""

    @property
    def max_timestamp_ms(self) -> int:
        """Largest timestamp of the records."""


class EpochEnd(NamedTuple):
    """End offset of a leader epoch, exclusive. Field by field ``ports.EpochEnd``."""

    epoch: LeaderEpoch
    offset: Offset


class Appended(NamedTuple):
    """Outcome of a leader's append. Field by field ``ports.Appended``."""

    error: ErrorCode
    base_offset: Offset
    last_offset: Offset
    duplicate: bool
    flush_due: bool
    batch: RecordBatch | None


class RolledFlush(NamedTuple):
    """Asynchronous work that a roll has scheduled: fsync everything below ``up_to``."""

    up_to: Offset
    bytes: Bytes
    """Bytes that the fsync would move to the platter now."""


def refused(error: ErrorCode) -> Appended:
    """The outcome of a rejected append: nothing was written."""
    return Appended(error, -1, -1, duplicate=False, flush_due=False, batch=None)


def answer_to(verdict: ErrorCode | SeenBatch) -> Appended:
    """The outcome for a batch that the producer state rejects, or takes for a retry."""
    if isinstance(verdict, ErrorCode):
        return refused(verdict)
    first, last = verdict.first_offset, verdict.last_offset
    return Appended(ErrorCode.NONE, first, last, duplicate=True, flush_due=False, batch=None)
