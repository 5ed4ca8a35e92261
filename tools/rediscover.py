"""Rediscovers entries of the failure catalogue: executions until found, guided against uniform.

Usage: python -m tools.rediscover [--runs N] [--seeds K] [--only A2,F1]. Prints a table in Markdown.

Each hunt begins with a plain scenario of three brokers and the settings or switches of the time of
some entries. It knows neither their faults nor the instants of those. An entry is found when a run
of no more faults than the catalogue's own file fails with its kind, and by its mechanisms; entries
with the same settings are looked for by one hunt. The budget is so many executions; ``>N``: not
found.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final

import yaml

from sim.hunting.search.execution import Execution
from sim.hunting.search.hunt import UNIFORM_SHARE, Hunt, Plan
from sim.scenario.overrides import apply as changes
from sim.scenario.text.yaml import Document
from sim.suite.pool import pool

_PLAIN: Final = """
claim: Nothing goes wrong.
cluster:
  brokers: 3
  controllers: 1
  config:
    broker.session.timeout.ms: 3000
    broker.heartbeat.interval.ms: 500
    replica.lag.time.max.ms: 3000
topics:
  orders: {partitions: 1, replication.factor: 3, config: {min.insync.replicas: 2}}
producers:
  - {name: shop, topic: orders, rate: 40/s, record.size: 100B, stop: 10s,
     config: {acks: all, linger.ms: 0, request.timeout.ms: 2000, delivery.timeout.ms: 30000}}
run: {for: 12s, drain.timeout: 60s}
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the catalogue."""

    name: str
    what: str
    kind: str
    mechanisms: tuple[str, ...]
    """Of ``logquake explain``, the decisive ones in their order; empty for any."""
    faults: int
    """Faults of the catalogue's own file, or 3 where it has more."""
    strike: str = ""
    """A kind of fault without which it is another entry; empty for any."""

    def is_met_by(self, execution: Execution) -> bool:
        """True if an execution fails in the entry's way."""
        faults = execution.schedule.faults
        return (
            len(faults) <= self.faults
            and (not self.strike or any(fault["do"] == self.strike for fault in faults))
            and any(
                finding.kind == self.kind
                and finding.chain[: len(self.mechanisms)] == self.mechanisms
                for finding in execution.findings
            )
        )


@dataclass(frozen=True, slots=True)
class Scene:
    """A plain scenario with settings or switches of a time, and the entries that it may show."""

    sets: tuple[str, ...]
    """As for ``--set``."""
    entries: tuple[Entry, ...]
    parts: Mapping[str, Any] = field(default_factory=dict)
    """Clients and topics beside or instead of the plain ones."""

    @property
    def looking_for(self) -> str:
        """Kinds of the entries, each once."""
        return ",".join(dict.fromkeys(entry.kind for entry in self.entries))

    @property
    def faults(self) -> int:
        """Most faults of a run."""
        return max(entry.faults for entry in self.entries)

    def data(self) -> dict[str, Any]:
        """The scenario."""
        data: Any = yaml.safe_load(_PLAIN) | dict(self.parts)
        changes.apply(Document(data), self.sets)
        return dict(data)


_ACKS_1: Final = "producers.0.config.acks=1"
_ONE: Final = "topics.orders.config.min.insync.replicas=1"
_PLAIN_PRODUCER: Final = "producers.0.config.enable.idempotence=false"
_UNCLEAN: Final = "topics.orders.config.unclean.leader.election.enable=true"
_BEFORE_ELR: Final = ("behaviours.recovery=isr", "behaviours.high_watermark.gate=none")
_OLD_TRUNCATION: Final = ("behaviours.truncation=hw", *_BEFORE_ELR)

_HALTED: Final = ("power", "own-watermark", "halted")

_READERS: Final = {
    "consumers": [
        {"group": "none", "name": "tail", "topics": ["orders"],
         "config": {"auto.offset.reset": "earliest"}},
        {"group": "billing", "name": "billing", "topics": ["orders"],
         "config": {"auto.offset.reset": "earliest", "session.timeout.ms": 6000,
                    "auto.commit.interval.ms": 500}},
    ]
}  # fmt: skip
_BILLS: Final = {
    name: {"partitions": 1, "replication.factor": 3, "config": {"min.insync.replicas": 2}}
    for name in ("orders", "bills")
}


