"""Compaction, retention, truncations and crashes in any order, against a list of what was written.

A reader of the whole log believes of every key what was last written, from the log start to the log
end; records are never made up, and come in the order of their offsets.
"""

from dataclasses import dataclass, field, replace

from hypothesis import given
from hypothesis import strategies as st

from sim.log.cleaning.batch_filter import BatchFilter
from sim.log.cleaning.cleanable import cleanable
from sim.log.cleaning.cleaner import Cleaning
from sim.log.cleaning.offset_map import OffsetMap
from sim.log.config import LogConfig
from sim.log.directory.cleaner_checkpoint import read_cleaned, write_cleaned
from sim.log.partition.deletion import unlink
from sim.log.partition.retention import delete_old_segments
from sim.log.store.files import FileStore
from tests.log.cleaning.cleaner_kit import (
    COMPACT,
    append,
    clean,
    compacted,
    keyed,
    last_values,
    pairs,
)
from tests.log.log_kit import NOW, TOPIC_ID, TP, manager

KEYS = st.sampled_from(["a", "b", "c", "d", "e"])
RECORD = st.tuples(KEYS, st.sampled_from(["1", "22", None]))
BATCH = st.lists(RECORD, min_size=1, max_size=4)
NOTHING = st.none()
STEP = st.one_of(
    st.tuples(st.just("append"), BATCH),
    st.tuples(st.just("append"), BATCH),
    st.tuples(st.just("append"), BATCH),
    st.tuples(st.just("roll"), NOTHING),
    st.tuples(st.just("clean"), st.integers(0, 3_000)),
    st.tuples(st.just("clean"), st.integers(0, 3_000)),
    st.tuples(st.just("retain"), st.integers(200, 900)),
    st.tuples(st.just("start"), st.integers(0, 6)),
    st.tuples(st.just("truncate"), st.integers(1, 8)),
    st.tuples(st.just("flush"), NOTHING),
    st.tuples(st.just("checkpoint"), NOTHING),
    st.tuples(st.just("kill"), NOTHING),
    st.tuples(st.just("power"), st.sampled_from([0.0, 0.4, 0.7, 0.999])),
)
CONFIG = replace(COMPACT, segment_bytes=250, index_interval_bytes=60, delete=True, retention_ms=-1)


@dataclass
class Model:
    """The log as it should be: what was written, up to where, and what a power loss cannot take."""

    written: list[tuple[int, str | None, str | None]] = field(default_factory=list)
    flushed: int = 0
    committed: int = 0
    """The high watermark that cleaners and retention were told: no truncation goes below it."""

    def cut(self, end: int) -> None:
        self.written = [record for record in self.written if record[0] < end]
        self.flushed = min(self.flushed, end)


