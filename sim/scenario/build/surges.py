"""Surges of load and curves of a day: each producer knows its own ahead."""

from collections.abc import Sequence

from sim.faults.fault import Fault
from sim.faults.load import LoadSurge
from sim.nodes.clients.curves import Curve
from sim.nodes.clients.surges import Surge
from sim.scenario.model.clients import CurveModel
from sim.units import Micros


def surges_of(faults: Sequence[Fault], producer: str, end_us: Micros) -> tuple[Surge, ...]:
    """The surges of one producer, in the order of time, until it sends no more."""
    return tuple(
        sorted(
            Surge(fault.at_us, end_us if fault.until_us is None else fault.until_us, fault.factor)
            for fault in faults
            if isinstance(fault, LoadSurge)
            and any(producer in target.names for target in fault.targets)
        )
    )


def curve_of(model: CurveModel) -> Curve:
    """The curve of a producer's rate."""
    if model.points:
        levels = [(point.at_us, round(point.level * 1_000_000)) for point in model.points]
        return Curve(model.period_us, levels)
    return Curve.sine(model.period_us, model.amplitude_ppm)
