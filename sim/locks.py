"""Locks of directories: a file in each that one process holds, by ``flock(2)``.

The kernel releases the lock when its process ends, however it ends, so that a killed process blocks
no other. Left out: file systems without such locks, where nothing is locked.
"""

import os
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from sim.errors import SimulationError

if sys.platform != "win32":
    import fcntl


class Lock:
    """A file that this process holds: made by :func:`hold`."""

    def __init__(self, file: Path, handle: int) -> None:
        self.file = file
        self._handle: int | None = handle

    def release(self) -> None:
        """Removes the file, and lets others write; a second call does nothing."""
        if self._handle is not None:
            self.file.unlink(missing_ok=True)
            os.close(self._handle)
            self._handle = None


def hold(file: Path) -> Lock:
    """Holds a file, which is made if it is not there; its directory must be.

    Raises:
        SimulationError: If another process holds it; the message names it, and since when.
    """
    while True:
        handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
        if lock(handle) is False:
            raise _refusal(file, handle)
        if is_there(file, handle):
            os.ftruncate(handle, 0)
            os.write(handle, f"{os.getpid()}\n".encode())
            return Lock(file, handle)
        os.close(handle)  # its holder removed it meanwhile


def check_free(file: Path) -> None:
    """True if no process holds a file; makes and changes nothing.

    Raises:
        SimulationError: As :func:`hold`.
    """
    with suppress(FileNotFoundError):
        handle = os.open(file, os.O_RDWR)
        if lock(handle) is False:
            raise _refusal(file, handle)
        os.close(handle)


def _refusal(file: Path, handle: int) -> SimulationError:
    """Closes a file that another process holds; returns the error that names it."""
    holder = os.pread(handle, 32, 0).decode("ascii", "replace").strip()
    since = datetime.fromtimestamp(int(os.fstat(handle).st_mtime), UTC)
    os.close(handle)
    return SimulationError(
        f"{file.parent}: another run writes there: process {holder or 'not known'}, since "
        f"{since:%Y-%m-%d %H:%M:%S} UTC; wait until it has ended, or choose another --out"
    )


def lock(handle: int) -> bool | None:
    """Locks an open file or directory, without waiting.

    Returns:
        True if it was locked, ``False`` if another process holds it, ``None`` where there are no
        locks.
    """
    if sys.platform == "win32":
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def is_there(file: Path, handle: int) -> bool:
    """True if what was opened has that path still: its holder may have removed it meanwhile."""
    try:
        return os.path.samestat(file.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False
