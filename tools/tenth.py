"""Choice of a tenth of the long tests, by the commit: ten landings run all of them.

Every landing takes the next turn (``make turn`` counts one on in ``tests/turn``), and turn *n* runs
the tests whose names fall into part *n* modulo 10. A landing that forgot its turn does not repeat
the part of the one before if enough commits lie between.
"""

import subprocess
import sys
import zlib
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
PARTS: Final = 10
TURN: Final = "tests/turn"
COMMITS_A_TURN: Final = 20
"""About the commits of one landing; so many without a new turn count as one."""


def part_of(name: str) -> int:
    """The part, from 0 to 9, of a test.

    Args:
        name: Its node id; a new test moves no other one into another part.
    """
    return zlib.crc32(name.encode()) % PARTS


def turn(root: Path = ROOT) -> int:
    """The turn of the commit that is checked out.

    Raises:
        SystemExit: If ``tests/turn`` holds no number.
    """
    recorded = _recorded(root)
    taken = _git(root, "log", "-1", "--format=%H", "--", TURN)
    since = _git(root, "rev-list", "--count", f"{taken}..HEAD") if taken else "0"
    return recorded + int(since or 0) // COMMITS_A_TURN


def take_turn(root: Path = ROOT) -> int:
    """Record the next turn, and return it."""
    found = turn(root) + 1
    (root / TURN).write_text(f"{found}\n", encoding="ascii")
    return found


def _recorded(root: Path) -> int:
    text = (root / TURN).read_text(encoding="utf-8").strip()
    if not text.isdecimal():
        raise SystemExit(f"{TURN}: {text!r}; allowed: a number of turns; take one with: make turn")
    return int(text)


def _git(root: Path, *words: str) -> str:
    """What git prints; nothing where this is no repository."""
    ran = subprocess.run(["git", *words], cwd=root, check=False, capture_output=True, text=True)
    return ran.stdout.strip() if ran.returncode == 0 else ""


if __name__ == "__main__":
    sys.stdout.write(f"{TURN}: {take_turn()}\n")
