"""State of the keys of compacted topics at the end, as somebody sees it who reads them whole."""

from collections.abc import Iterable

from sim.checking.outcomes.history import PartitionHistory
from sim.checking.outcomes.record_keys import visible
from sim.checking.outcomes.slices import Lost
from sim.ids import Offset


def key_states(histories: Iterable[PartitionHistory], lost: Lost) -> dict[str, int]:
    """Counts keys, in each partition on its own; empty if no partition has known keys.

    Args:
        histories: Partitions.
        lost: Acknowledged records that are missing without a lawful reason.

    Returns:
        ``live``: keys whose last record in the final leader's log has a value; ``stale``: keys of
        which an acknowledged record is lost and no later one is in the log, so that a reader has
        an older state of them, or none.
    """
    found: dict[str, int] = {}
    for history in histories:
        compaction = history.compaction
        if compaction is None or history.is_deleted:
            continue
        last: dict[int, tuple[Offset, bool]] = {}
        for held in visible(history):
            keys = compaction.keys.of(held.producer_index, held.first_record, held.record_count)
            for place, (key, is_tombstone) in enumerate(keys):
                last[key] = held.base_offset + place, is_tombstone
        stale: dict[int, bool] = {}
        for (topic, number, producer), records in lost.items():
            if (topic, number) != (history.topic, history.number):
                continue
            for start, stop in records:
                keys = compaction.keys.of(producer, start, stop - start)
                for record, (key, _) in enumerate(keys, start):
                    if history.offset_of(producer, record) > last.get(key, (-1, False))[0]:
                        stale[key] = True
        live = sum(1 for key, (_, is_tombstone) in last.items() if key >= 0 and not is_tombstone)
        found["live"] = found.get("live", 0) + live
        found["stale"] = found.get("stale", 0) + len(stale)
    return found
