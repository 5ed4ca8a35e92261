"""Quantities as a scenario writes them: ``15s``, ``64KiB``, ``10Gbit/s``, ``"< 250ms"``.

A bare number is refused wherever a unit is due, and so is a quantity that is not a whole number of
our smallest unit (microsecond, byte, byte a second, record a second). Binary and decimal prefixes
are kept apart: ``KiB`` is 1,024 bytes, ``kB`` is 1,000.
"""

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Final, Literal, NamedTuple, TypeAlias

from sim.units import GIB, HOUR, KIB, MIB, MINUTE, MS, SECOND, Bytes, Micros

DURATION_UNITS: Final[Mapping[str, int]] = {
    "us": 1,
    "ms": MS,
    "s": SECOND,
    "min": MINUTE,
    "h": HOUR,
    "d": 24 * HOUR,
}
"""Microseconds in each."""

SIZE_UNITS: Final[Mapping[str, int]] = {
    "B": 1,
    "kB": 1_000,
    "KB": 1_000,
    "MB": 1_000_000,
    "GB": 1_000_000_000,
    "TB": 1_000_000_000_000,
    "KiB": KIB,
    "MiB": MIB,
    "GiB": GIB,
    "TiB": 1024 * GIB,
}
"""Bytes in each."""

BANDWIDTH_UNITS: Final[Mapping[str, Fraction]] = {
    **{f"{name}/s": Fraction(size) for name, size in SIZE_UNITS.items()},
    "bit/s": Fraction(1, 8),
    "kbit/s": Fraction(1_000, 8),
    "Mbit/s": Fraction(1_000_000, 8),
    "Gbit/s": Fraction(1_000_000_000, 8),
}
"""Bytes a second in each."""

RATE_UNITS: Final[Mapping[str, Fraction]] = {
    "/s": Fraction(1),
    "/min": Fraction(1, 60),
    "/h": Fraction(1, 3600),
}
"""Records a second in each."""

SHARE_UNITS: Final[Mapping[str, int]] = {"%": 10_000}
"""Millionths in each."""

DURATION_HINT: Final = "a duration such as 15s, 250ms or 600us"
MOMENT_HINT: Final = "an instant such as 15s, or a window such as 15s..30s"
SIZE_HINT: Final = "a size such as 512B, 64KiB or 1GB"
BANDWIDTH_HINT: Final = "a bandwidth such as 1GB/s or 10Gbit/s"
RATE_HINT: Final = "a rate such as 5000/s or 300/min"
SHARE_HINT: Final = "a share such as 5% or 0.1%, at most 100%"

LARGEST: Final = (1 << 63) - 1
"""More than that of our smallest units fits into no row of a trace."""

LENGTH_MAX: Final = 64
"""Longer texts are no quantities."""

NUMBER_PATTERN: Final = r"\d+(?:\.\d+)?"
"""Form of numbers: no sign, no exponent, no separators."""

_QUANTITY = re.compile(rf"\s*({NUMBER_PATTERN})\s*([^\s\d].*?)\s*", re.ASCII)
_BARE = re.compile(r"\s*[-+]?[\d.]+\s*", re.ASCII)

_PREFIXES: Final = (
    (">=", True, False),
    ("at least", True, False),
    ("<=", False, False),
    ("at most", False, False),
    (">", True, True),
    ("<", False, True),
)
"""Beginnings of a bound; true for the lower one; true if it is excluded."""

BoundUnit: TypeAlias = Literal[
    "records",
    "replicas",
    "brokers",
    "consumers",
    "percent",
    "time",
    "changes",
    "keys",
    "records/s",
    "bytes/s",
]
"""Things that an expectation counts."""


class Bound(NamedTuple):
    """An interval of whole numbers; ``None`` for an open side, ``*_open``: the end is excluded."""

    low: int | None
    high: int | None
    low_open: bool
    high_open: bool


class QuantityError(ValueError):
    """``args``: what was found, what is allowed."""

    def __init__(self, found: str, allowed: str) -> None:
        super().__init__(found, allowed)
        self.found = found
        self.allowed = allowed


def parse_duration(value: object) -> Micros:
    """Whole microseconds, not negative.

    Raises:
        QuantityError: For anything else, bare numbers included.
    """
    return _parse(value, DURATION_UNITS, DURATION_HINT, "microseconds")


def parse_moment(value: object) -> tuple[Micros, Micros]:
    """First and last microsecond of an instant or a window.

    Raises:
        QuantityError: For anything else, bare numbers and windows that end before they begin
            included.
    """
    first, dots, last = value.partition("..") if isinstance(value, str) else (value, "", "")
    low = parse_duration(first)
    high = parse_duration(last) if dots else low
    if high < low:
        raise QuantityError(f"{value!r} ends before it begins", MOMENT_HINT)
    return low, high


def show_moment(low: Micros, high: Micros) -> str:
    """An instant, or a window: ``15s``, ``15s..30s``."""
    return show_duration(low) if low == high else f"{show_duration(low)}..{show_duration(high)}"


def parse_size(value: object) -> Bytes:
    """Whole bytes, not negative.

    Raises:
        QuantityError: For anything else, bare numbers included.
    """
    return _parse(value, SIZE_UNITS, SIZE_HINT, "bytes")


def parse_bandwidth(value: object) -> int:
    """Whole bytes a second, more than zero.

    Raises:
        QuantityError: For anything else, bare numbers included.
    """
    return _positive(value, _parse(value, BANDWIDTH_UNITS, BANDWIDTH_HINT, "bytes a second"))


