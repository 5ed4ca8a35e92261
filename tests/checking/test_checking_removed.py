"""Removed is not lost: what policy took away at committed offsets, and what only looks like it."""

import pytest

from sim.checking.outcomes.policy import POLICIES, Expired, Held
from sim.checking.outcomes.verdict import COUNTS

ZERO = dict.fromkeys(COUNTS, 0)


@pytest.fixture
def three_batches(make_facts):
    """Thirty acknowledged records on three replicas, the high watermark at the given offset."""

    def build(committed=30, **options):
        facts = make_facts(watched=False)
        facts.change(1, 0, 0)
        for n in range(3):
            facts.replicate(10)
            facts.told(10 * n, **options)
        facts.watermark(committed)
        return facts

    return build


@pytest.mark.parametrize("reason", POLICIES)
def test_records_below_a_log_start_that_policy_moved_are_removed_and_not_lost(
    reason, three_batches
):
    facts = three_batches()
    facts.move_start(1, 20, reason)
    assert facts.records() == ZERO | {"sent": 30, "acked": 30, "survived": 10, "removed": 20}
    assert facts.verdict()["topics"]["orders"]["removed"] == 20
    assert "lost_acked" not in facts.verdict()["examples"]


def test_delete_records_may_cut_a_batch_and_the_rest_of_it_survives(three_batches):
    facts = three_batches()
    facts.move_start(1, 13, "delete_records")
    assert facts.records() == ZERO | {"sent": 30, "acked": 30, "survived": 17, "removed": 13}


def test_what_lies_above_the_high_watermark_is_lost_even_if_retention_takes_it(three_batches):
    facts = three_batches(committed=15)
    facts.move_start(1, 20, "retention.bytes")
    assert facts.records() == ZERO | {
        "sent": 30, "acked": 30, "survived": 10, "removed": 15, "lost_acked": 5,
    }  # fmt: skip
    assert [e["record"] for e in facts.verdict()["examples"]["lost_acked"]] == list(range(15, 20))


def test_a_log_start_that_a_truncation_moved_excuses_nothing(three_batches):
    facts = three_batches()
    facts.move_start(1, 20, "truncation")
    assert facts.records()["lost_acked"] == 20
    assert facts.records()["removed"] == 0


def test_a_record_that_an_election_took_stays_lost_when_retention_passes_its_offset(make_facts):
    facts = make_facts(watched=False)
    facts.change(1, 0, 0)
    facts.replicate(10)
    facts.append(1, 10)
    facts.told(0)
    facts.told(10)
    facts.change(2, 1, 1)
    facts.truncate(1, 10)
    facts.replicate(30, epoch=1, leader=2, first=20)
    facts.told(20, 30)
    facts.watermark(40, broker=2, epoch=1)
    facts.move_start(2, 40)
    assert facts.records() == ZERO | {
        "sent": 50, "acked": 50, "removed": 40, "lost_acked": 10,
    }  # fmt: skip


def test_a_leader_that_took_the_start_from_another_still_removes_lawfully(three_batches):
    facts = three_batches()
    facts.move_start(1, 20)
    facts.move_start(2, 20, "leader")
    facts.change(2, 1, 1)
    assert facts.records()["removed"] == 20


def test_what_a_leader_still_has_has_survived_although_another_replica_removed_it(three_batches):
    facts = three_batches()
    facts.move_start(2, 20)
    assert facts.records() == ZERO | {"sent": 30, "acked": 30, "survived": 30}


def test_a_log_start_that_goes_back_with_a_crash_shows_its_records_again(three_batches):
    facts = three_batches()
    facts.move_start(1, 20, "delete_records")
    facts.truncate(1, 10, reason="recovery")
    assert facts.records()["survived"] == 0
    facts.move_start(1, 0, "truncation", before=10)
    assert facts.records() == ZERO | {
        "sent": 30, "acked": 30, "survived": 10, "removed": 10, "lost_acked": 10,
    }  # fmt: skip


def test_records_without_a_told_offset_are_removed_when_all_earlier_ones_are_gone(three_batches):
    facts = three_batches(offset=-1)
    facts.move_start(1, 20)
    assert facts.records() == ZERO | {"sent": 30, "acked": 30, "survived": 10, "removed": 20}


def test_a_record_without_a_told_offset_that_never_came_is_lost_behind_one_that_did(make_facts):
    facts = make_facts(watched=False)
    facts.change(1, 0, 0)
    facts.append(1, 10)
    facts.append(1, 10, first=20)
    facts.watermark(20)
    facts.told(0, 30, offset=-1)
    facts.move_start(1, 5)
    assert facts.records() == ZERO | {
        "sent": 30, "acked": 30, "survived": 15, "removed": 5, "lost_acked": 10,
    }  # fmt: skip


def test_without_any_policy_a_record_without_a_told_offset_is_lost(make_facts):
    facts = make_facts()
    facts.change(1, 0, 0)
    facts.told(0, offset=-1)
    assert facts.records() == ZERO | {"sent": 10, "acked": 10, "lost_acked": 10}


def test_logs_that_begin_at_different_offsets_do_not_diverge_where_only_one_has_records(
    three_batches,
):
    facts = three_batches()
    facts.move_start(1, 15, "delete_records")
    facts.append(2, 10, crc=1)
    facts.append(1, 10)
    facts.append(3, 10)
    facts.told(30)
    assert facts.records()["divergent"] == 10
    facts.move_start(2, 40)
    assert facts.records()["divergent"] == 0


def test_what_policy_took_of_a_former_topic_lies_nowhere_in_its_namesake():
    """Its offsets begin anew; its records are remembered all the same."""
    expired = Expired()
    expired.advance(15, [Held(0, 10, 0, 0), Held(10, 10, 0, 10)])
    assert expired.runs == [Held(0, 15, 0, 0)]
    expired.start_over()
    assert (expired.below, expired.runs) == (0, [])
    expired.advance(10, [Held(0, 10, 0, 30)])
    assert expired.runs == [Held(0, 10, 0, 30)]
    assert list(expired.records[0]) == [(0, 15), (30, 40)]
