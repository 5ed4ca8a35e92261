"""Tombstones that stay until all replicas have cleaned beyond them (``cleaner.coordination``)."""

from tests.log.cleaning.cleaner_kit import append, clean, compacted, keyed, pairs


def deleted_twice(root):
    """Two keys are deleted, at offsets 2 and 3; the last segment is not cleaned."""
    log = compacted(root)
    append(log, keyed(("a", "1")), keyed(("b", "1")), keyed(("a", None)), keyed(("b", None)))
    log.roll()
    append(log, keyed(("c", "1")))
    clean(log, bound=4)
    assert pairs(log) == [(2, "a", None), (3, "b", None), (4, "c", "1")]
    return log


def test_a_tombstone_from_the_bound_on_stays_however_old_it_is(tmp_path):
    log = deleted_twice(tmp_path)
    _, counts = clean(log, bound=4, at_ms=60_000, tombstones_below=3)
    assert pairs(log) == [(3, "b", None), (4, "c", "1")]
    assert counts.tombstones_removed == 1


def test_below_the_bound_it_stays_its_time_all_the_same(tmp_path):
    log = deleted_twice(tmp_path)
    clean(log, bound=4, at_ms=500, tombstones_below=4)
    assert [offset for offset, _, _ in pairs(log)] == [2, 3, 4]


def test_a_tombstone_that_a_later_record_replaces_goes_at_once(tmp_path):
    log = deleted_twice(tmp_path)
    append(log, keyed(("b", "2")))
    log.roll()
    append(log, keyed(("d", "1")))
    clean(log, checkpoint=4, bound=6, tombstones_below=0)
    assert pairs(log) == [(2, "a", None), (4, "c", "1"), (5, "b", "2"), (6, "d", "1")]


def test_without_a_bound_each_cleaner_decides_alone(tmp_path):
    log = deleted_twice(tmp_path)
    clean(log, bound=4, at_ms=60_000)
    assert pairs(log) == [(4, "c", "1")]
