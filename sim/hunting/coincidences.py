"""Coincidences: pairs and triples of single faults, by how often they are to be expected.

Two independent faults of rates a and b per year, which last s and t, overlap a * b * (s + t) times
a year. The rates are assumptions, which a user replaces by what is known of the own machines; the
order of the findings is what they are for.

Source: K. Trivedi, "Probability and Statistics with Reliability, Queuing and Computer Science
Applications", chapter 8, for alternating renewal processes whose repairs are short.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import Any, Final

from sim.errors import SimulationError
from sim.faults.disks import SlowDisk
from sim.faults.hosts import PowerLoss
from sim.faults.links import NetworkPartition
from sim.faults.process import Crash, Pause, RollingRestart
from sim.hunting.replay import Replay, replay
from sim.hunting.sought import Sought
from sim.scenario.loader import load_data
from sim.scenario.text.problems import nearest
from sim.scenario.text.quantities import QuantityError, parse_duration
from sim.suite.pool import ShouldStop
from sim.suite.single_faults import SingleFault
from sim.units import HOUR, MINUTE, SECOND, Micros

DAY: Final[Micros] = 24 * HOUR
YEAR: Final[Micros] = 365 * DAY


@dataclass(frozen=True, slots=True)
class Rate:
    """One component's mean time between failures, and to repair."""

    mtbf_us: Micros
    mttr_us: Micros

    @property
    def per_year(self) -> float:
        """Failures of one component in a year."""
        return YEAR / self.mtbf_us


RATES: Final[Mapping[str, Rate]] = {
    Crash.kind: Rate(90 * DAY, 5 * MINUTE),
    Pause.kind: Rate(30 * DAY, 15 * SECOND),
    PowerLoss.kind: Rate(2 * YEAR, HOUR),
    NetworkPartition.kind: Rate(180 * DAY, 5 * MINUTE),
    SlowDisk.kind: Rate(YEAR, HOUR),
    RollingRestart.kind: Rate(30 * DAY, 10 * MINUTE),
}
"""Assumed of each component, by the kind of its fault: there is no number that holds for all."""


@dataclass(frozen=True, slots=True)
class Coincidence:
    """Faults that happen at one time."""

    name: str
    """A file's name."""
    words: str
    faults: tuple[SingleFault, ...]
    per_year: float
    """Times in which it is to be expected."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A run of a coincidence."""

    number: int
    data: Mapping[str, Any]
    seed: int
    sought: tuple[Sought, ...]


def rates_of(words: Sequence[str]) -> dict[str, Rate]:
    """The rates, those of ``KIND=MTBF/MTTR`` replaced.

    Raises:
        SimulationError: For anything else.
    """
    found = dict(RATES)
    for word in words:
        kind, _, times = word.partition("=")
        mtbf, slash, mttr = times.partition("/")
        if kind not in RATES:
            hint = nearest(kind, tuple(RATES))
            raise SimulationError(
                f"--mtbf {word}: found {kind!r}; allowed: {', '.join(RATES)}"
                f"{f'; {hint}' if hint else ''}"
            )
        try:
            rate = Rate(
                parse_duration(mtbf), parse_duration(mttr) if slash else RATES[kind].mttr_us
            )
        except QuantityError as error:
            raise SimulationError(
                f"--mtbf {word}: {error.found}; allowed: KIND=MTBF or KIND=MTBF/MTTR, as in "
                f"{Crash.kind}=2160h/5min"
            ) from None
        if not rate.mtbf_us:
            raise SimulationError(f"--mtbf {word}: found no time; allowed: more than zero")
        found[kind] = rate
    return found


def coincidences(
    faults: Sequence[SingleFault], size: int, rates: Mapping[str, Rate]
) -> list[Coincidence]:
    """All of one size, the most frequent first.

    Args:
        faults: Single faults; none of which does the harm alone.
        size: How many at one time.
        rates: By kind.
    """
    found = [_of(some, rates) for some in combinations(faults, size)]
    return sorted(found, key=lambda each: (-each.per_year, each.name))


def data_of(base: Mapping[str, Any], some: Coincidence) -> dict[str, Any]:
    """The scenario in which they happen.

    Args:
        base: The scenario of one single fault, from which run, clients and window are taken.
        some: Which.
    """
    (entry,) = base["faults"]
    faults = [{"at": entry["at"], **fault.entry} for fault in some.faults]
    return {**{k: v for k, v in base.items() if k != "expect"}, "faults": faults}


def tried(trial: Trial, should_stop: ShouldStop) -> Replay | None:
    """Run one; ``None`` if the faults cannot be together, or its cluster does not come up."""
    try:
        scenario = load_data(trial.data)
        return replay(scenario, trial.seed, trial.sought, should_stop=should_stop)
    except SimulationError:
        return None


def is_known(hits: Sequence[Sequence[str]], known: Sequence[Sequence[Sequence[str]]]) -> bool:
    """True if another one has hit the same servers with the same kinds of faults."""
    return _whom(hits) in [_whom(each) for each in known]


def frequency(per_year: float) -> str:
    """A rate in words: ``4 times a year``, ``once in 120 years``."""
    if per_year >= 1:
        return f"{per_year:.0f} times a year" if per_year >= 1.5 else "once a year"
    return f"once in {1 / per_year:,.0f} years"


def _of(some: Sequence[SingleFault], rates: Mapping[str, Rate]) -> Coincidence:
    known = [rates[str(fault.entry["do"])] for fault in some]
    # Each of them may begin last, while all others last.
    overlap = sum(
        prod(other.mttr_us / YEAR for n, other in enumerate(known) if n != last)
        for last in range(len(known))
    )
    per_year = prod(rate.per_year for rate in known) * overlap
    words = " and ".join(
        fault.words if n == 0 else fault.words[0].lower() + fault.words[1:]
        for n, fault in enumerate(some)
    )
    return Coincidence("+".join(fault.name for fault in some), words, tuple(some), per_year)


def _whom(hits: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """Kinds and names, without the instants."""
    return sorted((hit[0], *hit[3:]) for hit in hits)
