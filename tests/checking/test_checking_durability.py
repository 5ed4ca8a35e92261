"""The end checks: what was promised, what is there, and the same numbers from a naive model."""

from collections import defaultdict

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from sim.checking.outcomes.verdict import COUNTS
from sim.errors import InvariantBroken

ZERO = dict.fromkeys(COUNTS, 0)


def led(facts, leader=1, epoch=0, partition_epoch=0):
    facts.change(leader, epoch, partition_epoch, "1,2,3")


def test_acknowledged_records_in_the_leaders_log_are_survivors(facts):
    led(facts)
    facts.replicate(10)
    facts.told(0)
    assert facts.records() == ZERO | {"sent": 10, "acked": 10, "survived": 10}
    assert facts.verdict()["examples"] == {}


def test_an_acknowledged_record_that_the_final_leader_lacks_is_lost_even_if_another_has_it(facts):
    led(facts)
    facts.replicate(10)
    facts.append(1, 5)
    facts.told(0)
    facts.told(10, 5)
    led(facts, leader=2, epoch=1, partition_epoch=1)
    verdict = facts.verdict()
    assert verdict["records"] == ZERO | {
        "sent": 15, "acked": 15, "survived": 10, "lost_acked": 5,
    }  # fmt: skip
    assert verdict["examples"]["lost_acked"][0] == {
        "topic": "orders", "partition": 0, "producer": "shop-0", "record": 10, "offset": 10,
    }  # fmt: skip
    assert len(verdict["examples"]["lost_acked"]) == 5


def test_an_acknowledged_record_that_was_never_appended_is_lost_and_has_no_offset(facts):
    led(facts)
    facts.told(0, 30)
    verdict = facts.verdict()
    assert verdict["records"]["lost_acked"] == 30
    assert len(verdict["examples"]["lost_acked"]) == 10
    assert verdict["examples"]["lost_acked"][9]["record"] == 9
    assert verdict["examples"]["lost_acked"][9]["offset"] == -1


@pytest.mark.parametrize("outcome", ["failed", "unknown"])
def test_a_record_without_acknowledgement_may_be_present_and_is_counted_so(facts, outcome):
    led(facts)
    facts.replicate(10)
    facts.told(0, 10, outcome)
    facts.told(10, 10, outcome)
    assert facts.records() == ZERO | {
        "sent": 20, outcome: 20, "survived": 10, "unacked_present": 10,
    }  # fmt: skip


def test_a_record_written_twice_is_a_duplicate_and_not_a_reorder(facts):
    led(facts)
    facts.append(1, 10)
    facts.append(1, 10)
    facts.append(1, 10, first=5)
    facts.told(0, 20)
    verdict = facts.verdict()
    assert verdict["records"] == ZERO | {
        "sent": 20, "acked": 20, "survived": 20, "duplicated": 10,
    }  # fmt: skip
    assert verdict["examples"]["duplicated"][0]["record"] == 5
    assert verdict["examples"]["duplicated"][0]["offset"] == 20


def test_a_batch_behind_a_later_one_is_reordered_and_not_a_duplicate(facts):
    led(facts)
    facts.append(1, 10, first=0)
    facts.append(1, 10, first=20)
    facts.append(1, 10, first=10)
    facts.told(0, 30)
    verdict = facts.verdict()
    assert verdict["records"] == ZERO | {
        "sent": 30, "acked": 30, "survived": 30, "reordered": 10,
    }  # fmt: skip
    assert verdict["examples"]["reordered"][0]["offset"] == 20


def test_the_order_of_two_producers_is_nobodys_promise(facts):
    led(facts)
    facts.append(1, 10, first=50, producer=0)
    facts.append(1, 10, first=0, producer=1)
    facts.told(50, producer=0)
    facts.told(0, producer=1)
    assert facts.records()["reordered"] == 0


def test_replicas_with_other_batches_below_the_smallest_end_are_divergent(facts):
    led(facts)
    facts.replicate(10)
    facts.append(1, 7, epoch=0)
    facts.append(2, 5, epoch=1, leader=True)
    facts.append(2, 10, epoch=1, leader=True)
    facts.append(3, 5, epoch=1)
    facts.append(3, 10, epoch=1)
    facts.told(0)
    verdict = facts.verdict()
    assert verdict["records"]["divergent"] == 7
    assert [e["offset"] for e in verdict["examples"]["divergent"]] == list(range(10, 17))


