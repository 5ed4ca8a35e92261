"""Remote log segments, their states, and the lineage of leader epochs that they belong to.

Source: KIP-405; ``RemoteLogSegmentMetadata``, ``RemoteLogSegmentState``,
``RemoteLogManager.isRemoteSegmentWithinLeaderEpochs``, ``buildFilteredLeaderEpochMap``.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TypeAlias

from sim.ids import LeaderEpoch, NodeId, Offset, TopicPartition
from sim.units import Bytes

Epochs: TypeAlias = Sequence[tuple[LeaderEpoch, Offset]]
"""Leader epochs and their start offsets, oldest first."""


class SegmentState(IntEnum):
    """State of a remote segment, under Kafka's numbers."""

    COPY_SEGMENT_STARTED = 0
    COPY_SEGMENT_FINISHED = 1
    DELETE_SEGMENT_STARTED = 2
    DELETE_SEGMENT_FINISHED = 3


@dataclass(frozen=True, slots=True)
class RemoteSegment:
    """One copy of a segment in the object store."""

    segment_id: str
    topic_id: str
    partition: TopicPartition
    start: Offset
    end: Offset
    """Last offset, inclusive."""
    max_timestamp_ms: int
    broker: NodeId
    """Broker of the last event."""
    event_ms: int
    size: Bytes
    epochs: tuple[tuple[LeaderEpoch, Offset], ...]
    """Leader epochs of its records; the first begins at ``start``."""
    state: SegmentState = SegmentState.COPY_SEGMENT_STARTED
    lacks_aborted: bool = True
    """True if no transaction was aborted in it (KIP-1058)."""

    def end_of(self, epoch: LeaderEpoch) -> Offset:
        """Last offset of an epoch within the segment."""
        later = [start for number, start in self.epochs if number > epoch]
        return later[0] - 1 if later else self.end

    def in_state(self, state: SegmentState, broker: NodeId, event_ms: int) -> "RemoteSegment":
        """The segment after an event."""
        return replace(self, state=state, broker=broker, event_ms=event_ms)


@dataclass(frozen=True, slots=True)
class SegmentUpdate:
    """Event: a segment has another state."""

    segment_id: str
    topic_id: str
    partition: TopicPartition
    broker: NodeId
    event_ms: int
    state: SegmentState


RemoteEvent: TypeAlias = RemoteSegment | SegmentUpdate
"""Record of ``__remote_log_metadata``: a new segment, or the next state of one."""


def update_of(
    segment: RemoteSegment, state: SegmentState, broker: NodeId, now_ms: int
) -> SegmentUpdate:
    """The event that brings a segment into a state."""
    return SegmentUpdate(
        segment.segment_id, segment.topic_id, segment.partition, broker, now_ms, state
    )


def epoch_at(epochs: Epochs, offset: Offset) -> LeaderEpoch | None:
    """Leader epoch of an offset; ``None`` below the first entry.

    Source: ``LeaderEpochFileCache.epochForOffset``.
    """
    at = bisect_right([start for _, start in epochs], offset)
    return epochs[at - 1][0] if at else None


def epochs_between(epochs: Epochs, start: Offset, end: Offset) -> tuple[tuple[int, int], ...]:
    """Entries of the records in [start, end): the first is moved up to ``start``.

    Source: ``RemoteLogManager.getLeaderEpochEntries``, ``EpochEntry`` of truncated checkpoints.
    """
    below = [entry for entry in epochs if entry[1] < end]
    kept = [entry for entry in below if entry[1] > start]
    earlier = [entry for entry in below if entry[1] <= start]
    return ((earlier[-1][0], start), *kept) if earlier else tuple(kept)


def with_records(epochs: Epochs) -> list[tuple[LeaderEpoch, Offset]]:
    """The entries without those of epochs in which nothing was written."""
    starts = [start for _, start in epochs[1:]]
    return [
        entry for place, entry in enumerate(epochs) if entry[1] not in starts[place : place + 1]
    ]


def is_within(segment: RemoteSegment, log_end: Offset, epochs: Epochs) -> bool:
    """True if all of the segment belongs to a log with these leader epochs.

    Args:
        segment: A remote segment.
        log_end: End of the leader's log.
        epochs: Of the leader's log, without those that have no records.
    """
    own = with_records(segment.epochs)
    if not own or not epochs or segment.end >= log_end:
        return False
    first, last = epochs[0][0], own[-1][0]
    if not first <= last <= epochs[-1][0]:
        return False
    starts = dict(epochs)
    shared = [entry for entry in own if entry[0] >= first]
    for place, (epoch, offset) in enumerate(shared):
        if epoch not in starts:
            return False
        if place == 0 and epoch != first and offset < starts[epoch]:
            return False
        following = [entry for entry in epochs if entry[0] > epoch][:1]
        if place + 1 < len(shared):
            if following != [shared[place + 1]]:
                return False
        elif following and segment.end >= following[0][1]:
            return False
    return True
