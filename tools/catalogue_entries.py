"""The entries of the failure catalogue: what was published, and how near the scenarios come to it.

What the scenarios hold is read from their files; what stands in the table beside this file is the
judgement that no program can make. A grade is ``exact`` (the numbers or the yes and no of the
source), or ``same direction`` (the effect is there, its size is not the source's, or part of it is
not looked at). An entry that a study answers says what it holds; one without either says why.
"""

import tomllib
from pathlib import Path
from typing import Final, NamedTuple

EXACT: Final = "exact"
DIRECTION: Final = "same direction"

CATALOGUE: Final = Path(__file__).parents[1] / "scenarios" / "catalogue"
"""Scenarios of published failures."""


class Entry(NamedTuple):
    """One published failure."""

    number: str
    """A letter for its field, and a number."""
    name: str
    asked: str
    """The outcome that the source reports, historic; then with what mends it."""
    grade: str = ""
    """:data:`EXACT` or :data:`DIRECTION`; "" for an entry that nobody has compared."""
    why: str = ""
    """What differs; or why there is no scenario."""
    study: str = ""
    """What a study of ``sim/studies`` shows, where there is no scenario; a test holds it."""


def entries() -> tuple[Entry, ...]:
    """Every entry, in the catalogue's order."""
    table = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    return tuple(Entry(number, **fields) for number, fields in table.items())


def files_of(entry: Entry) -> list[Path]:
    """Scenario files of an entry: the failure first, then what mends it, then variants."""
    start = f"{entry.number[0].lower()}{int(entry.number[1:]):02}-"
    order = {"historic": 0, "fixed": 1}
    files = sorted(CATALOGUE.glob(f"{start}*.yaml"))
    return sorted(files, key=lambda file: order.get(file.stem.rpartition("-")[2], 2))
