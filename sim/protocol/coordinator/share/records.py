"""Records of share partitions in ``__share_group_state``, and merging of state batches.

A snapshot has the whole state of a share partition, an update its changes; both have the leader
epoch of the request. Offsets without a batch are unchanged, or were never delivered for good.

Source: ``ShareSnapshotValue.json``, ``ShareUpdateValue.json``, ``PersisterStateBatchCombiner`` of
the share coordinator; KIP-932.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from sim.ids import LeaderEpoch, Offset
from sim.protocol.messages.share_records import ShareKey, StateBatch

UNINITIALIZED: Offset = -1
"""Start offset of a share partition without any fetch so far."""


@dataclass(frozen=True, slots=True)
class ShareSnapshotRecord:
    """The whole state of a share partition."""

    key: ShareKey
    snapshot_epoch: int
    state_epoch: int
    leader_epoch: LeaderEpoch
    start_offset: Offset
    batches: tuple[StateBatch, ...]
    timestamp_ms: int = 0
    complete_count: int = -1
    """Number of completed records from the start offset on (KIP-1226); -1 is not written."""


@dataclass(frozen=True, slots=True)
class ShareUpdateRecord:
    """Changes since the snapshot of that epoch; a start offset of -1 is unchanged."""

    key: ShareKey
    snapshot_epoch: int
    leader_epoch: LeaderEpoch
    start_offset: Offset
    batches: tuple[StateBatch, ...]
    complete_count: int = -1
    """As of a snapshot."""


ShareStateRecord = ShareSnapshotRecord | ShareUpdateRecord
"""A record of ``__share_group_state``."""


def combine(
    known: Iterable[StateBatch], news: Iterable[StateBatch], start: Offset
) -> tuple[StateBatch, ...]:
    """Merges batches from the start offset on, without overlap; joins equal neighbours.

    Where two have the same offset, the higher delivery count is the later state, and of equal
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
