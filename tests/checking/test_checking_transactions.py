"""Aborted is neither lost nor there; committed is whole; undecided is told for itself."""

import pytest

from sim.checking.outcomes.verdict import COUNTS

ZERO = dict.fromkeys(COUNTS, 0)


@pytest.fixture
def facts(make_facts):
    """Twenty acknowledged records in two transactions; the first one's marker is not there yet."""
    facts = make_facts(watched=False)
    facts.change(1, 0, 0)
    facts.replicate(10)
    facts.told(0)
    return facts


def second(facts, **marker):
    facts.replicate(10, first=10)
    facts.told(10, offset=11)
    facts.marker(**marker)


def test_records_of_committed_transactions_survive_and_markers_are_nobodys_records(facts):
    facts.marker()
    facts.transaction(0, 0, 9)
    second(facts)
    facts.transaction(1, 10, 19)
    assert facts.records() == ZERO | {"sent": 20, "acked": 20, "survived": 20}


def test_aborted_records_are_counted_for_themselves_and_not_as_lost_or_there(facts):
    facts.marker()
    facts.transaction(0, 0, 9)
    second(facts, committed=False)
    facts.transaction(1, 10, 19, "aborted")
    assert facts.records() == ZERO | {"sent": 20, "acked": 20, "survived": 10, "aborted": 10}


def test_an_aborted_record_that_is_sent_again_is_no_duplicate(facts):
    facts.marker(committed=False)
    facts.transaction(0, 0, 9, "aborted")
    facts.replicate(10, first=0)
    facts.marker()
    assert facts.records()["duplicated"] == facts.records()["reordered"] == 0


def test_an_aborted_record_that_is_gone_is_missed_by_nobody(facts):
    facts.transaction(0, 0, 9, "fenced")
    facts.truncate(1, 0)
    assert facts.records() == ZERO | {"sent": 10, "acked": 10, "aborted": 10}


def test_a_committed_transaction_behind_an_abort_marker_is_lost(facts):
    facts.marker(committed=False)
    facts.transaction(0, 0, 9, "committed")
    assert facts.records() == ZERO | {"sent": 10, "acked": 10, "lost_acked": 10}


def test_an_aborted_transaction_behind_a_commit_marker_is_visible(facts):
    facts.marker(committed=True)
    facts.transaction(0, 0, 9, "aborted")
    found = facts.records()
    assert (found["aborted"], found["aborted_visible"], found["survived"]) == (10, 10, 10)


def test_a_lost_marker_leaves_records_undecided(facts):
    facts.transaction(0, 0, 9)
    assert facts.records() == ZERO | {"sent": 10, "acked": 10, "survived": 10, "undecided": 10}
    facts.marker(told=False)
    assert facts.records()["undecided"] == 10
    facts.marker()
    assert facts.records()["undecided"] == 0


def test_the_marker_of_another_producer_decides_nothing(facts):
    facts.transaction(0, 0, 9)
    facts.marker(pid=8)
    assert facts.records()["undecided"] == 10


def test_a_transaction_whose_end_was_never_learned_promises_nothing(facts):
    facts.transaction(0, 0, 9, "unknown")
    facts.truncate(1, 0)
    assert facts.records() == ZERO | {"sent": 10, "acked": 10}


def test_a_transaction_that_is_visible_in_part_is_torn(facts):
    facts.replicate(10, partition=1)
    facts.told(0, partition=1, t=facts.t)
    facts.change(1, 0, 0, partition=1)
    facts.marker()
    facts.marker(partition=1)
    facts.transaction(0, 0, 9, partitions=(0, 1))
    assert facts.records()["torn_transactions"] == 0
    facts.truncate(1, 0, partition=1)
    found = facts.records()
    assert (found["torn_transactions"], found["lost_acked"]) == (1, 10)


def test_retention_tears_no_transaction(facts):
    facts.marker()
    facts.transaction(0, 0, 9)
    facts.watermark(11)
    facts.move_start(1, 5)
    found = facts.records()
    assert (found["torn_transactions"], found["removed"], found["survived"]) == (0, 5, 5)


@pytest.mark.parametrize("committed", [True, False])
def test_a_reader_of_committed_data_must_not_get_what_aborted(facts, committed):
    facts.marker(committed=False)
    facts.transaction(0, 0, 9, "aborted")
    if committed:
        facts.row("committed_readers", "c-0", "billing")
    facts.read(0, 4)
    assert facts.records()["aborted_read"] == (5 if committed else 0)


def test_a_cleaner_may_take_aborted_records_and_they_replace_nothing(make_facts):
    facts = make_facts()
    facts.change(1, 0, 0)
    facts.keys(0, [5])
    facts.keys(1, [5])
    facts.replicate(1, first=0)
    facts.told(0, 1)
    facts.marker()
    facts.transaction(0, 0, 0)
    facts.replicate(1, first=1)
    facts.told(1, 1, offset=2)
    facts.marker(committed=False)
    facts.transaction(1, 1, 1, "aborted")
    facts.watermark(4)
    facts.contents(1, 0, 3, [0, 1, 3])
    found = facts.records()
    assert (found["survived"], found["aborted"], found["lost_acked"]) == (1, 1, 0)
    with pytest.raises(Exception, match="cleaner-keeps-last-values"):
        facts.contents(1, 0, 3, [1, 3])
