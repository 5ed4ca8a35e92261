"""What a sweep says of rows that are known: probabilities, differences, what moves what."""

import json

import pytest

from analysis.pages.cells import rows_of
from analysis.sweep import page as sweep_page
from analysis.sweep import store as sweep_store
from analysis.sweep.results import Sweep, three
from analysis.sweep.store import DONE, FAILED, NUMBERS, SCHEMA, TIMES

S = 1_000_000


def row(configuration, seed, *, lost=0, gap_us=0, latency=((1_000, 99), (5_000, 1)), **more):
    empty = dict.fromkeys(SCHEMA.names)
    numbers = dict.fromkeys(NUMBERS, 0) | dict.fromkeys(TIMES, 1_000)
    return empty | numbers | {
        "key": f"{configuration}/{seed}", "configuration": configuration, "seed": seed,
        "status": DONE, "message": "", "held": True, "acked": 1_000, "lost_acked": lost,
        "unavailable_produce_us": gap_us, "run_us": 10 * S, "replicas": 9, "promised": 1,
        "latency_us": [value for value, _ in latency],
        "latency_records": [count for _, count in latency],
        "faults": [], **more,
    }  # fmt: skip


def failed(configuration, seed, message):
    return dict.fromkeys(SCHEMA.names) | {
        "key": f"{configuration}/{seed}", "configuration": configuration, "seed": seed,
        "status": FAILED, "message": message,
    }  # fmt: skip