def test_a_replica_that_is_merely_behind_is_not_divergent(facts):
    led(facts)
    facts.replicate(10)
    facts.append(1, 10)
    facts.append(2, 10)
    facts.told(0)
    assert facts.records()["divergent"] == 0


def test_offsets_below_the_start_of_a_log_cannot_diverge(facts):
    facts.append(1, 10, epoch=0)
    facts.append(2, 10, epoch=1, leader=True)
    facts.append(3, 10, epoch=1)
    for broker in (1, 2, 1, 2):
        facts.append(broker, 10, epoch=2, leader=broker == 1)
    facts.told(0)
    assert facts.records()["divergent"] == 10
    facts.truncate(3, 20, reason="out_of_range")
    facts.append(3, 10, epoch=2)
    assert facts.records()["divergent"] == 0


def test_divergence_is_healed_by_truncation(facts):
    led(facts)
    facts.replicate(10)
    facts.append(1, 7, epoch=0)
    facts.append(2, 7, epoch=1, leader=True)
    facts.truncate(1, 10)
    facts.append(1, 7, epoch=1, leader=False)
    facts.told(0)
    assert facts.records()["divergent"] == 0


def test_equal_epoch_and_offset_with_other_bytes_is_divergent(make_facts):
    facts = make_facts(watched=False)
    led(facts)
    facts.replicate(10, brokers=(1, 2))
    facts.append(1, 10)
    facts.append(2, 10, crc=1)
    facts.append(2, 10)
    facts.append(1, 10)
    facts.told(0)
    assert facts.records()["divergent"] == 10


@pytest.mark.parametrize("how", ["recovery", "unrecovered", "wiped", "recoveries only"])
def test_what_a_power_loss_took_is_gone_from_the_log(facts, how):
    led(facts)
    facts.replicate(10, brokers=(1, 2))
    facts.replicate(10, brokers=(1, 2))
    facts.told(0, 20)
    if how == "recoveries only":
        facts.recover(1, 10)
    else:
        facts.truncate(1, 0 if how == "wiped" else 10, reason=how)
    left = 0 if how == "wiped" else 10
    assert facts.records()["survived"] == left
    assert facts.records()["lost_acked"] == 20 - left


def test_a_truncation_within_a_batch_takes_all_of_it(facts):
    led(facts)
    facts.append(1, 10)
    facts.append(1, 10)
    facts.told(0, 20)
    facts.row("truncations", 1, "orders", 0, 20, 15, 15, 0, "diverging_epoch")
    assert facts.records()["survived"] == 10


def test_a_wiped_replica_holds_again_what_it_fetched_again(facts):
    led(facts)
    for _ in range(3):
        facts.replicate(10)
    facts.told(0, 30)
    facts.truncate(1, 0, reason="wiped")
    facts.append(1, 10)
    facts.append(1, 10)
    assert facts.records()["survived"] == 20
    facts.append(1, 10)
    facts.append(1, 10)
    assert facts.records() == ZERO | {
        "sent": 30,
        "acked": 30,
        "survived": 40,
        "unacked_present": 10,
    }
    assert facts.verdict()["unsent_present"] == 10


def test_acknowledged_records_of_a_producer_without_a_row_are_found_though_no_log_has_them(facts):
    led(facts)
    facts.append(1, 10)
    facts.acknowledge(0, 9, 0, acks=1)
    facts.truncate(1, 0)
    assert facts.records() == ZERO
    assert facts.verdict()["answered_untold"] == 10


def test_without_any_leader_the_longest_log_of_the_latest_epoch_is_asked(facts):
    facts.append(1, 10)
    facts.append(1, 10)
    facts.append(2, 10)
    facts.append(2, 5, epoch=1, leader=True)
    facts.told(0, 20)
    assert facts.records()["survived"] == 15


def test_internal_topics_are_nobodys_records_but_their_divergence_is_told(facts):
    for broker, crc in ((1, 5), (2, 6)):
        facts.append(broker, 10, producer=-1, first=-1, topic="__consumer_offsets",
                     epoch=broker, crc=crc, leader=True)  # fmt: skip
    verdict = facts.verdict()
    assert verdict["topics"] == {}
    assert verdict["internal_divergent"] == 10


def test_counts_are_per_topic_and_in_total(facts):
    led(facts)
    facts.append(1, 10)
    facts.told(0)
    facts.change(1, 0, 0, topic="bills")
    facts.told(0, 4, "failed", topic="bills")
    verdict = facts.verdict()
    assert verdict["topics"] == {
        "bills": ZERO | {"sent": 4, "failed": 4},
        "orders": ZERO | {"sent": 10, "acked": 10, "survived": 10},
    }
    assert verdict["records"]["sent"] == 14


