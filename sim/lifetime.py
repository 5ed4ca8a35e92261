"""Lifetime of processes: children end with their parent, and signals end a command in order.

A killed process (``kill -9``, or the kernel for lack of memory) cannot notify its children; but the
handles that they share with it close, which is watched here. On Linux ``prctl(2)``
(PR_SET_PDEATHSIG) is set, too, which does not depend on the interpreter.
"""

import ctypes
import os
import signal
import subprocess  # a run in a process of its own is the program itself
import sys
import threading
from collections.abc import Sequence
from multiprocessing import parent_process
from multiprocessing.connection import wait
from typing import Final

ENDS_WITH_INPUT: Final = "--ends-with-input"
"""First argument of ``python -m sim`` in a process that another one started by :func:`child`."""

INTERRUPTS: Final = tuple(
    number
    for name in ("SIGINT", "SIGTERM", "SIGHUP")
    if (number := getattr(signal, name, None)) is not None
)
"""Signals that end a command; a system without terminals has no SIGHUP."""

_PR_SET_PDEATHSIG: Final = 1
_ORPHANED: Final = 130


def end_with_parent() -> None:
    """Makes this worker process of ``multiprocessing`` end as soon as its parent has ended.

    Raises:
        RuntimeError: In a process that ``multiprocessing`` did not start.
    """
    parent = parent_process()
    if parent is None:
        raise RuntimeError("only a process that multiprocessing started has a parent to watch")
    _set_death_signal()
    _watch(parent.sentinel)


def end_with_fork() -> None:
    """Makes this forked process end as soon as the process that forked it has ended.

    Linux only, where the signal of :func:`end_with_parent` is not inherited.
    """
    _set_death_signal()


def has_one_thread() -> bool:
    """True if this process may be forked: a fork copies one thread, and what others hold locked."""
    return threading.active_count() == 1


def end_with_input() -> None:
    """Makes this process end as soon as its standard input is closed, as :func:`child` does."""
    _set_death_signal()
    _watch(sys.stdin.fileno())


def child(command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    """Runs a command that calls :func:`end_with_input`, and waits for its end.

    Returns:
        Its exit code, and what it wrote.
    """
    reading, writing = os.pipe()
    try:
        return subprocess.run(  # noqa: S603 - our own command
            command, stdin=reading, capture_output=True, text=True, check=False
        )
    finally:
        os.close(reading)
        os.close(writing)


class Interrupted(KeyboardInterrupt):
    """A signal to end the program.

    A class of its own: where a bare ``KeyboardInterrupt`` passes through code that was compiled
    from a text (every dataclass has some), CPython ends the process by SIGINT whatever its exit
    code was to be.
    """


def interrupt_by_signals() -> None:
    """Makes SIGINT, SIGTERM and SIGHUP raise :class:`Interrupted`, which closes what is open.

    An ignored signal (``nohup``) stays ignored.
    """
    for number in INTERRUPTS:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, interrupt)


def was_interrupted() -> bool:
    """True if :class:`Interrupted` was raised; closing what was open may have failed after it."""
    return bool(_RECEIVED)


_RECEIVED: Final[list[int]] = []


def interrupt(number: int, _frame: object) -> None:
    """Raises :class:`Interrupted`: the handler that :func:`interrupt_by_signals` sets."""
    _RECEIVED.append(number)
    raise Interrupted(signal.Signals(number).name)


def is_ignored(number: int) -> bool:
    """True if the program was started with a hang-up ignored, as ``nohup`` does."""
    return number == getattr(signal, "SIGHUP", None) and signal.getsignal(number) == signal.SIG_IGN


def _set_death_signal() -> None:
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL.value, 0, 0, 0)


def _watch(handle: int) -> None:
    """Ends the process when a handle's other side is closed, even if that was before this call."""

    def watch() -> None:
        wait([handle])
        os._exit(_ORPHANED)

    threading.Thread(target=watch, name="parent", daemon=True).start()
