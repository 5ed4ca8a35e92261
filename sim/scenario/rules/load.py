"""Rules of the load of producers: arrivals, the curve of a day, closed loops, keys, sizes."""

from collections.abc import Sequence
from typing import Final

from sim.faults.fault import Fault
from sim.faults.load import LoadSurge
from sim.scenario.model.clients import (
    RECORD_SIZE_MIN,
    ProducerModel,
    ProducerSpec,
    SizesModel,
)
from sim.scenario.model.cluster import ClusterSpec
from sim.scenario.model.topics import TopicSpec
from sim.scenario.rules import cross
from sim.scenario.settings.resolved import Config
from sim.scenario.text.problems import Problem
from sim.units import MIB, SECOND, Bytes, Micros

_KEY_COUNT: Final = 1_000
_KEY_SKEW: Final = 1.0

PAUSE_US: Final[Micros] = 100
"""Least time between an answer and the next send of a closed loop: an application's own work."""

HEADER_OVERHEAD_BYTES: Final[Bytes] = 10
"""More than a record header takes beside its value."""

_SIZE: Final = "record.size"
_SIZES: Final = "record.sizes"
_LARGEST: Final[Bytes] = 100 * MIB
_WHOLE: Final = 1_000_000

_SERVED_US: Final[Micros] = 500
"""Assumed time of a request at its broker, where a closed loop's rate is estimated."""


def keys(model: ProducerModel) -> tuple[int, float]:
    """Number of keys, and the exponent of their Zipf law; 0 for what is not.

    Raises:
        Problem: With a path below the producer.
    """
    if model.keys == "none" and model.key_count is not None:
        raise Problem(("key.count",), "key.count without keys", "keys: uniform or zipf")
    if model.keys != "zipf" and model.key_skew is not None:
        raise Problem(("key.skew",), f"key.skew with keys: {model.keys}", "keys: zipf")
    for key, share in (("tombstones", model.tombstone_ppm), ("key.hot", model.key_hot_ppm)):
        if model.keys == "none" and share:
            raise Problem((key,), f"{key} without keys", "keys: uniform or zipf")
    count = 0 if model.keys == "none" else model.key_count or _KEY_COUNT
    skew = (model.key_skew or _KEY_SKEW) if model.keys == "zipf" else 0.0
    return count, skew


def check_arrivals(model: ProducerModel) -> None:
    """Check bursts, the curve, and what goes with a closed loop.

    Raises:
        Problem: With a path below the producer.
    """
    _check_burst(model)
    _check_curve(model)
    if model.clients is None:
        if model.think_us is not None:
            raise Problem(("think.time",), "think.time without clients", "clients: N beside it")
        if not model.rate_per_s:
            raise Problem(("rate",), "the key is missing", "", "add rate, or clients")
        return
    given = {
        "rate": bool(model.rate_per_s),
        "arrivals": model.arrivals == "burst",
        "curve": model.curve is not None,
        "transaction": model.transaction is not None,
        "producer.per": model.per_request,
    }
    for key, is_given in given.items():
        if is_given:
            raise Problem(
                (key,), f"{key} with clients, whose rate follows from the answers", "one of the two"
            )


