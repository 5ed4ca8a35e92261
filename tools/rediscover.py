"""Rediscovers entries of the failure catalogue: executions until found, guided against uniform.

Usage: python -m tools.rediscover [--runs N] [--seeds K] [--only A2,F1]. Prints a table in Markdown.

Each hunt begins with a plain scenario of three brokers and the settings or switches of the entry's
time. It knows neither the entry's faults nor their instants. An entry is found when a run fails
with its kind, and by its mechanism. The budget is so many executions; ``>N``: not found.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final

import yaml

from sim.hunting.fingerprint import Finding
from sim.hunting.search.hunt import UNIFORM_SHARE, Hunt, Plan
from sim.scenario.overrides import apply as changes
from sim.scenario.text.yaml import Document
from sim.suite.pool import Pool

_PLAIN: Final = """
claim: Nothing goes wrong.
cluster:
  brokers: 3
  controllers: 1
  config: {broker.session.timeout.ms: 3000, broker.heartbeat.interval.ms: 500}
topics:
  orders: {partitions: 1, replication.factor: 3, config: {min.insync.replicas: 2}}
producers:
  - {name: shop, topic: orders, rate: 40/s, record.size: 100B, stop: 10s,
     config: {acks: all, linger.ms: 0, request.timeout.ms: 2000, delivery.timeout.ms: 30000}}
run: {for: 12s, drain.timeout: 60s}
"""

_OLD_TRUNCATION: Final = (
    "behaviours.truncation=hw",
    "behaviours.recovery=isr",
    "behaviours.high_watermark.gate=none",
)


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the catalogue."""

    name: str
    what: str
    sets: tuple[str, ...]
    """Its settings or switches, as for ``--set``."""
    kind: str
    mechanism: str
    """Of ``logquake explain``; empty for any."""
    faults: int = 2
    """Faults of the catalogue's own file."""

    def is_met_by(self, finding: Finding) -> bool:
        """True if a failure is the entry's."""
        return finding.kind == self.kind and (not self.mechanism or self.mechanism in finding.chain)


_ACKS_1: Final = "producers.0.config.acks=1"
_ONE: Final = "topics.orders.config.min.insync.replicas=1"
_PLAIN_PRODUCER: Final = "producers.0.config.enable.idempotence=false"

ENTRIES: Final = (
    Entry("A2", "acks=1, the leader dies", (_ACKS_1, _ONE), "lost_acked", "acks-1"),
    Entry("A4", "an isolated leader, acks=1", (_ACKS_1, _ONE), "lost_acked", "deposed"),
    Entry(
        "A6",
        "unclean leader election",
        (_ONE, "topics.orders.config.unclean.leader.election.enable=true"),
        "lost_acked",
        "unclean",
    ),
    Entry("A7", "min.insync.replicas=1", (_ONE,), "lost_acked", "isr-of-one"),
    Entry("B2", "power loss, not flushed", (_ONE,), "lost_acked", "power"),
    Entry(
        "B4", "truncation to the high watermark", (_ONE, *_OLD_TRUNCATION), "lost_acked",
        "own-watermark", 3,
    ),
    Entry(
        "B5", "the same, two logs differ", (_ONE, *_OLD_TRUNCATION), "divergent", "own-watermark"
    ),
    Entry(
        "F1",
        "another order on a retry",
        (_PLAIN_PRODUCER, "producers.0.config.max.in.flight.requests.per.connection=5"),
        "reordered",
        "",
        1,
    ),
    Entry("F2", "a duplicate on a retry", (_PLAIN_PRODUCER,), "duplicated", "", 1),
)  # fmt: skip


def executions(entry: Entry, seed: int, share: float, runs: int, place: Path) -> int | None:
    """Executions until an entry was found; ``None`` if it was not within the budget."""
    data: Any = yaml.safe_load(_PLAIN)
    document = Document(data)
    changes.apply(document, entry.sets)
    plan = Plan("plain", data, entry.kind, entry.faults, seed, share=share)
    hunt = Hunt(plan, place / f"{entry.name}-{seed}-{share}")

    def found() -> Iterator[int]:
        for each in hunt.all_ended():
            if any(entry.is_met_by(finding) for finding in each.findings):
                yield each.number

    hunt.go(Pool(1, None), runs_max=runs, should_stop=lambda: next(found(), None) is not None)
    return next(found(), None)


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="budget of each hunt, in executions")
    parser.add_argument("--seeds", type=int, default=3, help="hunts of each entry and way")
    parser.add_argument("--only", default="", help="names of entries, separated by commas")
    given = parser.parse_args()
    names = [name for name in given.only.split(",") if name]
    sys.stdout.write("| entry | what | guided | uniform |\n|---|---|---|---|\n")
    ratios = []
    with TemporaryDirectory() as place:
        for entry in ENTRIES:
            if names and entry.name not in names:
                continue
            cells = []
            for share in (UNIFORM_SHARE, 1.0):
                counts = [
                    executions(entry, seed, share, given.runs, Path(place))
                    for seed in range(1, given.seeds + 1)
                ]
                cells.append(counts)
            guided, uniform = (
                median(given.runs if count is None else count for count in some) for some in cells
            )
            ratios.append(uniform / max(guided, 1))
            shown = (
                ", ".join(f">{given.runs}" if c is None else str(c) for c in some) for some in cells
            )
            sys.stdout.write(f"| {entry.name} | {entry.what} | {' | '.join(shown)} |\n")
            sys.stdout.flush()
    if ratios:
        sys.stdout.write(f"\nmedian of uniform to guided: {median(ratios):.2g}\n")


if __name__ == "__main__":
    main()
