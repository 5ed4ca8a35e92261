"""The verdict on a rehearsal, by the checker of simulated runs.

Rows of clients, controllers, processes, faults and segments become one trace in the order of time,
to which the checker listens as it does in a simulated run. Left out are invariants, which need rows
that only a simulated broker writes, and the brokers' own side of acknowledgements.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final

from sim.checking.durability import Judge
from sim.checking.fault_windows import FaultWindows
from sim.faults.injector import FaultReport
from sim.ids import NodeId
from sim.rehearsal import client_log
from sim.rehearsal.metadata import Cluster
from sim.rehearsal.segments import Segments
from sim.rehearsal.transactions import with_producer_ids
from sim.scenario.expect.bounds import Held, evaluate
from sim.scenario.expect.slicing import measured, slices
from sim.scenario.expect.stories import first_loss, with_stories
from sim.scenario.expect.unserved import unserved
from sim.scenario.run.answer import answer
from sim.scenario.run.directory import RunDirectory
from sim.scenario.run.result import ANSWERS, Result
from sim.scenario.scenario import Scenario
from sim.trace.emit import Emit
from sim.trace.schema import VERSION
from sim.trace.writer import Trace
from sim.units import Micros

_LEVEL: Final = "facts"


@dataclass(frozen=True, slots=True)
class Facts:
    """Remains of a rehearsal."""

    zero_us: Micros
    """The scenario's zero, in microseconds since 1970."""
    end_us: Micros
    complete: bool
    cluster: Cluster
    """The settled state at the end, with its rows."""
    brokers: Mapping[NodeId, tuple[Path, ...]]
    """Log directories of each broker."""
    logs: Sequence[Path]
    """Rows of the clients."""
    rows: Sequence[tuple[Micros, Emit]]
    """Of processes and faults."""
    reports: Sequence[FaultReport]
    instants: frozenset[int]
    """Faults without duration."""


class Judgement:
    """Writes the trace, judges it, and writes verdict and run card.

    Args:
        scenario: What was rehearsed.
        seed: Of its load.
        directory: The run directory.
        facts: What is judged.
        card: What the run card has of a rehearsal alone.
    """

    def __init__(
        self,
        scenario: Scenario,
        seed: int,
        directory: RunDirectory,
        facts: Facts,
        card: Mapping[str, object],
    ) -> None:
        self._scenario = scenario
        self._seed = seed
        self._directory = directory
        self._facts = facts
        self._own = card
        self._trace = Trace(directory.trace, level=_LEVEL)
        self._judge = Judge(self._trace)
        self._windows = FaultWindows(self._trace)
        self._slices = slices(scenario.expect, self._trace, scenario.run.for_us)

    def conclude(self) -> Result:
        """Judges, and writes down what came of it."""
        segments = Segments(self._facts.cluster, self._facts.zero_us, self._facts.end_us)
        for at, emit in self._rows(segments):
            self._trace.write(at, emit)
        verdict, held = self._verdict()
        self._trace.close()
        scenario, facts = self._scenario, self._facts
        unaffected = tuple(
            f"fault {r.fault} ({r.kind} of {r.target}): {r.effect}"
            for r in facts.reports
            if not r.took_effect and r.fault < len(scenario.faults)
        )
        refused = unserved(scenario.expect, verdict)
        verdict |= {
            "real": True,
            "complete": facts.complete,
            "expectations": held,
            "faults": [asdict(report) for report in facts.reports],
            "unserved": list(refused),
            "damaged_batches": segments.damaged,
            "held": facts.complete
            and not unaffected
            and not refused
            and all(line["held"] for line in held),
        }
        how = first_loss(verdict, self._directory.trace, facts.reports)
        verdict["answer"] = answer(verdict, how)
        self._directory.write_json("verdict.json", verdict)
        card = self._card()
        self._directory.write_card(card)
        return Result(
            scenario.name,
            self._seed,
            self._directory.path,
            facts.complete,
            card,
            verdict,
            tuple(held),
            unaffected,
            refused,
        )

    def _rows(self, segments: Segments) -> list[tuple[Micros, Emit]]:
        """Every row, in the order of time; of one instant in the order of their sources."""
        facts = self._facts
        appends = list(segments.rows(facts.brokers))
        clients = [row for log in facts.logs for row in client_log.rows(log, facts.zero_us)]
        known = with_producer_ids(clients, appends)
        rows = [*facts.cluster.rows, *facts.rows, *known, *appends]
        rows.sort(key=_instant)
        return rows

    def _verdict(self) -> tuple[dict[str, object], list[Held]]:
        end, expect = self._facts.end_us, self._scenario.expect
        windows = self._windows.report(end, self._judge.outages(), self._facts.instants)
        verdict = self._judge.verdict(end) | {"windows": windows}
        # No row says what the real brokers answered, or which error a consumer has caught.
        for name in (*ANSWERS, "consumer_errors"):
            del verdict[name]
        sliced = measured(expect, self._slices, self._judge, end)
        held = evaluate(expect, verdict, sliced)
        self._trace.close()
        trace, reports = self._directory.trace, self._facts.reports
        return verdict, with_stories(expect, held, verdict, trace, reports, sliced)

    def _card(self) -> dict[str, object]:
        """The run card: that of a simulated run, as far as it applies."""
        scenario = self._scenario
        return {
            "logquake": version("logquake"),
            "trace_schema": VERSION,
            "scenario": scenario.name,
            "claim": scenario.claim,
            "scenario_digest": scenario.digest,
            "seed": self._seed,
            "off_default": [asdict(option) for option in scenario.off_default],
            "level": _LEVEL,
            "simulated_us": self._facts.end_us,
            "run_us": scenario.run.for_us,
            "wall_us": self._directory.wall_us(),
            "events": 0,
            "rows": dict(self._trace.counts),
            "producers": list(scenario.producer_names),
            "trace_digest": "",
            "disk_digest": "",
            "complete": self._facts.complete,
            "kept": "all",
            **self._own,
        }


def _instant(row: tuple[Micros, Emit]) -> Micros:
    at, _ = row
    return at
