"""The fit recovers parameters that were planted, and its error is that of loads held back."""

from dataclasses import replace
from math import log

import pytest
import yaml

from sim.calibration import plan
from sim.calibration.fit import Error, distance, fit, parameters_of, stages_of
from sim.calibration.measured import Samples, samples
from sim.calibration.parameters import PARAMETERS, STAGES, defaults, figures
from sim.calibration.preset import Origin, report, text
from sim.calibration.simulated import Simulator, heard
from sim.errors import SimulationError
from sim.scenario.loader import load, load_data

SHAPE = plan.Shape()
SECONDS = 2
OTHER_SEED = 7
"""Of the cluster that is measured; fits have another one."""

PLANTED = {
    **defaults(),
    "network.client.p50": 900.0,
    "network.client.p99/p50": 6.0,
    "cpu.handler.request": 900.0,
    "network.same-rack.p50": 400.0,
    "network.same-rack.p99/p50": 4.0,
    "cpu.handler.produce.bytes": 30e6,
    "disk.flush.p50": 6_000.0,
    "disk.flush.p99/p50": 3.0,
    "cpu.metadata": 4.0,
}
ORIGIN = Origin("2026-11-27T12:00:00Z", "4.3.1", 2, {"p99_us": 5_000}, "this machine", 1)


OF_A_DISK = ("cpu.handler.produce.bytes", "disk.flush.p50", "disk.flush.p99/p50")


def measured(*names, planted=tuple(PLANTED)):
    """Latencies of some loads in a cluster with the planted parameters, or some of them."""
    found = {}
    for name in names:
        load = plan.by_name(f"{name}-round-1")
        parts = figures(PLANTED, planted)
        rows = heard(load_data(plan.alone(load, SHAPE, 4, parts), name), OTHER_SEED)
        found |= samples(rows).latencies
    return Samples(found)


def fitted(real):
    return fit(real, Simulator(SHAPE, SECONDS, parameters_of(stages_of(real, SHAPE))))


@pytest.fixture(scope="module")
def of_a_disk():
    """Outcome of a fit to a slow disk; one load that was held back met a slow network, too."""
    same = measured("flushed", "large", "medium", planted=OF_A_DISK).latencies
    return fitted(Samples({**same, **measured("brisk").latencies}))


def near(value, name, factor):
    return PLANTED[name] / factor <= value <= PLANTED[name] * factor


def test_a_planted_disk_and_the_time_of_a_byte_are_recovered(of_a_disk):
    assert of_a_disk.fitted == OF_A_DISK
    assert near(of_a_disk.values["disk.flush.p50"], "disk.flush.p50", 1.5)
    assert near(of_a_disk.values["disk.flush.p99/p50"], "disk.flush.p99/p50", 1.6)
    assert near(of_a_disk.values["cpu.handler.produce.bytes"], "cpu.handler.produce.bytes", 1.6)


def test_what_was_not_measured_is_not_fitted_and_not_set(of_a_disk):
    assert "network.client.p50" in of_a_disk.absent
    assert of_a_disk.values["network.client.p50"] == defaults()["network.client.p50"]
    assert set(figures(of_a_disk.values, of_a_disk.fitted)) == {"cpu", "disk"}


def test_the_fit_is_nearer_than_the_simulator_was_on_what_it_saw(of_a_disk):
    before, after = of_a_disk.error("fitted", before=True), of_a_disk.error("fitted")
    assert after.worst < before.worst
    assert after.median < 1.3 < before.median


def test_the_error_of_a_preset_is_that_of_loads_that_were_held_back(of_a_disk):
    lines = [each for each in of_a_disk.lines if each.load.role == "held back"]
    near = [each for each in lines if each.load.name == "medium"]
    far = [each for each in lines if each.load.name == "brisk"]
    assert max(each.factor for each in near) < 1.3 < max(each.factor_before for each in near)
    assert min(each.factor for each in far) > 3, "its network is another one: that must be seen"
    checked = of_a_disk.error("held back")
    assert (checked.lines, checked.near) == (len(near) + len(far), len(near))
    assert checked.worst == max(each.factor for each in far)


def test_the_preset_is_a_file_that_a_scenario_can_name(of_a_disk, tmp_path):
    (tmp_path / "hardware.yaml").write_text(text(of_a_disk, ORIGIN))
    plain = plan.alone(plan.LOADS[0], SHAPE, SECONDS, {"hardware": {"file": "hardware.yaml"}})
    (tmp_path / "scenario.yaml").write_text(yaml.safe_dump(plain))
    cluster = load(tmp_path / "scenario.yaml").cluster
    assert cluster.disk.flush.p50_us == round(of_a_disk.values["disk.flush.p50"])
    about = yaml.safe_load((tmp_path / "hardware.yaml").read_text())["measured"]
    assert (about["date"], about["kafka"], about["cores"]) == (ORIGIN.date, "4.3.1", 2)
    worst = round(of_a_disk.error("held back").worst, 2)
    assert about["error"]["worst_factor"] == worst
    assert f"{worst:.2f} times at worst" in (tmp_path / "hardware.yaml").read_text()


