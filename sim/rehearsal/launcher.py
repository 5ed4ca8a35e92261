"""Starts a program that ends with the process that started it.

Run as a script, without the simulator's packages: ``launcher.py PARENT PROGRAM ARGUMENT ...``. The
kernel kills the program when its parent ends, however that ends (``PR_SET_PDEATHSIG`` of
``prctl(2)``, which stays over ``execve(2)``). Left out: systems other than Linux.
"""

import ctypes
import os
import signal
import sys
from typing import Final

_PR_SET_PDEATHSIG: Final = 1


def command(program: list[str]) -> list[str]:
    """The command line that starts a program as a child of this process."""
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), *program]


def launch(parent: int, program: list[str]) -> None:
    """Becomes the program; ends at once if the parent has ended meanwhile."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL.value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() == parent:
        os.execvp(program[0], program)  # noqa: S606 - it is the point of this program


if __name__ == "__main__":
    launch(int(sys.argv[1]), sys.argv[2:])
