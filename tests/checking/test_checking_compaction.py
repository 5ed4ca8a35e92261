"""Compacted topics: which records a cleaner may take, and what both ends of a run make of it."""

import random

import numpy as np
import pytest

from sim.checking.outcomes.compaction import Keys
from sim.checking.outcomes.verdict import COUNTS

ZERO = dict.fromkeys(COUNTS, 0)


@pytest.fixture
def compacted(make_facts):
    """Six acknowledged records of keys 5, 6, 5, 7, 6, 5 on three replicas, all committed."""

    def build(*, tombstones=(), watched=True, told=True, **options):
        facts = make_facts(watched=watched)
        facts.change(1, 0, 0)
        facts.keys(0, [5, 6, 5, 7, 6, 5], tombstones=tombstones)
        facts.replicate(6)
        facts.watermark(6)
        if told:
            facts.told(0, 6, **options)
        return facts

    return build


def test_records_that_a_later_one_of_their_key_replaces_are_removed_and_not_lost(compacted):
    facts = compacted()
    facts.contents(1, 0, 5, [3, 4, 5])
    assert facts.records() == ZERO | {"sent": 6, "acked": 6, "survived": 3, "removed": 3}
    assert facts.checked("cleaner-keeps-last-values") == 3


def test_the_last_value_of_a_key_is_lost_if_a_cleaner_takes_it(compacted):
    facts = compacted(watched=False)
    facts.row("high_watermarks", 1, "orders", 0, 0, 6, 6, 3, 2, 6)
    facts.contents(1, 0, 5, [4, 5])
    assert facts.records() == ZERO | {
        "sent": 6, "acked": 6, "survived": 2, "removed": 3, "lost_acked": 1,
    }  # fmt: skip
    assert facts.verdict()["examples"]["lost_acked"][0]["record"] == 3


def test_a_record_above_the_high_watermark_replaces_nothing_unless_it_stays(make_facts):
    facts = make_facts(watched=False)
    facts.change(1, 0, 0)
    for n in range(2):
        facts.keys(n, [5])
        facts.append(1, 1)
    facts.watermark(1)
    facts.told(0, 1)
    facts.contents(1, 0, 1, [1])
    assert facts.records()["removed"] == 1
    facts.truncate(1, 1)
    assert facts.records()["lost_acked"] == 1


def test_a_tombstone_that_outlived_its_time_is_removed_and_so_is_what_it_deleted(compacted):
    facts = compacted(tombstones=[5])
    facts.contents(1, 0, 5, [3, 4, 5])
    facts.contents(1, 0, 5, [3, 4], t=facts.t + 1_000_000)
    assert facts.records() == ZERO | {"sent": 6, "acked": 6, "survived": 2, "removed": 4}
    assert facts.checked("tombstones-stay-their-time") == 1


def test_a_tombstone_taken_before_its_time_is_lost_and_counted_for_itself(compacted):
    facts = compacted(tombstones=[5], watched=False)
    facts.contents(1, 0, 5, [3, 4, 5])
    facts.contents(1, 0, 5, [3, 4], t=facts.t + 990_000)
    assert facts.records() == ZERO | {
        "sent": 6, "acked": 6, "survived": 2, "removed": 3, "lost_acked": 1, "early_tombstones": 1,
    }  # fmt: skip


def test_the_first_cleaning_of_any_replica_sets_a_tombstones_time(compacted):
    facts = compacted(tombstones=[5])
    facts.contents(2, 0, 5, [3, 4, 5])
    facts.t += 600_000
    facts.contents(1, 0, 5, [3, 4, 5])
    facts.contents(1, 0, 5, [3, 4], t=facts.t + 500_000)
    assert facts.records()["removed"] == 4


def test_while_a_clock_is_moved_tombstones_may_go_at_any_time(compacted):
    facts = compacted(tombstones=[5])
    facts.row("faults", 0, "clock-jump", "began", "broker-1", "broker-1", True, "")
    facts.contents(1, 0, 5, [3, 4, 5])
    facts.contents(1, 0, 5, [3, 4])
    assert facts.report("tombstones-stay-their-time").outcome == "set aside"


def test_a_copy_of_a_cleaned_log_has_its_gaps_and_other_bytes_and_does_not_diverge(compacted):
    facts = compacted()
    facts.keys(6, [8, 9])
    facts.replicate(2)
    facts.watermark(8)
    facts.told(6, 2)
    facts.contents(1, 0, 7, [3, 4, 5, 6, 7])
    facts.truncate(2, 0, reason="wiped")
    facts.append(2, 6, base=0, crc=77)
    facts.contents(2, 0, 5, [3, 4, 5], how="fetched")
    facts.append(2, 2, base=6, crc=78)
    facts.change(2, 1, 1)
    assert facts.records() == ZERO | {"sent": 8, "acked": 8, "survived": 5, "removed": 3}
    assert facts.report("logs-match").suspended != {}


