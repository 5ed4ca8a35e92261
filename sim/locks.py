"""Who writes to a directory: a file in it that one process holds, by ``flock(2)``.

The kernel lets the file go when its process ends, however it ends, so that what a killed process
left blocks nobody. Left out: file systems without such locks, where nobody is kept away.
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
        """Remove the file, and let others write; a second call does nothing."""
        if self._handle is not None:
            self.file.unlink(missing_ok=True)
            os.close(self._handle)
            self._handle = None


def hold(file: Path) -> Lock:
    """Hold a file, which is made if it is not there; its directory must be.

    Raises:
        SimulationError: If another process holds it; the message says which, and since when.
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
    """Whether nobody holds a file; nothing is made or changed.

    Raises:
        SimulationError: As :func:`hold`.
    """
    with suppress(FileNotFoundError):
        handle = os.open(file, os.O_RDWR)
        if lock(handle) is False:
            raise _refusal(file, handle)
        os.close(handle)


def _refusal(file: Path, handle: int) -> SimulationError:
    """Close a file that another process holds; who that is."""
    told = os.pread(handle, 32, 0).decode("ascii", "replace").strip()
    since = datetime.fromtimestamp(int(os.fstat(handle).st_mtime), UTC)
    os.close(handle)
    return SimulationError(
        f"{file.parent}: another run writes there: process {told or 'not known'}, since "
        f"{since:%Y-%m-%d %H:%M:%S} UTC; wait until it has ended, or choose another --out"
    )


def lock(handle: int) -> bool | None:
    """Lock an open file or directory, without waiting.

    Returns:
        Whether it could be locked: ``False`` if another process holds it, ``None`` where there are
        no locks.
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
    """Whether what was opened has that path still: its holder may have removed it meanwhile."""
    try:
        return os.path.samestat(file.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False
