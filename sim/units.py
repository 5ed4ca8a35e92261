"""Units of time and size, and their printed forms.

Time is a whole number of microseconds since the scenario's zero. The cluster boots before zero, so
an instant may be negative. The names below are aliases, not new types: sums of instants and offsets
are on the hot path, and a wrapping call for each would cost more than the mistakes it prevents.
"""

from typing import TypeAlias

Micros: TypeAlias = int
"""An instant or a duration in microseconds."""

Bytes: TypeAlias = int
"""A size in bytes."""

MS: Micros = 1_000
"""One millisecond."""

SECOND: Micros = 1_000_000
"""One second."""

MINUTE: Micros = 60 * SECOND
"""One minute."""

HOUR: Micros = 60 * MINUTE
"""One hour."""

NEVER: Micros = 1 << 62
"""An instant after every other: a timer set to it does not fire."""

LONG_AGO: Micros = -(1 << 62)
"""An instant before every other, in place of Kafka's time 0."""

KIB: Bytes = 1 << 10
"""1,024 bytes."""

MIB: Bytes = 1 << 20
"""1,048,576 bytes."""

GIB: Bytes = 1 << 30
"""1,073,741,824 bytes."""

EPOCH_MS = 1_767_225_600_000
"""Wall-clock milliseconds of the scenario's zero, 2026-01-01T00:00:00Z."""


def timestamp_ms(instant: Micros) -> int:
    """The Kafka timestamp (milliseconds since 1970) of an instant, rounded down."""
    return EPOCH_MS + instant // MS


def show_instant(instant: Micros) -> str:
    """An instant as people read it: ``3.204118 s``."""
    return f"{instant / SECOND:.6f} s"


def show_duration(duration: Micros) -> str:
    """A duration in its largest unit: ``850 us``, ``12.5 ms``, ``8.1 s``."""
    if abs(duration) < MS:
        return f"{duration} us"
    if abs(duration) < SECOND:
        return f"{duration / MS:.4g} ms"
    return f"{duration / SECOND:.4g} s"


def show_bytes(size: Bytes) -> str:
    """A size in the largest binary unit: ``1.5 MiB``."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if abs(size) >= unit:
            return f"{size / unit:.4g} {name}"
    return f"{size} B"
