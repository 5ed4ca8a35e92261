"""Instants of faults: of the run's clock, or relative to a fault that has a name."""

import re
from typing import Final, TypeAlias

from sim.faults.after import After
from sim.scenario.text.quantities import (
    QuantityError,
    parse_duration,
    parse_moment,
    show_duration,
    show_moment,
)
from sim.units import Micros

Instant: TypeAlias = tuple[Micros, Micros] | After
"""First and last microsecond, or what they are relative to."""

INSTANT_HINT: Final = (
    "an instant such as 15s, a window such as 15s..30s, or relative to a fault with a name: "
    "crash + 5s, crash + 5s..9s, crash - 1s, end of crash + 5s"
)

FAULT_NAME_PATTERN: Final = r"[A-Za-z][A-Za-z0-9._-]{0,199}"
"""Names of faults begin with a letter: instants begin with a digit."""

_RELATIVE: Final = re.compile(
    rf"\s*(end\s+of\s+)?({FAULT_NAME_PATTERN})(?:\s+([+-])\s+(\S.*?))?\s*", re.ASCII
)


def parse_instant(value: object) -> Instant:
    """An instant, a window, or one of them relative to a fault.

    Raises:
        QuantityError: For anything else, bare numbers included.
    """
    match = _RELATIVE.fullmatch(value) if isinstance(value, str) else None
    try:
        if match is None:
            return parse_moment(value)
        end, name, sign, text = match.groups()
        low, high = (0, 0) if text is None else parse_moment(text)
        if sign == "-":
            low = high = -parse_duration(text)
    except QuantityError as error:
        _, semicolon, units = error.allowed.partition("; units")
        raise QuantityError(error.found, INSTANT_HINT + semicolon + units) from None
    return After(name, end is not None, low, high)


def show_instant(instant: Instant) -> str:
    """The text that :func:`parse_instant` reads."""
    if not isinstance(instant, After):
        return show_moment(*instant)
    name = f"end of {instant.name}" if instant.from_end else instant.name
    if instant.low_us < 0:
        return f"{name} - {show_duration(-instant.low_us)}"
    if instant.high_us == 0:
        return name
    return f"{name} + {show_moment(instant.low_us, instant.high_us)}"
