"""Workload of a producer's application: records and their intended times, pulled by the producer.

The same seed gives the same instants and keys whatever happens to the producer: a process that
restarts skips records intended for the time before. Closed loops (an application that waits for its
acknowledgements) are in ``closed_loop``. Left out: several topics.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sim.errors import SimulationError
from sim.nodes.clients.curves import Curve
from sim.nodes.clients.surges import Surge, SurgingTime
from sim.protocol.clients.producer.events import TOMBSTONE, ArrivalBlock
from sim.rng import Streams, VectorStream
from sim.units import LONG_AGO, MIB, Bytes, Micros
from sim.wire.noise import Noise
from sim.wire.rows import Style, encoded_headers_bytes

BLOCK_RECORDS = 4_096
"""Arrivals per block."""

VALUE_BYTES_MIN: Bytes = 24
"""Smallest value: producer index, number and intended time of the record."""

_KEYS_MAX = 100_000_000
_ZIPF_SCALE = 1 << 40
# More than a codec's window within a batch of the default size.
_NOISE_POOL_BYTES: Bytes = MIB


@dataclass(frozen=True, slots=True)
class Rate:
    """``records`` in every ``per_us``, evenly or on average."""

    records: int
    per_us: Micros

    def __post_init__(self) -> None:
        if self.records < 0 or self.per_us <= 0:
            raise SimulationError("rate: must not be negative")


@dataclass(frozen=True, slots=True)
class Steady:
    """Record k arrives k/rate after the start, rounded up to a microsecond."""

    rate: Rate


@dataclass(frozen=True, slots=True)
class Poisson:
    """Exponential gaps with the rate's mean, each rounded up to a microsecond."""

    rate: Rate


@dataclass(frozen=True, slots=True)
class Bursts:
    """``high`` for ``on_us``, then ``low`` for ``off_us``, again and again; evenly within each."""

    high: Rate
    low: Rate
    on_us: Micros
    off_us: Micros

    def __post_init__(self) -> None:
        if self.on_us <= 0 or self.off_us <= 0:
            raise SimulationError("bursts: both phases must take time")


@dataclass(frozen=True, slots=True)
class UniformKeys:
    """Each of ``count`` keys is as likely."""

    count: int

    def __post_init__(self) -> None:
        _check_keys(self.count)


@dataclass(frozen=True, slots=True)
class ZipfKeys:
    """Key k of ``count`` (from 0) has a weight of 1/(k+1)**``exponent``."""

    count: int
    exponent: float

    def __post_init__(self) -> None:
        _check_keys(self.count)


@dataclass(frozen=True, slots=True)
class ValueSizes:
    """Sizes of values in bytes, each with the share of the records that it or one before has."""

    sizes: tuple[Bytes, ...]
    shares: tuple[float, ...]

    def draw(self, units: NDArray[np.float64]) -> NDArray[np.int64]:
        """The sizes at places of the distribution in [0, 1)."""
        places = np.searchsorted(np.array(self.shares[:-1]), units, side="right")
        return np.array(self.sizes, dtype=np.int64)[places]


