"""What a share coordinator writes of share partitions, and how batches of states are combined.

A snapshot says all that is known of a share partition, an update what has changed since; both name
the leader epoch of whoever asked for it. Offsets that no batch covers are as they were before, or
were never delivered for good.

Source: ``ShareSnapshotValue.json``, ``ShareUpdateValue.json``, ``PersisterStateBatchCombiner`` of
the share coordinator; KIP-932.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from sim.ids import LeaderEpoch, Offset
from sim.protocol.messages.share_records import ShareKey, StateBatch

UNINITIALIZED: Offset = -1
"""The start offset of a share partition that nobody has fetched from yet."""


@dataclass(frozen=True, slots=True)
class ShareSnapshotRecord:
    """All that is known of a share partition."""

    key: ShareKey
    snapshot_epoch: int
    state_epoch: int
    leader_epoch: LeaderEpoch
    start_offset: Offset
    batches: tuple[StateBatch, ...]
    timestamp_ms: int = 0


@dataclass(frozen=True, slots=True)
class ShareUpdateRecord:
    """What has changed since the snapshot of that epoch; a start offset of -1 has not."""

    key: ShareKey
    snapshot_epoch: int
    leader_epoch: LeaderEpoch
    start_offset: Offset
    batches: tuple[StateBatch, ...]


ShareStateRecord = ShareSnapshotRecord | ShareUpdateRecord
"""A record of ``__share_group_state``."""


def combine(
    known: Iterable[StateBatch], news: Iterable[StateBatch], start: Offset
) -> tuple[StateBatch, ...]:
    """Batches from the start offset on, in order and without overlap, neighbours alike joined.

    Where two speak of an offset, the higher delivery count says the later state, and of equal
    counts the higher state: a record is acknowledged or archived for good.
    """
    batches = sorted([*known, *news])
    edges: dict[Offset, None] = {}
    for batch in batches:
        if batch.last >= start:
            edges[max(batch.first, start)] = None
            edges[batch.last + 1] = None
    cuts = sorted(edges)
    combined: list[StateBatch] = []
    over: list[StateBatch] = []
    place = 0
    for first, end in pairwise(cuts):
        over = [batch for batch in over if batch.last >= first]
        while place < len(batches) and batches[place].first <= first:
            if batches[place].last >= first:
                over.append(batches[place])
            place += 1
        if not over:
            continue
        latest = max(over, key=_rank)
        before = combined[-1] if combined else None
        if before is not None and before.last == first - 1 and _rank(before) == _rank(latest):
            combined[-1] = before._replace(last=end - 1)
        else:
            combined.append(StateBatch(first, end - 1, latest.state, latest.delivery_count))
    return tuple(combined)


def _rank(batch: StateBatch) -> tuple[int, int]:
    return batch.delivery_count, batch.state
