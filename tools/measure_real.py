"""Measures the simulator beside a real Kafka, in pairs: ``[--pairs 5] [--seconds 10]``.

Prints JSON. Both make the same batches: acks=all, three replicas, three partitions, 100 records of
100 B to a batch. The real cluster is Apache Kafka on loopback with nothing between its nodes, each
process with all of Java's compilers, loaded by Kafka's own ``ProducerPerformance`` as fast as it
can, by one of them, as several took more of the processor and were slower. Java compiles what is
used often: loads before the first pair warm the cluster, and the first half of each its client. It
is stopped (SIGSTOP) while the simulator runs ``logquake bench``, compiled, so that each has all
cores. The median of the ratios counts.
"""

import argparse
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Final, Self

from sim.bench import RECORDS_PER_BATCH, SCENARIO
from sim.compiled import WHY_SOURCES
from sim.errors import SimulationError
from sim.lifetime import child
from sim.rehearsal import apache
from sim.rehearsal.fleet import Fleet
from sim.scenario.loader import load_text
from sim.scratch import scratch

PRODUCERS: Final = "org.apache.kafka.tools.ProducerPerformance"
CONFIG: Final = ("acks=all", "batch.size=11000", "linger.ms=100")
"""Of the producer, as :mod:`sim.bench` has it: a batch is closed behind its hundredth record."""

RECORD_BYTES: Final = 100
RECORDS: Final = 600_000
"""Records of a load; the first half warms its client."""

WARMING: Final = 12
"""Loads before the first pair: Java compiles after so many records, not after so much time. On two
slow cores the rate still grew after five million records."""

SETTLING_S: Final = 12.0
"""A session ends and begins again after a stop, before that a fenced broker seems to serve."""

SERVICE_S: Final = 120
_BEAT_S: Final = 0.5
_RATE: Final = re.compile(r"(\d+) steady state records sent, ([\d.]+) records/sec")


class Real:
    """A real cluster under load; used as a context manager, which boots and warms it.

    Args:
        place: Directory of its files.
    """

    def __init__(self, place: Path) -> None:
        self._scenario = load_text(SCENARIO.format(milliseconds=1_000), "bench.yaml")
        release = apache.found(self._scenario.cluster.kafka, None)
        self._fleet = Fleet(self._scenario, (), release, place, lambda *_: None, is_direct=True)

    def __enter__(self) -> Self:
        self._fleet.__enter__()
        try:
            self._fleet.start_servers()
            self._wait_for_service()
            self._fleet.make_topics()
            for number in range(1, WARMING + 1):
                batches = self.batches_per_s()
                sys.stderr.write(f"warming, {number} of {WARMING}: real {batches:,.0f} batches/s\n")
        except BaseException:
            self._fleet.end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._fleet.end()

    def batches_per_s(self) -> float:
        """Batches a second of one load, acknowledged by all replicas."""
        return load(self._fleet, self._scenario.topics[0].name, RECORDS) / RECORDS_PER_BATCH

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Stops every process for a block; afterwards all brokers are in service again."""
        for process in self._fleet.all:
            process.pause()
        yield
        for process in self._fleet.all:
            process.resume()
        time.sleep(SETTLING_S)
        self._wait_for_service()

    def _wait_for_service(self) -> None:
        """Returns once each broker is unfenced."""
        until = time.monotonic() + SERVICE_S
        brokers = [spec.node for spec in self._scenario.cluster.brokers]
        while not all(self._fleet.cluster().serving.get(node, False) for node in brokers):
            self._fleet.look()
            if self._fleet.exits() or time.monotonic() > until:
                said = "\n".join(server.tail() for server in self._fleet.servers.values())
                raise SimulationError(f"the real cluster did not come into service: {said}")
            time.sleep(_BEAT_S)


def load(fleet: Fleet, topic: str, records: int) -> float:
    """Records a second of one load, once its own client is warm: of the second half of it.

    Raises:
        SimulationError: If the tool fails, or has not sent every record.
    """
    warming = records // 2
    done = subprocess.run(
        fleet.tool(
            PRODUCERS,
            *("--topic", topic),
            *("--num-records", str(records)),
            *("--warmup-records", str(warming)),
            *("--record-size", str(RECORD_BYTES)),
            *("--throughput", "-1"),
            *("--producer-props", f"bootstrap.servers={fleet.bootstrap}", *CONFIG),
        ),
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    found = _RATE.search(done.stdout)
    if done.returncode or found is None or int(found[1]) != records - warming:
        said = f"{done.stdout}{done.stderr}".strip()[-1_500:]
        raise SimulationError(f"the load of the real cluster failed: {said}")
    return float(found[2])


def simulated(seconds: int) -> float:
    """Batches a second of the simulator, in a process of its own.

    Raises:
        RuntimeError: If the benchmark fails.
    """
    done = child([sys.executable, "-m", "sim.bench", str(seconds)])
    if done.returncode:
        raise RuntimeError(f"the benchmark failed: {done.stderr}")
    return float(json.loads(done.stdout)["batches_per_s"])


def main() -> int:
    """Measure the pairs, then print each and the median of their ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=10)
    given = parser.parse_args()
    if WHY_SOURCES:
        sys.stderr.write(f"the simulator is not compiled ({WHY_SOURCES}); run make compile\n")
        return 1
    pairs = []
    with scratch() as place, Real(place) as real:
        for number in range(1, given.pairs + 1):
            there = real.batches_per_s()
            with real.stopped():
                here = simulated(given.seconds)
            pairs.append({"real": round(there), "simulated": round(here), "ratio": here / there})
            sys.stderr.write(f"pair {number}: real {there:,.0f}, simulated {here:,.0f} batches/s\n")
    ratio = median(pair["ratio"] for pair in pairs)
    sys.stdout.write(json.dumps({"pairs": pairs, "ratio": round(ratio, 2)}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