@dataclass(frozen=True, slots=True)
class WorkloadSpec:
    """One producer's records, all of one topic.

    Attributes:
        topic: Their topic.
        arrivals: Their intended times.
        value_bytes: Size of each value, or of the largest, at least :data:`VALUE_BYTES_MIN`.
        keys: Distribution of keys; ``None`` for records without keys.
        start_us: The first instant.
        end_us: No record is intended for this instant or later.
        tombstone_ppm: Records in a million without a value; records have keys then.
        header_count: Headers of each record.
        header_bytes: Size of each header's value.
        noise_bytes: Incompressible part of each value's filler, or of the largest's.
        surges: In the order of time.
        hot_ppm: Records in a million that have the first key, whatever the distribution.
        curve: Levels of the rate over a period, around its mean; ``None``: always the same.
        clients: Of a closed loop, which has no arrivals; 0 without one.
        think_us: Time from an answer to a client's next record; the mean, if at random.
        thinks_at_random: Whether that time is exponential.
        pause_us: The least of it.
        sizes: Distribution of values' sizes; ``None``: all are alike.
    """

    topic: str
    arrivals: Steady | Poisson | Bursts
    value_bytes: Bytes
    keys: UniformKeys | ZipfKeys | None = None
    start_us: Micros = 0
    end_us: Micros = 0
    tombstone_ppm: int = 0
    header_count: int = 0
    header_bytes: Bytes = 0
    noise_bytes: Bytes = 0
    surges: tuple[Surge, ...] = ()
    hot_ppm: int = 0
    curve: Curve | None = None
    clients: int = 0
    think_us: Micros = 0
    thinks_at_random: bool = False
    pause_us: Micros = 0
    sizes: ValueSizes | None = None

    def __post_init__(self) -> None:
        if self.value_bytes < VALUE_BYTES_MIN:
            raise SimulationError(f"record.size: must be at least {VALUE_BYTES_MIN} B")
        if self.tombstone_ppm and self.keys is None:
            raise SimulationError("tombstones: only records with keys can be tombstones")
        if self.noise_bytes > self.value_bytes - VALUE_BYTES_MIN:
            raise SimulationError("record.compressibility: a value has less filler than that")

    @property
    def style(self) -> Style:
        """Contents of its records beside key, payload and filler."""
        return Style(self.header_count, self.header_bytes, self.noise_bytes)


class Workload:
    """Arrivals of one producer: an ``ArrivalSource`` of a producer's machine.

    Args:
        spec: Its settings.
        streams: Random streams; the workload has its own, from their beginning.
        name: The producer's.
        after: Arrivals before this instant are skipped.
    """

    def __init__(
        self, spec: WorkloadSpec, streams: Streams, name: str, after: Micros = LONG_AGO
    ) -> None:
        self.value_bytes = spec.value_bytes
        self.keyed = spec.keys is not None
        self.header_count = spec.header_count
        self.header_bytes = encoded_headers_bytes(spec.style)
        self._after = after
        self._end = spec.end_us
        self._blocks = _instants(spec, streams.vector(f"workload/{name}/arrivals"))
        self._draw = RecordDraw(spec, streams, name)

    def next_block(self) -> ArrivalBlock | None:
        """Next arrivals, or ``None`` at the end."""
        for instants in self._blocks:
            keys, sizes = self._draw.draw(len(instants))
            first, stop = np.searchsorted(instants, [self._after, self._end]).tolist()
            if stop < len(instants):
                self._blocks = iter(())
            if stop > first:
                return ArrivalBlock(
                    instants[first:stop],
                    None if keys is None else keys[first:stop],
                    None if sizes is None else sizes[first:stop],
                )
        return None


def noise_for(spec: WorkloadSpec, streams: Streams, name: str) -> Noise | None:
    """Incompressible filler of a producer's values.

    Args:
        spec: Its workload.
        streams: Random streams; the noise has its own.
        name: The producer's.
    """
    if not spec.noise_bytes:
        return None
    size = max(_NOISE_POOL_BYTES, spec.noise_bytes)
    return Noise(streams.vector(f"workload/{name}/noise").octets(size), spec.noise_bytes)


class RecordDraw:
    """Draws keys and sizes of one producer's records, in the order of its sends.

    Args:
        spec: Its settings.
        streams: Random streams; it has its own, from their beginning.
        name: The producer's.
    """

    def __init__(self, spec: WorkloadSpec, streams: Streams, name: str) -> None:
        self._keys = _KeyDraw(spec.keys, streams.vector(f"workload/{name}/keys"))
        self._hot_share = spec.hot_ppm / 1_000_000
        self._hot = streams.vector(f"workload/{name}/hot")
        self._tombstone_share = spec.tombstone_ppm / 1_000_000
        self._tombstones = streams.vector(f"workload/{name}/tombstones")
        self._value_bytes = spec.value_bytes
        self._sizes = spec.sizes
        self._units_of_sizes = streams.vector(f"workload/{name}/sizes")

    def draw(self, count: int) -> tuple[NDArray[np.int64] | None, NDArray[np.int64] | None]:
        """Key ids and sizes of the next records; ``None`` where all are alike or there are none."""
        keys = self._keys.draw(count)
        if keys is not None and self._hot_share:
            keys[self._hot.units(count) < self._hot_share] = 0
        sizes = None
        if self._sizes is not None:
            sizes = self._sizes.draw(self._units_of_sizes.units(count))
        if self._tombstone_share:
            if sizes is None:
                sizes = np.full(count, self._value_bytes, dtype=np.int64)
            sizes[self._tombstones.units(count) < self._tombstone_share] = TOMBSTONE
        return keys, sizes


