"""A run with clusters in several regions: each is a run of its own, in one simulated time.

Each cluster has its own network, chance, trace, judge and directory; what joins them are mirrors.
"""

import hashlib
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, cast

from sim.checking.durability import Judge
from sim.checking.outcomes.mirroring import COUNTS, Mirroring
from sim.nodes.apps.mirror import MirrorNode
from sim.rng import Streams
from sim.scenario.build import mirrors as mirror_runs
from sim.scenario.build.cluster import Builder
from sim.scenario.expect.bounds import Held
from sim.scenario.model.apps import MirrorSpec
from sim.scenario.run.result import ANSWERS, Result
from sim.trace.writer import Listener, Trace

CLUSTERS: Final = "clusters"
"""Directory of the other clusters' run directories."""

_SEED_BITS: Final = 48


def seed_of(seed: int, alias: str) -> int:
    """The seed of another cluster's chance: its own, and the same for the same run."""
    return int(Streams(seed).named(f"cluster/{alias}").unit() * (1 << _SEED_BITS))


@dataclass(frozen=True, slots=True)
class Others:
    """Results of the other clusters."""

    held: tuple[Held, ...] = ()
    """Their expectations; ``where`` says of which cluster."""
    unaffected: tuple[str, ...] = ()
    """Their faults that never took effect."""
    unserved: tuple[str, ...] = ()
    """Their topics that did not take what they were sent."""
    verdict: Mapping[str, object] = field(default_factory=dict)
    """The part of the run's verdict that is about them; nothing without any."""


class Region:
    """The run of one cluster, as far as those of the others know it."""

    builder: Builder
    trace: Trace
    judge: Judge

    @abstractmethod
    def add_mirror(self, name: str) -> int:
        """A mirror writes to this cluster; returns its number among the cluster's producers."""

    @abstractmethod
    def conclude(self, *, complete: bool) -> Result:
        """Judge, and write down what came of it."""

    @abstractmethod
    def leave_readable(self) -> None:
        """Close what is being written, however the run ended."""


class Regions:
    """The other clusters of a run, and the mirrors between them and its own.

    Args:
        own: The run of the scenario's own cluster.
        others: Those of the others, in the order of the file.
    """

    def __init__(self, own: Region, others: Sequence[Region]) -> None:
        self.mirrors: list[MirrorNode] = []
        self._own = own
        self._others = others
        self._judged: list[tuple[MirrorSpec, Mirroring, Region]] = []
        self._results: list[Result] = []
        scenario = own.builder.scenario
        self._clusters = scenario.clusters
        by_alias = {
            cluster.alias: (cluster, region)
            for cluster, region in zip(scenario.clusters, others, strict=True)
        }
        for spec in scenario.mirrors:
            cluster, region = by_alias[spec.target]
            index = region.add_mirror(spec.name)
            node = mirror_runs.build(spec, own.builder, region.builder, cluster, index)
            self.mirrors.append(node)
            self._judge(spec, index, region)

    def _judge(self, spec: MirrorSpec, index: int, target: Region) -> None:
        judge = Mirroring(index, spec.topic, spec.target_topic, spec.groups)
        listeners: tuple[tuple[Region, str, object], ...] = (
            (target, "mirrored", judge.mirrored),
            (self._own, "reads", judge.read_source),
            (target, "reads", judge.read_target),
            (target, "positions", judge.position),
        )
        for side, table, listener in listeners:
            # The schema gives each row its shape; the trace itself carries rows of any.
            side.trace.table(table).listeners.append(cast("Listener", listener))
        self._judged.append((spec, judge, target))

    def verdict(self) -> dict[str, object]:
        """The part of the verdict that is about mirrors; nothing without any."""
        if not self._judged:
            return {}
        found: dict[str, dict[str, object]] = {}
        for spec, judge, target in self._judged:
            source = self._own.judge.histories(judge.source)
            found[spec.name] = judge.verdict(source, target.judge.histories(judge.target))
        totals: dict[str, object] = {
            name: sum(cast("int", each[name]) for each in found.values()) for name in COUNTS
        }
        away = [cast("int", m["away_max_us"]) for m in found.values() if "away_max_us" in m]
        if away:
            totals["away_max_us"] = max(away)
        return {"mirroring": {**totals, "mirrors": found}}

    def conclude(self, *, complete: bool) -> Others:
        """Judge the other clusters, and leave their directories readable."""
        held: list[Held] = []
        unaffected: list[str] = []
        refused: list[str] = []
        answers: dict[str, dict[str, object]] = {}
        for other, region in zip(self._clusters, self._others, strict=True):
            result = region.conclude(complete=complete)
            self._results.append(result)
            answers[other.alias] = {name: result.verdict[name] for name in (*ANSWERS, "answer")}
            for line in result.expectations:
                where = ", ".join(
                    part for part in (f"cluster {other.alias}", line["where"]) if part
                )
                held.append(Held(**{**line, "where": where}))
            unaffected += [f"cluster {other.alias}: {text}" for text in result.unaffected_faults]
            refused += [f"cluster {other.alias}: {text}" for text in result.unserved]
        verdict = {CLUSTERS: answers} if answers else {}
        return Others(tuple(held), tuple(unaffected), tuple(refused), verdict)

    def leave_readable(self) -> None:
        """However the run ended."""
        for region in self._others:
            region.leave_readable()

    def on_card(self, card: dict[str, object]) -> dict[str, object]:
        """The run card with the other clusters': its digests are of all clusters together."""
        cards = {
            other.alias: result.card
            for other, result in zip(self._clusters, self._results, strict=False)
        }
        if not cards:
            return card
        for name in ("trace_digest", "disk_digest"):
            digests = [card[name], *(each.get(name, "") for each in cards.values())]
            if all(digests):
                card[name] = hashlib.sha256("/".join(map(str, digests)).encode()).hexdigest()
        return card | {"clusters": {alias: dict(each) for alias, each in cards.items()}}
