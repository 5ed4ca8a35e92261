"""Latency in normal times and in each fault's window, counted from few rows."""

import numpy as np
import pytest

from sim.checking.fault_windows import WINDOWS_MAX, FaultWindows
from sim.checking.latency_bins import WIDTH, LatencyBins
from sim.checking.outcomes.histogram import RELATIVE_ERROR
from sim.trace.writer import Trace
from sim.units import MS, SECOND
from tests.analysis.synthetic import row as any_row

END = 60 * SECOND


class Run:
    """A trace, and what listens to it."""

    def __init__(self):
        self.trace = Trace(None)
        self.windows = FaultWindows(self.trace)

    def write(self, table, t_us, **columns):
        values = tuple(any_row(table, t_us=t_us, **columns).values())
        for listener in self.trace.table(table).listeners:
            listener(values)

    def fault(self, number, at, phase="began", resolved="broker-1"):
        self.write("faults", at, fault=number, phase=phase, resolved=resolved)

    def isr(self, at, in_sync):
        self.write("partition_changes", at, topic="orders", partition=0, in_sync=in_sync,
                   replicas="1,2,3", leader=1)  # fmt: skip

    def record(self, meant, took):
        self.write("client_batches", meant + took, outcome="ok", latency_us=np.array([took], "i4"))

    def report(self, outages=(), instants=()):
        return self.windows.report(END, outages, instants)


def test_without_faults_all_times_are_normal():
    run = Run()
    run.record(1 * SECOND, 5 * MS)
    found = run.report()
    assert found["faults"] == []
    assert found["normal"]["records"] == 1
    assert found["normal"]["max"] == 5 * MS


def test_a_window_lasts_until_the_fault_is_healed_and_every_replica_is_in_sync_again():
    run = Run()
    run.isr(0, "1,2,3")
    run.record(5 * SECOND, 2 * MS)
    run.fault(0, 10 * SECOND)
    run.isr(12 * SECOND, "1,2")
    run.fault(0, 20 * SECOND, "healed")
    run.record(25 * SECOND, 900 * MS)
    run.isr(30 * SECOND, "1,2,3")
    run.record(40 * SECOND, 3 * MS)
    found = run.report()
    [window] = found["faults"]
    assert (window["from_us"], window["to_us"]) == (10 * SECOND, 30 * SECOND)
    assert window["produce"]["max"] == 900 * MS
    assert found["normal"]["records"] == 2
    assert found["normal"]["max"] == 3 * MS


def test_a_broker_that_has_started_is_well_once_it_is_unfenced():
    run = Run()
    run.fault(0, 10 * SECOND)
    run.write("node_states", 10 * SECOND, node="broker-1", state="crashed")
    run.write("node_states", 15 * SECOND, node="broker-1", state="started")
    run.write("broker_states", 19 * SECOND, broker=1, state="unfenced")
    [window] = run.report(instants={0})["faults"]
    assert window["to_us"] == 19 * SECOND


def test_a_window_lasts_as_long_as_an_outage_in_it_and_has_its_length():
    run = Run()
    run.fault(0, 10 * SECOND)
    run.fault(0, 11 * SECOND, "healed")
    [window] = run.report([(9 * SECOND, 14 * SECOND), (30 * SECOND, 32 * SECOND)])["faults"]
    assert (window["to_us"], window["down_us"]) == (14 * SECOND, 4 * SECOND)


def test_a_fault_that_is_never_healed_has_a_window_to_the_end_of_the_run():
    run = Run()
    run.fault(0, 10 * SECOND)
    assert run.report()["faults"][0]["to_us"] == END


def test_a_fault_without_a_target_has_no_window():
    run = Run()
    run.fault(0, 10 * SECOND, resolved="")
    assert run.report()["faults"] == []


def test_many_faults_by_chance_leave_their_time_out_of_normal_times():
    run = Run()
    for second in range(WINDOWS_MAX + 5):
        run.fault(0, second * SECOND)
        run.fault(0, second * SECOND + 500 * MS, "healed")
    run.record((WINDOWS_MAX + 3) * SECOND + 200 * MS, 7 * MS)
    found = run.report()
    assert len(found["faults"]) == WINDOWS_MAX
    assert found["normal"] == {}


@pytest.mark.parametrize("bins_max", [2_048, 4])
def test_bins_hold_what_a_histogram_of_everything_holds(bins_max):
    bins = LatencyBins(bins_max)
    took = np.arange(1, 5_000, dtype=np.int32) * 37
    for place, part in enumerate(np.array_split(took, 50)):
        bins.add(SECOND + 10 * WIDTH * place, part)
    found = bins.histogram(lambda _begin, _end: True).summary()
    assert found["records"] == len(took)
    assert found["max"] == took.max()
    assert found["p50"] == pytest.approx(np.percentile(took, 50), rel=2 * RELATIVE_ERROR)
    assert bins.width_us >= WIDTH


@pytest.mark.parametrize("spread", [SECOND, 400 * SECOND], ids=["few bins", "many bins"])
def test_bins_agree_with_a_list_of_records(spread):
    chance = np.random.default_rng(1)
    bins, meant = LatencyBins(bins_max=10_000), []
    bins.add(0, np.zeros(0, np.int32))
    for _ in range(300):
        at, took = int(chance.integers(0, spread)), chance.integers(0, SECOND, 20).astype(np.int32)
        bins.add(at, took)
        meant += [((at - int(each)) // WIDTH * WIDTH, int(each)) for each in took]
    for begin in sorted({place for place, _ in meant}):
        here = [each for place, each in meant if place == begin]
        found = bins.histogram(lambda low, _high, begin=begin: low == begin).summary()
        assert (found["records"], found["max"]) == (len(here), max(here))
        middle = np.percentile(here, 50, method="inverted_cdf")
        assert found["p50"] == pytest.approx(middle, rel=RELATIVE_ERROR, abs=1)
