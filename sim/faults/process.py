"""Faults of processes: crash, restart, controlled shutdown, pause, rolling restart.

Source: kill -9, SIGTERM, SIGSTOP and SIGCONT as they meet a Kafka process; Kafka's operations
manual, "Graceful shutdown"; the failure catalogue E3.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

from sim.faults.action import Evidence
from sim.faults.fault import NOTHING, Fault, Hits, Outage, Span, TargetFault, key
from sim.faults.resolve import Site
from sim.faults.surface import Host, Process, World
from sim.units import Micros

_ACKS_1: Final = f"{NOTHING}; with acks=1 acknowledged records"


class Killing:
    """Kill -9; what was killed is started again by healing."""

    def __init__(self, world: World, names: Sequence[str]) -> None:
        self._processes = [world.nodes[name] for name in names]
        self._hosts = {name: world.host_of(name) for name in names}
        self._killed: list[str] = []

    def begin(self) -> None:
        """Kill every target that runs."""
        for process in self._processes:
            if process.running:
                self._killed.append(process.name)
                process.crash()

    def heal(self) -> bool:
        """Start what is down and has power; a host without power starts it when it boots."""
        start_what_is_down(self._processes, self._hosts)
        return True

    def evidence(self) -> Evidence:
        """Whether a process was running."""
        return _told("killed", self._killed, "was not running")


class Restarting(Killing):
    """Start a process at once; kill it first if it runs."""

    def __init__(self, world: World, names: Sequence[str]) -> None:
        super().__init__(world, names)
        self._started: list[str] = []

    def begin(self) -> None:
        """Kill what runs, start everything."""
        before = {process.name: process.incarnation for process in self._processes}
        super().begin()
        start_what_is_down(self._processes, self._hosts)
        # One that is killed starts as soon as its sockets are closed.
        self._started = [
            p.name for p in self._processes if p.incarnation > before[p.name] or p.tearing_down
        ]

    def evidence(self) -> Evidence:
        """Whether it has brought a new incarnation; one that came later is not its doing."""
        return _told(
            "started", self._started, "could not be started: without power, or never added"
        )


class Stopping:
    """An orderly stop, as SIGTERM asks for; healing starts the process when it has stopped."""

    def __init__(self, world: World, names: Sequence[str]) -> None:
        self._processes = [world.nodes[name] for name in names]
        self._hosts = {name: world.host_of(name) for name in names}
        self._asked: dict[str, int] = {}

    def begin(self) -> None:
        """Ask every target that runs to stop."""
        for process in self._processes:
            if process.running and not process.paused:
                self._asked[process.name] = process.incarnation
                process.shut_down()

    def heal(self) -> bool:
        """Start what has stopped; false while one is still stopping."""
        if self._stopping():
            return False
        start_what_is_down(self._processes, self._hosts)
        return True

    def evidence(self) -> Evidence:
        """Whether a process was running, and whether it came to a stop."""
        told = _told("stopped", list(self._asked), "was not running")
        stopping = self._stopping()
        still = f"; still stopping: {', '.join(stopping)}" if stopping else ""
        return Evidence(told.took_effect, told.effect + still)

    def _stopping(self) -> list[str]:
        return [
            p.name
            for p in self._processes
            if p.running and self._asked.get(p.name) == p.incarnation
        ]


class Freezing:
    """SIGSTOP: the process neither reads, answers nor fires timers, and its sockets stay open."""

    def __init__(self, world: World, names: Sequence[str]) -> None:
        self._processes = [world.nodes[name] for name in names]
        self._paused: list[str] = []

    def begin(self) -> None:
        """Freeze every target that runs."""
        for process in self._processes:
            if process.running and not process.paused:
                self._paused.append(process.name)
                process.pause()

    def heal(self) -> bool:
        """Let what is still frozen go on; a process that died meanwhile has nothing to resume."""
        for process in self._processes:
            if process.running and process.paused and process.name in self._paused:
                process.resume()
        return True

    def evidence(self) -> Evidence:
        """Whether a process was running."""
        return _told("froze", self._paused, "was not running")


def start_what_is_down(processes: Sequence[Process], hosts: dict[str, Host]) -> None:
    """Start every process that does not run and whose host has power; but no spare ones."""
    for process in processes:
        if not process.running and not process.spare and hosts[process.name].powered:
            process.start()


def _told(verb: str, names: Sequence[str], otherwise: str) -> Evidence:
    if not names:
        return Evidence(took_effect=False, effect=otherwise)
    return Evidence(took_effect=True, effect=f"{verb} {', '.join(names)}")


class RollingProcedure:
    """Restarts processes in the order given.

    The administrator stops one, leaves it down for a while, starts it, waits until it is back in
    every ISR that it belongs to, and a little longer; then the next. Healing undoes nothing.

    Args:
        fault: How long each is down, and how long to wait when it is back.
        names: Whom to restart; clients are not meant.
        site: Where.
    """

    def __init__(self, fault: "RollingRestart", names: Sequence[str], site: Site) -> None:
        self._world = site.world
        self._fault = fault
        self._now = site.now
        self._restarted: list[str] = []
        self._skipped: list[str] = []
        self._steps = self._procedure(names)
        self._over = False

    def begin(self) -> None:
        """Stop the first."""
        self.heal()

    def heal(self) -> bool:
        """Go on as far as can be gone now; whether that was the end."""
        if not self._over:
            self._over = next(self._steps, None) is None
        return self._over

    def evidence(self) -> Evidence:
        """Whom it has restarted, and who did not run or is still missing."""
        told = f"restarted {', '.join(self._restarted)}" if self._restarted else "nobody ran"
        if self._skipped:
            told += f"; not running: {', '.join(self._skipped)}"
        if not self._over:
            told += "; not at its end"
        return Evidence(bool(self._restarted), told)

    def _procedure(self, names: Sequence[str]) -> Iterator[str]:
        """Yields whenever there is something to wait for."""
        for name in names:
            process = self._world.nodes[name]
            if not process.running or process.paused:
                self._skipped.append(name)
                continue
            yield from self._restart(name, process)

    def _restart(self, name: str, process: Process) -> Iterator[str]:
        self._restarted.append(name)
        process.shut_down()
        while process.running:
            yield "it is stopping"
        yield from self._wait(self._fault.down_us)
        while not self._world.host_of(name).powered:
            yield "its host has no power"
        if not process.running:
            process.start()
        while not self._world.is_in_sync(name):
            yield "it is catching up"
        yield from self._wait(self._fault.settle_us)

    def _wait(self, duration: Micros) -> Iterator[str]:
        until = self._now() + duration
        while self._now() < until:
            yield "time has to pass"


class _ProcessFault(TargetFault):
    """Something happens to processes; each is started again, or resumed, by healing."""

    proof = "the process was running"
    may_break = _ACKS_1


class Crash(_ProcessFault):
    """Kill -9 of a process; the page cache stays; started again after `for`."""

    kind = "crash"
    outage: ClassVar[Outage] = "service"

    def on(self, names: tuple[str, ...], site: Site) -> Killing:
        """At work on these processes."""
        return Killing(site.world, names)


class Restart(_ProcessFault):
    """Start a process at once; one that still runs is killed first."""

    kind = "restart"
    proof = "the process runs in a new incarnation"
    span: ClassVar[Span] = "instant"

    def on(self, names: tuple[str, ...], site: Site) -> Restarting:
        """At work on these processes."""
        return Restarting(site.world, names)


class ControlledShutdown(_ProcessFault):
    """Stop a process as SIGTERM does, with hand-over; started again after `for`."""

    kind = "controlled-shutdown"
    outage: ClassVar[Outage] = "service"
    may_break = "nothing: leadership is handed over first"
    hits: ClassVar[Hits] = "server"

    def on(self, names: tuple[str, ...], site: Site) -> Stopping:
        """At work on these processes."""
        return Stopping(site.world, names)


class Pause(_ProcessFault):
    """Freeze a process (kill -STOP); its sockets stay open; resumed after `for`."""

    kind = "pause"
    outage: ClassVar[Outage] = "service"

    def on(self, names: tuple[str, ...], site: Site) -> Freezing:
        """At work on these processes."""
        return Freezing(site.world, names)


@dataclass(frozen=True, kw_only=True)
class RollingRestart(TargetFault):
    """Servers are restarted in good order, one when the one before is in sync again."""

    kind = "rolling-restart"
    proof = "a process was stopped"
    may_break = "nothing: leadership is handed over first, each time"
    span: ClassVar[Span] = "procedure"
    hits: ClassVar[Hits] = "server"
    down_us: Micros = field(
        default=0, metadata=key("down", "duration", "how long each one is down")
    )
    settle_us: Micros = field(
        default=0,
        metadata=key("settle", "duration", "how long to wait when each one is back in sync"),
    )

    def on(self, names: tuple[str, ...], site: Site) -> RollingProcedure:
        """At work on these servers."""
        return RollingProcedure(self, names, site)


PROCESS_FAULTS: Final[tuple[type[Fault], ...]] = (
    Crash, Restart, ControlledShutdown, Pause, RollingRestart,
)  # fmt: skip
