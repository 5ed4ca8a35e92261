"""The fit: values of the parameters, their range over the rounds, and the error that is left.

The objective of a stage is a sum over its loads and over p50, p90 and p99. Of each it grows with
the logarithm of simulated by real, and near 0 with its square: a factor of 2 too fast counts as
much as a factor of 2 too slow, and one disturbed p99 does not move the others far from what they
were.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from typing import Final

from sim.calibration import plan
from sim.calibration.measured import Quantiles, Samples
from sim.calibration.parameters import STAGES, UPPER_LIMITS, Stage, Values, defaults
from sim.calibration.search import least
from sim.calibration.simulated import Simulator
from sim.errors import SimulationError
from sim.units import Micros

SWEEPS: Final = 2
"""Of the coordinates of a stage that has several."""

FACTOR: Final = 1.5
"""Within it a simulated latency is called near, as ``logquake compare`` has it."""


SLIGHT: Final = log(1.2)
"""Up to here the objective grows as a square, beyond it as a line (Charbonnier's distance)."""


@dataclass(frozen=True, slots=True)
class Line:
    """One percentile of one load: measured, and simulated without and with the preset."""

    load: plan.Load
    percentile: str
    real_us: Micros
    before_us: Micros
    after_us: Micros

    @property
    def factor_before(self) -> float:
        """Simulated by real or real by simulated, whichever is larger, without the preset."""
        return _factor(self.before_us, self.real_us)

    @property
    def factor(self) -> float:
        """The same with the preset."""
        return _factor(self.after_us, self.real_us)


@dataclass(frozen=True, slots=True)
class Error:
    """Error over some lines."""

    lines: int
    near: int
    """Lines within :data:`FACTOR`."""
    median: float
    worst: float


@dataclass(frozen=True, slots=True)
class Fit:
    """Outcome of a calibration."""

    values: Values
    """Of all parameters; those that were not fitted have the simulator's own."""
    ranges: Mapping[str, tuple[float, float]]
    """Least and largest value of each parameter that was fitted, over the rounds alone."""
    fitted: tuple[str, ...]
    absent: tuple[str, ...]
    """Parameters that were not fitted, since their loads were not measured."""
    lines: tuple[Line, ...]
    runs: int
    """Of the simulator."""

    def error(self, role: plan.Role, *, before: bool = False) -> Error:
        """Error over the loads of a role.

        Args:
            role: Of the loads.
            before: Without the preset instead of with it.
        """
        lines = [each for each in self.lines if each.load.role == role]
        factors = sorted(each.factor_before if before else each.factor for each in lines)
        near = sum(factor <= FACTOR for factor in factors)
        return Error(len(factors), near, factors[len(factors) // 2], factors[-1])


def stages_of(real: Samples, shape: plan.Shape) -> tuple[Stage, ...]:
    """Stages whose loads were all measured, in a cluster in which they show something."""
    known = {load.name for load in plan.loads() if real.quantiles(load)}
    return tuple(
        stage
        for stage in STAGES
        if known.issuperset(stage.loads) and shape.replicas >= stage.replicas
    )


def parameters_of(stages: Sequence[Stage]) -> tuple[str, ...]:
    """Names of the parameters of stages."""
    return tuple(each.name for stage in stages for each in stage.parameters)


def fit(real: Samples, simulator: Simulator) -> Fit:
    """Fits the parameters of every stage whose loads were measured.

    Args:
        real: What was measured.
        simulator: Made for those parameters.

    Raises:
        SimulationError: If no stage can be fitted, or no load is there to check it.
        KeyboardInterrupt: If somebody stopped it.
    """
    stages = stages_of(real, simulator.shape)
    held_back = [load for load in plan.loads() if load.role == "held back" and real.quantiles(load)]
    if not stages or not held_back:
        raise SimulationError(
            "too few acknowledged records to fit anything; a load needs 20 after its first half "
            "second: give more --seconds, or look at the run directory's verdict.json"
        )
    values = defaults()
    for stage in stages:
        values = _fitted(stage, real, simulator, values, None)
    fitted = parameters_of(stages)
    ranges = {name: (values[name], values[name]) for name in fitted}
    for number in real.rounds if len(real.rounds) > 1 else ():
        alone = dict(values)
        for stage in stages:
            alone = _fitted(stage, real, simulator, alone, [number])
        ranges = {n: (min(low, alone[n]), max(high, alone[n])) for n, (low, high) in ranges.items()}
    lines = tuple(_lines(real, simulator, values))
    absent = tuple(name for name in defaults() if name not in fitted)
    return Fit(values, ranges, fitted, absent, lines, simulator.runs)


def _fitted(
    stage: Stage,
    real: Samples,
    simulator: Simulator,
    values: Values,
    rounds: Sequence[int] | None,
) -> dict[str, float]:
    """Values after a stage; of some rounds alone it begins near those of all."""
    measured = [
        (load, found)
        for load in plan.loads()
        if load.name in stage.loads and (found := real.quantiles(load, rounds))
    ]
    if len(measured) < len(stage.loads):
        return dict(values)

    def objective(tried: Mapping[str, float]) -> float:
        return sum(distance(simulator.quantiles(load, tried), found) for load, found in measured)

    is_near = rounds is not None
    return least(
        objective, stage.parameters, values, sweeps=1 if is_near else SWEEPS, is_near=is_near
    )


def distance(simulated: Quantiles, real: Quantiles) -> float:
    """The part of a load in the objective; infinite where the simulator has no percentile."""
    if not simulated:
        return float("inf")
    errors = (log(simulated[name] / value) / SLIGHT for name, value in real.items())
    return sum(sqrt(1 + error**2) - 1 for error in errors)


def _lines(real: Samples, simulator: Simulator, values: Values) -> Iterator[Line]:
    """Loads that were held back check what the preset sets: without its upper limits."""
    preset = {**values, **{name: defaults()[name] for name in UPPER_LIMITS}}
    for load in plan.loads():
        found = real.quantiles(load)
        if not found:
            continue
        tried = preset if load.role == "held back" else values
        before, after = (simulator.quantiles(load, each) for each in (None, tried))
        for name, value in found.items():
            if name in before and name in after:
                yield Line(load, name, value, before[name], after[name])


def _factor(one: Micros, other: Micros) -> float:
    return exp(abs(log(one / other)))
