"""Probability of rare coincidences of failures: schedules of failures, sampled by importance.

Components fail and are repaired independently, with exponential times. Estimated is the chance that
within a span of time all members of some *set* are out at once. Where repairs take an hour and
failures years, plain sampling would see it in one of a million spans or fewer. So:

* A *cycle* begins when something fails while everything works, and ends when everything works
  again. The plain course of events is sampled as it is; at the beginning of each cycle a *branch*
  leaves it in which failures are as likely as repairs, and failures that bring a set closer to
  being out are chosen more often (failure biasing). The branch counts with its likelihood ratio.
* The first failure, and in a branch every next event, is forced to come within the span, and
  weighted by the chance that it does.

Every branch is counted where the plain course reached its cycle without a loss, so the sum of their
weights has exactly the estimated probability as its mean; its variance is estimated from the
sample.

Sources: E. E. Lewis, F. Böhm, "Monte Carlo simulation of Markov unreliability models" (1984) for
forcing and failure biasing; P. Shahabuddin, "Importance sampling for the simulation of highly
reliable Markovian systems" (1994) for balanced biasing; J. Carrasco (1992) for distances.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sim.rng import Stream

BIAS: Final = 0.5
"""Chance that the next event of a branch is a failure, where failures are rarer than that."""

NEAR: Final = 0.5
"""Share of a branch's failures that are drawn among those which bring a set closer to being out."""

STEPS_MAX: Final = 10_000
"""Events of one branch; more of them mean that repairs are slower than failures."""


@dataclass(frozen=True, slots=True)
class Component:
    """A component that fails and is repaired independently."""

    name: str
    failures_per_h: float
    """Above 0."""
    repairs_per_h: float
    """0: never repaired."""
    members: tuple[int, ...]
    """Members that are out with it, by number."""


@dataclass(frozen=True, slots=True)
class ProbabilityEstimate:
    """An estimate of a probability."""

    value: float
    error: float
    """Standard error."""
    samples: int

    @property
    def low(self) -> float:
        """Lower end of the 95 % interval."""
        return max(0.0, self.value - 1.959964 * self.error)

    @property
    def high(self) -> float:
        """Upper end of the 95 % interval."""
        return min(1.0, self.value + 1.959964 * self.error)


