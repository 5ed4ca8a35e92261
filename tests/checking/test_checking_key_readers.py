"""Keys that rise again: a reader of a compacted topic came past when the tombstone was gone."""

import pytest


@pytest.fixture
def facts(make_facts):
    """Key 5 has a value, then a tombstone; key 6 lives. All is committed and acknowledged."""
    made = make_facts(watched=False)
    made.change(1, 0, 0)
    made.keys(0, [5, 5, 6], tombstones=[1])
    made.replicate(3)
    made.watermark(3)
    made.row("high_watermarks", 1, "orders", 0, 0, 3, 3, 3, 2, 3)
    made.told(0, 3)
    return made


def read(facts, first, last, reader="books", group=""):
    count = last - first + 1
    facts.row("reads", reader, group, "orders", 0, first, last, 0, 0, first, count, 3, 1)


def take_tombstone(facts, after_us=2_000_000):
    facts.contents(1, 0, 2, [1, 2])
    facts.contents(1, 0, 2, [2], t=facts.t + after_us)


def resurrected(facts):
    return facts.verdict()["readers"]["resurrected"]


def test_a_reader_that_passes_where_the_tombstone_was_keeps_the_key(facts):
    read(facts, 0, 0)
    take_tombstone(facts)
    read(facts, 2, 2)
    assert resurrected(facts) == 1
    assert facts.records()["early_tombstones"] == 0


def test_taken_too_soon_it_counts_as_an_early_tombstone_too(facts):
    read(facts, 0, 0)
    take_tombstone(facts, 500_000)
    read(facts, 2, 2)
    assert resurrected(facts) == 1
    assert facts.records()["early_tombstones"] == 1


def test_a_reader_that_got_the_tombstone_keeps_nothing(facts):
    read(facts, 0, 1)
    take_tombstone(facts)
    read(facts, 2, 2)
    assert resurrected(facts) == 0


def test_a_reader_that_never_got_the_value_has_nothing_to_keep(facts):
    take_tombstone(facts)
    read(facts, 2, 2)
    assert resurrected(facts) == 0


def test_a_reader_that_has_not_come_that_far_may_still_be_told(facts):
    """Its next record is not past the tombstone's offset: nothing is missed yet."""
    read(facts, 0, 0)
    take_tombstone(facts)
    assert resurrected(facts) == 0


def test_a_key_that_lives_again_has_not_risen_from_the_dead(facts):
    read(facts, 0, 0)
    take_tombstone(facts)
    read(facts, 2, 2)
    facts.keys(3, [5])
    facts.replicate(1, base=3, first=3)
    facts.told(3, 1)
    assert resurrected(facts) == 0


def test_without_a_reader_nothing_is_said(facts):
    take_tombstone(facts)
    assert facts.verdict()["readers"] == {}


def test_members_of_a_group_make_one_reader(facts):
    read(facts, 0, 0, "books-1", "books")
    take_tombstone(facts)
    read(facts, 2, 2, "books-2", "books")
    assert resurrected(facts) == 1
