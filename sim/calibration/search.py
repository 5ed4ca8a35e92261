"""Search for the least of a function of few numbers, one coordinate at a time.

Deterministic, and without derivatives: percentiles of a run are steps. Coordinates are logarithms,
since each of them is a scale.

Source: R. P. Brent, "Algorithms for Minimization without Derivatives", 1973: parabolas where they
hold, golden sections where they do not.
"""

from collections.abc import Callable, Mapping, Sequence
from math import exp, log, sqrt
from typing import Final

from sim.calibration.parameters import Parameter

_GOLDEN: Final = (sqrt(5) - 1) / 2

WIDTH: Final = 0.1
"""Logarithm of the factor within which the least place is known in the end."""

NEAR: Final = 0.2
"""The same of a search near a start."""

ROUGH: Final = 0.4
"""The same of the first of several sweeps: the other coordinates still move."""

NARROW: Final = log(3)
"""Half a bracket, as a logarithm, once a coordinate has been searched as a whole."""

Objective = Callable[[Mapping[str, float]], float]


def least(
    objective: Objective,
    parameters: Sequence[Parameter],
    start: Mapping[str, float],
    *,
    sweeps: int,
    is_near: bool = False,
) -> dict[str, float]:
    """Values of the parameters at which the objective is least.

    Args:
        objective: Of values by name; parameters that are not searched keep those of ``start``.
        parameters: What is searched, in this order.
        start: Values of all parameters.
        sweeps: Times that each coordinate is searched; one sweep if there is only one.
        is_near: True for a search near ``start``, in a narrow bracket.
    """
    best = dict(start)
    sweeps = sweeps if len(parameters) > 1 else 1
    for sweep in range(sweeps):
        width = NEAR if is_near else ROUGH if sweep < sweeps - 1 else WIDTH
        for parameter in parameters:
            low, high = log(parameter.low), log(parameter.high)
            if is_near or sweep:
                middle = log(best[parameter.name])
                low, high = max(low, middle - NARROW), min(high, middle + NARROW)
            _along(objective, parameter.name, best, (low, high), width)
    return best


def _along(
    objective: Objective,
    name: str,
    best: dict[str, float],
    bracket: tuple[float, float],
    width: float,
) -> None:
    """Replaces one coordinate by the best that was tried; never by a worse one."""
    value = best[name]
    found: dict[float, float] = {}
    place: float | None = log(value)
    while place is not None:
        at = value if place == log(value) else exp(place)
        found[place] = objective({**best, name: at})
        place = _next_place(found, bracket, width)
    least_place = min(found, key=lambda each: (found[each], each))
    best[name] = value if least_place == log(value) else exp(least_place)


def _next_place(
    found: Mapping[float, float], bracket: tuple[float, float], width: float
) -> float | None:
    """Place to be tried next; ``None`` once the least one is known closely enough.

    It is the vertex of the parabola through the least place and both of its neighbours, as the
    squared logarithm of a latency by a parameter's logarithm nearly is one; a golden section of the
    longer side where there are no three such places, or where the vertex is known already. Of
    equals the lower one is the least: where nothing depends on a coordinate any more, it stays
    small.
    """
    middle = min(found, key=lambda place: (found[place], place))
    left = max((place for place in found if place < middle), default=bracket[0])
    right = min((place for place in found if place > middle), default=bracket[1])
    below, above = middle - left, right - middle
    if max(below, above) <= width:
        return None
    if below > 0 and above > 0 and left in found and right in found:
        vertex = _vertex(*[(place, found[place]) for place in (left, middle, right)])
        if abs(vertex - middle) <= width / 2 and below + above <= NARROW:
            return None
        if min(vertex - left, right - vertex, abs(vertex - middle)) > width / 2:
            return vertex
    longer = below if below > above else -above
    return middle - longer * (1 - _GOLDEN)


def _vertex(
    left: tuple[float, float], middle: tuple[float, float], right: tuple[float, float]
) -> float:
    """Least place of the parabola through three points, of which the middle one is no higher."""
    below, above = middle[0] - left[0], right[0] - middle[0]
    falls, rises = (left[1] - middle[1]) / below, (right[1] - middle[1]) / above
    if falls + rises <= 0:
        return middle[0]
    return (left[0] + middle[0]) / 2 + (below + above) / 2 * falls / (falls + rises)
