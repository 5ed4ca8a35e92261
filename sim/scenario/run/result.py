"""Result of a run: its verdict and its directory, and frames for a notebook."""

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sim.errors import SimulationError
from sim.levels import Level
from sim.scenario.expect.bounds import Held
from sim.scenario.run.answer import lines as answer_lines
from sim.trace.kept import check_kept
from sim.trace.schema import BY_NAME
from sim.units import Micros

if TYPE_CHECKING:
    from pandas import DataFrame


DISPUTED: Final = "brokers and clients differ on what was acknowledged"
"""Words about a cluster where either of :data:`ANSWERS` is not 0."""

ANSWERS: Final = ("ok_unanswered", "answered_untold")
"""Numbers of a verdict that say on how many acknowledged records the two sides differ."""

_INK: Final[dict[Level, str]] = {"green": "#1a7f37", "amber": "#9a6700", "red": "#cf222e"}
"""Colours that can be read on white and on black."""

_ALWAYS_SHOWN = ("sent", "acked", "failed", "unknown", "survived", "lost_acked", "duplicated")
"""Numbers of records that a notebook shows although they are zero."""


def disputes(verdict: Mapping[str, Any]) -> str:
    """Say in which clusters brokers and clients differ on what was acknowledged.

    Args:
        verdict: Content of ``verdict.json``; ``clusters`` has the other clusters' numbers.

    Returns:
        Empty if they differ nowhere. Otherwise the run is a defect of the simulator.
    """
    clusters = {"": verdict, **verdict.get("clusters", {})}
    return "; ".join(
        f"cluster {alias}: {DISPUTED}" if alias else DISPUTED
        for alias, counted in clusters.items()
        if any(counted.get(name) for name in ANSWERS)
    )


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a run, for a progress bar."""

    phase: str
    """``boot``, ``run``, ``drain``, ``judge``."""
    now_us: Micros
    until_us: Micros
    """End of the phase, as far as it is known."""
    events: int
    """Kernel events so far."""
    faults_begun: int
    faults: int


@dataclass(frozen=True, slots=True)
class Result:
    """One finished (or interrupted) run.

    ``verdict`` is the content of ``verdict.json``; ``card`` that of ``run.json``.
    """

    scenario: str
    seed: int
    directory: Path
    complete: bool
    card: Mapping[str, object]
    verdict: Mapping[str, object]
    expectations: tuple[Held, ...]
    unaffected_faults: tuple[str, ...]
    """Faults that never took effect, in words: a run with any is not a pass."""
    unserved: tuple[str, ...] = ()
    """Topics that did not take what producers sent, although no expectation says that they would
    not (:mod:`sim.scenario.expect.unserved`): a run with any is not a pass."""

    @property
    def held(self) -> bool:
        """True if the run is a pass.

        It is complete, every expectation held, every fault took effect, and every topic took what
        it was sent.
        """
        return (
            self.complete
            and not self.unaffected_faults
            and not self.unserved
            and all(line["held"] for line in self.expectations)
        )

    def table(self, name: str) -> "DataFrame":
        """One trace table as a pandas frame, one row per fact; see ``docs/results.md``.

        Raises:
            SimulationError: If there is no such table, or it was not written at this tracing level.
        """
        if name not in BY_NAME:
            known = ", ".join(BY_NAME)
            raise SimulationError(f"no trace table {name!r}; tables are {known}")
        check_kept(self.directory, "trace")
        files = self.directory / "trace" / name
        if not files.is_dir():
            raise SimulationError(f"{files}: not written; run with tracing level 'detail'")
        import pyarrow.parquet as pq  # noqa: PLC0415 - only notebooks need it

        frame: DataFrame = pq.read_table(files).to_pandas()
        return frame

    def _repr_html_(self) -> str:
        records = self.verdict.get("records")
        numbers = records if isinstance(records, Mapping) else {}
        cells = "".join(
            f"<tr><th style='text-align:left'>{escape(str(name))}</th><td>{value:,}</td></tr>"
            for name, value in numbers.items()
            if isinstance(value, int) and (value or name in _ALWAYS_SHOWN)
        )
        lines = "".join(
            f"<li>{'held' if line['held'] else '<b>BROKEN</b>'}: {escape(line['name'])} "
            f"{escape(line['asked'])}, found {escape(line['shown'])}</li>"
            for line in self.expectations
        )
        heading = "held" if self.held else "did not hold"
        return (
            f"<h4>{escape(self.scenario)}, seed {self.seed}: {heading}</h4>"
            f"{self._answer_html()}<table>{cells}</table><ul>{lines}</ul>"
        )

    def _answer_html(self) -> str:
        found = self.verdict.get("answer")
        if not isinstance(found, Mapping):
            return ""
        rows = "".join(
            f"<tr><th style='text-align:left;color:{_INK[level]}'>{name}</th>"
            f"<td style='text-align:left'>{escape(text)}</td></tr>"
            for name, level, text in answer_lines(found)
        )
        faults = "".join(
            f"<li style='color:{_INK[fault['level']]}'>{escape(fault['text'])}</li>"
            for fault in found["faults"]
        )
        return f"<table>{rows}</table><ul>{faults}</ul>"