def _copying(**more: object) -> dict[str, Any]:
    """An application that makes a bill of each order."""
    return {
        "topics": _BILLS,
        "processors": [
            {"name": "copy", "topics": ["orders"], "output": "bills", "processing": "20ms",
             "record.size": "100B", **more}
        ],
    }  # fmt: skip


def _transactions(**more: object) -> dict[str, Any]:
    """A producer of transactions beside one without, and a reader of committed data."""
    shop = {
        "name": "shop", "topic": "orders", "rate": "20/s", "record.size": "100B", "stop": "10s",
        "transaction": {"records": 10, "abort": "20%"}, **more,
        "config": {"transactional.id": "shop", "linger.ms": 0, "request.timeout.ms": 2000},
    }  # fmt: skip
    till = {"name": "till", "topic": "orders", "rate": "20/s", "record.size": "100B", "stop": "10s"}
    config = {"isolation.level": "read_committed", "auto.offset.reset": "earliest"}
    return {
        "producers": [shop, till],
        "consumers": [{"group": "none", "name": "tail", "topics": ["orders"], "config": config}],
    }


SCENES: Final = (
    Scene(
        ("producers.0.config.acks=0", _PLAIN_PRODUCER, _ONE),
        (Entry("A1", "acks=0, the leader dies", "lost_acked", ("unacknowledged",), 1),),
    ),
    Scene(
        (_ACKS_1, _ONE),
        (
            Entry("A2", "acks=1, the leader dies", "lost_acked", ("acks-1",), 2),
            Entry("A4", "an isolated leader, acks=1", "lost_acked", ("deposed",), 2),
            Entry("A10", "a pause beyond the session", "lost_acked", (), 1, "pause"),
        ),
    ),
    Scene(
        (_ONE, _UNCLEAN, *_BEFORE_ELR),
        (
            Entry("A5", "an ISR of one, then unclean", "lost_acked", ("isr-of-one", "unclean"), 2),
            Entry("A6", "unclean leader election", "lost_acked", ("unclean",), 3),
        ),
    ),
    Scene(
        (_ONE, *_BEFORE_ELR),
        (
            Entry("A7", "min.insync.replicas=1", "lost_acked", ("isr-of-one",), 2),
            Entry("B2", "power of all, not flushed", "lost_acked", ("power",), 1, "power-loss"),
        ),
    ),
    Scene(
        _BEFORE_ELR,
        (
            Entry("B1", "the last replica loses power", "lost_acked", ("power", "truncated"), 3),
            Entry("B8", "the last replica's disk is empty", "lost_acked", ("empty-disk",), 3),
        ),
    ),
    Scene(
        (_ONE, *_OLD_TRUNCATION, "behaviours.follower.out_of_range=halt"),
        (
            Entry("B4", "truncation to the watermark", "lost_acked", ("own-watermark",), 3),
            Entry("B5", "the same, two logs differ", "divergent", ("own-watermark",), 2),
            Entry("B10", "followers that halt", "lost_acked", _HALTED, 3),
        ),
    ),
    Scene(
        ("topics.orders.config.retention.ms=2000", "topics.orders.config.segment.ms=500",
         "cluster.config.log.retention.check.interval.ms=1000",
         "cluster.config.log.initial.task.delay.ms=0"),
        (Entry("D4", "retention takes what is unread", "removed_unread", (), 1),),
        _READERS,
    ),
    Scene(
        (_ONE, _UNCLEAN, *_BEFORE_ELR, "behaviours.client.truncation_detection=none",
         "behaviours.client.committed_epoch=none"),
        (
            Entry("E1", "a reader above a truncation", "undelivered", (), 3),
            Entry("E2", "what was read is lost", "read_lost", (), 3),
        ),
        _READERS,
    ),
    Scene(
        (),
        (Entry("E3", "commits before processing", "unprocessed", ("committed-early",), 1),),
        # It works at half of the pace at which it is sent to, as the entry's does.
        _copying(commits="auto", processing="50ms", config={
            "consumer.session.timeout.ms": 6000, "consumer.auto.commit.interval.ms": 1000,
        }),
    ),
    Scene(
        # A session ends and its heir commits within the run, and a transaction outlives both; the
        # application begins when there is something to read, so that a poll returns more than one.
        ("behaviours.transaction.offsets=unfenced", "run.for=24s",
         "cluster.config.group.initial.rebalance.delay.ms=500"),
        (Entry("E8", "a zombie commits", "reprocessed", (), 1),),
        _copying(count=2, start="4s", config={
            "processing.guarantee": "exactly_once_v2", "consumer.session.timeout.ms": 6000,
            "producer.transaction.timeout.ms": 60000,
        }),
    ),
    Scene(
        ("behaviours.fetch.stable_bound=read_twice",),
        (Entry("E10", "a read past the stable offset", "aborted_read", (), 1),),
        _transactions(),
    ),
    Scene(
        (_PLAIN_PRODUCER, "producers.0.config.max.in.flight.requests.per.connection=5"),
        (
            Entry("F1", "another order on a retry", "reordered", (), 1),
            Entry("F2", "a duplicate on a retry", "duplicated", (), 1),
        ),
    ),
    Scene(
        ("behaviours.producer.state=with_records", "topics.orders.config.retention.ms=2000",
         "cluster.config.log.retention.check.interval.ms=500", "producers.0.rate=2/s",
         "cluster.config.log.initial.task.delay.ms=0", "producers.0.stop=6s"),
        (Entry("F3", "a producer is forgotten", "delivered_twice", (), 1),),
        {"consumers": _READERS["consumers"][:1]},
    ),
    Scene(
        ("behaviours.transactions=kip98", "behaviours.transaction.verification=off"),
        # Whatever takes the transaction from its coordinator leaves one, too, as in F5.
        (Entry("F4", "a hanging transaction", "stuck", ("hanging-transaction",), 2, "hold"),),
        _transactions(),
    ),
    Scene(
        ("behaviours.transactions=kip98", "behaviours.transaction.completion=twice",
         "topics.orders.partitions=2", "cluster.config.transaction.state.log.num.partitions=1",
         "cluster.cpu.preempted.p50=50ms", "cluster.cpu.preempted.p99=500ms"),
        (Entry("F8", "complete twice", "stuck", ("hanging-transaction",), 1),),
        _transactions(count=40, transaction={"every": "4s"}),
    ),
)  # fmt: skip


