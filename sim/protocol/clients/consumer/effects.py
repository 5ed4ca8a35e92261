"""Effects of a consumer on its application."""

from dataclasses import dataclass

from sim.error_codes import ErrorCode
from sim.ids import LeaderEpoch, NodeId, Offset, TopicPartition
from sim.protocol.ports import Batch


@dataclass(frozen=True, slots=True)
class Deliver:
    """A poll returned a batch, or a part of it, to the application."""

    partition: TopicPartition
    base_offset: Offset
    """Offset of the first record returned."""
    last_offset: Offset
    leader_epoch: LeaderEpoch
    producer_index: int
    first_record: int
    """The producer's number of the first record returned."""
    record_count: int
    high_watermark: Offset
    read_from: NodeId


def delivery(
    partition: TopicPartition,
    batch: Batch,
    first: Offset,
    last: Offset,
    high_watermark: Offset,
    read_from: NodeId,
) -> Deliver:
    """Records of a batch from the first offset to the last."""
    return Deliver(
        partition,
        first,
        last,
        batch.leader_epoch,
        batch.producer_index,
        batch.first_record + first - batch.base_offset,
        last - first + 1,
        high_watermark,
        read_from,
    )


@dataclass(frozen=True, slots=True)
class ApplicationCalled:
    """A call of the application is carried out, on those of its partitions that were assigned.

    A pause or a resumption leaves out those that were so before.
    """

    number: int
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class ExternalWrite:
    """A sink task writes to the external system, which stores it at once."""

    pieces: tuple[Deliver, ...]


@dataclass(frozen=True, slots=True)
class Stopped:
    """The consumer is closed: by its application (NONE), or because its poll raised the error."""

    error: ErrorCode
