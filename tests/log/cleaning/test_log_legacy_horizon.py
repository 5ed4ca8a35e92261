"""Tombstones that go by the age of their segment, as before Kafka 3.1: too early, or never.

Source: KAFKA-4545 and KAFKA-8522, which KIP-534 settled.
"""

from dataclasses import replace

import pytest

from sim.log.cleaning.batch_filter import delete_horizon_ms
from sim.log.cleaning.cleanable import cleanable
from sim.log.cleaning.cleaner import Cleaning
from tests.log.cleaning.cleaner_kit import COMPACT, PLENTY, append, compacted, keyed, pairs, unlink
from tests.log.log_kit import NOW

RETENTION_MS = 10_000
SMALL = replace(COMPACT, delete_retention_ms=RETENTION_MS, segment_bytes=250)
"""Segments of one batch, too small to be merged."""


def clean(log, at_ms, checkpoint=None, *, by_segment=True):
    target = cleanable(log, checkpoint, log.log_end_offset, NOW + at_ms)
    cleaning = Cleaning(target, PLENTY, NOW + at_ms, lambda: None, horizon_by_segment=by_segment)
    while cleaning.write_group() is not None:
        unlink(log.store, cleaning.swap())
    return cleaning.end_offset


def filler(log, at_ms):
    """A batch of a key of its own, in a segment of its own."""
    append(log, keyed((f"f{at_ms}", "x" * 150), at_ms=at_ms))
    log.roll()


@pytest.fixture
def log(tmp_path):
    """A tombstone of instant 0, and a segment that was written to much later."""
    made = compacted(tmp_path, SMALL)
    append(made, keyed(("k", None)))
    made.roll()
    filler(made, 50_000)
    return made


def tombstones(log):
    return [key for _, key, value in pairs(log) if value is None]


def test_a_tombstone_goes_with_the_cleaning_after_the_one_that_saw_it_first(log):
    end = clean(log, 60_000)
    assert tombstones(log) == ["k"]
    filler(log, 60_500)
    clean(log, 61_000, end)
    assert tombstones(log) == []


def test_by_the_rule_of_today_it_stays_its_time_from_the_first_cleaning_on(log):
    end = clean(log, 60_000, by_segment=False)
    filler(log, 60_500)
    end = clean(log, 60_000 + RETENTION_MS - 1, end, by_segment=False)
    assert tombstones(log) == ["k"]
    filler(log, 70_500)
    clean(log, 60_000 + RETENTION_MS, end, by_segment=False)
    assert tombstones(log) == []


def test_merged_with_younger_segments_it_never_goes(tmp_path):
    """The other direction: a merged segment has the date of the last that went into it."""
    log = compacted(tmp_path, replace(SMALL, segment_bytes=100_000))
    append(log, keyed(("k", None)))
    log.roll()
    end = None
    for round_ in range(1, 8):
        at_ms = 2 * RETENTION_MS * round_
        append(log, keyed(("f", str(round_)), at_ms=at_ms))
        log.roll()
        end = clean(log, at_ms + 1, end)
    assert tombstones(log) == ["k"]
    assert len(log.segments) == 2


def test_it_marks_no_batch_with_a_horizon(log):
    clean(log, 60_000)
    assert [delete_horizon_ms(batch) for batch in log.batches(0)] == [-1, -1]
