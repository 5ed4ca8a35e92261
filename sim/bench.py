"""Benchmark of the simulator on this machine, in one run of one command.

The workload is acks=all with three replicas, full tracing and real files, 100 records of 100 B to a
batch. Each measurement runs in a process of its own, so that peak memory is that run's. The bare
SimPy loop executes as many timeouts as the run executed events: the ratio is the cost of a
simulated event relative to a bare one.
"""

import hashlib
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Final

import simpy

from sim.compiled import WHY_SOURCES
from sim.lifetime import child, end_with_input
from sim.scenario.estimate.forecast import Speed, estimate
from sim.scenario.loader import load_text
from sim.scenario.run.runner import run
from sim.scenario.scenario import Scenario
from sim.scratch import scratch

SHORT_MS: Final = 500
"""Simulated time of the measurement behind estimates: a second or two."""

REFERENCE_S: Final = 1.1
"""Time of a core that it takes the machine on which the unit costs of estimates were measured."""

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
run: {{for: {milliseconds}ms, then: stop, seed: 1}}
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
        ``sim_seconds_per_s``, ``ratio_to_bare_simpy`` (processor time per event against a bare
        timeout), ``bare_events_per_batch`` (bare timeouts that take as long as one batch: the
        figure to which a release is held), ``peak_rss_bytes``, and ``memory_growth_ratio`` if
        there was a second run.
    """
    report = on_progress or (lambda _: None)
    report(f"{seconds} simulated seconds")
    result = _in_own_process(seconds * 1_000)
    if memory_seconds:
        report(f"{memory_seconds} simulated seconds, for memory")
        longer = _in_own_process(memory_seconds * 1_000)
        growth = longer["peak_rss_bytes"] / result["peak_rss_bytes"]
        result["memory_growth_ratio"] = round(growth, 3)
    return result


def speed(*, refresh: bool = False) -> tuple[Speed, str]:
    """Speed of this machine: from a short run of the same workload, remembered for each version.

    It is the time of a core, not of the clock: what else the machine does at that moment would be
    remembered, too.

    Args:
        refresh: Measure although it is known.

    Returns:
        The speed, and in words how it was measured.
    """
    file = _known_file()
    known = None if refresh else _known(file)
    if known is None:
        known = _in_own_process(SHORT_MS)
        with suppress(OSError):  # a home that cannot be written to costs a measurement each time
            file.parent.mkdir(parents=True, exist_ok=True)
            temporary = file.with_suffix(f".{os.getpid()}.tmp")
            temporary.write_text(json.dumps(known), encoding="utf-8")
            temporary.replace(file)
        when = "just now"
    else:
        when = f"on {time.strftime('%Y-%m-%d', time.localtime(file.stat().st_mtime))}"
    expected = estimate(_scenario(SHORT_MS))
    found = Speed(
        factor=known["cpu_seconds"] / REFERENCE_S,
        base_bytes=max(0, int(known["peak_rss_bytes"]) - expected.load_bytes),
    )
    form = "compiled" if known["compiled"] else "from the sources"
    took = f"{SHORT_MS / 1_000:g} s of `logquake bench` took {known['cpu_seconds']:.1f} s of a core"
    return found, f"{took}, {form}, measured {when}"


def _known_file() -> Path:
    """File of what was measured on this machine, with this interpreter and version."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    parts = (platform.node(), platform.machine(), str(os.cpu_count()), platform.python_version())
    words = (*parts, version("logquake"), str(not WHY_SOURCES), str(SHORT_MS))
    name = hashlib.sha256("\0".join(words).encode()).hexdigest()[:16]
    return Path(root) / "logquake" / f"speed-{name}.json"


def _known(file: Path) -> dict[str, float | int] | None:
    """Figures of an earlier measurement; a damaged file is as good as none."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        needed = ("cpu_seconds", "peak_rss_bytes", "compiled")
        sound = all(isinstance(found[name], int | float) for name in needed)
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return found if sound and found["cpu_seconds"] > 0 else None


def _scenario(milliseconds: int) -> Scenario:
    return load_text(SCENARIO.format(milliseconds=milliseconds), "bench.yaml")


def _in_own_process(milliseconds: int) -> dict[str, float | int]:
    command = [sys.executable, "-m", "sim.bench", f"{milliseconds / 1_000:g}"]
    done = child(command)
    if done.returncode != 0:
        raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
    measured: dict[str, float | int] = json.loads(done.stdout)
    return measured


def _measure_here(milliseconds: int) -> dict[str, float | int]:
    scenario = _scenario(milliseconds)
    with scratch() as directory:
        begin, worked = time.perf_counter(), time.process_time()
        result = run(scenario, out=directory / "run")
        wall, cpu = time.perf_counter() - begin, time.process_time() - worked
    records = result.verdict["records"]
    rows = result.card["rows"]
    events = result.card["events"]
    simulated = result.card["simulated_us"]
    assert isinstance(records, Mapping)
    assert isinstance(rows, Mapping)
    assert isinstance(events, int)
    assert isinstance(simulated, int)
    batches = records["acked"] / RECORDS_PER_BATCH
    bare = bare_simpy(events)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "batches_per_s": round(batches / wall, 1),
        "trace_rows_per_s": round(sum(rows.values()) / wall, 1),
        "sim_seconds_per_s": round(simulated / 1_000_000 / wall, 3),
        "ratio_to_bare_simpy": round(cpu / bare, 2),
        "bare_events_per_batch": round(cpu / bare * events / batches, 1),
        "peak_rss_bytes": peak,
        "compiled": not WHY_SOURCES,
        "batches": round(batches),
        "trace_rows": sum(rows.values()),
        "events": events,
        "simulated_seconds": milliseconds / 1_000,
        "wall_seconds": round(wall, 3),
        "cpu_seconds": round(cpu, 3),
    }


def bare_simpy(events: int) -> float:
    """Processor time, in seconds, that SimPy alone needs for as many timeouts of one process."""
    environment = simpy.Environment()

    def ticking() -> simpy.events.ProcessGenerator:
        for _ in range(events):
            yield environment.timeout(1)

    environment.process(ticking())
    begin = time.process_time()
    environment.run()
    return time.process_time() - begin


if __name__ == "__main__":
    end_with_input()
    sys.stdout.write(json.dumps(_measure_here(round(float(sys.argv[1]) * 1_000))) + "\n")
