"""What became of records on their way to a reader: each fate is told apart from the others."""

import pytest


@pytest.fixture
def facts(make_facts):
    """Records 0 to 29 in three batches on three replicas, committed and acknowledged."""
    made = make_facts(watched=False)
    made.change(1, 0, 0)
    for _ in range(3):
        made.replicate(10)
    made.told(0, 30)
    return made


def moved(facts, offset, reason, before=-1, reader="c-0", group="billing"):
    facts.row("positions", reader, group, "orders", 0, before, offset, reason)


def fates(facts):
    """The numbers that are not zero, but for what was delivered."""
    readers = facts.verdict()["readers"]
    return {
        kind: count
        for kind, count in readers.items()
        if count and kind not in {"delivered", "by_reader"}
    }


def test_a_reader_that_gets_everything_once_has_nothing_to_complain_of(facts):
    moved(facts, 0, "reset")
    facts.read(0, 9)
    facts.read(10, 29)
    assert fates(facts) == {}
    assert facts.verdict()["readers"]["delivered"] == 30


def test_what_a_reader_passed_and_never_got_is_undelivered(facts):
    moved(facts, 0, "reset")
    facts.read(0, 9)
    facts.read(15, 29)
    assert fates(facts) == {"undelivered": 5}


def test_what_it_has_not_come_to_is_lag_and_what_lies_before_its_beginning_nobodys(facts):
    moved(facts, 10, "reset")
    facts.read(10, 19)
    assert fates(facts) == {}


def test_what_a_reset_jumped_over_is_not_merely_undelivered(facts):
    moved(facts, 0, "reset")
    facts.read(0, 9)
    moved(facts, 25, "reset", 10)
    facts.read(25, 29)
    assert fates(facts) == {"skipped_by_reset": 15}


def test_a_jump_that_is_no_reset_leaves_records_undelivered(facts):
    """A commit ahead of what was returned: the trap of committing before processing."""
    facts.read(0, 9)
    moved(facts, 25, "committed", reader="c-1")
    facts.read(25, 29, consumer="c-1")
    assert fates(facts) == {"undelivered": 15}


def test_a_member_that_goes_on_where_another_one_committed_repeats_the_rest(facts):
    moved(facts, 0, "reset")
    facts.read(0, 19)
    moved(facts, 12, "committed", reader="c-1")
    facts.read(12, 29, consumer="c-1")
    assert fates(facts) == {"delivered_twice": 8}


def test_readers_of_different_groups_do_not_repeat_each_other(facts):
    for group in ("billing", "audit"):
        moved(facts, 0, "reset", group=group)
        facts.row("reads", "c", group, "orders", 0, 0, 29, 0, 0, 0, 30, 30, 1)
    assert fates(facts) == {}
    assert set(facts.verdict()["readers"]["by_reader"]) == {"billing", "audit"}


def test_a_reader_without_a_group_goes_by_its_own_name(facts):
    facts.row("reads", "tail", "", "orders", 0, 0, 29, 0, 0, 0, 30, 30, 1)
    assert list(facts.verdict()["readers"]["by_reader"]) == ["tail"]


def cut(facts, end):
    for broker in (1, 2, 3):
        facts.truncate(broker, end)


def test_what_was_read_and_then_truncated_is_read_and_lost(facts):
    moved(facts, 0, "reset")
    facts.read(0, 29)
    cut(facts, 20)
    assert fates(facts) == {"read_lost": 10}


def test_other_records_at_offsets_that_were_read_before_were_never_delivered(facts):
    moved(facts, 0, "reset")
    facts.read(0, 29)
    cut(facts, 20)
    facts.replicate(15, epoch=1, first=30)
    facts.told(30, 15)
    facts.read(30, 34, first=40, n=5)
    assert fates(facts) == {"read_lost": 10, "undelivered": 10}


def test_a_reader_that_goes_back_to_where_the_logs_part_gets_them(facts):
    moved(facts, 0, "reset")
    facts.read(0, 29)
    cut(facts, 20)
    facts.replicate(15, epoch=1, first=30)
    facts.told(30, 15)
    moved(facts, 20, "truncated", 30)
    facts.read(20, 34, first=30, n=15)
    assert fates(facts) == {"read_lost": 10}


def test_a_reset_to_a_shorter_log_skips_what_was_written_below_it(facts):
    moved(facts, 0, "reset")
    facts.read(0, 29)
    cut(facts, 10)
    facts.replicate(10, epoch=1, first=30)
    facts.told(30, 10)
    moved(facts, 20, "reset", 30)
    assert fates(facts) == {"read_lost": 20, "skipped_by_reset": 10}


def test_what_retention_took_after_it_was_read_is_not_lost(facts):
    facts.watermark(30)
    facts.read(0, 29)
    for broker in (1, 2, 3):
        facts.move_start(broker, 10)
    assert fates(facts) == {}


def test_what_retention_took_before_the_reader_came_back_is_removed_unread(facts):
    facts.watermark(30)
    moved(facts, 0, "reset")
    facts.read(0, 4)
    for broker in (1, 2, 3):
        facts.move_start(broker, 20)
    assert fates(facts) == {}, "it stands at 5 and has passed nothing of it"
    moved(facts, 20, "reset", 5)
    facts.read(20, 29)
    assert fates(facts) == {"removed_unread": 15}


def test_what_lay_before_a_reader_s_beginning_is_not_removed_unread(facts):
    facts.watermark(30)
    for broker in (1, 2, 3):
        facts.move_start(broker, 20)
    moved(facts, 20, "reset")
    facts.read(20, 29)
    assert fates(facts) == {}


def test_records_of_aborted_transactions_are_told_from_lost_ones(make_facts):
    """A reader of uncommitted data gets them lawfully; nobody misses them afterwards."""
    facts = make_facts(watched=False)
    facts.change(1, 0, 0)
    facts.replicate(10)
    facts.transaction(1, 0, 9, "aborted")
    facts.marker(committed=False)
    facts.replicate(5, first=10)
    facts.transaction(2, 10, 14)
    facts.marker()
    facts.told(0, 15)
    facts.read(0, 9)
    facts.read(11, 15, first=10)
    assert fates(facts) == {"read_aborted": 10}
