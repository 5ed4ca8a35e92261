"""One partition's remote segments, by leader epoch, from its metadata events.

Source: ``RemoteLogMetadataCache``, ``RemoteLogLeaderEpochState`` (KAFKA-15168 for overlaps).
"""

from sim.ids import LeaderEpoch, Offset
from sim.protocol.broker.tiered.segments import (
    RemoteEvent,
    RemoteSegment,
    SegmentState,
    SegmentUpdate,
)

_FOLLOWS = {
    SegmentState.COPY_SEGMENT_FINISHED: (SegmentState.COPY_SEGMENT_STARTED,),
    SegmentState.DELETE_SEGMENT_STARTED: (
        SegmentState.COPY_SEGMENT_STARTED,
        SegmentState.COPY_SEGMENT_FINISHED,
        SegmentState.DELETE_SEGMENT_STARTED,
    ),
    SegmentState.DELETE_SEGMENT_FINISHED: (
        SegmentState.DELETE_SEGMENT_STARTED,
        SegmentState.DELETE_SEGMENT_FINISHED,
    ),
}
"""States from which each state can be reached (``RemoteLogSegmentState.isValidTransition``)."""


class _EpochSegments:
    """Segments with records of one leader epoch."""

    __slots__ = ("highest", "served", "unreferenced")

    def __init__(self) -> None:
        self.served: dict[Offset, str] = {}
        """Finished segments by the epoch's first offset in them."""
        self.unreferenced: dict[str, None] = {}
        """Segments that readers never get, to be cleaned up."""
        self.highest: Offset = -1

    def finish(self, start: Offset, segment_id: str, end: Offset) -> None:
        """Takes a finished copy; it replaces those that it covers."""
        while self.served and max(self.served) >= start and self.highest <= end:
            self.unreferenced[self.served.pop(max(self.served))] = None
        self.served[start] = segment_id
        self.unreferenced.pop(segment_id, None)
        self.highest = max(self.highest, end)

    def begin_deletion(self, start: Offset, segment_id: str) -> None:
        """Withdraws a segment from readers."""
        if self.served.get(start) == segment_id:
            del self.served[start]
        self.unreferenced[segment_id] = None


class RemoteLogMetadataCache:
    """Remote segments of one partition."""

    def __init__(self) -> None:
        self._segments: dict[str, RemoteSegment] = {}
        self._epochs: dict[LeaderEpoch, _EpochSegments] = {}

    def apply(self, event: RemoteEvent) -> None:
        """Applies an event; one that does not follow from the segment's state is passed over."""
        if isinstance(event, SegmentUpdate):
            self._update(event)
            return
        if event.segment_id not in self._segments:
            self._segments[event.segment_id] = event
            for epoch, _ in event.epochs:
                self._of(epoch).unreferenced[event.segment_id] = None

    def _update(self, event: SegmentUpdate) -> None:
        known = self._segments.get(event.segment_id)
        if known is None or known.state not in _FOLLOWS.get(event.state, ()):
            return
        segment = known.in_state(event.state, event.broker, event.event_ms)
        self._segments[event.segment_id] = segment
        for epoch, start in segment.epochs:
            own = self._of(epoch)
            if event.state is SegmentState.COPY_SEGMENT_FINISHED:
                own.finish(start, event.segment_id, segment.end_of(epoch))
            elif event.state is SegmentState.DELETE_SEGMENT_STARTED:
                own.begin_deletion(start, event.segment_id)
            else:
                own.unreferenced.pop(event.segment_id, None)
        if event.state is SegmentState.DELETE_SEGMENT_FINISHED:
            del self._segments[event.segment_id]

    def _of(self, epoch: LeaderEpoch) -> _EpochSegments:
        return self._epochs.setdefault(epoch, _EpochSegments())

    def highest_offset(self, epoch: LeaderEpoch) -> Offset | None:
        """Last offset of an epoch that was ever copied; ``None`` for none."""
        own = self._epochs.get(epoch)
        return None if own is None or own.highest < 0 else own.highest

    def find(self, epoch: LeaderEpoch, offset: Offset) -> RemoteSegment | None:
        """The finished segment that holds an offset of an epoch."""
        own = self._epochs.get(epoch)
        below = [start for start in own.served if start <= offset] if own is not None else []
        if own is None or not below:
            return None
        segment = self._segments[own.served[max(below)]]
        return segment if offset <= segment.end_of(epoch) else None

    def segments(self) -> tuple[RemoteSegment, ...]:
        """Every segment that is not deleted."""
        return tuple(self._segments.values())

    def of_epoch(self, epoch: LeaderEpoch) -> tuple[RemoteSegment, ...]:
        """Segments with records of an epoch, whatever their state, in order of their start."""
        own = self._epochs.get(epoch)
        if own is None:
            return ()
        found = [self._segments[known] for known in (*own.served.values(), *own.unreferenced)]
        return tuple(sorted(found, key=lambda segment: segment.start))
