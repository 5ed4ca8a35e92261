"""Parameters of a calibration, and the figures of a cluster that they set.

They are fitted in stages, each to the loads that isolate it, with what earlier stages have found.
Not fitted, since a small load does not show it: bandwidths of network and disk, the page cache,
pauses of young collections, times of network threads and of fetches, and ``cpu.start``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sim.scenario.model.machines import CpuModel, DiskModel, NetworkModel, QuantilesModel
from sim.units import MS, SECOND

Values = Mapping[str, float]
"""By parameters' names; durations in microseconds, bandwidths in bytes a second."""

_NETWORK: Final = NetworkModel.model_validate({})
_CPU: Final = CpuModel.model_validate({})
_DISK: Final = DiskModel.model_validate({})


@dataclass(frozen=True, slots=True)
class Parameter:
    """A number that is searched between two bounds, by its logarithm."""

    name: str
    low: float
    high: float
    start: float
    unit: str
    """``us``, ``B/s`` or ``times``."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Parameters that are fitted together, and the loads they are fitted to."""

    part: str
    parameters: tuple[Parameter, ...]
    loads: tuple[str, ...]
    replicas: int = 1
    """Fewest replicas of a partition with which the loads show it."""


def _spread(name: str, start: QuantilesModel, high_us: int) -> tuple[Parameter, Parameter]:
    ratio = start.p99_us / start.p50_us
    return (
        Parameter(f"{name}.p50", 20, high_us, start.p50_us, "us"),
        Parameter(f"{name}.p99/p50", 1, 200, ratio, "times"),
    )


STAGES: Final[tuple[Stage, ...]] = (
    Stage(
        "network and threads",
        (
            *_spread("network.client", _NETWORK.same_rack, 100 * MS),
            Parameter("cpu.handler.request", 5, 20 * MS, _CPU.handler_request_us, "us"),
        ),
        ("single", "busy"),
    ),
    Stage(
        "network",
        _spread("network.same-rack", _NETWORK.same_rack, 100 * MS),
        ("replicated",),
        replicas=2,
    ),
    Stage(
        "threads",
        (
            Parameter(
                "cpu.handler.produce.bytes",
                1_000_000,
                _CPU.handler_produce_bytes_per_s,
                _CPU.handler_produce_bytes_per_s,
                "B/s",
            ),
        ),
        ("large",),
    ),
    Stage("disk", _spread("disk.flush", _DISK.flush, 200 * MS), ("flushed",)),
    Stage("metadata", (Parameter("cpu.metadata", 0.02, 50, 1, "times"),), ("moved",)),
)  # fmt: skip
"""In the order in which they are fitted."""

PARAMETERS: Final[tuple[Parameter, ...]] = tuple(
    parameter for stage in STAGES for parameter in stage.parameters
)


UPPER_LIMITS: Final = ("cpu.metadata",)
"""Parameters that no load was held back for, and whose loads have a client's way in them, too:
with them partitions change too late (docs/real-cluster), so a scenario is not given them."""


def defaults() -> dict[str, float]:
    """Values of the simulator as it is without a preset."""
    return {each.name: each.start for each in PARAMETERS}


def figures(values: Values, fitted: Sequence[str]) -> dict[str, Any]:
    """Parts of ``cluster`` that values set, as a scenario file has them.

    Args:
        values: Of all parameters.
        fitted: Names of those that are set; the figures of the others stay away.
    """
    network: dict[str, Any] = {}
    cpu: dict[str, Any] = {}
    disk: dict[str, Any] = {}
    for key, part in (("client", network), ("same-rack", network), ("flush", disk)):
        name = f"{'disk' if key == 'flush' else 'network'}.{key}"
        if f"{name}.p50" in fitted:
            part[key] = _quantiles(values[f"{name}.p50"], values[f"{name}.p99/p50"])
    if "cpu.handler.request" in fitted:
        cpu["handler.request"] = _us(values["cpu.handler.request"])
    if "cpu.handler.produce.bytes" in fitted:
        cpu["handler.produce.bytes"] = f"{round(values['cpu.handler.produce.bytes'])}B/s"
    if "cpu.metadata" in fitted:
        times = values["cpu.metadata"]
        for key, model in (("load", _CPU.metadata_load), ("publish", _CPU.metadata_publish)):
            cpu[f"metadata.{key}"] = _quantiles(model.p50_us * times, model.p99_us / model.p50_us)
    parts = {"network": network, "cpu": cpu, "disk": disk}
    return {name: part for name, part in parts.items() if part}


def shown(parameter: Parameter, value: float) -> str:
    """A value with its unit."""
    if parameter.unit == "times":
        return f"{value:.3g}"
    if parameter.unit == "B/s":
        return f"{value / 1e6:.3g} MB/s"
    return f"{value / MS:.3g} ms" if value >= MS else f"{value:.0f} us"


def _quantiles(p50_us: float, ratio: float) -> dict[str, str]:
    low = max(1, round(p50_us))
    high = min(max(low, round(p50_us * ratio)), 60 * SECOND)
    return {"p50": f"{low}us", "p99": f"{high}us"}


def _us(value: float) -> str:
    return f"{round(value)}us"
