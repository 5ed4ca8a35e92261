"""Schedules: faults, a seed and settings; drawn, mutated and crossed."""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, Final

from sim.errors import ScenarioError
from sim.hunting.search.menu import Menu, Strike, micros
from sim.hunting.search.nearness import NEAR
from sim.hunting.search.points import DATA_PATH, Point
from sim.rng import Stream
from sim.scenario.loader import load_data
from sim.scenario.overrides import apply as changes
from sim.scenario.overrides.vary import Variation
from sim.scenario.scenario import Scenario
from sim.scenario.text.quantities import show_duration
from sim.scenario.text.yaml import Document, ReadError
from sim.units import MS, SECOND, Micros

_SEEDS: Final = 1 << 31
_TRIES: Final = 40
"""Draws of one schedule; most that are refused have two faults of a kind on a target at once."""

_NEAR_SHARE: Final = 0.4
"""Share of aims at a moment at which few copies were left, in a run that had one."""
_DATA_SHARE: Final = 0.25
"""Share of aims at a step of a record: what is acknowledged is what can be lost."""

_MUTATIONS: Final = (1, 1, 1, 2, 2, 3)
"""Changes of a child: most keep what made their parent worth it."""

_SHIFTS: Final[tuple[Micros, ...]] = (MS, 10 * MS, 100 * MS, SECOND, 5 * SECOND)


@dataclass(frozen=True, slots=True)
class Schedule:
    """Faults of a run, and its chance."""

    faults: tuple[Mapping[str, Any], ...] = ()
    seed: int = 1
    sets: tuple[str, ...] = ()
    """Settings that are tried, ``KEY=VALUE`` each."""

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"faults": [dict(f) for f in self.faults], "seed": self.seed, "sets": [*self.sets]}


def from_json(plain: Mapping[str, Any]) -> Schedule:
    """The schedule that :meth:`Schedule.as_json` gave."""
    return Schedule(tuple(plain["faults"]), int(plain["seed"]), tuple(plain["sets"]))


def data_of(base: Mapping[str, Any], schedule: Schedule) -> dict[str, Any]:
    """The scenario with a schedule, as a file would have it; it expects nothing.

    Raises:
        ScenarioError: If a setting cannot be applied.
    """
    document = Document(deepcopy(dict(base)))
    try:
        changes.apply(document, schedule.sets)
    except ReadError as error:
        raise ScenarioError(f"{error.origin}: {error.problem}") from None
    assert isinstance(document.data, dict)
    data = {key: value for key, value in document.data.items() if key not in ("faults", "expect")}
    data["faults"] = [dict(fault) for fault in schedule.faults]
    data["run"] = {**data["run"], "seed": schedule.seed}
    return data


@dataclass(frozen=True, slots=True)
class Parent:
    """A schedule that was run, and the points that its run came to."""

    schedule: Schedule
    points: tuple[Point, ...] = ()


