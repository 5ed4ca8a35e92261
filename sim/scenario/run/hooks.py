"""Hooks of a run: instants at which somebody who watches it, or branches it, is called.

A run with hooks that only look has the same events, rows and digests as one without.
"""

from collections.abc import Sequence
from typing import Final, Protocol

from sim.checking.observer import Observer
from sim.faults.injector import Injector
from sim.rng import Streams
from sim.trace.writer import Trace
from sim.units import Micros


class Paused(Protocol):
    """Parts of a paused run that a branch of it may change."""

    streams: Streams
    injector: Injector


class Hooks:
    """Does nothing; a base for those who need one of them."""

    instants: Sequence[Micros] = ()
    """Instants of the workload at which :meth:`pause` is called, in order."""

    def hear(self, trace: Trace, observer: Observer) -> None:
        """Called before the first row, to add listeners; the observer's own come first."""

    def pause(self, at: Micros, run: Paused) -> None:
        """Called when every event up to one of the instants, and at it, has been executed."""

    def is_at_rest(self, at: Micros) -> bool:  # noqa: ARG002 - for those who need it
        """Asked while a drain has no more to wait for; as long as it is false, it waits on."""
        return True

    def rest(self, at: Micros) -> None:
        """Called when the drain has ended, or without one the workload; clients are open still."""


NO_HOOKS: Final = Hooks()
