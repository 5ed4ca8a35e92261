"""Keyed batches, compacted logs and whole cleanings for the tests of this folder."""

from collections.abc import Sequence
from pathlib import Path

from sim.log.cleaning.cleanable import cleanable
from sim.log.cleaning.cleaner import Cleaning, CleaningCounts
from sim.log.config import LogConfig
from sim.log.partition.deletion import unlink
from sim.log.partition.log import PartitionLog
from sim.log.partition.recovery import create_log
from sim.log.store.files import FileStore
from sim.wire.record_batch import NewRecord, Record, RecordBatch, build_batch
from tests.log.log_kit import NOW, TP

Pair = tuple[str | None, str | None]

COMPACT = LogConfig(
    segment_bytes=300, index_interval_bytes=100, delete=False, compact=True,
    min_cleanable_dirty_ratio=0.0, delete_retention_ms=1_000,
)  # fmt: skip

PLENTY = 1_000_000


def keyed(*pairs: Pair, at_ms: int = 0, **more) -> RecordBatch:
    """A batch of records (key, value); no value makes a tombstone."""
    records = [
        NewRecord(NOW + at_ms + i, bytes_of(k), bytes_of(v)) for i, (k, v) in enumerate(pairs)
    ]
    return build_batch(records, **more)


def bytes_of(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def compacted(root: Path, config: LogConfig = COMPACT) -> PartitionLog:
    return create_log(FileStore(root), str(TP), TP, config)


def append(log: PartitionLog, *batches: RecordBatch, epoch: int = 0) -> None:
    for batch in batches:
        if batch.is_transactional:
            # As a follower takes it: nobody verifies the transactions of these tests.
            log.append_as_follower([batch.stamped(log.log_end_offset, epoch)])
            continue
        answer = log.append_as_leader(batch, epoch, NOW)
        assert answer.error.name == "NONE", answer


def clean(
    log: PartitionLog,
    *,
    checkpoint: int | None = None,
    bound: int | None = None,
    at_ms: int = 0,
    capacity: int = PLENTY,
    tombstones_below: int | None = None,
) -> tuple[int, CleaningCounts]:
    """One whole cleaning; where it ended and what it counted."""
    end = log.log_end_offset if bound is None else bound
    target = cleanable(log, checkpoint, end, NOW + at_ms)
    if not target.cleanable_bytes:
        return target.first_dirty_offset, CleaningCounts()
    cleaning = Cleaning(
        target, capacity, NOW + at_ms, lambda: None, tombstones_below=tombstones_below
    )
    while cleaning.write_group() is not None:
        doomed = cleaning.swap()
        assert doomed is not None
        unlink(log.store, doomed)
    return cleaning.end_offset, cleaning.counts


def records(log: PartitionLog) -> list[Record]:
    return [record for batch in log.batches(log.log_start_offset) for record in batch.records()]


def pairs(log: PartitionLog) -> list[tuple[int, str | None, str | None]]:
    """Offset, key and value of every record that is left."""
    return [(r.offset, text_of(r.key), text_of(r.value)) for r in records(log)]


def text_of(data: bytes | None) -> str | None:
    return None if data is None else data.decode()


def last_values(found: Sequence[tuple[int, str | None, str | None]]) -> dict[str, str]:
    """What a reader of the whole log believes: the last value of every key that has one."""
    known: dict[str, str] = {}
    for _, key, value in found:
        if key is None:
            continue
        known.pop(key, None)
        if value is not None:
            known[key] = value
    return dict(sorted(known.items()))
