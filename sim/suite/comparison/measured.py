"""One run or rehearsal as numbers and sequences that can be compared with another's."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from sim.errors import SimulationError
from sim.suite.comparison.tolerance import Kind, Value
from sim.suite.two_runs import leaves, plain_scenario
from sim.trace.kept import check_kept
from sim.trace.run_files import ENDED_CARD, read_mapping, read_part
from sim.trace.schema import BY_NAME
from sim.units import MS, Micros

_COUNTS: Final = ("acked", "failed", "unknown", "duplicated", "reordered")
_PERCENTILES: Final = ("p50", "p90", "p99", "p999", "max")
_NUMBERS: Final = {"*": int}
_SHAPE: Final = {
    "answer": {
        "lost": {"size": int},
        "down": {"worst": [{"what": str, "max_us": int}]},
        "slow": {"normal": _NUMBERS, "worst": _NUMBERS},
    },
    "records": _NUMBERS,
    "failed_by_error": {"*": _NUMBERS},
    "?expectations": [{"name": str, "asked": str, "held": bool}],
    "latency_us": {"*": _NUMBERS},
}
_CARD: Final = {**ENDED_CARD, "?scale": float, "?kafka": str}

_OF_SEED: Final = "run.seed"
"""The one leaf of a scenario in which seeds differ."""


class Number(NamedTuple):
    """A row's name, kind and value in one run."""

    name: str
    kind: Kind
    value: Value


class Step(NamedTuple):
    """One state of a partition, as its controller committed it."""

    t_us: Micros
    after: str
    """The last fault or healing before it."""
    since_us: Micros
    """Time since then."""
    state: str
    """Leader, ISR and ELR; replicas are numbered in the order of their first assignment."""
    level: str
    """``full``, ``shrunk`` (the ISR is not all of the replicas) or ``offline``."""


class Event(NamedTuple):
    """A fault began or was healed."""

    t_us: Micros
    name: str
    phase: str
    resolved: str


@dataclass(frozen=True, slots=True)
class Measured:
    """Facts of one run directory."""

    directory: Path
    is_real: bool
    scale: float
    kafka: str
    """Release of a rehearsal; empty for a simulated run."""
    end_us: Micros
    scenario: Mapping[str, str]
    """Leaves by path, but for the seed."""
    numbers: Mapping[str, Number]
    steps: Mapping[str, Sequence[Step]]
    """By user partition."""
    events: Sequence[Event]


def measure(directory: Path) -> Measured:
    """Reads a run directory.

    Raises:
        SimulationError: If it is none, its run did not come to its end, or a file is damaged.
    """
    for name in ("run.json", "verdict.json", "scenario.yaml"):
        if not (directory / name).is_file():
            raise SimulationError(
                f"{directory}: no {name}; give directories that logquake run and logquake "
                "rehearse wrote, of runs that came to their end"
            )
    check_kept(directory, "trace")
    card = read_mapping(directory / "run.json", _CARD)
    if not card["complete"]:
        raise SimulationError(f"{directory}: interrupted; allowed: runs that came to their end")
    verdict = read_mapping(directory / "verdict.json", _SHAPE)
    scenario = dict(leaves(plain_scenario(directory / "scenario.yaml"), ""))
    scenario.pop(_OF_SEED, None)
    trace = _Trace(directory / "trace")
    numbers = [*_of_verdict(verdict), *trace.numbers()]
    return Measured(
        directory=directory,
        is_real=card.get("real", False),
        scale=float(card.get("scale", 1)),
        kafka=card.get("kafka", "") if card.get("real", False) else "",
        end_us=card["simulated_us"],
        scenario=scenario,
        numbers={number.name: number for number in numbers},
        steps=trace.steps(),
        events=trace.events,
    )


def _of_verdict(verdict: Mapping[str, Any]) -> Iterator[Number]:
    for each in verdict.get("expectations", ()):
        name = f"expectation missed: {each['name']} {each['asked']}"
        yield Number(name, "events", int(not each["held"]))
    answer = verdict["answer"]
    yield Number("lost", "records", answer["lost"]["size"])
    for worst in answer["down"]["worst"]:
        yield Number(f"down: {worst['what']}", "time", worst["max_us"])
    for name, words in (("normal", "normal times"), ("worst", "the worst fault")):
        for at in ("p50", "p99"):
            yield Number(f"slow: {at} in {words}", "latency", answer["slow"][name].get(at))
    for name in _COUNTS:
        yield Number(f"records {name}", "records", verdict["records"].get(name, 0))
    errors: dict[str, int] = defaultdict(int)
    for found in verdict["failed_by_error"].values():
        for error, count in found.items():
            errors[error] += count
    for error in sorted(errors):
        yield Number(f"failed with {error}", "records", errors[error])
    for what, found in verdict["latency_us"].items():
        for at in _PERCENTILES:
            yield Number(f"latency {what} {at}", "latency", found.get(at))


