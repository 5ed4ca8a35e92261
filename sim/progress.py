"""Progress of a process for the program that started it: JSON lines on standard error.

A command writes them instead of a bar if ``python -m sim`` got :data:`REPORTS_PROGRESS`.
"""

import json
from typing import Final, NamedTuple

REPORTS_PROGRESS: Final = "--reports-progress"
"""Argument of ``python -m sim``, before the command, that requests the lines."""

_REQUESTED: Final[list[bool]] = []
_BEGINNING: Final = '{"progress": '
_FIELDS: Final = {"progress", "total", "message"}


class Step(NamedTuple):
    """Progress up to now."""

    done: float
    """In units that the command chooses; never less than before."""
    total: float | None
    """``None`` if it is not known."""
    message: str


def request() -> None:
    """Make commands of this process write the lines."""
    _REQUESTED.append(True)


def is_requested() -> bool:
    """True if the program that started this process reads the lines."""
    return bool(_REQUESTED)


def as_line(step: Step) -> str:
    """The line, without its end."""
    return json.dumps({"progress": step.done, "total": step.total, "message": step.message})


def of_line(line: str) -> Step | None:
    """The step in a line; ``None`` for any other line, which is a message for people."""
    if not line.startswith(_BEGINNING):
        return None
    try:
        found = json.loads(line)
    except ValueError:
        return None
    if not isinstance(found, dict) or set(found) != _FIELDS:
        return None
    return Step(found["progress"], found["total"], found["message"])
