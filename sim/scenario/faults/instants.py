"""Instants of faults: those relative to another fault become instants of the run.

Where the other fault's instant is left to the seed, so is that of the one that follows it: known
are the window in which it can lie, and the distance that it keeps.
"""

import re
from collections.abc import Sequence
from typing import TypeAlias

from sim.faults.after import After, CycleError, in_order
from sim.faults.fault import Fault
from sim.scenario.schema import faults as schema
from sim.scenario.text.instants import FAULT_NAME_PATTERN, show_instant
from sim.scenario.text.problems import Problem, nearest, one_of
from sim.scenario.text.quantities import show_duration
from sim.units import Micros

Window: TypeAlias = tuple[Micros, Micros]


class Instants:
    """Instants of all entries of ``faults``.

    Args:
        models: The entries.

    Raises:
        Problem: If entries wait for each other; with the place of one as its path.
    """

    def __init__(self, models: Sequence[schema.FaultModel]) -> None:
        self._models = models
        self._places: dict[str, int] = {}
        for place, model in enumerate(models):
            if model.name is not None:
                self._places.setdefault(model.name, place)
        self._windows: dict[int, Window | None] = {}
        self._problems: dict[int, Problem] = {}
        for place in self._order():
            other = self._followed(place)
            if other is not None and other not in self._windows:
                continue
            try:
                self._windows[place] = self._window(place)
            except Problem as problem:
                self._problems[place] = problem

    @property
    def places(self) -> Sequence[int]:
        """Entries in the order of the file, without those that follow one with a mistake."""
        return sorted((*self._windows, *self._problems))

    def of(self, place: int) -> tuple[Window | None, After | None]:
        """An entry's window, ``None`` if it has none; what it follows, if the seed draws that.

        Raises:
            Problem: If it has a mistake; its path starts below the entry.
        """
        if place in self._problems:
            raise self._problems[place]
        at = self._models[place].at
        if not isinstance(at, After):
            return at, None
        low, high = self._windows[self._places[at.name]] or (0, 0)
        return self._windows[place], at if low < high else None

    def _order(self) -> Sequence[int]:
        """Places so that each comes behind the one that it follows."""
        try:
            return in_order({place: self._followed(place) for place in range(len(self._models))})
        except CycleError as error:
            (first, *_) = places = error.args[0]
            chain = ", ".join(f"{self._models[place].name}" for place in (*places[1:], first))
            found = f"{self._models[first].name} follows {chain}"
            raise Problem(
                (first, "at"), found, "an instant that does not wait for itself"
            ) from None

    def _followed(self, place: int) -> int | None:
        at = self._models[place].at
        return self._places.get(at.name) if isinstance(at, After) else None

    def _window(self, place: int) -> Window | None:
        model = self._models[place]
        self._check_name(place)
        if not isinstance(model.at, After):
            return model.at
        at = model.at
        if at.name not in self._places:
            names = tuple(self._places)
            remedy = nearest(at.name, names) or f"add name: {at.name} to the fault that is meant"
            known = one_of(names) or "names of faults, of which none is given"
            raise Problem(("at",), f"no fault is named {at.name!r}", known, remedy)
        return self._following(at, self._places[at.name])

    def _following(self, at: After, place: int) -> Window:
        other = self._models[place]
        base = self._windows[place]
        if base is None:
            found = f"{at.name} has no instant of its own"
            raise Problem(("at",), found, "a fault that has at")
        lasts = getattr(other, "for_", None)
        if at.from_end and lasts is None:
            raise Problem(("at",), *_without_end(at.name, other.kind, place))
        low, high = at.window_us(lasts)
        if base[0] + low < 0:
            early = show_duration(-base[0] - low)
            found = f"{show_instant(at)!r} is {early} before the run begins"
            raise Problem(("at",), found, "an instant of the run", f"start {at.name} later")
        return base[0] + low, base[1] + high

    def _check_name(self, place: int) -> None:
        model = self._models[place]
        name = model.name
        if name is None:
            return
        if not re.fullmatch(FAULT_NAME_PATTERN, name, re.ASCII):
            allowed = "a letter, then letters, digits, '.', '_' and '-'"
            raise Problem(("name",), f"the name {name!r}", allowed)
        if self._places[name] != place:
            found = f"{name!r} is faults[{self._places[name]}] already"
            raise Problem(("name",), found, "a name of its own")
        if getattr(model, "every", None) is not None:
            raise Problem(("name",), "name beside every", "a name of one fault", "remove name")


def _without_end(name: str, kind: type[Fault], place: int) -> tuple[str, str, str]:
    """Found, allowed and remedy of an end that is not known beforehand."""
    allowed = "end of a fault that has for"
    if kind.span == "lasting":
        found = f"{name} has no end before that of the run"
        return found, allowed, f"give faults[{place}] a duration with for"
    found = f"{name} is a {kind.kind}, which has no duration"
    return found, allowed, f"write {name} + 5s, from its beginning on"