class Lived:
    """A log that really is there, and goes from process to process."""

    def __init__(self, root) -> None:
        self.store = FileStore(root)
        self.model = Model()
        self.now_ms = NOW
        self.logs = manager(self.store, config=CONFIG)
        self.log = self.logs.create(TP, TOPIC_ID)

    def step(self, what: str, argument) -> None:
        getattr(self, what)(argument)

    def append(self, batch) -> None:
        base = self.log.log_end_offset
        append(self.log, keyed(*batch))
        self.model.written += [(base + i, key, value) for i, (key, value) in enumerate(batch)]

    def roll(self, _: None) -> None:
        self.log.roll()

    def clean(self, later: int) -> None:
        self.now_ms += later
        self.model.committed = self.log.log_end_offset
        checkpoint = read_cleaned(self.log, self.logs.logs)
        target = cleanable(self.log, checkpoint, self.log.log_end_offset, self.now_ms)
        if not target.is_due:
            return
        cleaning = Cleaning(target, 1_000, self.now_ms, self.logs.checkpoint_recovery_points)
        while cleaning.write_group() is not None:
            unlink(self.store, cleaning.swap() or ())
        write_cleaned(self.log, cleaning.end_offset, self.logs.logs)

    def retain(self, size: int) -> None:
        self.model.committed = self.log.log_end_offset
        self.log.config = replace(CONFIG, retention_bytes=size)
        unlink(
            self.store, delete_old_segments(self.log, self.log.log_end_offset, self.now_ms).doomed
        )
        self.log.config = CONFIG

    def start(self, further: int) -> None:
        offset = min(self.log.log_start_offset + further, self.log.log_end_offset)
        self.log.raise_log_start(offset)

    def truncate(self, back: int) -> None:
        target = self.log.log_end_offset - back
        if target > max(self.log.log_start_offset, self.model.committed):
            self.log.truncate_to(target)
            self.model.cut(self.log.log_end_offset)

    def flush(self, _: None) -> None:
        self.log.flush()
        self.model.flushed = self.log.log_end_offset

    def checkpoint(self, _: None) -> None:
        self.logs.checkpoint_recovery_points()
        self.logs.checkpoint_log_starts()

    def kill(self, _: None) -> None:
        end = self.log.log_end_offset
        self.again()
        assert self.log.log_end_offset == end, "a kill takes nothing that was written"

    def power(self, luck: float) -> None:
        self.store.power_loss(lambda: luck)
        holes = self.again()
        assert self.log.log_end_offset >= self.model.flushed, "what was flushed stays"
        for begin, end in holes:
            lost = [record for record in self.model.written if begin <= record[0] < end]
            assert all(record[0] >= self.model.flushed for record in lost), "no hole in what stays"
            self.model.written = [record for record in self.model.written if record not in lost]
        self.model.cut(self.log.log_end_offset)
        self.model.flushed = self.log.log_end_offset

    def again(self) -> tuple[tuple[int, int], ...]:
        """Start anew; returns the offsets that recovery found missing between segments."""
        self.logs = manager(self.store, config=CONFIG)
        [found] = self.logs.load()
        self.log = found.log
        return found.recovery.holes

    def check(self) -> None:
        log, left = self.log, pairs(self.log)
        start = log.log_start_offset
        left = [record for record in left if record[0] >= start]
        wanted = [record for record in self.model.written if record[0] >= start]
        assert set(left) <= set(wanted), "nothing is made up"
        offsets = [offset for offset, _, _ in left]
        assert offsets == sorted(dict.fromkeys(offsets)), "in order, once each"
        assert last_values(left) == last_values(wanted)


@given(st.lists(STEP, max_size=30))
def test_whatever_happens_to_a_compacted_log_a_reader_believes_what_was_written(
    tmp_path_factory, steps
) -> None:
    lived = Lived(tmp_path_factory.mktemp("lived"))
    for what, argument in steps:
        lived.step(what, argument)
        lived.check()
    lived.store.close()


@given(st.lists(BATCH, max_size=12), st.integers(0, 12))
def test_cleaning_twice_leaves_what_cleaning_once_leaves(tmp_path_factory, batches, middle) -> None:
    """In two rounds or in one: of each key the same record stays."""
    config: LogConfig = replace(CONFIG, delete_retention_ms=10**9)
    left = []
    for rounds in ((middle, 12), (12,)):
        log = compacted(tmp_path_factory.mktemp("rounds"), config)
        end, done = None, 0
        for stop in rounds:
            append(log, *[keyed(*batch) for batch in batches[done:stop]])
            done = stop
            log.roll()
            end, _ = clean(log, checkpoint=end)
        left.append(pairs(log))
        log.store.close()
    assert left[0] == left[1]


def test_planted_a_map_that_notes_the_first_offset_of_a_key_loses_its_last_value(
    tmp_path, monkeypatch
) -> None:
    def first(found: OffsetMap, key: bytes, offset: int) -> bool:
        found._offsets.setdefault(key, offset)
        return True

    def later(rules: BatchFilter, record, *, is_past: bool) -> bool:
        return record.offset <= rules._offsets.get(record.key)

    monkeypatch.setattr(OffsetMap, "put", first)
    monkeypatch.setattr(BatchFilter, "_stays", later)
    log = compacted(tmp_path)
    append(log, keyed(("a", "1")), keyed(("a", "2")))
    before = last_values(pairs(log))
    log.roll()
    clean(log)
    assert last_values(pairs(log)) != before