def executions(scene: Scene, seed: int, share: float, runs: int, place: Path) -> list[int | None]:
    """Executions until each entry of a scene was found; ``None`` if it was not in the budget."""
    plan = Plan("plain", scene.data(), scene.looking_for, scene.faults, seed, share=share)
    hunt = Hunt(plan, place / f"{scene.entries[0].name}-{seed}-{share}")

    def found(entry: Entry) -> int | None:
        met = (each.number for each in hunt.all_ended() if entry.is_met_by(each))
        return next(met, None)

    def is_done() -> bool:
        return all(found(entry) is not None for entry in scene.entries)

    with pool(1) as here:
        hunt.go(here, runs_max=runs, should_stop=is_done)
    return [found(entry) for entry in scene.entries]


def rows(scene: Scene, runs: int, seeds: int, place: Path) -> Iterator[tuple[str, float]]:
    """Lines of a scene's entries, each with how much longer uniform draws took."""
    counts = {
        share: [executions(scene, seed, share, runs, place) for seed in range(1, seeds + 1)]
        for share in (UNIFORM_SHARE, 1.0)
    }
    for number, entry in enumerate(scene.entries):
        guided, uniform = ([found[number] for found in some] for some in counts.values())
        cells = (
            ", ".join(f">{runs}" if n is None else str(n) for n in some)
            for some in (guided, uniform)
        )
        first, second = (
            median(runs if n is None else max(n, 1) for n in some) for some in (guided, uniform)
        )
        yield f"| {entry.name} | {entry.what} | {' | '.join(cells)} |\n", second / first


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="budget of each hunt, in executions")
    parser.add_argument("--seeds", type=int, default=3, help="hunts of each scene and way")
    parser.add_argument("--only", default="", help="names of entries, separated by commas")
    given = parser.parse_args()
    names = [name for name in given.only.split(",") if name]
    sys.stdout.write("| entry | what | guided | uniform |\n|---|---|---|---|\n")
    ratios = []
    with TemporaryDirectory() as place:
        for scene in SCENES:
            if names and not any(entry.name in names for entry in scene.entries):
                continue
            for line, ratio in rows(scene, given.runs, given.seeds, Path(place)):
                sys.stdout.write(line)
                sys.stdout.flush()
                ratios.append(ratio)
    if ratios:
        sys.stdout.write(f"\nmedian of uniform to guided: {median(ratios):.2g}\n")


if __name__ == "__main__":
    main()
