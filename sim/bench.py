"""Benchmark of the simulator on this machine, in one run of one command.

The workload is acks=all with three replicas, full tracing and real files, 100 records of 100 B to a
batch. Each measurement runs in a process of its own, so that peak memory is that run's. The bare
SimPy loop executes as many timeouts as the run executed events: the ratio is the cost of a
simulated event relative to a bare one.
"""

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping

import simpy

from sim.compiled import WHY_SOURCES
from sim.lifetime import child, end_with_input
from sim.scenario.loader import load_text
from sim.scenario.run.runner import run
from sim.scratch import scratch

RECORDS_PER_BATCH = 100
"""Records of 100 B in each batch of the benchmark."""

SCENARIO = """
claim: Four hundred thousand records a second reach three replicas.
cluster:
  brokers: 3
  controllers: 1
  disk: {{dirty.background: 16MiB}}
topics:
  bench: {{partitions: 3, replication.factor: 3, config: {{min.insync.replicas: 2}}}}
producers:
  - name: load
    topic: bench
    count: 4
    rate: 100000/s
    record.size: 100B
    config: {{batch.size: 11000, linger.ms: 100}}
run: {{for: {seconds}s, then: stop, seed: 1}}
expect: {{lost_acked: 0}}
"""
"""A batch of 100 such records is 10,997 bytes, so ``batch.size`` closes it there."""


def measure(
    seconds: int = 10,
    memory_seconds: int = 0,
    on_progress: Callable[[str], None] | None = None,
) -> Mapping[str, float | int]:
    """Runs the benchmark.

    Args:
        seconds: Simulated seconds of the speed measurement.
        memory_seconds: Simulated seconds of a second run, for its peak memory; 0 for none.
        on_progress: Called with the name of each measurement.

    Returns:
        ``batches_per_s`` and ``trace_rows_per_s`` (real seconds of the whole run), the same
        ``sim_seconds_per_s``, ``ratio_to_bare_simpy`` (time per event against a bare timeout),
        ``peak_rss_bytes``, and ``memory_growth_ratio`` if there was a second run.
    """
    report = on_progress or (lambda _: None)
    report(f"{seconds} simulated seconds")
    result = _in_own_process(seconds)
    if memory_seconds:
        report(f"{memory_seconds} simulated seconds, for memory")
        longer = _in_own_process(memory_seconds)
        growth = longer["peak_rss_bytes"] / result["peak_rss_bytes"]
        result["memory_growth_ratio"] = round(growth, 3)
    return result


def _in_own_process(seconds: int) -> dict[str, float | int]:
    command = [sys.executable, "-m", "sim.bench", str(seconds)]
    done = child(command)
    if done.returncode != 0:
        raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
    measured: dict[str, float | int] = json.loads(done.stdout)
    return measured


def _measure_here(seconds: int) -> dict[str, float | int]:
    scenario = load_text(SCENARIO.format(seconds=seconds), "bench.yaml")
    with scratch() as directory:
        begin = time.perf_counter()
        result = run(scenario, out=directory / "run")
        wall = time.perf_counter() - begin
    records = result.verdict["records"]
    rows = result.card["rows"]
    events = result.card["events"]
    simulated = result.card["simulated_us"]
    assert isinstance(records, Mapping)
    assert isinstance(rows, Mapping)
    assert isinstance(events, int)
    assert isinstance(simulated, int)
    batches = records["acked"] / RECORDS_PER_BATCH
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "batches_per_s": round(batches / wall, 1),
        "trace_rows_per_s": round(sum(rows.values()) / wall, 1),
        "sim_seconds_per_s": round(simulated / 1_000_000 / wall, 3),
        "ratio_to_bare_simpy": round(wall / _bare_simpy(events), 2),
        "peak_rss_bytes": peak,
        "compiled": not WHY_SOURCES,
        "batches": round(batches),
        "trace_rows": sum(rows.values()),
        "events": events,
        "simulated_seconds": seconds,
        "wall_seconds": round(wall, 3),
    }


def _bare_simpy(events: int) -> float:
    """Seconds that SimPy alone needs for as many timeouts of one process."""
    environment = simpy.Environment()

    def ticking() -> simpy.events.ProcessGenerator:
        for _ in range(events):
            yield environment.timeout(1)

    environment.process(ticking())
    begin = time.perf_counter()
    environment.run()
    return time.perf_counter() - begin


if __name__ == "__main__":
    end_with_input()
    sys.stdout.write(json.dumps(_measure_here(int(sys.argv[1]))) + "\n")