def rate(model: ProducerModel, config: Config, cluster: ClusterSpec) -> int:
    """Records a second: the given rate, or about what a closed loop sends to a healthy cluster."""
    if model.clients is None:
        return model.rate_per_s
    network = cluster.network
    hops = 2 if config.text("acks") == "all" else 0
    trip = 2 * (network.client or network.same_rack).p50_us + hops * network.cross_rack.p50_us
    wait = max(PAUSE_US, model.think_us or 0) + config.micros("linger.ms") + trip + _SERVED_US
    return max(1, model.clients * SECOND // wait)


def check_surges(producers: Sequence[ProducerSpec], faults: Sequence[Fault]) -> None:
    """Check that no surge is meant for a closed loop, which has no rate of its own.

    Raises:
        Problem: With a path below ``faults``.
    """
    closed = [name for each in producers if each.clients for name in each.client_names]
    for place, fault in enumerate(faults):
        if not isinstance(fault, LoadSurge):
            continue
        hit = [name for target in fault.targets for name in target.names if name in closed]
        if hit:
            raise Problem(
                (place, "target"),
                f"{hit[0]} sends in a closed loop, which has no rate",
                "a producer with a rate",
                "give it a rate instead of clients, or more clients",
            )


def _check_burst(model: ProducerModel) -> None:
    if (model.arrivals == "burst") != (model.burst is not None):
        if model.burst is None:
            raise Problem(
                ("arrivals",), "burst without its times", "burst: {on, off, peak} beside it"
            )
        raise Problem(("burst",), f"burst with arrivals: {model.arrivals}", "arrivals: burst")
    if model.burst is not None and 0 in (model.burst.on_us, model.burst.off_us):
        raise Problem(("burst",), "on or off is 0us", "more than zero")


def _check_curve(model: ProducerModel) -> None:
    curve = model.curve
    if curve is None:
        return
    if not curve.period_us:
        raise Problem(("curve", "period"), "0us", "more than zero")
    if bool(curve.amplitude_ppm) == bool(curve.points):
        found = "both" if curve.points else "neither amplitude nor points"
        raise Problem(("curve",), found, "amplitude: SHARE, or points: [{at, level}, ...]")
    last = -1
    for place, point in enumerate(curve.points):
        if not last < point.at_us < curve.period_us:
            raise Problem(
                ("curve", "points", place, "at"), "not after the one before, in the period",
                "instants of one period, ascending",
            )  # fmt: skip
        last = point.at_us
    if curve.points and not any(point.level for point in curve.points):
        raise Problem(("curve", "points"), "every level is 0", "one that is more")


def record_size(model: ProducerModel, config: Config, topic: TopicSpec) -> Bytes:
    """Check sizes of values and headers; returns the size of a value, or their mean.

    Of a distribution some records may be too large for a request: ``send()`` refuses them.

    Raises:
        Problem: With a path below the producer.
    """
    sizes, key = model.record_sizes, _SIZE
    least = mean = model.record_size
    if sizes is not None:
        if _SIZE in model.model_dump(by_alias=True, exclude_unset=True):
            raise Problem((_SIZES,), "record.size beside it", "one of both", "remove one")
        _check_sizes(sizes)
        least, mean, key = min(sizes.table[0]), sizes.mean, _SIZES
    if least < RECORD_SIZE_MIN:
        allowed = f"at least {RECORD_SIZE_MIN}B, in which a record names itself"
        raise Problem((key,), f"{least}B", allowed)
    headers = model.record_headers
    whole = least + headers.count * (headers.size + HEADER_OVERHEAD_BYTES)
    try:
        cross.check_record(whole, config, topic)
    except Problem as problem:
        raise problem.below("record.headers" if headers.count else key) from None
    return mean


def _check_sizes(sizes: SizesModel) -> None:
    """Check that it has one form, and that its numbers fit together."""
    forms = "p50 and p99 (and max), or values"
    quantiles = (sizes.p50, sizes.p99)
    if sizes.values is None:
        if None in quantiles:
            raise Problem((_SIZES,), "a distribution without p50, p99 or values", forms)
    elif quantiles != (None, None) or sizes.max is not None:
        raise Problem((_SIZES,), "quantiles beside values", forms)
    elif sum(sizes.values.values()) != _WHOLE or 0 in sizes.values.values():
        found = f"shares of {sum(sizes.values.values()) / 10_000:g}%"
        raise Problem((_SIZES, "values"), found, "shares above 0% that make 100%")
    if sizes.p50 is not None and sizes.p99 is not None:
        most = sizes.p99 if sizes.max is None else sizes.max
        if not RECORD_SIZE_MIN <= sizes.p50 <= sizes.p99 <= most:
            found = f"p50 {sizes.p50}B, p99 {sizes.p99}B, max {most}B"
            raise Problem((_SIZES,), found, f"{RECORD_SIZE_MIN}B <= p50 <= p99 <= max")
    largest = max(sizes.table[0])
    if largest > _LARGEST:
        allowed = f"at most {_LARGEST}B, Kafka's socket.request.max.bytes"
        raise Problem((_SIZES,), f"a value of {largest}B", allowed, "give a lower max")
