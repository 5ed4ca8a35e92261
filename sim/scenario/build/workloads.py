"""Workloads of producers: arrivals and keys, surges and curves of a day, known ahead."""

from collections.abc import Sequence

from sim.faults.fault import Fault
from sim.faults.load import LoadSurge
from sim.nodes.clients.curves import Curve
from sim.nodes.clients.surges import Surge
from sim.nodes.clients.workload import (
    VALUE_BYTES_MIN,
    Bursts,
    Poisson,
    Rate,
    Steady,
    UniformKeys,
    ValueSizes,
    WorkloadSpec,
    ZipfKeys,
)
from sim.scenario.model.clients import CurveModel, ProducerSpec
from sim.scenario.rules.load import PAUSE_US
from sim.units import SECOND, Micros


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


def workload_of(spec: ProducerSpec, surges: tuple[Surge, ...]) -> WorkloadSpec:
    """The load of one producer of an entry."""
    rate = Rate(spec.rate_per_s, SECOND)
    arrivals: Steady | Poisson | Bursts = Steady(rate)
    if spec.arrivals == "poisson":
        arrivals = Poisson(rate)
    elif spec.burst is not None:
        peak = Rate(spec.burst.peak_per_s, SECOND)
        arrivals = Bursts(peak, rate, spec.burst.on_us, spec.burst.off_us)
    keys: UniformKeys | ZipfKeys | None = None
    if spec.keys == "uniform":
        keys = UniformKeys(spec.key_count)
    elif spec.keys == "zipf":
        keys = ZipfKeys(spec.key_count, spec.key_skew)
    largest, sizes = spec.record_size, None
    if spec.record_sizes is not None:
        values, until = spec.record_sizes.table
        largest = max(values)
        sizes = ValueSizes(values, tuple(share / until[-1] for share in until))
    filler = largest - VALUE_BYTES_MIN
    return WorkloadSpec(
        spec.topic,
        arrivals,
        largest,
        keys,
        spec.start_us,
        spec.stop_us,
        tombstone_ppm=spec.tombstone_ppm,
        header_count=spec.record_headers.count,
        header_bytes=spec.record_headers.size,
        noise_bytes=round(filler * (1 - spec.compressibility)),
        surges=surges,
        hot_ppm=spec.key_hot_ppm,
        curve=None if spec.curve is None else curve_of(spec.curve),
        clients=spec.clients or 0,
        think_us=spec.think_us or 0,
        thinks_at_random=spec.arrivals == "poisson",
        pause_us=PAUSE_US,
        sizes=sizes,
    )
