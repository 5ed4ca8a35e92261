"""The shortest ways to lose data, for ``logquake verdict --faults 2``."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sim.cli.screen import step_bar
from sim.hunting import sought as looked
from sim.hunting.capsule import ENDING
from sim.hunting.coincidences import (
    Coincidence,
    Rate,
    Trial,
    coincidences,
    data_of,
    frequency,
    is_known,
    tried,
)
from sim.hunting.fingerprint import Finding
from sim.hunting.replay import Replay
from sim.hunting.shrinking.result import files_of, save
from sim.hunting.shrinking.shrink import Shrinker
from sim.scenario.text.yaml import read
from sim.suite.fault_outcomes import FaultOutcome
from sim.suite.pool import Pool
from sim.suite.survey import Survey

SHOWN: Final = 5
"""Ways that are shrunk and shown."""

SOUGHT: Final = looked.parse("lost_acked")


@dataclass(frozen=True, slots=True)
class Way:
    """One way to lose data."""

    coincidence: Coincidence
    finding: Finding
    seed: int
    data: Mapping[str, Any]
    capsule: str = ""

    def lines(self) -> Iterator[str]:
        """In sentences, with the command that shows it."""
        often = frequency(self.coincidence.per_year)
        yield f"{self.coincidence.words}: loses acknowledged records ({self.finding.fingerprint})"
        yield f"    to be expected {often}, by the rates that are assumed"
        if self.capsule:
            yield f"    logquake check {self.capsule}"

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "faults": [fault.name for fault in self.coincidence.faults],
            "words": self.coincidence.words,
            "per_year": self.coincidence.per_year,
            "fingerprint": self.finding.fingerprint,
            "seed": self.seed,
            "capsule": self.capsule,
        }


class Ways:
    """Search for ways to lose data, after the single faults of a survey have been tried.

    Args:
        survey: The single faults.
        answers: What came of them.
        rates: By kind of fault.
        pool: Processes.
        processes: How many.
        should_stop: Asked now and then: a signal, or the end of the budget.
    """

    def __init__(
        self,
        survey: Survey,
        answers: Sequence[FaultOutcome],
        rates: Mapping[str, Rate],
        pool: Pool,
        processes: int,
        should_stop: Callable[[], bool],
    ) -> None:
        self._survey = survey
        self._rates = rates
        self._pool = pool
        self._processes = processes
        self._should_stop = should_stop
        self._seeds = tuple(dict.fromkeys(job.seed for job in survey.jobs))
        known = {words for each in answers if each.lost for words in (each.words, *each.also)}
        also = {words for each in answers for words in each.also}
        faults = [fault for fault, _ in survey.faults if fault is not None]
        self._losing = [f for f in faults if f.words in known and f.words not in also]
        self._others = [f for f in faults if f.words not in known and f.words not in also]
        file = next(file for fault, file in survey.faults if fault is not None)
        data = read(Path(file).read_text(encoding="utf-8"), file).data
        assert isinstance(data, dict), "the survey has written it"
        self._base: dict[str, Any] = data
        self.untried = 0
        """Coincidences for which there was no time."""
        self.runs = 0

    def search(self, most: int) -> list[Way]:
        """Ways with at most so many faults: fewest first, and of those the most frequent."""
        found: list[Way] = []
        hits: list[Sequence[Sequence[str]]] = []
        with step_bar("ways to lose data") as on_step:
            for size in range(1, most + 1):
                some = self._losing if size == 1 else self._others
                for each in coincidences(some, size, self._rates):
                    if self._should_stop():
                        self.untried += 1
                        continue
                    on_step(each.words)
                    way, seen = self._try(each)
                    if way is not None and not is_known(seen, hits):
                        found.append(way)
                        hits.append(seen)
            return [self._shrunk(way, n) for n, way in enumerate(found[:SHOWN], 1)] + found[SHOWN:]

    def _try(self, some: Coincidence) -> tuple[Way | None, Sequence[Sequence[str]]]:
        """Run one with each seed; a way of the first seed that loses."""
        data = data_of(self._base, some)
        trials = [Trial(n, data, seed, SOUGHT) for n, seed in enumerate(self._seeds)]
        results: dict[int, Replay] = {}
        for number, result in self._pool.results(tried, trials, self._should_stop):
            self.runs += 1
            if result is not None and result.complete:
                results[number] = result
        for number in sorted(results):
            for finding in results[number].findings:
                way = Way(some, finding, self._seeds[number], data)
                return way, results[number].hits
        return None, ()

    def _shrunk(self, way: Way, number: int) -> Way:
        """The same with a capsule of its shrunk scenario; as it is if there is no time."""
        name = f"{number}-{way.coincidence.name}{ENDING}"
        files = files_of(self._survey.directory / "ways" / name, force=True)
        shrinker = Shrinker(
            way.finding,
            SOUGHT,
            way.seed,
            self._pool,
            self._processes,
            should_stop=self._should_stop,
        )
        found = shrinker.shrink(dict(way.data))
        self.runs += found.runs
        origin = f"{way.coincidence.words}, in the verdict of {self._survey.name}"
        save(files, found, way.seed, SOUGHT, way.finding, origin)
        capsule = files.capsule.as_posix()
        return Way(way.coincidence, way.finding, way.seed, found.data, capsule)
