"""Rates, sizes and lags from two samples of offsets: arithmetic alone.

Offsets count what a log was given: markers of transactions, too, and records that compaction has
removed since. Sizes are bytes on disk, as producers compressed them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from sim.importer.live.facts import Place, Sample


@dataclass(frozen=True, slots=True)
class TopicLoad:
    """Records that producers wrote to a topic."""

    records_per_s: float
    bytes_per_record: float | None
    """On disk, heads of batches included; ``None``: no size is known."""
    went_back: bool = False
    """An end was lower at the second sample: the topic was made again, or lost records."""

    @property
    def bytes_per_s(self) -> float | None:
        """Bytes of one replica."""
        return None if self.bytes_per_record is None else self.records_per_s * self.bytes_per_record


@dataclass(frozen=True, slots=True)
class GroupLoad:
    """Consumption of a group, by its commits, and its lag."""

    lag_first: int
    lag_last: int
    records_per_s: float


def topic_loads(first: Sample, last: Sample) -> dict[str, TopicLoad]:
    """Loads by topic, over the partitions whose ends both samples have."""
    seconds = max(last.ends_s - first.ends_s, 1e-3)
    places: dict[str, list[Place]] = {}
    for place in sorted(last.ends):
        if place in first.ends:
            places.setdefault(place[0], []).append(place)
    found: dict[str, TopicLoad] = {}
    for topic, own in places.items():
        written = {place: last.ends[place] - first.ends[place] for place in own}
        went_back = any(count < 0 for count in written.values())
        records = sum(count for count in written.values() if count > 0)
        size = _grown(first, last, written)
        size = _stored(last, own) if size is None else size
        found[topic] = TopicLoad(records / seconds, size, went_back)
    return found


def _grown(first: Sample, last: Sample, written: dict[Place, int]) -> float | None:
    """Bytes of a record by how much logs have grown of which nothing was deleted meanwhile."""
    records = size = 0
    for place, count in written.items():
        if count > 0 and place in first.sizes and place in last.sizes:
            more = last.sizes[place] - first.sizes[place]
            if more > 0 and first.starts.get(place) == last.starts.get(place):
                records, size = records + count, size + more
    return size / records if records else None


def _stored(last: Sample, places: list[Place]) -> float | None:
    """Bytes of a record by all that is there."""
    records = size = 0
    for place in places:
        count = last.ends[place] - last.starts.get(place, last.ends[place])
        if count > 0 and last.sizes.get(place, 0) > 0:
            records, size = records + count, size + last.sizes[place]
    return size / records if records else None


def group_loads(first: Sample, last: Sample) -> dict[str, GroupLoad]:
    """Loads by group, over what it has committed at all."""
    seconds = max(last.committed_s - first.committed_s, 1e-3)
    found: dict[str, GroupLoad] = {}
    for group, offsets in sorted(last.committed.items()):
        before = first.committed.get(group, {})
        consumed = sum(
            max(0, offset - before.get(place, offset)) for place, offset in offsets.items()
        )
        found[group] = GroupLoad(
            _lag(first, before) if before else _lag(last, offsets),
            _lag(last, offsets),
            consumed / seconds,
        )
    return found


def _lag(sample: Sample, offsets: Mapping[Place, int]) -> int:
    return sum(
        max(0, sample.ends[place] - offset)
        for place, offset in offsets.items()
        if place in sample.ends
    )
