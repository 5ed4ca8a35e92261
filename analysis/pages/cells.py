"""Parts that pages and figures share: a picture's text, rows of small frames, durations in words.

Nothing here needs matplotlib, whose import takes as long as Java's start.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sim.units import MS, SECOND, Micros

if TYPE_CHECKING:
    import pandas as pd  # A second of import, which is to pass while Java starts.


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure of the page; without data ``svg`` is empty and ``note`` has the reason."""

    name: str
    title: str
    note: str
    svg: str


def rows_of(frame: "pd.DataFrame") -> list[dict[Hashable, Any]]:
    """The rows of a small frame; callers know the types of the cells."""
    return frame.to_dict("records")


def short(micros: float) -> str:
    """A duration in the largest unit that leaves a short number."""
    for unit, name in ((SECOND, "s"), (MS, "ms")):
        if abs(micros) >= unit:
            return f"{micros / unit:.3g} {name}"
    return f"{micros:.3g} us"


def instant(micros: Micros) -> str:
    """An instant in seconds, to the microsecond where it matters: ``6 s``, ``3.204118 s``."""
    return f"{micros / SECOND:.6f}".rstrip("0").rstrip(".") + " s"