class Coincidence:
    """The chance that all members of some set are out at once.

    Args:
        components: Components that fail.
        sets: Members by number; a loss is when all of one set are out.
        span_h: Length of the span in hours; it begins with every component up.
    """

    def __init__(
        self, components: Sequence[Component], sets: Sequence[tuple[int, ...]], span_h: float
    ) -> None:
        self.components = tuple(components)
        self._span = span_h
        self.sets_of: dict[int, list[int]] = {}
        for place, members in enumerate(sets):
            for member in members:
                self.sets_of.setdefault(member, []).append(place)
        self.sizes = [len(members) for members in sets]
        self.failures_per_h = sum(component.failures_per_h for component in components)

    def estimate(self, stream: Stream, samples: int) -> ProbabilityEstimate:
        """The probability, from so many spans; at least two."""
        total = square = 0.0
        for _ in range(samples):
            weight = self._sample(stream)
            total += weight
            square += weight * weight
        value = total / samples
        variance = max(0.0, square / samples - value * value) / (samples - 1)
        return ProbabilityEstimate(value, math.sqrt(variance), samples)

    def _sample(self, stream: Stream) -> float:
        """One plain course of a span: the weights of the branches that leave it."""
        if not self.components:
            return 0.0
        within = -math.expm1(-self.failures_per_h * self._span)
        now = -math.log1p(-stream.unit() * within) / self.failures_per_h
        found = 0.0
        while now < self._span:
            first = self._plain_failure(stream)
            found += self._branch(stream, first, now)
            now, is_lost = self._plain_cycle(stream, first, now)
            if is_lost:
                break
            now += _exponential(stream, self.failures_per_h)
        return found * within

    def _plain_failure(self, stream: Stream) -> int:
        """Component that fails first when all work."""
        mark = stream.unit() * self.failures_per_h
        for place, component in enumerate(self.components):
            mark -= component.failures_per_h
            if mark < 0:
                return place
        return len(self.components) - 1

    def _plain_cycle(self, stream: Stream, first: int, now: float) -> tuple[float, bool]:
        """End of the cycle that begins with a failure, and true if a set was out in it."""
        state = _State(self, first)
        while not state.is_lost:
            if not state.down:
                return now, False
            failures, repairs = state.rates()
            now += _exponential(stream, failures + repairs)
            if now >= self._span:
                return now, False
            mark = stream.unit() * (failures + repairs)
            for place, component in enumerate(self.components):
                is_down = place in state.down
                mark -= component.repairs_per_h if is_down else component.failures_per_h
                if mark < 0:
                    state.flip(place)
                    break
        return now, True

    def _branch(self, stream: Stream, first: int, now: float) -> float:
        """Weight of a cycle in which failures are likely; 0 if nothing was lost in it."""
        state = _State(self, first)
        weight = 1.0
        for _ in range(STEPS_MAX):
            if state.is_lost:
                return weight
            if not state.down:
                return 0.0
            failures, repairs = state.rates()
            rate = failures + repairs
            if rate <= 0:
                return 0.0
            within = -math.expm1(-rate * (self._span - now))
            now += -math.log1p(-stream.unit() * within) / rate
            place, ratio = self._likely(stream, state, failures, repairs)
            weight *= within * ratio
            if weight <= 0 or now >= self._span:
                return 0.0
            state.flip(place)
        return 0.0

    def _likely(
        self, stream: Stream, state: "_State", failures: float, repairs: float
    ) -> tuple[int, float]:
        """Next event of a branch: its component, and its true chance over the drawn one."""
        rate = failures + repairs
        bias = 1.0 if repairs <= 0 else 0.0 if failures <= 0 else max(BIAS, failures / rate)
        if stream.unit() >= bias:
            mark = stream.unit() * repairs
            place = next(iter(state.down))
            for place in state.down:
                mark -= self.components[place].repairs_per_h
                if mark < 0:
                    break
            return place, (repairs / rate) / (1 - bias)
        up = [n for n in range(len(self.components)) if n not in state.down]
        near = state.nearest(up)
        among = near if near and stream.unit() < NEAR else up
        place = among[stream.below(len(among))]
        if near:
            drawn = (1 - NEAR) / len(up) + (NEAR / len(near) if place in near else 0.0)
        else:
            drawn = 1 / len(up)
        return place, self.components[place].failures_per_h / rate / (bias * drawn)


class _State:
    """Components that are down, and down members of each set."""

    __slots__ = ("_members_out", "_of", "_out", "down", "is_lost")

    def __init__(self, of: Coincidence, first: int) -> None:
        self._of = of
        self._out: dict[int, int] = {}
        """Number of down components that take each member out."""
        self._members_out: dict[int, int] = {}
        """Number of members of each set that are out."""
        self.down: dict[int, bool] = {}
        self.is_lost = False
        self.flip(first)

    def rates(self) -> tuple[float, float]:
        """Failures and repairs an hour."""
        components = self._of.components
        down = sum(components[place].failures_per_h for place in self.down)
        repairs = sum(components[place].repairs_per_h for place in self.down)
        return max(0.0, self._of.failures_per_h - down), repairs

    def flip(self, place: int) -> None:
        """Fails the component, or repairs it."""
        step = -1 if self.down.pop(place, False) else 1
        if step > 0:
            self.down[place] = True
        for member in self._of.components[place].members:
            before = self._out.get(member, 0)
            self._out[member] = before + step
            if before == 0 or before + step == 0:
                for number in self._of.sets_of.get(member, ()):
                    self._members_out[number] = self._members_out.get(number, 0) + step
                    self.is_lost = (
                        self.is_lost or self._members_out[number] == self._of.sizes[number]
                    )

    def nearest(self, up: Sequence[int]) -> list[int]:
        """The components whose failure would bring the most threatened set closer."""
        left = {n: self._of.sizes[n] - out for n, out in self._members_out.items() if out > 0}
        if not left:
            return []
        least = min(left.values())
        near: list[int] = []
        for place in up:
            takes: dict[int, int] = {}
            for member in self._of.components[place].members:
                if self._out.get(member, 0) == 0:
                    for number in self._of.sets_of.get(member, ()):
                        takes[number] = takes.get(number, 0) + 1
            if any(left.get(number) == least for number in takes):
                near.append(place)
        return near


def _exponential(stream: Stream, rate: float) -> float:
    return -math.log(1.0 - stream.unit()) / rate if rate > 0 else math.inf
