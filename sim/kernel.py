"""The simulated clock and event queue: the only user of SimPy's environment.

Packets and timers are callbacks; nodes and workloads are processes. Events at equal instants run in
the order of scheduling. Five traps of SimPy are closed here: exceptions that are re-created when a
process fails, timeouts that stay in the queue after their race is lost, getters that swallow items
(there are no stores: a mailbox is a callback), and a clock that takes the type it is given.

Source: SimPy 4.1 ``core.py``, ``events.py``.
"""

from collections.abc import Callable, Generator
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any

import simpy
from simpy.events import NORMAL, Event, Process, ProcessGenerator

from sim.errors import NoProgress
from sim.units import NEVER, Micros, show_instant

__all__ = ["Call", "Kernel", "Process", "Task", "Timer"]

Task = Generator[Event, Any, None]
"""A process: it yields events of this kernel and returns nothing."""

EVENTS_AT_ONE_INSTANT_MAX = 2_000_000
"""More events than this at one instant mean a loop that takes no time."""

_STALE_MIN = 4_096
"""Fewer cancelled entries than this are not worth a sweep of the queue."""


class Call:
    """One callback in the queue; cancelling it leaves an empty entry that a sweep removes.

    It is in SimPy's queue beside SimPy's events, and is not one: it has no callbacks.
    """

    __slots__ = ("args", "fn", "kernel")

    def __init__(self, kernel: "Kernel", fn: Callable[..., object], args: tuple[Any, ...]) -> None:
        self.kernel = kernel
        self.fn: Callable[..., object] | None = fn
        self.args = args

    def cancel(self) -> None:
        """Cancels the callback; harmless once it has run."""
        if self.fn is not None:
            self.fn = None
            self.args = ()
            self.kernel.note_stale()


class Timer:
    """One alarm that can be moved. It keeps at most one live entry in the queue.

    Moving the alarm later costs nothing: the entry in the queue finds, when it is due, that the
    alarm is later, and enters itself again.
    """

    __slots__ = ("_call", "_entry_at", "_fn", "_kernel", "at")

    def __init__(self, kernel: "Kernel", fn: Callable[[], None]) -> None:
        self._kernel = kernel
        self._fn = fn
        self._call: Call | None = None
        self._entry_at: Micros = NEVER
        self.at: Micros = NEVER

    def set(self, at: Micros) -> None:
        """Sets the timer to an instant, or to now if that has passed; replaces a former setting."""
        self.at = at
        if self._call is not None:
            if self._entry_at <= at:
                return
            self._call.cancel()
        self._enter(at)

    def cancel(self) -> None:
        """Cancels the setting."""
        self.at = NEVER

    def _enter(self, at: Micros) -> None:
        self._entry_at = max(at, self._kernel.now())
        self._call = self._kernel.call_at(self._entry_at, self._due)

    def _due(self) -> None:
        self._call = None
        if self.at == NEVER:
            return
        if self.at > self._kernel.now():
            self._enter(self.at)
            return
        self.at = NEVER
        self._fn()