@dataclass(slots=True)
class Breeder:
    """Makes schedules that can be run.

    Args:
        base: The scenario, as its file has it.
        menu: Faults.
        faults_max: Most faults of a schedule.
        variations: Settings that are varied.
    """

    base: Mapping[str, Any]
    menu: Menu
    faults_max: int
    variations: Sequence[Variation] = ()
    drawn: int = field(default=0)
    """Schedules that were drawn, those included that cannot be run."""

    def uniform(self, stream: Stream) -> tuple[Schedule, Scenario]:
        """A schedule without a parent.

        Raises:
            ScenarioError: If none of many draws can be run.
        """
        problem = ""
        for _ in range(_TRIES):
            count = 1 + stream.below(self.faults_max)
            faults: list[Strike] = []
            for _ in range(count):
                faults.append(self.menu.following(faults, stream))
            made = Schedule(tuple(faults), stream.below(_SEEDS), self._sets(stream))
            scenario, problem = self._loaded(made)
            if scenario is not None:
                return made, scenario
        raise ScenarioError(f"no schedule can be run: {problem}")

    def child(self, parents: Sequence[Parent], stream: Stream) -> tuple[Schedule, Scenario]:
        """A schedule made of one parent, or two.

        Raises:
            ScenarioError: As :meth:`uniform`.
        """
        for _ in range(_TRIES):
            made = self._crossed(parents, stream) if len(parents) > 1 else parents[0].schedule
            for _ in range(_MUTATIONS[stream.below(len(_MUTATIONS))]):
                made = self._mutated(made, parents[0], stream)
            scenario, _ = self._loaded(made)
            if scenario is not None and made.faults and made != parents[0].schedule:
                return made, scenario
        return self.uniform(stream)

    def _loaded(self, made: Schedule) -> tuple[Scenario | None, str]:
        self.drawn += 1
        if self.menu.is_idle([dict(fault) for fault in made.faults]):
            return None, "a fault can have no effect"
        try:
            return load_data(data_of(self.base, made)), ""
        except ScenarioError as error:
            return None, str(error).partition("\n")[0]

    def _sets(self, stream: Stream) -> tuple[str, ...]:
        words: list[str] = []
        for variation in self.variations:
            words += variation.choices[stream.below(len(variation.choices))].overrides
        return tuple(words)

    def _crossed(self, parents: Sequence[Parent], stream: Stream) -> Schedule:
        first, second = parents[0].schedule, parents[1].schedule
        both = [*first.faults, *(f for f in second.faults if f not in first.faults)]
        size = min(self.faults_max, len(both))
        # The first parent's faults keep their places, and with them their streams of chance.
        kept = sorted(stream.shuffled(list(range(len(both))))[:size])
        return replace(first, faults=tuple(both[place] for place in kept))

    def _mutated(self, made: Schedule, parent: Parent, stream: Stream) -> Schedule:
        changes_of: tuple[Callable[[list[Strike], Stream], None], ...] = (
            self._add, self._add, self._shift, self._shift, self._align, self._align,
            self._lengthen, self._redraw, self._remove,
        )  # fmt: skip
        chance = stream.unit()
        if chance < 0.1:
            return replace(made, seed=stream.below(_SEEDS))
        if chance < 0.15 and self.variations:
            return replace(made, sets=self._sets(stream))
        faults = [dict(fault) for fault in made.faults]
        if not faults:
            self._add(faults, stream)
        elif chance < 0.6 and parent.points:
            self._aim(faults, parent.points, stream)
        else:
            changes_of[stream.below(len(changes_of))](faults, stream)
        return replace(made, faults=tuple(faults))

    def _aim(self, faults: list[Strike], points: Sequence[Point], stream: Stream) -> None:
        """A fault at a step that a machine has named: names that are rare count as much."""
        names = list(dict.fromkeys(point.name for point in points))
        chance = stream.unit()
        for group, share in ((NEAR, _NEAR_SHARE), (DATA_PATH, _DATA_SHARE)):
            known = [name for name in names if name in group]
            if known and chance < share:
                names = known
                break
            chance -= share
        name = names[stream.below(len(names))]
        some = [point for point in points if point.name == name]
        if name in DATA_PATH:
            # The first record of all has nothing behind it that could be lost.
            some = some[1:] or some
        self._put(faults, self.menu.aimed(some[stream.below(len(some))], stream), stream)

    def _add(self, faults: list[Strike], stream: Stream) -> None:
        self._put(faults, self.menu.following(faults, stream), stream)

    def _put(self, faults: list[Strike], strike: Strike, stream: Stream) -> None:
        """One more, behind the others; in a full schedule in the place of another.

        What began before it has led to the moment at which it strikes, and stays if it can.
        """
        if len(faults) < self.faults_max:
            faults.append(strike)
            return
        places = range(len(faults))
        later = [n for n in places if micros(faults[n]["at"]) >= micros(strike["at"])]
        some = later or list(places)
        faults[some[stream.below(len(some))]] = strike

    def _shift(self, faults: list[Strike], stream: Stream) -> None:
        strike = _one(faults, stream)
        if strike is not None:
            by = _SHIFTS[stream.below(len(_SHIFTS))] * (1 if stream.unit() < 0.5 else -1)
            strike["at"] = show_duration(max(micros(strike["at"]) + int(by * stream.unit()), 0))

    def _align(self, faults: list[Strike], stream: Stream) -> None:
        """One fault begins when another one begins or ends."""
        strike, other = _one(faults, stream), _one(faults, stream)
        if strike is not None and other is not None and strike is not other:
            ends = micros(other.get("for", "0s")) if stream.unit() < 0.5 else 0
            near = stream.between(-50, 50) * MS
            strike["at"] = show_duration(max(micros(other["at"]) + ends + near, 0))

    def _lengthen(self, faults: list[Strike], stream: Stream) -> None:
        strike = _one(faults, stream)
        if strike is not None and self.menu.kind_of(strike).span == "lasting":
            strike["for"] = self.menu.length(stream)
            if stream.unit() < 0.2:
                del strike["for"]

    def _redraw(self, faults: list[Strike], stream: Stream) -> None:
        """The same kind elsewhere, at the same instant."""
        if faults:
            place = stream.below(len(faults))
            drawn = self.menu.of_kind(self.menu.kind_of(faults[place]), stream)
            faults[place] = drawn | {"at": faults[place]["at"]}

    def _remove(self, faults: list[Strike], stream: Stream) -> None:
        if len(faults) > 1:
            faults.pop(stream.below(len(faults)))


def _one(faults: list[Strike], stream: Stream) -> Strike | None:
    return faults[stream.below(len(faults))] if faults else None
