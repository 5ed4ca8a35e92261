"""One run for its numbers alone: nothing of it stays on the disk.

A sweep takes a row of numbers from a run. The simulated disks are real files while the run
lasts, in a scratch directory that is removed with it; trace tables are heard by the judge and never
written, so every number is that of the same run with a directory of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from sim.checking.outcomes.histogram import Histogram
from sim.scenario.expect.bounds import found_in
from sim.scenario.model.clients import ProducerSpec
from sim.scenario.run.directory import RunDirectory
from sim.scenario.run.result import Result
from sim.scenario.run.runner import Work
from sim.scenario.scenario import Scenario
from sim.scratch import scratch
from sim.trace.rows.log import ClientBatches, ClientBatchesRow
from sim.trace.rows.run import Messages, MessagesRow
from sim.trace.writer import Row
from sim.units import Bytes, Micros

COUNTS: Final = (
    "sent", "acked", "failed", "unknown", "survived", "lost_acked", "removed", "unacked_present",
    "duplicated", "reordered", "divergent",
)  # fmt: skip
"""Numbers of records that a trial has, under the verdict's names."""

TIMES: Final = (
    *(f"produce.{rank}" for rank in ("p50", "p90", "p99", "p999", "max")),
    *(f"end_to_end.{rank}" for rank in ("p50", "p90", "p99", "p999", "max")),
    "unavailable.produce.max",
    "unavailable.fetch.max",
)
"""Times that a trial has, in microseconds, under the names of expectations."""


@dataclass(frozen=True, slots=True)
class Trial:
    """Result of one seed of a scenario."""

    records: Mapping[str, int]
    """By the names of :data:`COUNTS`."""
    times_us: Mapping[str, int | None]
    """By the names of :data:`TIMES`; ``None`` where nothing was measured."""
    latency_us: tuple[list[Micros], list[int]]
    """Produce latencies: values in order, each within 0.4 %, and how many records had them."""
    held: bool
    """True if every expectation held and every fault took effect."""
    faults: tuple[str, ...]
    """Effect of each fault, in words."""
    run_us: Micros
    """Time in which producers had work."""
    cross_rack_bytes: Bytes
    """Sent from a server or client in one rack to one in another."""
    disk_bytes: Bytes
    """Segments on all brokers' disks at the end."""
    replicas: int
    """Replicas of the scenario's partitions."""
    promised: int
    """Replicas that have a record when it is acknowledged, at least; of the weakest producer."""
    answer_us: Mapping[str, int | None]
    """``down``, the longest time of any kind, and ``slow_normal`` and ``slow_fault``, p99 of
    produce latency in normal times and within the worst fault; see
    :mod:`sim.scenario.run.answer`."""
    trace_digest: str
    """Of the tables of level ``facts``: equal for equal runs."""


def trial(scenario: Scenario, seed: int, within: str | Path | None = None) -> Trial:
    """Run a scenario for its numbers.

    Args:
        scenario: What is run.
        seed: Instead of the scenario's own.
        within: Where a directory may be made for as long as the run lasts; the machine's own
            place for such things if not given.

    Raises:
        SimulationError: If the cluster cannot come up.
        InvariantBroken: If a promise of Kafka was broken: a defect of the simulator.
        OSError: If the real disk fills up.
    """
    with scratch(within) as place:
        directory = RunDirectory(place / "run", force=False, is_part=True)
        work = Work(scenario, seed, directory, "facts", keeps=False)
        produce = Histogram()

        def hear(row: Row) -> None:
            batch = cast("ClientBatchesRow", row)  # the rows of this table have this shape
            if batch[ClientBatches.OUTCOME] == "ok":
                produce.add(batch[ClientBatches.LATENCY_US])

        traffic = _Traffic(scenario)
        work.trace.table("client_batches").listeners.append(hear)
        work.trace.table("messages").listeners.append(traffic.hear)
        result = work.execute()
        segments = (file.stat().st_size for file in directory.disks.glob("broker-*/*/*/*.log"))
        return Trial(
            records={name: found_in(name, result.verdict) or 0 for name in COUNTS},
            times_us={name: found_in(name, result.verdict) for name in TIMES},
            latency_us=produce.counted(),
            held=result.held,
            faults=_faults(result),
            run_us=scenario.run.for_us,
            cross_rack_bytes=traffic.cross_rack_bytes,
            disk_bytes=sum(segments),
            replicas=sum(t.partitions * t.replication_factor for t in scenario.topics),
            promised=_promised(scenario),
            answer_us=_answer(result.verdict),
            trace_digest=work.trace.digest(),
        )


def _promised(scenario: Scenario) -> int:
    """Replicas that have a record, at least, when it is acknowledged; a majority in Raft groups.

    Source: Kafka's documentation of ``acks`` and ``min.insync.replicas``.
    """
    topics = {topic.name: topic for topic in scenario.topics}
    is_raft = scenario.cluster.replication == "raft"

    def insisted(producer: ProducerSpec) -> int:
        acks, topic = producer.config.text("acks"), topics.get(producer.topic)
        if acks in ("0", "1"):
            return int(acks)
        if topic is None:
            return 1  # it is made while the run lasts
        if is_raft:
            return topic.replication_factor // 2 + 1
        return min(topic.config.number("min.insync.replicas"), topic.replication_factor)

    return min(map(insisted, scenario.producers), default=0)


def _answer(verdict: Mapping[str, Any]) -> dict[str, int | None]:
    found = verdict["answer"]
    return {
        "down": found["down"]["size"],
        "slow_normal": found["slow"]["normal"].get("p99"),
        "slow_fault": found["slow"]["worst"].get("p99"),
    }


class _Traffic:
    """Bytes between racks, from the table of messages."""

    def __init__(self, scenario: Scenario) -> None:
        cluster = scenario.cluster
        self._racks: dict[str, str | None] = {
            s.name: s.rack for s in (*cluster.brokers, *cluster.controllers)
        }
        for producer in scenario.producers:
            self._racks |= dict.fromkeys(producer.client_names, producer.rack)
        for consumer in scenario.consumers:
            self._racks |= dict.fromkeys(consumer.client_names, consumer.rack)
        self.cross_rack_bytes: Bytes = 0

    def hear(self, row: Row) -> None:
        """A row of ``messages``; outside the racks is no rack."""
        message = cast("MessagesRow", row)  # the rows of this table have this shape
        here = self._racks.get(message[Messages.SENDER], "")
        there = self._racks.get(message[Messages.RECEIVER], "")
        if here != there and here and there:
            self.cross_rack_bytes += message[Messages.SIZE_BYTES]


def _faults(result: Result) -> tuple[str, ...]:
    reports = result.verdict["faults"]
    assert isinstance(reports, list)
    return tuple(
        f"{report['kind']} of {report['resolved'] or report['target']} at {report['began_us']} us"
        if report["began_us"] is not None
        else f"{report['kind']} of {report['target']}, which never began"
        for report in reports
    )