class _Trace:
    """Tables of one run that a rehearsal has, too."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        rows = self._rows("faults")
        self.events = [
            Event(
                row["t_us"], f"fault {row['fault']} ({row['kind']})", row["phase"], row["resolved"]
            )
            for row in rows
            if row["phase"] in ("began", "healed")
        ]
        self._changes: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for row in self._rows("partition_changes"):
            if not row["topic"].startswith("__"):
                self._changes[f"{row['topic']}-{row['partition']}"].append(row)

    def steps(self) -> dict[str, list[Step]]:
        """States of each user partition: that at zero, and those that followed."""
        return {name: self._steps(self._changes[name]) for name in sorted(self._changes)}

    def numbers(self) -> Iterator[Number]:
        """First acknowledgements, controllers, leader epochs, groups."""
        began = [event for event in self.events if event.phase == "began"]
        firsts = self._first_acks(began)
        for event, first in zip(began, firsts, strict=True):
            since = None if first is None else first - event.t_us
            yield Number(f"first acknowledgement after {event.name}", "time", since)
        later = [r for r in self._rows("quorum") if r["role"] == "leader" and r["t_us"] >= 0]
        yield Number("controller fail-overs", "events", len({row["epoch"] for row in later}))
        for name in sorted(self._changes):
            rows = self._changes[name]
            start = [row for row in rows if row["t_us"] < 0] or rows[:1]
            epochs = rows[-1]["leader_epoch"] - start[-1]["leader_epoch"]
            yield Number(f"leader epochs of {name}", "events", epochs)
        for table in ("assignments", "revocations"):
            counts: dict[str, int] = defaultdict(int)
            for row in self._rows(table):
                counts[row["group"]] += row["t_us"] >= 0
            for group in sorted(counts):
                yield Number(f"{table} of group {group}", "events", counts[group])
        yield from self._take_overs(began)

    def _take_overs(self, began: Sequence[Event]) -> Iterator[Number]:
        """Time from each fault until a member of a group has taken over partitions."""
        rows = [row for row in self._rows("assignments") if row["partitions"]]
        for group in sorted({row["group"] for row in rows}):
            instants = [row["t_us"] for row in rows if row["group"] == group]
            for event in began:
                since = next((at - event.t_us for at in instants if at >= event.t_us), None)
                yield Number(f"take-over in group {group} after {event.name}", "time", since)

    def _rows(self, table: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for part in sorted((self._directory / table).glob("*.parquet")):
            found += read_part(BY_NAME[table], part, []).to_pylist()
        return sorted(found, key=lambda row: int(row["t_us"]))

    def _steps(self, rows: Sequence[Mapping[str, Any]]) -> list[Step]:
        places: dict[str, str] = {"-1": "nobody"}
        found: list[Step] = []
        for row in rows:
            for node in row["replicas"].split(","):
                places.setdefault(node, f"r{len(places)}")
            in_sync, eligible = (_named(row[key], places) for key in ("in_sync", "eligible"))
            leader = places.get(str(row["leader"]), "unknown")
            state = f"leader {leader}, ISR {in_sync or 'empty'}" + (
                eligible and f", ELR {eligible}"
            )
            is_full = len(row["in_sync"].split(",")) == len(row["replicas"].split(","))
            level = "offline" if row["leader"] < 0 else "full" if is_full else "shrunk"
            at = row["t_us"]
            if at < 0:
                found = [Step(0, "the start", 0, state, level)]
            elif not found or found[-1].state != state:
                found.append(Step(at, *self._after(at), state, level))
        return found

    def _after(self, at: Micros) -> tuple[str, Micros]:
        # A metadata log has whole milliseconds: a change may seem a little older than its cause.
        before = [event for event in self.events if event.t_us < at + MS]
        if not before:
            return "the start", at
        last = before[-1]
        return f"{last.name} {last.phase}", max(at - last.t_us, 0)

    def _first_acks(self, began: Sequence[Event]) -> list[Micros | None]:
        """First acknowledgements, where a fault hit, of records that were due after it began."""
        hit = [self._hit(event) for event in began]
        found: list[Micros | None] = [None] * len(began)
        if not began:
            return found
        for part in sorted((self._directory / "client_batches").glob("*.parquet")):
            rows = read_part(BY_NAME["client_batches"], part, [("outcome", "=", "ok")])
            columns = ("t_us", "topic", "partition", "latency_us")
            values = [rows.column(name).to_pylist() for name in columns]
            for at, topic, partition, waited in zip(*values, strict=True):
                for place, event in enumerate(began):
                    first = found[place]
                    is_next = at >= event.t_us and (first is None or at < first)
                    is_its = f"{topic}-{partition}" in hit[place]
                    if is_next and is_its and at - min(waited, default=at) >= event.t_us:
                        found[place] = at
        return found

    def _hit(self, event: Event) -> frozenset[str]:
        """Partitions whose leader a fault took; all of them if it took no leader."""
        nodes = {word.strip() for word in event.resolved.split(",")}
        led = frozenset(
            name
            for name, rows in self._changes.items()
            if (before := [row for row in rows if row["t_us"] < event.t_us])
            and f"broker-{before[-1]['leader']}" in nodes
        )
        return led or frozenset(self._changes)


def _named(nodes: str, places: Mapping[str, str]) -> str:
    return " ".join(sorted(places.get(node, f"node {node}") for node in nodes.split(",") if node))