class _KeyDraw:
    """Draws key ids, many at a time."""

    def __init__(self, spec: UniformKeys | ZipfKeys | None, stream: VectorStream) -> None:
        self._spec = spec
        self._stream = stream
        self._table: NDArray[np.int64] | None = None
        if isinstance(spec, ZipfKeys):
            ranks = np.arange(1, spec.count + 1, dtype=np.float64)
            weights = np.maximum((_ZIPF_SCALE / ranks**spec.exponent).astype(np.int64), 1)
            self._table = np.cumsum(weights)

    def draw(self, count: int) -> NDArray[np.int64] | None:
        """``count`` key ids; ``None`` for records without keys."""
        if self._spec is None:
            return None
        units = self._stream.units(count)
        if self._table is None:
            return (units * self._spec.count).astype(np.int64)
        picks = (units * int(self._table[-1])).astype(np.int64)
        return np.searchsorted(self._table, picks, side="right").astype(np.int64)


def _check_keys(count: int) -> None:
    if not 1 <= count <= _KEYS_MAX:
        raise SimulationError(f"keys: from 1 to {_KEYS_MAX}, not {count}")


def _instants(spec: WorkloadSpec, stream: VectorStream) -> Iterator[NDArray[np.int64]]:
    """Blocks of instants from the start on; the last block may end later."""
    if not spec.surges:
        return _curved(spec, spec.start_us, spec.end_us, stream)
    time = SurgingTime(spec.surges)
    start, end = time.own(spec.start_us), time.own(spec.end_us)
    return time.true(_curved(spec, start, end, stream))


def _curved(
    spec: WorkloadSpec, start: Micros, end: Micros, stream: VectorStream
) -> Iterator[NDArray[np.int64]]:
    curve = spec.curve
    if curve is None:
        return _evenly(spec.arrivals, start, end, stream)
    own_start, own_end = math.ceil(curve.own(start)), math.ceil(curve.own(end))
    return curve.true(_evenly(spec.arrivals, own_start, own_end, stream))


def _evenly(
    arrivals: Steady | Poisson | Bursts, start: Micros, end: Micros, stream: VectorStream
) -> Iterator[NDArray[np.int64]]:
    if isinstance(arrivals, Steady):
        return _steady(arrivals.rate, start, end)
    if isinstance(arrivals, Poisson):
        return _poisson(arrivals.rate, start, end, stream)
    return _bursts(arrivals, start, end)


def _steady(rate: Rate, start: Micros, end: Micros) -> Iterator[NDArray[np.int64]]:
    """Record k at start + ceil(k * per / records), those before ``end``."""
    if rate.records == 0 or end <= start:
        return
    total = -(-(end - start) * rate.records // rate.per_us)
    for first in range(0, total, BLOCK_RECORDS):
        numbers = np.arange(first, min(total, first + BLOCK_RECORDS), dtype=np.int64)
        instants = start - (-numbers * rate.per_us) // rate.records
        instants = instants[: int(np.searchsorted(instants, end))]
        if len(instants):
            yield instants


def _poisson(
    rate: Rate, start: Micros, end: Micros, stream: VectorStream
) -> Iterator[NDArray[np.int64]]:
    if rate.records == 0:
        return
    mean = rate.per_us / rate.records
    at = start
    while at < end:
        gaps = np.ceil(-np.log1p(-stream.units(BLOCK_RECORDS)) * mean).astype(np.int64)
        instants = at + np.cumsum(gaps)
        at = int(instants[-1])
        yield instants


def _bursts(spec: Bursts, start: Micros, end: Micros) -> Iterator[NDArray[np.int64]]:
    at = start
    while at < end:
        yield from _steady(spec.high, at, min(end, at + spec.on_us))
        at += spec.on_us
        yield from _steady(spec.low, at, min(end, at + spec.off_us))
        at += spec.off_us
