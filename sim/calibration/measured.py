"""Latencies of a plan's loads, taken from the rows of a run: a real one's or a simulated one's.

Both judges of a run take a latency from the instant at which a record was meant to be sent, and so
does this. Rows have the same columns on both sides.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from sim.calibration import plan
from sim.errors import SimulationError
from sim.trace.rows.clients import Reads
from sim.trace.rows.cluster import PartitionChanges
from sim.trace.rows.log import Appends, ClientBatches
from sim.trace.run_files import read_part
from sim.trace.schema import BY_NAME
from sim.units import Micros

PERCENTILES: Final[Mapping[str, float]] = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
SAMPLES_MIN: Final = 20
"""Fewer latencies of a load have no percentiles."""

Quantiles = Mapping[str, Micros]
"""By names of :data:`PERCENTILES`."""

TABLES: Final = ("client_batches", "reads", "partition_changes", "appends")
_OK: Final = "ok"


@dataclass(slots=True)
class Rows:
    """Rows of a run that latencies are made of, in their order."""

    client_batches: list[Sequence[Any]] = field(default_factory=list)
    reads: list[Sequence[Any]] = field(default_factory=list)
    partition_changes: list[Sequence[Any]] = field(default_factory=list)
    appends: list[Sequence[Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Samples:
    """Latencies by load and round, in microseconds."""

    latencies: Mapping[tuple[str, int], Sequence[Micros]]

    def of(self, load: str, rounds: Sequence[int] | None = None) -> list[Micros]:
        """Latencies of a load, of all rounds or of some."""
        return [
            value
            for (name, number), values in self.latencies.items()
            if name == load and (rounds is None or number in rounds)
            for value in values
        ]

    @property
    def rounds(self) -> list[int]:
        """Numbers of the rounds."""
        return sorted({number for _, number in self.latencies})

    def quantiles(self, load: plan.Load, rounds: Sequence[int] | None = None) -> Quantiles:
        """Percentiles of a load; empty if it has too few latencies.

        A move of leaders has one latency for each partition, whose median is all that it says.
        """
        return quantiles(load, self.of(load.name, rounds))


def quantiles(load: plan.Load, latencies: Sequence[Micros]) -> Quantiles:
    """Percentiles of latencies of a load; empty if there are too few."""
    is_median = load.what == "leader_move"
    if len(latencies) < (1 if is_median else SAMPLES_MIN):
        return {}
    ordered = sorted(latencies)
    shares = {"p50": 0.5} if is_median else PERCENTILES
    return {name: max(1, ordered[ceil(len(ordered) * at) - 1]) for name, at in shares.items()}


def joined(many: Iterable[Samples]) -> Samples:
    """Samples of several runs of a plan; rounds of later ones are numbered on."""
    found: dict[tuple[str, int], Sequence[Micros]] = {}
    before = 0
    for samples in many:
        for (name, number), values in samples.latencies.items():
            found[name, before + number] = values
        before += max(samples.rounds, default=0)
    return Samples(found)


def read(directory: Path) -> Samples:
    """Samples of a run directory.

    Raises:
        SimulationError: If a file is damaged, or has no latency of a plan.
    """
    found = Rows()
    for table in TABLES:
        rows: list[Sequence[Any]] = getattr(found, table)
        for part in sorted((directory / "trace" / table).glob("*.parquet")):
            read_rows = read_part(BY_NAME[table], part, [])
            rows += zip(*(column.to_pylist() for column in read_rows.columns), strict=True)
        rows.sort(key=itemgetter(0))
    latencies = samples(found)
    if not latencies.latencies:
        raise SimulationError("no record of the plan of logquake calibrate was acknowledged in it")
    return latencies


def samples(rows: Rows) -> Samples:
    """Latencies of every load in the rows."""
    found: dict[tuple[str, int], list[Micros]] = defaultdict(list)
    meant: dict[tuple[int, int], Micros] = {}
    names: dict[int, str] = {}
    starts: dict[str, Micros] = {}
    for row in rows.client_batches:
        at, name = row[ClientBatches.T_US], row[ClientBatches.PRODUCER]
        index = row[ClientBatches.PRODUCER_INDEX]
        names[index] = name
        for place, latency in enumerate(row[ClientBatches.LATENCY_US]):
            intended = at - int(latency)
            meant[index, row[ClientBatches.FIRST_RECORD] + place] = intended
            starts[name] = min(starts.get(name, intended), intended)
    for row in rows.client_batches:
        name = row[ClientBatches.PRODUCER]
        load = plan.by_name(name)
        if load is None or load.what != "produce" or row[ClientBatches.OUTCOME] != _OK:
            continue
        at, since = row[ClientBatches.T_US], starts[name] + plan.SKIP_US
        key = load.name, plan.round_of(name)
        waited = [int(each) for each in row[ClientBatches.LATENCY_US]]
        found[key] += [each for each in waited if at - each >= since]
    _add_reads(found, rows, names, meant, starts)
    _add_moves(found, rows)
    return Samples({key: tuple(values) for key, values in found.items()})


def _add_reads(
    found: dict[tuple[str, int], list[Micros]],
    rows: Rows,
    names: Mapping[int, str],
    meant: Mapping[tuple[int, int], Micros],
    starts: Mapping[str, Micros],
) -> None:
    """Times from the instant at which a record was due until a poll returned it."""
    for row in rows.reads:
        index = row[Reads.PRODUCER_INDEX]
        name = names.get(index, "")
        load = plan.by_name(name)
        if load is None or not load.reads:
            continue
        since = starts[name] + plan.SKIP_US
        first = row[Reads.FIRST_RECORD]
        for number in range(first, first + row[Reads.RECORD_COUNT]):
            intended = meant.get((index, number))
            if intended is not None and intended >= since:
                found[load.name, plan.round_of(name)].append(row[Reads.T_US] - intended)


def _add_moves(found: dict[tuple[str, int], list[Micros]], rows: Rows) -> None:
    """Times from the controller's record of a new leader to its first acknowledgement.

    The record that is acknowledged is the first one that was appended with the leader's epoch.
    A simulated producer numbers its records by partition, a real one over all of them.
    """
    acked: dict[tuple[str, int, int, int], tuple[str, Micros]] = {}
    for row in rows.client_batches:
        if row[ClientBatches.OUTCOME] == _OK:
            name, at = row[ClientBatches.PRODUCER], row[ClientBatches.T_US]
            first, count = row[ClientBatches.FIRST_RECORD], row[ClientBatches.RECORD_COUNT]
            place = row[ClientBatches.TOPIC], row[ClientBatches.PARTITION]
            index = row[ClientBatches.PRODUCER_INDEX]
            acked |= {(*place, index, n): (name, at) for n in range(first, first + count)}
    firsts: dict[tuple[str, int, int], Micros] = {}
    for row in rows.appends:
        topic, partition = row[Appends.TOPIC], row[Appends.PARTITION]
        number = row[Appends.PRODUCER_INDEX], row[Appends.FIRST_RECORD]
        name, at = acked.get((topic, partition, *number), ("", -1))
        load = plan.by_name(name)
        if load is not None and load.what == "leader_move":
            epoch = topic, partition, row[Appends.LEADER_EPOCH]
            firsts[epoch] = min(firsts.get(epoch, at), at)
    leaders: dict[tuple[str, int], int] = {}
    for row in rows.partition_changes:
        topic, partition = row[PartitionChanges.TOPIC], row[PartitionChanges.PARTITION]
        leader, epoch = row[PartitionChanges.LEADER], row[PartitionChanges.LEADER_EPOCH]
        if leader < 0 or leaders.setdefault((topic, partition), leader) == leader:
            continue
        leaders[topic, partition] = leader
        first = firsts.get((topic, partition, epoch))
        if first is not None:
            found[plan.MOVE.name, 1].append(max(1, first - row[PartitionChanges.T_US]))
