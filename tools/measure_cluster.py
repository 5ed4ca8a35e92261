"""Measures what a large cluster costs, idle or under load; prints JSON.

Usage: python -m tools.measure_cluster [--brokers 30] [--partitions 10000] [--seconds 60]
[--rate 0] [--trace facts]. ``--rate`` is records a second of 1 KB with acks=all, all of ten
producers together.

Three replicas of each partition. Booting is measured on its own. Units: processor time for a
simulated hour, simulated seconds for a second of processor time, and bare SimPy timeouts that take
as long as one of its events, in the same process: the figure to compare between machines.
"""

import argparse
import json
import resource
import sys
import time
from typing import Final

from sim.bench import bare_simpy
from sim.compiled import WHY_SOURCES
from sim.kernel import Kernel
from sim.scenario.build.starts import BOOT_AT
from sim.scenario.loader import load_text
from sim.scenario.run.directory import RunDirectory
from sim.scenario.run.hooks import Hooks, Paused
from sim.scenario.run.runner import Work
from sim.scratch import scratch
from sim.trace.schema import Level
from sim.units import SECOND, Micros

_SCENARIO: Final = """
claim: A large cluster runs.
cluster: {{brokers: {brokers}, controllers: 3}}
topics:
  orders: {{partitions: {partitions}, replication.factor: 3, config: {{min.insync.replicas: 2}}}}
run: {{for: {seconds}s, then: stop, seed: 1}}
"""
_LOAD: Final = """
producers:
  - {{name: shop, topic: orders, count: 10, rate: {rate}/s, record.size: 1KB}}
"""
_PRODUCERS: Final = 10

SETTLING_US: Final[Micros] = SECOND
"""Time after the boot that is left out: the first fetches and elections."""


class _Clock(Hooks):
    """Processor time and events executed at two instants."""

    def __init__(self, kernel: Kernel, seconds: int) -> None:
        self._kernel = kernel
        self.instants = (SETTLING_US, SETTLING_US + seconds * SECOND)
        self.read: list[tuple[float, int]] = []

    def pause(self, at: Micros, run: Paused) -> None:  # noqa: ARG002 - the interface
        """Reads the clock."""
        self.read.append((time.process_time(), self._kernel.events))


def measure(
    brokers: int, partitions: int, seconds: int, rate: int = 0, trace: Level = "facts"
) -> dict[str, float | int]:
    """Run the cluster; figures by name.

    Args:
        brokers: Brokers.
        partitions: Partitions of its topic.
        seconds: Simulated seconds that are measured.
        rate: Records a second of 1 KB, of all producers together; 0: idle.
        trace: Level of the trace.
    """
    text = _SCENARIO.format(brokers=brokers, partitions=partitions, seconds=seconds + 2)
    if rate:
        text += _LOAD.format(rate=rate // _PRODUCERS)
    kernel = Kernel(BOOT_AT)
    clock = _Clock(kernel, seconds)
    start_s = time.process_time()
    with scratch() as place:
        directory = RunDirectory(place / "run", force=True)
        scenario = load_text(text)
        work = Work(scenario, 1, directory, trace, keeps=False, kernel=kernel, hooks=clock)
        work.execute()
        directory.release()
    (began_s, before), (ended_s, after) = clock.read
    cpu_s, events = ended_s - began_s, after - before
    return {
        "cpu_seconds_per_simulated_hour": round(cpu_s / seconds * 3_600, 1),
        "simulated_seconds_per_cpu_second": round(seconds / cpu_s, 3),
        "cpu_seconds_before": round(began_s - start_s, 1),
        "events_per_simulated_second": round(events / seconds),
        "us_per_event": round(cpu_s / events * 1_000_000, 2),
        "ratio_to_bare_simpy": round(cpu_s / bare_simpy(events), 2),
        "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1_024,
        "compiled": not WHY_SOURCES,
    }


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--brokers", type=int, default=30)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--rate", type=int, default=0, help="records a second; 0: idle")
    parser.add_argument("--trace", choices=("facts", "detail"), default="facts")
    given = parser.parse_args()
    found = measure(given.brokers, given.partitions, given.seconds, given.rate, given.trace)
    sys.stdout.write(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
