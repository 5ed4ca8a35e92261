"""Acknowledgements of both sides are compared by places as by a look at each record."""

import random

import numpy as np
import pytest

from analysis.verify import acknowledgements
from analysis.verify.places import Levels
from tests.analysis.synthetic import row, sent, write_run

PLACE = ("broker", "topic", "partition", "base_offset")


def drawn(seed: int, batches: int = 40) -> dict[str, list[dict]]:
    """Batches that overlap, come twice, are refused or lost, and what brokers said of them."""
    draw = random.Random(seed)
    sends, answers, appends = [], [], []
    for place in range(batches):
        where = {"topic": draw.choice(("orders", "bills")), "partition": draw.choice((-1, 0, 1))}
        count, first = draw.choice((0, 1, 3, 7)), 3 * draw.randrange(batches)
        producer = draw.choice((0, 0, 1, -1))
        outcome = draw.choice(("ok", "ok", "ok", "unknown", "failed"))
        offset = draw.choice((place, place, -1))
        sends.append(sent(first, count, producer_index=max(producer, 0), outcome=outcome,
                          base_offset=offset, latency_us=[1] * count, **where))  # fmt: skip
        broker, at = draw.choice((1, 2, 3001)), draw.randrange(100)
        log = {"broker": broker, "base_offset": place // 2, **where}
        for _ in range(draw.choice((0, 1, 1, 2))):
            error = draw.choice(("NONE", "NONE", "NONE", "NOT_ENOUGH_REPLICAS"))
            answers.append(row("acknowledgements", t_us=at + draw.randrange(-9, 20), error=error,
                               **log))  # fmt: skip
        appends += [
            row("appends", t_us=at + 7 * copy, producer_index=producer, first_record=first + copy,
                record_count=count, **log)
            for copy in range(draw.choice((0, 1, 2)))
        ]  # fmt: skip
    for rows in (sends, answers, appends):
        draw.shuffle(rows)
    return {"client_batches": sends, "acknowledgements": answers, "appends": appends}


def numbered(each: dict) -> set[tuple]:
    flow = each["topic"], each["partition"], each["producer_index"]
    first = each["first_record"]
    return {(*flow, number) for number in range(first, first + each["record_count"])}


def by_hand(rows: dict[str, list[dict]]) -> dict[str, int]:
    """The same numbers, record by record."""
    placed, known, answered = set(), set(), set()
    for each in rows["client_batches"]:
        if each["outcome"] in {"ok", "unknown"}:
            known |= numbered(each)
        if each["outcome"] == "ok" and each["base_offset"] >= 0:
            placed |= numbered(each)
    for each in rows["acknowledgements"]:
        if each["error"] != "NONE" or each["base_offset"] < 0:
            continue
        written = [
            append
            for append in rows["appends"]
            if all(append[name] == each[name] for name in PLACE) and append["t_us"] <= each["t_us"]
        ]
        last = max(written, key=lambda append: append["t_us"], default=None)
        if last is not None and last["producer_index"] >= 0:
            answered |= numbered(last)
    return {"ok_unanswered": len(placed - answered), "answered_untold": len(answered - known)}


def differ(run, seed: int) -> bool:
    rows = drawn(seed)
    write_run(run, rows)
    return acknowledgements.counts(run) != by_hand(rows)


@pytest.mark.parametrize("seed", range(1, 21))
def test_both_sides_differ_by_what_a_look_at_each_record_finds(tmp_path, seed):
    assert not differ(tmp_path, seed)
    assert any(by_hand(drawn(seed)).values())


def test_an_append_after_the_answer_that_counts_is_caught(tmp_path, monkeypatch):
    last = acknowledgements._last_before

    def late(answers, appends):
        return last((answers[0], answers[1] + 1_000), appends)

    monkeypatch.setattr(acknowledgements, "_last_before", late)
    assert any(differ(tmp_path / str(seed), seed) for seed in range(1, 6))


def test_a_run_without_traffic_differs_in_nothing(tmp_path):
    write_run(tmp_path, {"client_batches": [], "acknowledgements": [], "appends": []})
    assert acknowledgements.counts(tmp_path) == {"ok_unanswered": 0, "answered_untold": 0}


def test_ranges_that_overlap_or_touch_are_counted_once():
    some, others = Levels(), Levels()
    some.add(np.array([10, 0, 3, 12]), np.array([5, 3, 4, 0]))
    others.add(np.array([6, 2]), np.array([5, 1]))
    begin, end = some.ranges()
    assert sum(end - begin) == 12
    assert acknowledgements._beyond(some, others) == 12 - 3
    assert acknowledgements._beyond(others, some) == 3
