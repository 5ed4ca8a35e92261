"""Temporary directories: removed with their process, at the latest when the next one starts.

A directory is locked (``flock(2)``) by the process that made it. The kernel releases the lock when
that process ends, however it ends: making a directory clears those without a lock. Left out: file
systems without such locks. There a killed process's directory stays.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from sim.locks import is_there, lock

PREFIX: Final = "logquake-scratch-"
"""Names of these directories begin so; nothing else may."""


class Scratch:
    """A directory of this process.

    Args:
        within: Its parent; the system's directory for temporary files if not given.
    """

    def __init__(self, within: str | Path | None = None) -> None:
        root = Path(tempfile.gettempdir() if within is None else within)
        clear(root)
        self.path, self._held = _made(root)
        self._owner = os.getpid()

    def close(self) -> None:
        """Removes it and all in it; a second call, or one in a forked child, does nothing."""
        if self._held is None or os.getpid() != self._owner:
            return
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._held)
        self._held = None


@contextmanager
def scratch(within: str | Path | None = None) -> Iterator[Path]:
    """A :class:`Scratch` directory for a block."""
    made = Scratch(within)
    try:
        yield made.path
    finally:
        made.close()


def clear(root: Path) -> None:
    """Removes the scratch directories of processes that have ended."""
    try:
        found = sorted(root.glob(f"{PREFIX}*"))
    except OSError:
        return
    for path in found:
        with suppress(OSError):
            handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if os.fstat(handle).st_uid == os.getuid() and lock(handle):
                    shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(handle)


def _made(root: Path) -> tuple[Path, int | None]:
    while True:
        path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=root))
        if sys.platform == "win32":
            return path, None
        try:
            handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            continue  # between the two lines it was taken for one of a dead process
        if lock(handle) is not False and is_there(path, handle):
            return path, handle
        os.close(handle)  # the same: another process clears it at this moment