def test_a_copy_may_leave_out_whole_batches_that_a_cleaner_took(make_facts):
    facts = make_facts()
    facts.change(1, 0, 0)
    for n, key in enumerate([5, 5, 6]):
        facts.keys(n, [key])
        facts.append(1, 1)
        facts.told(n, 1)
    facts.watermark(3)
    facts.contents(1, 0, 2, [1, 2])
    facts.append(2, 1, base=1, crc=9)
    facts.append(2, 1, base=2, crc=10)
    facts.change(2, 1, 1, "1,2")
    assert facts.records() == ZERO | {"sent": 3, "acked": 3, "survived": 2, "removed": 1}


def test_other_records_at_an_offset_diverge_in_a_compacted_topic_too(compacted):
    facts = compacted(watched=False)
    facts.contents(1, 0, 5, [3, 4, 5])
    facts.append(1, 2, epoch=0)
    facts.append(2, 2, epoch=1, leader=True, first=50)
    facts.append(3, 2, epoch=1, first=50)
    assert facts.records()["divergent"] == 2


def test_a_record_without_a_told_offset_is_removed_if_its_key_has_a_record(compacted):
    facts = compacted(offset=-1)
    facts.contents(1, 0, 5, [3, 4, 5])
    assert facts.records()["removed"] == 3


def test_a_truncated_log_forgets_the_keys_that_went(make_facts):
    facts = make_facts(watched=False)
    facts.change(1, 0, 0)
    for first, keys in ((0, [5, 6, 5]), (3, [7, 6, 5])):
        facts.keys(first, keys)
        facts.append(1, 3)
    facts.watermark(6)
    facts.told(0, 3)
    facts.contents(1, 0, 1, [0, 1])
    facts.truncate(1, 3)
    facts.contents(1, 0, 2, [1, 2])
    assert facts.records()["removed"] == 1
    facts.contents(1, 0, 2, [2])
    assert facts.records()["lost_acked"] == 1


def test_keys_told_again_in_parts_are_those_of_the_parts():
    keys = Keys()
    for first, told, dead in ((10, [1, 2, 3, 4], [1]), (10, [1, 2], [1]), (12, [3, 4], [])):
        columns = np.array(told, np.int32), np.array(dead, np.int32)
        keys.add((0, 3, "t", 0, first, len(told), *columns))
    assert list(keys.of(3, 9, 6)) == [
        (-1, False), (1, False), (2, True), (3, False), (4, False), (-1, False),
    ]  # fmt: skip
    assert list(keys.of(4, 0, 2)) == [(-1, False)] * 2


@pytest.mark.parametrize("seed", range(20))
def test_a_cleaner_that_works_by_the_rule_loses_nothing_and_one_that_does_not_is_counted(
    seed, make_facts
):
    """Random batches and cleanings against a plain list; half of the cleaners drop last values."""
    chance = random.Random(seed)
    facts = make_facts(watched=False)
    facts.change(1, 0, 0)
    log: dict[int, int] = {}
    size, victims, latest = 0, {}, {}
    for _ in range(12):
        keys = [chance.randrange(6) for _ in range(chance.randrange(1, 6))]
        facts.keys(size, keys)
        facts.append(1, len(keys))
        facts.told(size, len(keys))
        log |= dict(enumerate(keys, size))
        latest |= {key: offset for offset, key in enumerate(keys, size)}
        size += len(keys)
        facts.watermark(size)
        if chance.random() < 0.5:
            last = {key: offset for offset, key in log.items()}
            kept = {o for o, key in log.items() if last[key] == o or chance.random() < 0.2}
            if seed % 2 and kept and chance.random() < 0.5:
                victim = chance.choice(sorted(kept))
                kept.discard(victim)
                if last[log[victim]] == victim:
                    victims[victim] = log[victim]
            facts.contents(1, 0, size - 1, sorted(kept))
            log = {offset: key for offset, key in log.items() if offset in kept}
    lost = [offset for offset, key in victims.items() if latest[key] == offset]
    records = facts.records()
    assert records["survived"] == len(log)
    assert records["lost_acked"] == len(lost)
    assert records["removed"] == size - len(log) - len(lost)
    assert bool(lost) <= (seed % 2 == 1)