def test_a_parameter_that_no_load_checks_is_an_upper_limit_and_not_set(of_a_disk):
    everything = replace(
        of_a_disk, fitted=tuple(defaults()), ranges=dict.fromkeys(defaults(), (1.0, 2.0))
    )
    written = text(everything, ORIGIN)
    marked = [line for line in written.splitlines() if "an upper limit" in line]
    assert len(marked) == 1
    assert marked[0].startswith("# cpu.metadata: ")
    parts = yaml.safe_load(written)
    assert set(parts["cpu"]) == {"handler.request", "handler.produce.bytes"}
    metadata = {"metadata.load", "metadata.publish"}
    assert set(parts["measured"]["upper_limits"]["cpu"]) == metadata
    found = report(everything, ORIGIN)
    assert (set(found["upper_limits"]["cpu"]), found["figures"]["cpu"]) == (metadata, parts["cpu"])


def test_loads_held_back_check_what_the_preset_sets_and_no_upper_limit():
    asked = {}

    class Recorded:
        shape, runs = SHAPE, 0

        def quantiles(self, load, values):
            if values is not None:
                asked[load.name] = values["cpu.metadata"]
            # Nearest to what is real at four times the simulator's own metadata.
            factor = 1 if values is None else abs(log(values["cpu.metadata"] / 4)) + 1
            return {name: round(100 * factor) for name in ("p50", "p90", "p99")}

    rows = {("medium", 1): [100] * 50, ("moved", 1): [100] * 50}
    found = fit(Samples(rows), Recorded())
    assert near(found.values["cpu.metadata"], "cpu.metadata", 1.2)
    assert (asked["medium"], asked["moved"]) == (1, found.values["cpu.metadata"])


def test_the_report_has_every_percentile_and_what_was_not_fitted(of_a_disk):
    found = report(of_a_disk, ORIGIN)
    assert len(found["loads"]) == 12
    assert set(found["parameters"]) | set(found["not_fitted"]) == set(defaults())
    assert found["parameters"]["disk.flush.p50"]["unit"] == "us"


def test_too_little_is_refused():
    with pytest.raises(SimulationError, match="give more --seconds"):
        fitted(Samples({("flushed", 1): [5] * 50}))
    with pytest.raises(SimulationError, match="too few acknowledged records"):
        fitted(Samples({("medium", 1): [5] * 50}))


def test_too_fast_counts_as_much_as_too_slow():
    real = {"p50": 100, "p90": 100}
    assert distance({"p50": 50, "p90": 100}, real) == distance({"p50": 100, "p90": 200}, real) > 0
    assert distance({}, real) == float("inf")


def test_one_disturbed_percentile_does_not_move_the_others_far():
    """A p99 of ten times what the load has elsewhere, as another process's burst makes it."""
    real = {"p50": 1_000, "p90": 2_000, "p99": 50_000}
    undisturbed = {"p50": 1_000, "p90": 2_000, "p99": 5_000}
    between = {"p50": 2_000, "p90": 5_000, "p99": 15_000}
    assert distance(undisturbed, real) < distance(between, real)


def test_every_parameter_is_fitted_once_and_to_loads_that_are_not_held_back():
    names = [each.name for each in PARAMETERS]
    assert len(set(names)) == len(names)
    assert set(names) == set(defaults()) == set(PLANTED)
    for stage in STAGES:
        loads = [plan.by_name(f"{name}-round-1") for name in stage.loads]
        assert {load.role for load in loads} == {"fitted"}
    for each in PARAMETERS:
        assert each.low <= each.start <= each.high


def test_delays_between_brokers_are_not_fitted_where_a_partition_has_one_replica():
    real = Samples({("replicated", 1): [5] * 50})
    assert [stage.part for stage in stages_of(real, SHAPE)] == ["network"]
    assert stages_of(real, plan.Shape(topic="mine", replicas=1)) == ()


@pytest.mark.slow
def test_a_cluster_of_planted_parameters_is_met_by_its_whole_preset_on_loads_held_back():
    names = [load.name for load in plan.loads()]
    found = fitted(measured(*names))
    assert found.fitted == tuple(defaults())
    assert near(found.values["cpu.metadata"], "cpu.metadata", 1.6)
    # Small loads show a request's way there and back, and hardly how it is divided.
    way = [2 * v["network.client.p50"] + v["cpu.handler.request"] for v in (found.values, PLANTED)]
    assert 1 / 1.6 < way[0] / way[1] < 1.6
    checked = found.error("held back")
    assert isinstance(checked, Error)
    assert checked.median < 1.3
    assert checked.worst < found.error("held back", before=True).worst
    assert found.error("held back", before=True).median > 2
