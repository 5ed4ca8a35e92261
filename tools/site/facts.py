"""Facts of a catalogue scenario's run that its picture shows: a small JSON file for each run.

A run is made without Spark, at the level ``facts``. What was run is kept in ``build/gallery`` under
the scenario's digest, the seed and the simulator's code: a picture is drawn again without a run.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeAlias

import pyarrow.parquet as pq

from sim.ids import server_name
from sim.scenario.loader import load
from sim.scenario.run.result import Result
from sim.scenario.run.runner import run
from sim.suite.plan import code_digest, run_key
from sim.units import Micros
from tools.catalogue_entries import CATALOGUE

Facts: TypeAlias = Mapping[str, Any]
"""Facts of a run, as :func:`facts_of` returns them and JSON holds them."""

ROOT: Final = Path(__file__).parents[2]
CACHE: Final = ROOT / "build" / "gallery"
"""Facts of earlier runs."""

BINS: Final = 180
"""Columns of the strips that count records."""

_SERVERS: Final = ("broker-", "controller-", "zookeeper-")
_COUNTED: Final = {"acked": "client_batches", "read": "reads"}


def cached_facts(path: Path, code: str | None = None) -> Facts:
    """Facts of a scenario's own seed, from an earlier run of the same code if there is one.

    Args:
        path: The scenario file.
        code: :func:`sim.suite.plan.code_digest`, where the caller has it.
    """
    scenario = load(path)
    key = run_key(scenario, scenario.run.seed, code or code_digest())
    file = CACHE / f"{scenario.name}.json"
    if file.exists():
        kept = json.loads(file.read_text(encoding="utf-8"))
        if kept["key"] == key:
            return dict(kept["facts"])
    facts = facts_of(path)
    CACHE.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"key": key, "facts": facts}), encoding="utf-8")
    return facts


def facts_of(path: Path) -> Facts:
    """Run a scenario with its own seed and return what a picture of it needs."""
    with TemporaryDirectory() as directory:
        result = run(load(path), out=Path(directory) / "run", level="facts")
        return _facts(result)


def _facts(result: Result) -> Facts:
    verdict: Mapping[str, Any] = result.verdict
    end_us = int(verdict["end_us"])
    return {
        "scenario": result.scenario,
        "digest": result.card["scenario_digest"],
        "seed": result.seed,
        "end_us": end_us,
        "run_us": result.card["run_us"],
        "held": result.held,
        "answer": {name: verdict["answer"][name]["text"] for name in ("lost", "down", "slow")},
        "expectations": [
            [line["name"], line["asked"], line["shown"]] for line in verdict["expectations"]
        ],
        "faults": verdict["faults"],
        "outages": _outages(verdict["availability"]),
        "servers": [
            [row["t_us"], row["node"], row["state"]]
            for row in _rows(result, "node_states", "t_us", "node", "state")
            if row["node"].startswith(_SERVERS)
        ],
        "controllers": list(_controllers(result)),
        "partitions": list(_partitions(result)),
        "min_in_sync": _min_in_sync(result),
        "truncations": _truncations(result),
        "groups": [
            list(row.values())
            for row in _rows(result, "groups", "t_us", "group", "state", "generation", "members")
        ],
        **{name: _binned(result, table, end_us) for name, table in _COUNTED.items()},
    }


def _outages(availability: Mapping[str, Any]) -> dict[str, list[Micros]]:
    """Of each partition its longest wait of producers: from, and for how long."""
    return {
        name: [found["produce_from_us"], found["produce_us"]]
        for name, found in availability["partitions"].items()
        if found.get("produce_us", 0) > 0
    }


def _controllers(result: Result) -> Iterator[list[Any]]:
    """Instants at which a controller began or ceased to lead: instant, name, epoch, leads."""
    for row in _rows(result, "quorum", "t_us", "node", "role", "epoch"):
        leads = row["role"] == "leader"
        yield [row["t_us"], server_name(row["node"]), row["epoch"], leads]
    for row in _rows(result, "controllers", "t_us", "broker", "state", "epoch"):
        leads = row["state"] != "resigned"
        yield [row["t_us"], server_name(row["broker"]), row["epoch"], leads]


def _partitions(result: Result) -> Iterator[list[Any]]:
    """States as committed: instant, partition, leader, sizes of ISR and assignment, unclean."""
    columns = ("t_us", "topic", "partition", "leader", "in_sync", "replicas", "unclean")
    for row in _rows(result, "partition_changes", *columns):
        name = f"{row['topic']}-{row['partition']}"
        sizes = [len(row[each].split(",")) if row[each] else 0 for each in ("in_sync", "replicas")]
        yield [row["t_us"], name, row["leader"], *sizes, row["unclean"]]
    for row in _rows(result, "topic_deletions", "t_us", "topic"):
        yield [row["t_us"], f"{row['topic']}-", None, 0, 0, False]


def _min_in_sync(result: Result) -> dict[str, int]:
    least: dict[str, int] = {}
    for row in _rows(result, "high_watermarks", "topic", "partition", "min_in_sync"):
        name = f"{row['topic']}-{row['partition']}"
        least[name] = max(least.get(name, 0), row["min_in_sync"])
    return least


def _truncations(result: Result) -> list[list[Any]]:
    """Replicas that dropped the end of their log: instant, partition, broker, offsets."""
    columns = ("t_us", "topic", "partition", "broker", "from_offset", "to_offset")
    return [
        [
            row["t_us"],
            f"{row['topic']}-{row['partition']}",
            server_name(row["broker"]),
            row["from_offset"],
            row["to_offset"],
        ]
        for row in _rows(result, "truncations", *columns)
    ]


def _binned(result: Result, table: str, end_us: Micros) -> list[int]:
    """Records acknowledged (or read) in each of the run's equal stretches."""
    bins = [0] * BINS
    columns = ["t_us", "record_count", *(["outcome"] if table == "client_batches" else [])]
    for row in _rows(result, table, *columns):
        if row.get("outcome", "ok") == "ok" and row["t_us"] >= 0:
            bins[min(BINS - 1, row["t_us"] * BINS // end_us)] += row["record_count"]
    return bins if any(bins) else []


def _rows(result: Result, table: str, *columns: str) -> list[dict[str, Any]]:
    """Rows of a trace table, in the order of their instants."""
    files = result.directory / "trace" / table
    found = pq.read_table(files, columns=list(columns)).to_pylist()
    rows: list[dict[str, Any]] = found
    return sorted(rows, key=lambda row: row["t_us"]) if "t_us" in columns else rows


def main() -> None:
    """Run every scenario of the catalogue whose facts are not there."""
    code = code_digest()
    for path in sorted(CATALOGUE.glob("*.yaml")):
        cached_facts(path, code)


if __name__ == "__main__":
    main()