def parse_rate(value: object) -> int:
    """Whole records a second, more than zero.

    Raises:
        QuantityError: For anything else, bare numbers included.
    """
    return _positive(value, _parse(value, RATE_UNITS, RATE_HINT, "records a second"))


def parse_share(value: object) -> int:
    """Whole millionths, from 0 % to 100 %.

    Raises:
        QuantityError: For anything else, bare numbers included.
    """
    share = _parse(value, SHARE_UNITS, SHARE_HINT, "millionths")
    if share > 1_000_000:
        raise QuantityError(f"{value!r} is more than all", SHARE_HINT)
    return share


def parse_bound(value: object, unit: BoundUnit) -> Bound:
    """An interval: ``0``, ``"at least 1"``, ``"> 0"``, ``"0..10"``; ``"< 250ms"``, ``"7s..15s"``.

    Raises:
        QuantityError: For anything else.
    """
    hint = (
        'a number, "at least 1", "at most 5", "> 0" or "0..10"'
        if unit != "time"
        else '"< 250ms", "at most 12s", "> 1s" or "7s..15s"'
    )
    try:
        return _bound(value, unit)
    except QuantityError as error:
        raise QuantityError(error.found, hint) from None


def show_duration(duration: Micros) -> str:
    """The shortest exact way to write it: ``15s``, ``2500us``."""
    return _show(duration, (("s", SECOND), ("ms", MS)), "us")


def show_size(size: Bytes) -> str:
    """The shortest exact way to write it: ``64KiB``, ``100B``."""
    return _show(size, (("GiB", GIB), ("MiB", MIB), ("KiB", KIB)), "B")


def show_bandwidth(bytes_per_s: int) -> str:
    """The shortest exact way to write it: ``1GB/s``."""
    decimal = (("GB/s", 1_000_000_000), ("MB/s", 1_000_000), ("kB/s", 1_000))
    return _show(bytes_per_s, decimal, "B/s")


def show_rate(per_s: int) -> str:
    """``5000/s``."""
    return f"{per_s}/s"


def show_share(ppm: int) -> str:
    """Millionths as a percentage: ``5%``, ``0.1%``."""
    whole, rest = divmod(ppm, 10_000)
    return f"{whole}.{rest:04d}".rstrip("0").rstrip(".") + "%"


def _show(amount: int, units: tuple[tuple[str, int], ...], smallest: str) -> str:
    for name, unit in units:
        if amount and amount % unit == 0:
            return f"{amount // unit}{name}"
    return f"{amount}{smallest}"


def _parse(
    value: object, units: Mapping[str, int] | Mapping[str, Fraction], hint: str, smallest: str
) -> int:
    if isinstance(value, bool) or not isinstance(value, str):
        bare = isinstance(value, int | float) and not isinstance(value, bool)
        found = f"{value!r} has no unit" if bare else f"{_name(value)}"
        raise QuantityError(found, hint)
    if len(value) > LENGTH_MAX:
        raise QuantityError(f"{value[:LENGTH_MAX]!r}… is not a quantity", hint)
    match = _QUANTITY.fullmatch(value)
    if match is None:
        missing = " has no unit" if _BARE.fullmatch(value) else " is not a quantity"
        if value.lstrip().startswith("-"):
            missing = " is negative"
        raise QuantityError(f"{value!r}{missing}", hint)
    number, unit = match.groups()
    if unit not in units:
        raise QuantityError(
            f"{value!r} has the unit {unit!r}", f"{hint}; units: {', '.join(units)}"
        )
    amount = Fraction(number) * units[unit]
    if amount.denominator != 1:
        raise QuantityError(f"{value!r} is not a whole number of {smallest}", hint)
    if amount > LARGEST:
        raise QuantityError(f"{value!r} is more than 63 bits of {smallest}", hint)
    return int(amount)


def _positive(value: object, amount: int) -> int:
    if amount == 0:
        raise QuantityError(f"{value!r} is zero", "more than zero")
    return amount


def _bound(value: object, unit: BoundUnit) -> Bound:
    if isinstance(value, int) and not isinstance(value, bool):
        number = _amount(value, unit)
        return Bound(number, number, low_open=False, high_open=False)
    if not isinstance(value, str):
        raise QuantityError(_name(value), "")
    text = value.strip()
    if ".." in text:
        low_text, _, high_text = text.partition("..")
        low, high = _amount(low_text, unit), _amount(high_text, unit)
        if low > high:
            raise QuantityError(f"{value!r} is an empty range", "")
        return Bound(low, high, low_open=False, high_open=False)
    for prefix, is_low, is_open in _PREFIXES:
        if text.startswith(prefix):
            number = _amount(text.removeprefix(prefix), unit)
            low_end, high_end = (number, None) if is_low else (None, number)
            return Bound(low_end, high_end, is_open and is_low, is_open and not is_low)
    number = _amount(text, unit)
    return Bound(number, number, low_open=False, high_open=False)


def _amount(value: int | str, unit: BoundUnit) -> int:
    if unit == "time":
        return parse_duration(value)
    text = str(value).strip()
    if not text.isascii() or not text.isdecimal() or len(text) > LENGTH_MAX:
        raise QuantityError(f"{text[:LENGTH_MAX]!r} is not a number of records", "")
    if int(text) > LARGEST:
        raise QuantityError(f"{text!r} is more than 63 bits of records", "")
    return int(text)


def _name(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return repr(value)
