"""Parts of a run directory that were kept when its run had been judged, by its run card.

Without Arrow, so that commands that only ask may import it.
"""

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from sim.errors import SimulationError

Kept: TypeAlias = Literal["all", "logs", "verdict"]
"""All; all but the trace; neither the trace nor segment files."""

LEFT_OUT: Final[Mapping[Kept, Sequence[str]]] = {
    "all": (),
    "logs": ("trace",),
    "verdict": ("trace", "disks"),
}
"""Directories that are removed then."""


def kept_of(directory: Path) -> Kept:
    """Parts of a run directory that were kept; ``all`` if its card does not say."""
    found = _card(directory).get("kept", "all")
    return next((kept for kept in LEFT_OUT if kept == found), "all")


def check_kept(directory: Path, part: str) -> None:
    """Check that a part of a run directory was kept (``logquake run --keep``).

    Args:
        directory: The run directory.
        part: ``trace`` or ``disks``.

    Raises:
        SimulationError: If it was removed; the message has the command that makes it again.
    """
    kept = kept_of(directory)
    if part not in LEFT_OUT[kept]:
        return
    card = _card(directory)
    again = ["logquake", "run", str(directory / "scenario.yaml"), "--seed", str(card.get("seed"))]
    again += ["--trace", str(card.get("level", "detail")), "--out", str(directory), "--force"]
    raise SimulationError(
        f"{directory}: the run was kept as {kept} (--keep {kept}), without {part}/; "
        f"to get it again: {shlex.join(again)}"
    )


def check_kept_around(path: Path) -> None:
    """Check that a missing file or directory was not removed with the disks of a run.

    Raises:
        SimulationError: As :func:`check_kept`.
    """
    for parent in path.absolute().parents:
        if (parent / "run.json").is_file():
            check_kept(parent, "disks")


def _card(directory: Path) -> Mapping[str, Any]:
    try:
        found = json.loads((directory / "run.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
