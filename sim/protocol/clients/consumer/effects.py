"""What a consumer tells its application."""

from dataclasses import dataclass

from sim.error_codes import ErrorCode
from sim.ids import LeaderEpoch, NodeId, Offset, TopicPartition


@dataclass(frozen=True, slots=True)
class Deliver:
    """A poll returned a batch, or a part of it: the application has these records now."""

    partition: TopicPartition
    base_offset: Offset
    """Of the first record returned."""
    last_offset: Offset
    leader_epoch: LeaderEpoch
    producer_index: int
    first_record: int
    """The producer's number of the first record returned."""
    record_count: int
    high_watermark: Offset
    read_from: NodeId


@dataclass(frozen=True, slots=True)
class ExternalWrite:
    """A sink task writes to the external system; all of it is there at once."""

    pieces: tuple[Deliver, ...]


@dataclass(frozen=True, slots=True)
class Stopped:
    """The consumer is closed: asked to (NONE), or its poll raised the error."""

    error: ErrorCode