class Kernel:
    """The simulated world's clock and queue."""

    def __init__(self, start: Micros = 0) -> None:
        self.env = simpy.Environment(initial_time=_whole(start))
        self.time: Micros = start
        """The present instant, for the hot path; never set from outside."""
        self.events = 0
        """Events executed so far."""
        self.stale = 0
        """Cancelled entries still in the queue."""
        # The sweep and the run loop need the heap, which holds our calls beside SimPy's events.
        self._queue: list[tuple[Micros, int, int, Any]] = self.env._queue  # type: ignore[assignment]  # noqa: SLF001
        self._sequence = count(1)
        # SimPy numbers events with its own counter; ours must be the same one.
        self.env._eid = self._sequence  # noqa: SLF001
        self._failure: BaseException | None = None
        self._stopped = False

    def now(self) -> Micros:
        """The present instant."""
        return self.time

    def call_at(self, at: Micros, fn: Callable[..., object], *args: Any) -> Call:  # noqa: ANN401
        """Runs ``fn(*args)`` at the instant (at once, after what is queued for now, if it passed).

        Raises:
            TypeError: If the instant is not a whole number.
        """
        if type(at) is not int:
            _whole(at)
        call = Call(self, fn, args)
        time = self.time
        heappush(self._queue, (at if at > time else time, NORMAL, next(self._sequence), call))
        return call

    def call_in(self, delay: Micros, fn: Callable[..., object], *args: Any) -> Call:  # noqa: ANN401
        """Runs ``fn(*args)`` after the delay."""
        return self.call_at(self.now() + delay, fn, *args)

    def timer(self, fn: Callable[[], None]) -> Timer:
        """An alarm, not yet set."""
        return Timer(self, fn)

    def sleep(self, delay: Micros) -> Event:
        """An event for a process to yield: it happens after the delay."""
        return self.env.timeout(_whole(delay))

    def signal(self) -> Event:
        """An event for a process to yield: it happens when ``succeed`` is called on it."""
        return self.env.event()

    def spawn(self, name: str, task: Task) -> Process:
        """Starts a process. Its exception stops the run and is raised there, unchanged.

        An :class:`simpy.Interrupt`, as a crash throws, ends the process quietly.
        """
        return self.env.process(self._guarded(name, task))

    def stop(self) -> None:
        """Ends the run after the present event."""
        self._stopped = True

    def run(
        self,
        until: Micros,
        *,
        events_max: int | None = None,
        on_beat: Callable[[], None] | None = None,
        beat_events: int = 20_000,
    ) -> None:
        """Executes events up to and including the instant, which becomes the present one.

        Args:
            until: When to stop.
            events_max: Give up after so many events in all.
            on_beat: Called every ``beat_events`` events, for progress bars and stop requests.
            beat_events: See ``on_beat``.

        Raises:
            NoProgress: If a limit on events is exceeded.
            Exception: Whatever a callback or a process raised.
        """
        until = _whole(until)
        self._stopped = False
        while self._queue and self._queue[0][0] <= until and not self._stopped:
            instant = self.time
            self.events += self._execute(until, beat_events)
            self._check_limits(instant, beat_events, events_max)
            if on_beat is not None:
                on_beat()
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        if not self._stopped:
            self.time = self.env._now = max(until, self.time)  # noqa: SLF001

    def _execute(self, until: Micros, limit: int) -> int:
        """Executes up to ``limit`` events that are not after the instant; returns how many."""
        queue = self._queue
        env = self.env
        executed = 0
        while executed < limit and queue and not self._stopped:
            entry = heappop(queue)
            at = entry[0]
            if at > until:
                heappush(queue, entry)
                break
            self.time = env._now = at  # noqa: SLF001 - SimPy schedules its own events from it
            executed += 1
            event = entry[3]
            if type(event) is Call:
                fn = event.fn
                if fn is None:
                    self.stale -= 1
                else:
                    event.fn = None
                    fn(*event.args)
                continue
            callbacks = event.callbacks
            event.callbacks = None  # SimPy's mark for "processed"
            for callback in callbacks:
                callback(event)
        return executed

    def pending(self) -> int:
        """Entries in the queue, stale ones included."""
        return len(self._queue)

    def note_stale(self) -> None:
        """Counts a cancelled queue entry; sweeps the queue when half of it is stale."""
        self.stale += 1
        if self.stale > _STALE_MIN and self.stale * 2 > len(self._queue):
            live = [e for e in self._queue if not (isinstance(e[3], Call) and e[3].fn is None)]
            self._queue[:] = live
            heapify(self._queue)
            self.stale = 0

    def _check_limits(self, instant: Micros, executed: int, events_max: int | None) -> None:
        now = self.time
        self._at_instant = self._at_instant + executed if now == instant else 0
        if self._at_instant > EVENTS_AT_ONE_INSTANT_MAX:
            raise NoProgress(
                f"more than {EVENTS_AT_ONE_INSTANT_MAX} events at {show_instant(now)}: "
                f"time does not advance; next in the queue: {self._next_in_queue()}"
            )
        if events_max is not None and self.events > events_max:
            raise NoProgress(
                f"more than {events_max} events by {show_instant(now)}; "
                "shorten run.for or lower the rates"
            )

    _at_instant = 0

    def _next_in_queue(self) -> str:
        if not self._queue:
            return "nothing"
        event = self._queue[0][3]
        fn = getattr(event, "fn", None)
        owner = getattr(getattr(fn, "__self__", None), "name", "")
        return f"{getattr(fn, '__qualname__', type(event).__name__)} {owner}".strip()

    def _guarded(self, name: str, task: Task) -> ProcessGenerator:
        # SimPy re-creates a failing process's exception from its args and loses its attributes,
        # cause and traceback; so the process ends quietly and the original is raised by run().
        try:
            yield from task
        except simpy.Interrupt:
            return
        except BaseException as error:  # noqa: BLE001 - raised again by run(), unchanged
            error.add_note(f"in process {name!r} at t={show_instant(self.now())}")
            self._failure = error
            self._stopped = True


def _whole(value: Micros) -> Micros:
    if type(value) is not int:
        message = f"an instant is a whole number of microseconds, not {value!r}"
        raise TypeError(message)
    return value
