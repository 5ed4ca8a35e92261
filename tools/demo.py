"""Runs the main scenario and writes its report, and says how long each part took: ``make demo``.

Nothing is compiled for it: compiling takes longer than the demo. The last line says what it brings.
"""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from sim.compiled import WHY_SOURCES

ROOT: Final = Path(__file__).resolve().parents[1]
SET_UP: Final = "LOGQUAKE_SET_UP_S"
"""Environment variable with the seconds that the virtual environment took, 0 if it was there."""

OUT: Final = Path("runs", "quickstart-s7")


def main(words: list[str]) -> int:
    """Run and report, with other ``words`` for the run (``--set run.for=10s``); the exit status."""
    took = {"set up": float(os.environ.get(SET_UP, "0"))}
    parts = {
        "run": ("run", "scenarios/quickstart.yaml", "--out", str(OUT), "--force", *words),
        "report": ("report", str(OUT)),
    }
    for name, arguments in parts.items():
        began = time.monotonic()
        status = subprocess.run(
            [sys.executable, "-m", "sim", *arguments], cwd=ROOT, check=False
        ).returncode
        took[name] = time.monotonic() - began
        if status:
            return status
    sys.stdout.write(f"{summary(took, compiled=not WHY_SOURCES)}\n")
    return 0


def summary(took: dict[str, float], *, compiled: bool) -> str:
    """Lines about the seconds that each part ``took``, and about compiling."""
    parts = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in took.items() if seconds)
    lines = [f"took     {parts}"]
    if not compiled:
        lines.append(
            "compile  make compile, once, some minutes: a run then takes half as long, "
            "to the same bytes"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
