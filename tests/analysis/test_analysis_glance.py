"""The strip of the first screen: faults, outages and p99 on one axis."""

from dataclasses import replace

import pandas as pd
import pytest

from analysis.report.glance import COLUMNS, glance
from tests.analysis.page_kit import BANDS, GAPS, found, window
from tests.analysis.synthetic import S

STRETCHES = ("topic", "partition", "from_us", "to_us")


def gaps(*rows):
    """Gaps of partitions of ``t``, in seconds; the longest of each counts as such."""
    listed = [("t", n, (to - start) * S, start * S, to * S, True) for n, start, to in rows]
    return pd.DataFrame(listed, columns=GAPS)


def lanes(findings):
    return {lane.name: lane for lane in glance(findings).lanes}


def spans(lane):
    """From, to (percent), colour and opacity of each bar."""
    return [
        (round(bar.start), round(bar.start + bar.width), bar.level, bar.opacity)
        for bar in lane.bars
    ]


def run(verdict=None, *, faults=(), end_us=100 * S, **frames):
    """Findings with the given tables and verdict."""
    plain = found((), faults=faults, end_us=end_us)
    files = replace(plain.files, verdict=verdict or {})
    return replace(plain, frames=plain.frames | frames, files=files)


def test_an_outage_is_drawn_where_it_was_in_its_colour_and_by_the_share_of_partitions():
    produce = gaps((0, 10, 50), (1, 40, 50), (2, 60, 65), (3, 0, 0.2))
    assert spans(lanes(run(produce_gaps=produce))["produce down"]) == [
        (10, 40, "red", pytest.approx(0.51)),
        (40, 50, "red", pytest.approx(0.68, abs=0.01)),
        (60, 65, "amber", pytest.approx(0.51)),
    ]


def test_a_gap_of_less_than_a_second_is_no_outage():
    assert lanes(run(produce_gaps=gaps((0, 10, 10.9))))["produce down"].bars == ()


def test_the_wait_of_a_group_that_forms_is_no_outage_unless_a_fault_began_in_it():
    started = {"t-0": {"first_us": 6 * S}}
    verdict = {"availability": {"started": started}, "faults": [], "end_us": 100 * S}
    read = gaps((0, 0, 6), (0, 30, 40))
    assert spans(lanes(run(verdict, fetch_gaps=read))["consume down"]) == [(30, 40, "amber", 1.0)]
    hit = verdict | {"faults": [{"began_us": 2 * S}]}
    found_ = spans(lanes(run(hit, fetch_gaps=read))["consume down"])
    assert [each[:2] for each in found_] == [(0, 6), (30, 40)]


def test_a_partition_without_a_leader_has_a_lane_of_its_own():
    rows = pd.DataFrame([("t", 0, 20 * S, 22 * S)], columns=STRETCHES)
    states = pd.DataFrame([("t", 0, 0), ("t", 1, 0)], columns=("topic", "partition", "from_us"))
    lane = lanes(run(offline_stretches=rows, partition_states=states))["no leader"]
    assert [each[:3] for each in spans(lane)] == [(20, 22, "amber")]
    assert "1 of 2 partitions" in lane.bars[0].title


def test_faults_are_numbered_and_those_that_overlap_stand_in_rows_with_what_they_cost_behind():
    verdict = {"windows": {"faults": [{"fault": 0, "to_us": 30 * S}]}}
    both = [window(0, "crash", 10 * S, 20 * S), window(1, "crash", 25 * S, 40 * S)]
    lane = lanes(run(verdict, faults=both))["faults"]
    assert [(bar.label, bar.row, round(bar.after)) for bar in lane.bars] == [
        ("0", 0, 10), ("1", 1, 0),
    ]  # fmt: skip
    assert lane.rows == 2


def test_more_faults_than_rows_are_one_bar_that_counts_and_names_them():
    faults = [window(n, "crash", (10 + n) * S, 40 * S, f"broker-{n}") for n in range(7)]
    faults.append(window(7, "pause", 60 * S, 70 * S))
    lane = lanes(run(faults=faults))["faults"]
    assert [(bar.label, bar.row, round(bar.start), round(bar.width)) for bar in lane.bars] == [
        ("0", 0, 10, 30), ("1", 1, 11, 29), ("2", 2, 12, 28), ("3", 3, 13, 27), ("7", 0, 60, 10),
        ("+3", 4, 14, 26),
    ]  # fmt: skip
    assert [part.split(":")[0] for part in lane.bars[-1].title.split("; ")] == ["4", "5", "6"]
    assert lane.rows == 5


def test_the_largest_p99_of_each_part_of_a_long_run_is_drawn_higher_the_slower():
    bands = pd.DataFrame(
        [(n, 1, 1, p99, 1, 1) for n, p99 in ((0, 1_000), (990, 31 * S), (999, 2_000))],
        columns=BANDS,
    ).astype({"bin": "int32"})
    far = replace(run(produce_latency_bands=bands, end_us=4_000 * S), fine_us=4 * S)
    first, last = lanes(far)["p99"].bars
    assert (first.level, last.level) == ("green", "red")
    assert first.height < last.height
    assert round(last.start + last.width) == 100


def test_a_strip_is_bounded_whatever_the_run_was():
    many = [(n % 999, n % 97, n % 97 + 1.5 + n % 7) for n in range(5_000)]
    faults = [window(n, "crash", n * S, (n + 1) * S) for n in range(99)]
    strip = glance(run(produce_gaps=gaps(*many), faults=faults))
    assert max(len(lane.bars) for lane in strip.lanes) <= COLUMNS
    assert all(0 <= bar.start <= 100 for lane in strip.lanes for bar in lane.bars)
    assert len(strip.ticks) <= 8


def test_a_run_in_which_nothing_happened_has_empty_lanes_and_an_axis():
    strip = glance(run(end_us=0))
    assert [lane.bars for lane in strip.lanes] == [()] * 5
    assert [words for _, words in strip.ticks] in ([], ["0 s"])
