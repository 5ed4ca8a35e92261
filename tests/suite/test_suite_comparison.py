"""Simulated runs against rehearsals: a planted difference of each kind is outside."""

import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from typer.testing import CliRunner

from sim.cli import app
from sim.errors import SimulationError
from sim.suite.comparison.tolerance import Tolerance

SCENARIO = """\
claim: A crashed leader is replaced.
cluster: {brokers: 3, controllers: 3}
topics:
  orders: {partitions: 1, replication.factor: 3}
producers:
  - {name: shop, topic: orders, rate: 100/s, record.size: 100B}
consumers:
  - {name: reader, topics: [orders], group: g}
faults:
  - {at: 1s, do: crash, target: leader of orders-0, for: 11s}
run: {for: 14s, then: heal and drain, seed: 1}
"""


def invoke(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Run ``sim``, and its copy ``real``, whose card says that it was a rehearsal."""
    place = tmp_path_factory.mktemp("compare")
    (place / "small.yaml").write_text(SCENARIO)
    done = invoke("run", place / "small.yaml", "--out", place / "sim")
    assert done.exit_code == 0, done.output
    shutil.copytree(place / "sim", place / "real")
    change(place / "real" / "run.json", lambda card: card.update(real=True, kafka="4.3.1", scale=1))
    return place


@pytest.fixture
def other(place, tmp_path):
    """A copy of the simulated run, to be changed."""
    shutil.copytree(place / "sim", tmp_path / "sim")
    return tmp_path / "sim"


def change(file, edit):
    found = json.loads(file.read_text())
    edit(found)
    file.write_text(json.dumps(found))


def rewrite(run, table, edit):
    """Changes the rows of a table; ``edit`` gets them and returns those that there are then."""
    for part in (run / "trace" / table).glob("*.parquet"):
        found = pq.read_table(part)
        rows = edit(found.to_pylist())
        pq.write_table(pa.Table.from_pylist(rows, schema=found.schema), part)


def outside(*words):
    done = invoke("compare", *words, "--json")
    assert done.exit_code in (0, 1), done.output
    found = json.loads(done.output)
    assert found["inside"] == (done.exit_code == 0)
    return {row["name"] for row in found["rows"] if not row["inside"]}


def test_a_run_and_its_copy_are_inside_whatever_the_order(place):
    assert outside(place / "sim", place / "real") == set()
    assert outside(place / "real", place / "sim") == set()


def test_a_step_that_comes_later_is_outside(place, other):
    def later(rows):
        steps = [row for row in rows if row["topic"] == "orders" and row["t_us"] > 0]
        steps[0]["t_us"] -= 4_000_000
        return rows

    rewrite(other, "partition_changes", later)
    [name] = outside(other, place / "real")
    assert name.startswith("step 1 of orders-0, after fault 0 (crash) began: leader r2")


def test_an_isr_step_more_is_outside_and_both_ways_are_shown(place, other):
    def more(rows):
        last = next(row for row in reversed(rows) if row["topic"] == "orders")
        return [*rows, last | {"t_us": last["t_us"] + 1_000_000, "in_sync": "2,3"}]

    rewrite(other, "partition_changes", more)
    assert outside(other, place / "real") == {"sequence of orders-0"}
    line = next(x for x in invoke("compare", other, place / "real").output.splitlines()
                if x.startswith("sequence of orders-0"))  # fmt: skip
    assert "ISR r2 r3\tno step 3\tOUTSIDE" in line


@pytest.mark.parametrize(
    ("edit", "name"),
    [
        (lambda v: v["answer"]["lost"].update(size=3), "lost"),
        (lambda v: v["records"].update(duplicated=1), "records duplicated"),
        (lambda v: v["failed_by_error"].update(orders={"X": 2}), "failed with X"),
        (lambda v: v["answer"]["down"]["worst"][0].update(max_us=1), "down: produce"),
        (lambda v: v["answer"]["slow"]["normal"].update(p50=1), "slow: p50 in normal times"),
        (lambda v: v["latency_us"]["end_to_end"].update(p99=1), "latency end_to_end p99"),
    ],
)
def test_a_number_of_the_verdict_that_differs_is_outside(edit, name, place, other):
    change(other / "verdict.json", edit)
    assert outside(other, place / "real") == {name}


def test_an_expectation_that_one_side_missed_is_outside(place, other):
    shape = {"name": "lost_acked", "asked": "0", "held": True}
    for run in (other, place / "real"):
        change(run / "verdict.json", lambda v: v.update(expectations=[shape]))
    assert outside(other, place / "real") == set()
    missed = shape | {"held": False}
    change(other / "verdict.json", lambda v: v.update(expectations=[missed]))
    assert outside(other, place / "real") == {"expectation missed: lost_acked 0"}
    change(place / "real" / "verdict.json", lambda v: v.update(expectations=[]))


def test_a_take_over_is_the_first_assignment_of_partitions_after_a_fault(place, other, tmp_path):
    """A member without partitions has taken over nothing."""
    real = tmp_path / "real"
    shutil.copytree(place / "real", real)

    def after(seconds, partitions="orders-0"):
        def edit(rows):
            early = rows[0] | {"t_us": 1_500_000, "partitions": ""}
            taken = rows[0] | {"t_us": 1_000_000 + seconds * 1_000_000, "partitions": partitions}
            return [rows[0] | {"t_us": 500_000}, early, taken]

        return edit

    rewrite(real, "assignments", after(4))
    rewrite(other, "assignments", after(4))
    assert outside(other, real) == set()
    rewrite(other, "assignments", after(6))
    name = "take-over in group g after fault 0 (crash)"
    assert outside(other, real) == {name}
    row = next(
        line for line in invoke("compare", other, real).output.splitlines() if line.startswith(name)
    )
    assert row.split("\t")[1:3] == ["6 s", "4 s"]


def test_fail_overs_epochs_and_group_take_overs_that_differ_are_outside(place, other):
    def elected(rows):
        return [*rows, rows[-1] | {"t_us": 5_000_000, "role": "leader", "epoch": 7}]

    def assigned(rows):
        return [*rows, rows[-1]]

    def raised(rows):
        next(row for row in reversed(rows) if row["topic"] == "orders")["leader_epoch"] += 1
        return rows

    rewrite(other, "quorum", elected)
    rewrite(other, "assignments", assigned)
    rewrite(other, "partition_changes", raised)
    assert outside(other, place / "real") == {
        "controller fail-overs", "assignments of group g", "leader epochs of orders-0"
    }  # fmt: skip


def test_acknowledgements_of_records_from_before_a_fault_are_not_the_first_after_it(place, other):
    def early(rows):
        ok = next(row for row in rows if row["outcome"] == "ok")
        return [*rows, ok | {"t_us": 1_000_500, "latency_us": [600]}]

    rewrite(other, "client_batches", early)
    assert outside(other, place / "real") == set()

    def new(rows):
        return [*rows, rows[0] | {"t_us": 1_000_500, "latency_us": [400]}]

    rewrite(other, "client_batches", new)
    assert outside(other, place / "real") == {"first acknowledgement after fault 0 (crash)"}


def test_tolerances_can_be_changed_and_are_shown(place, other):
    change(other / "verdict.json", lambda v: v["answer"]["slow"]["normal"].update(p50=1))
    wide = ("--latency-factor", "100000")
    assert outside(other, place / "real", *wide) == set()
    assert "within a factor of 1e+05" in invoke("compare", other, place / "real", *wide).output


def test_each_tolerance_has_its_bounds():
    tolerance = Tolerance()
    assert tolerance.holds("time", [12_000_000], [10_000_000])
    assert not tolerance.holds("time", [12_000_001], [10_000_000])
    assert tolerance.holds("time", [300_000], [0])
    assert not tolerance.holds("time", [300_001], [0])
    assert tolerance.holds("time", [5_000_000], [1_000_000, 1_000_000, 9_000_000])
    assert not tolerance.holds("time", [None], [10_000_000])
    assert tolerance.holds("latency", [15], [10])
    assert not tolerance.holds("latency", [16], [10])
    assert tolerance.holds("records", [20], [10])
    assert not tolerance.holds("records", [21], [10])
    assert tolerance.holds("events", [2], [1, 3])
    assert not tolerance.holds("events", [2], [1, 1])


@pytest.mark.parametrize("value", [-1.0, 0.5, float("nan"), float("inf")])
def test_a_factor_out_of_range_is_refused(value):
    with pytest.raises(SimulationError, match="allowed: a number from 1 on"):
        Tolerance(latency_factor=value)


def refused(*words):
    done = invoke("compare", *words)
    assert done.exit_code == 2, done.output
    return done.output


def test_a_side_without_a_run_is_bad_input(place, other):
    assert "found 2 simulated and 0 real; allowed: at least one" in refused(place / "sim", other)
    assert "found 0 simulated and 1 real" in refused(place / "real")
    assert "given twice" in refused(place / "sim", place / "sim", place / "real")


def test_other_scales_and_scenarios_are_bad_input_with_what_differs(place, other):
    file = other / "scenario.yaml"
    file.write_text(file.read_text().replace("rate: 100/s", "rate: 50/s"))
    text = refused(other, place / "real")
    assert "producers[shop].rate: 50/s | 100/s" in text
    assert "rehearsal with --scale 1" in text


def with_cores(file, cost):
    """The scenario with another cost of a request, which a rehearsal does not apply."""
    plain = yaml.safe_load(file.read_text())
    plain["cluster"].setdefault("cpu", {})["handler.request"] = cost
    file.write_text(yaml.safe_dump(plain))


def test_the_hardware_may_differ_between_simulated_and_real_but_not_among_the_simulated(
    place, other, tmp_path
):
    with_cores(other / "scenario.yaml", "77us")
    assert outside(other, place / "real") == set()
    third = tmp_path / "third"
    shutil.copytree(other, third)
    with_cores(third / "scenario.yaml", "78us")
    assert "cluster.cpu.handler.request: 77us | 78us" in refused(other, third, place / "real")


def test_seeds_may_differ_and_interrupted_runs_may_not_be_compared(place, other):
    file = other / "scenario.yaml"
    file.write_text(file.read_text().replace("seed: 1", "seed: 2"))
    assert outside(other, place / "real") == set()
    change(other / "run.json", lambda card: card.update(complete=False))
    assert "interrupted" in refused(other, place / "real")


def test_any_reference_can_be_named_and_its_settings_differ(place, other):
    file = other / "scenario.yaml"
    file.write_text(file.read_text().replace("acks: all", "acks: 1"))
    done = invoke("compare", place / "sim", "--against", other)
    assert done.exit_code == 0, done.output
    assert "setting  producers[shop].config.acks: all | 1" in done.output


def test_the_page_is_self_contained_and_escapes_names(place, other, tmp_path):
    def named(rows):
        return [row | {"topic": row["topic"].replace("orders", "<b>x</b>")} for row in rows]

    rewrite(other, "partition_changes", named)
    out = tmp_path / "out"
    assert invoke("compare", other, place / "real", "--out", out).exit_code == 1
    page = (out / "compare.html").read_text()
    assert "<b>x</b>" not in page
    assert "sequence of &lt;b&gt;x&lt;/b&gt;-0" in page
    assert page.count('<g class="side">') == 2
    assert page.count('<line class="began"') == 2
    assert 'class="offline"' in page or 'class="shrunk"' in page
    assert "http" not in page.replace("http-equiv", "")


def test_the_same_runs_give_the_same_files(place, tmp_path):
    for name in ("one", "two"):
        done = invoke("compare", place / "sim", place / "real", "--out", tmp_path / name)
        assert done.exit_code == 0, done.output
    for file in ("compare.json", "compare.html"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()