def test_the_verdict_carries_the_reports_of_the_checks(facts):
    facts.append(1, 10)
    checks = {check["name"]: check for check in facts.verdict()["checks"]}
    assert checks["offsets-contiguous"]["checked"] == 1
    assert checks["leader-complete"]["checked"] == 0


# -- the same numbers from a model that knows every single record ----------------------------------


class Naive:
    """Logs as lists of (producer, record, epoch, crc), one entry for each offset."""

    def __init__(self):
        self.logs = {1: [], 2: [], 3: []}
        self.starts = dict.fromkeys(self.logs, 0)
        self.removed = set()
        self.told = defaultdict(set)
        self.leader = 1

    def expire(self, broker, to, committed, expired):
        """A log start moves; what lay between the former bound and the lawful one is removed."""
        lawful = min(to, committed)
        self.removed |= {entry[:2] for entry in self.logs[broker][expired:lawful]}
        self.starts[broker] = to
        return max(expired, lawful)

    def records(self):
        start = self.starts[self.leader]
        log = [entry[:2] for entry in self.logs[self.leader][start:]]
        present = set(log)
        acked = self.told["ok"]
        sent = set().union(*self.told.values())
        seen, top, reordered = set(), defaultdict(lambda: -1), 0
        for producer, record in log:
            if (producer, record) not in seen:
                reordered += record < top[producer]
            seen.add((producer, record))
            top[producer] = max(top[producer], record)
        shown = [broker for broker, log in self.logs.items() if log[self.starts[broker] :]]
        logs = [self.logs[broker] for broker in shown]
        low = max((self.starts[broker] for broker in shown), default=0)
        common = range(low, min(map(len, logs))) if len(logs) > 1 else ()
        return {
            "sent": len(sent), "acked": len(acked), "failed": len(self.told["failed"]),
            "unknown": len(self.told["unknown"]), "survived": len(present),
            "lost_acked": len(acked - present - self.removed),
            "removed": len((acked - present) & self.removed), "early_tombstones": 0, "aborted": 0,
            "aborted_visible": 0, "aborted_read": 0, "undecided": 0, "torn_transactions": 0,
            "unacked_present": len(present - acked),
            "duplicated": len(log) - len(present), "reordered": reordered,
            "divergent": sum(len({log[o][2:] for log in logs}) > 1 for o in common),
        }  # fmt: skip


@st.composite
def histories(draw):
    """Steps of a lossy, unclean, careless cluster: everything that the model has words for."""
    step = st.one_of(
        st.tuples(st.just("produce"), st.integers(0, 2), st.integers(0, 12), st.integers(1, 4)),
        st.tuples(st.just("produce"), st.integers(0, 2), st.integers(0, 12), st.integers(1, 4)),
        st.tuples(st.just("fetch"), st.integers(1, 3), st.just(0), st.just(0)),
        st.tuples(st.just("fetch"), st.integers(1, 3), st.just(0), st.just(0)),
        st.tuples(st.just("elect"), st.integers(1, 3), st.just(0), st.just(0)),
        st.tuples(st.just("cut"), st.integers(1, 3), st.integers(0, 20), st.just(0)),
        st.tuples(st.just("expire"), st.integers(1, 3), st.integers(1, 20), st.integers(0, 3)),
        st.tuples(st.just("corrupt"), st.integers(1, 3), st.integers(1, 4), st.just(0)),
        st.tuples(st.just("tell"), st.integers(0, 2), st.integers(0, 12), st.integers(1, 4)),
    )
    return draw(st.lists(step, min_size=1, max_size=40))


def cut_to_batches(batches, offset):
    """The end at which a log that drops everything from the offset on ends up."""
    return max((last + 1 for _, last, *_ in batches if last < offset), default=0)