KEYS = [
    (("acks", "1"), ("linger.ms", "0")),
    (("acks", "1"), ("linger.ms", "5")),
    (("acks", "all"), ("linger.ms", "0")),
    (("acks", "all"), ("linger.ms", "5")),
]
ROWS = [
    row(number, seed, lost=3 * (number < 2 and seed <= 2), gap_us=(2 + number // 2) * S * seed)
    for number in range(4)
    for seed in range(1, 5)
]


@pytest.fixture
def sweep(tmp_path):
    return Sweep("trade", "A <b>claim</b>.", tmp_path, KEYS, [], ROWS, 5 * S)


def test_every_number_of_a_configuration_comes_from_its_runs(sweep):
    first, last = sweep.configurations.iloc[0], sweep.configurations.iloc[3]
    assert (first["acks"], first["linger.ms"], first["runs"], first["failed_runs"]) == (
        "1", "0", 4, 0,
    )  # fmt: skip
    assert (first["lost_runs"], first["loss"], first["lost_records"]) == (2, 0.5, 1.5)
    assert (first["loss_low"], first["loss_high"]) == pytest.approx((0.0676, 0.9324), abs=1e-4)
    assert (first["outages"], last["outages"]) == (2, 3)
    assert first["unavailable_us"] == 5 * S
    assert (first["p50"], first["p99"], first["p999"], first["max"]) == (1_000, 1_000, 5_000, 5_000)
    assert first["throughput"] == 100.0
    assert first["replicas"] == 9


def test_percentiles_are_those_of_all_records_and_not_means_of_runs(tmp_path):
    rows = [row(0, 1, latency=((10, 980),)), row(0, 2, latency=((2_000, 20),))]
    found = Sweep("x", "c", tmp_path, KEYS[:1], [], rows, S).configurations.iloc[0]
    assert (found["p50"], found["p90"], found["p99"]) == (10, 10, 2_000)


def test_differences_pair_the_same_seeds(sweep):
    frame = sweep.differences().set_index("configuration")
    assert (frame.loc[2, "lost_more"], frame.loc[2, "lost_less"], frame.loc[2, "loss_p"]) == (
        0, 2, 0.5,
    )  # fmt: skip
    # Gaps are 2 s and 3 s times the seed: the difference is the seed in seconds.
    assert frame.loc[2, "unavailable_produce_us"] == 2.5 * S
    paired = frame.loc[2, "unavailable_produce_us_high"] - 2.5 * S
    alone = sweep.configurations.loc[2, "unavailable_us_high"] - 7.5 * S
    assert paired < alone / 2
    assert frame.loc[1, "unavailable_produce_us_low"] == 0 == frame.loc[1, "lost_more"]


def test_a_seed_that_failed_in_one_configuration_is_paired_with_nothing(tmp_path):
    rows = [*ROWS[:4], *ROWS[8:11], failed(2, 4, "x")]
    keys = [KEYS[0], KEYS[2], KEYS[2]]
    found = Sweep("x", "c", tmp_path, keys, [], rows, S)
    frame = found.differences().set_index("configuration")
    assert frame.loc[2, "pairs"] == 3
    assert found.configurations.loc[2, "failed_runs"] == 1
    assert found.failed.to_dict("records") == [
        {"configuration": 2, "seed": 4, "status": FAILED, "message": "x"}
    ]


def test_sensitivity_names_the_setting_that_moves_a_number(sweep):
    frame = sweep.sensitivity.set_index(["number", "key"])
    assert frame.loc[("loss", "acks"), "share"] == pytest.approx(1.0)
    assert frame.loc[("loss", "linger.ms"), "share"] == 0.0
    assert tuple(frame.loc[("loss", "acks"), ["low_at", "low", "high_at", "high"]]) == (
        "all", 0.0, "1", 0.5,
    )  # fmt: skip
    for equal in ("replicas", "throughput"):
        assert frame.loc[(equal, "acks"), "share"] == 0.0


def test_what_differs_by_rounding_only_is_moved_by_nothing(tmp_path):
    rows = [row(n, s, acked=1_001 + n % 2 * 1e-10) for n in range(4) for s in range(3)]
    frame = Sweep("x", "c", tmp_path, KEYS, [], rows, S).sensitivity
    assert (frame[frame["number"] == "throughput"]["share"] == 0.0).all()


def test_the_front_has_what_nothing_betters(tmp_path):
    rows = [
        row(0, 1, lost=1, gap_us=1),
        row(1, 1, gap_us=2),
        row(2, 1, gap_us=3),
        row(3, 1, gap_us=3, latency=((500, 1),)),
    ]
    found = Sweep("x", "c", tmp_path, KEYS, [], rows, S).configurations
    assert list(found["is_best"]) == [True, True, False, True]


def test_the_page_says_what_came_of_it_and_escapes_what_comes_from_outside(sweep):
    index = sweep_page.write(sweep, sweep.directory / "report")
    text = index.read_text()
    assert "2 of 4 configurations lost nothing in 4 runs each (below 75 % of runs" in text
    assert "none in 4 (below 75 %)" in text
    assert "50 % (6.76 % to 93.2 %)" in text
    assert "A &lt;b&gt;claim&lt;/b&gt;." in text
    assert "<b>claim" not in text
    assert "http" not in text.replace("http-equiv", "").replace("http://www.w3.org", "")
    found = json.loads((index.parent / "report.json").read_text())
    assert [one["lost_runs"] for one in found["configurations"]] == [2, 2, 0, 0]
    assert "2 of 4" in found["verdict"]
    assert found["safest"] == 2


def test_failed_runs_and_combinations_that_cannot_be_are_on_the_page(tmp_path):
    rows = [failed(0, 1, "Broken: <i>why</i>"), row(1, 1)]
    refused = [("acks=2", "no <such> acks")]
    found = Sweep("x", "c", tmp_path, KEYS[:2], refused, rows, S)
    text = sweep_page.page(found, "<svg/>")
    assert "Broken: &lt;i&gt;why&lt;/i&gt;" in text
    assert "no &lt;such&gt; acks" in text
    assert "all 1 runs failed" in text
    assert sweep_page.sentence(found).startswith("None of 1 configurations lost anything in 1 runs")


def test_where_everything_loses_the_page_says_which_least(tmp_path):
    rows = [row(0, 1, lost=1), row(0, 2, lost=1), row(1, 1, lost=1), row(1, 2)]
    found = Sweep("x", "c", tmp_path, KEYS[:2], [], rows, S)
    assert "the least often acks=1, linger.ms=5: in 50 % of its runs" in sweep_page.sentence(found)
    assert sweep_page.summary(found)["safest"] == 1
    nothing = Sweep("x", "c", tmp_path, KEYS[:1], [], [failed(0, 1, "z")], S)
    assert sweep_page.safest(rows_of(nothing.configurations)) is None


def test_of_choices_that_are_out_of_service_alike_the_safest_is_named(tmp_path):
    rows = [
        row(number, seed, gap_us=gap * seed * S, promised=number)
        for number, gap in ((0, 2), (1, 2), (2, 2.1), (3, 40))
        for seed in (1, 2, 3)
    ]
    said = sweep_page.sentence(Sweep("x", "c", tmp_path, KEYS, [], rows, S))
    assert (
        "The safest of 3 that were out of service for about the shortest time: acks=all, "
        "linger.ms=0. "
        "An acknowledged record is on 2 replicas at least, "
    ) in said


def test_the_three_numbers_are_those_of_the_worst_run_in_the_colours_of_a_run(tmp_path):
    rows = [
        row(0, 1, down_us=31 * S, slow_normal_us=2_000, slow_fault_us=S),
        row(0, 2, lost=7, down_us=1, slow_normal_us=3_000, slow_fault_us=None),
        row(1, 1, down_us=0, slow_normal_us=None, slow_fault_us=None),
    ]
    found = Sweep("x", "c", tmp_path, KEYS[:2], [], rows, S)
    first, second = found.configurations.to_dict("records")
    assert three(first) == [
        ("red", "7 records"), ("red", "31 s"),
        ("amber", "3 ms, in a fault 1 s"),
    ]  # fmt: skip
    assert three(second) == [
        ("green", "nothing"),
        ("green", "0 us"),
        ("amber", "nothing acknowledged"),
    ]
    assert '<td class="w red">7 records</td>' in sweep_page.page(found, "<svg/>")


def test_points_are_labelled_with_the_settings_that_set_them_apart(sweep):
    figure = sweep_page.pareto(sweep)
    assert "<!-- 3-4: acks=all -->" in figure


def test_spans_of_numbers_are_short():
    assert sweep_page.spans([1, 2, 3, 7, 9, 10]) == "1-3, 7, 9-10"


def test_rows_are_found_again_and_what_is_no_row_costs_its_runs_only(tmp_path):
    store = sweep_store.Store(tmp_path)
    store.add(ROWS[:4])
    store.add([failed(0, 9, "x"), failed(0, 8, "y") | {"status": sweep_store.DIED}])
    (tmp_path / "cut.parquet").write_bytes(b"PAR1 and then the power went")
    again = sweep_store.Store(tmp_path)
    assert len(again) == 6
    assert again.row("0/1") == ROWS[0]
    assert again.has("0/9")
    assert not again.has("0/8"), "its process died: it is tried again"
    assert not again.has("3/1")
    again.compact()
    assert len(list(tmp_path.iterdir())) == 1
    assert len(sweep_store.Store(tmp_path)) == 6


def test_a_key_is_of_scenario_seed_and_sources(tmp_path):
    (tmp_path / "a.py").write_text("x = 1")
    sources = sweep_store.sources_digest(tmp_path)
    keys = [
        sweep_store.key_of(sources, "scenario", 1),
        sweep_store.key_of(sources, "scenario", 2),
        sweep_store.key_of(sources, "other", 1),
    ]
    (tmp_path / "a.py").write_text("x = 2")
    keys.append(sweep_store.key_of(sweep_store.sources_digest(tmp_path), "scenario", 1))
    assert len(set(keys)) == 4