@settings(max_examples=150, deadline=None)
@given(histories())
def test_ranges_give_the_numbers_that_single_records_give(make_facts_once, steps):
    facts, naive = make_facts_once(), Naive()
    held = {1: [], 2: [], 3: []}
    epoch, crc, committed, expired = 0, 1, 0, 0
    facts.change(1, 0, 0)

    def put(broker, batch, *, leader):
        base, last, batch_epoch, batch_crc, producer, first = batch
        facts.append(broker, last - base + 1, epoch=batch_epoch, leader=leader, base=base,
                     crc=batch_crc, producer=producer, first=first)  # fmt: skip
        held[broker].append(batch)
        naive.logs[broker] += [
            (producer, first + n, batch_epoch, batch_crc) for n in range(last - base + 1)
        ]

    def cut(broker, offset, reason):
        end = cut_to_batches(held[broker], offset)
        facts.truncate(broker, end, reason=reason)
        held[broker] = [batch for batch in held[broker] if batch[1] < end]
        del naive.logs[broker][end:]
        naive.starts[broker] = min(naive.starts[broker], end)

    for kind, a, b, n in steps:
        end = {broker: len(log) for broker, log in naive.logs.items()}
        if kind == "produce":
            crc += 1
            base = end[naive.leader]
            put(naive.leader, (base, base + n - 1, epoch, crc, a, b), leader=True)
        elif kind == "fetch" and a != naive.leader:
            mine, theirs = held[a], held[naive.leader]
            same = 0
            while same < min(len(mine), len(theirs)) and mine[same] == theirs[same]:
                same += 1
            if same < len(mine):
                cut(a, mine[same][0], "diverging_epoch")
            if same < len(theirs):
                put(a, theirs[same], leader=False)
        elif kind == "elect":
            epoch += 1
            naive.leader = a
            facts.change(a, epoch, epoch, unclean=True)
        elif kind == "expire":
            committed = max(committed, end[naive.leader])
            facts.watermark(committed, broker=naive.leader)
            to = min(naive.starts[a] + b, end[a])
            facts.move_start(a, to, "retention.ms" if n else "truncation")
            expired = naive.expire(a, to, committed if n else 0, expired)
        elif kind == "cut":
            cut(a, b, "recovery")
        elif kind == "corrupt" and a != naive.leader:
            crc += 1
            base = end[a]
            put(a, (base, base + b - 1, epoch, crc, 0, 90), leader=False)
        elif kind == "tell":
            outcome = ("ok", "failed", "unknown")[(a + b) % 3]
            facts.told(b, n, outcome, producer=a)
            naive.told[outcome] |= {(a, b + k) for k in range(n)}
    expected = naive.records()
    records = facts.records()
    shown = naive.logs[naive.leader][naive.starts[naive.leader] :]
    producers = {p for p, *_ in shown} | {p for told in naive.told.values() for p, _ in told}
    if not producers:
        expected["divergent"] = 0
    for name in ("lost_acked", "removed", "duplicated", "reordered", "divergent"):
        if expected[name]:
            event(name)
    assert records == expected
    for kind, examples in facts.verdict()["examples"].items():
        assert 0 < len(examples) <= min(10, records[kind])


@pytest.fixture(scope="module")
def make_facts_once(request):
    """The builder, without the watch: these histories break invariants on purpose."""
    facts = request.getfixturevalue("facts_class")
    return lambda: facts(watched=False)


def test_what_lay_in_a_hole_that_recovery_keeps_is_lost_and_what_lies_behind_is_not(make_facts):
    facts = make_facts()
    facts.change(1, 0, 0)
    for n in range(3):
        facts.replicate(10)
        facts.watermark(10 * n + 10)
        facts.told(10 * n, 10)
    facts.row("log_holes", 1, "orders", 0, 10, 20)
    facts.recover(1, 30)
    found = facts.records()
    assert (found["acked"], found["survived"], found["lost_acked"]) == (30, 20, 10)
    assert found["divergent"] == 10


def test_a_hole_where_a_log_starts_is_a_difference_and_a_log_start_that_moved_is_none(make_facts):
    facts = make_facts(watched=False)
    facts.change(1, 0, 0)
    for n in range(3):
        facts.replicate(10)
        facts.watermark(10 * n + 10)
        facts.told(10 * n, 10)
    facts.row("log_holes", 1, "orders", 0, 0, 10)
    facts.recover(1, 30)
    assert facts.records()["divergent"] == 10
    assert facts.verdict()["divergence"] == {"broker-1, broker-2": 10, "broker-1, broker-3": 10}
    facts.move_start(3, 4)
    assert facts.records()["divergent"] == 6
    facts.move_start(3, 20)
    assert facts.records()["divergent"] == 0


def test_a_copy_may_leap_over_a_hole_of_another_replica_and_over_no_more(make_facts):
    facts = make_facts()
    facts.change(1, 0, 0)
    for _ in range(3):
        facts.append(1, 10)
    facts.append(2, 10)
    facts.row("log_holes", 1, "orders", 0, 10, 20)
    facts.append(2, 10, base=20)
    facts.append(3, 10)
    with pytest.raises(InvariantBroken, match="offsets-contiguous"):
        facts.append(3, 10, base=21)
