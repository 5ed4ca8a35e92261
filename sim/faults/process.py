"""Faults of processes: crash, restart, controlled shutdown, pause, rolling restart.

Source: kill -9, SIGTERM, SIGSTOP and SIGCONT as they meet a Kafka process; Kafka's operations
manual, "Graceful shutdown"; the failure catalogue E3.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

from sim.faults.action import Evidence, Procedure
from sim.faults.fault import NOTHING, Fault, Hits, Outage, Release, Span, TargetFault, key
from sim.faults.resolve import Site
from sim.faults.surface import Host, Process, World
from sim.protocol.messages.admin import UpdateFeaturesRequest
from sim.units import SECOND, Micros

_ACKS_1: Final = f"{NOTHING}; with acks=1 acknowledged records"


class Killing:
    """Kills processes (``kill -9``); healing starts them again."""

    def __init__(self, world: World, names: Sequence[str]) -> None:
        self._processes = [world.nodes[name] for name in names]
        self._hosts = {name: world.host_of(name) for name in names}
        self._killed: list[str] = []

    def begin(self) -> None:
        """Kills every target that runs."""
        for process in self._processes:
            if process.running:
                self._killed.append(process.name)
                process.crash()

    def heal(self) -> bool:
        """Starts those that are down and have power; a host without power does so when it boots."""
        start_stopped(self._processes, self._hosts)
        return True

    def evidence(self) -> Evidence:
        """True if a process was running."""
        return _evidence_of("killed", self._killed, "was not running")


class Restarting(Killing):
    """Starts processes at once; kills those that run first."""

    def __init__(self, world: World, names: Sequence[str]) -> None:
        super().__init__(world, names)
        self._started: list[str] = []

    def begin(self) -> None:
        """Kills those that run, starts all."""
        before = {process.name: process.incarnation for process in self._processes}
        super().begin()
        start_stopped(self._processes, self._hosts)
        # A killed one starts as soon as its sockets are closed.
        self._started = [
            p.name
            for p in self._processes
            if p.incarnation > before[p.name] or p.tearing_down or p.starting
        ]

    def evidence(self) -> Evidence:
        """True if it has started a new incarnation; later ones have other causes."""
        return _evidence_of(
            "started", self._started, "could not be started: without power, or never added"
        )


class Stopping:
    """Stops processes in good order, as SIGTERM does; healing starts the stopped ones."""

    def __init__(self, world: World, names: Sequence[str]) -> None:
        self._processes = [world.nodes[name] for name in names]
        self._hosts = {name: world.host_of(name) for name in names}
        self._signalled: dict[str, int] = {}

    def begin(self) -> None:
        """Sends SIGTERM to every target that runs."""
        for process in self._processes:
            if process.running and not process.paused:
                self._signalled[process.name] = process.incarnation
                process.shut_down()

    def heal(self) -> bool:
        """Starts those that have stopped; false while one is still stopping."""
        if self._stopping():
            return False
        start_stopped(self._processes, self._hosts)
        return True

    def evidence(self) -> Evidence:
        """True if a process was running; the text says if it has stopped."""
        stopped = _evidence_of("stopped", list(self._signalled), "was not running")
        stopping = self._stopping()
        still = f"; still stopping: {', '.join(stopping)}" if stopping else ""
        return Evidence(stopped.took_effect, stopped.effect + still)

    def _stopping(self) -> list[str]:
        return [
            p.name
            for p in self._processes
            if p.running and self._signalled.get(p.name) == p.incarnation
        ]


class Freezing:
    """SIGSTOP: the process neither reads, responds nor fires timers, and its sockets stay open."""

    def __init__(self, world: World, names: Sequence[str]) -> None:
        self._processes = [world.nodes[name] for name in names]
        self._paused: list[str] = []

    def begin(self) -> None:
        """Freezes every target that runs."""
        for process in self._processes:
            if process.running and not process.paused:
                self._paused.append(process.name)
                process.pause()

    def heal(self) -> bool:
        """Resumes those that are still frozen; one that died meanwhile is left alone."""
        for process in self._processes:
            if process.running and process.paused and process.name in self._paused:
                process.resume()
        return True

    def evidence(self) -> Evidence:
        """True if a process was running."""
        return _evidence_of("froze", self._paused, "was not running")


def start_stopped(processes: Sequence[Process], hosts: dict[str, Host]) -> None:
    """Starts every process that does not run and whose host has power, except spare ones."""
    for process in processes:
        if not process.running and not process.spare and hosts[process.name].powered:
            process.start()


def _evidence_of(verb: str, names: Sequence[str], otherwise: str) -> Evidence:
    if not names:
        return Evidence(took_effect=False, effect=otherwise)
    return Evidence(took_effect=True, effect=f"{verb} {', '.join(names)}")


FINALIZE_EVERY_US: Final[Micros] = SECOND
"""Time until a refused upgrade of features is tried again; a modelling choice."""

FINALIZE_TIMES: Final = 30
"""Number of attempts: controllers register a moment after they have started."""


class RollingProcedure(Procedure):
    """Restarts servers in the given order, perhaps with another release.

    The administrator stops one, leaves it down for a while, starts it, waits until it is back in
    every ISR that it belongs to, and a little longer; then the next. Healing undoes nothing. At the
    end of an upgrade features may be upgraded, too.

    Args:
        fault: Down time of each, and waiting time when it is back.
        names: Servers to restart; clients are skipped.
        site: The cluster.
    """

    def __init__(self, fault: "RollingRestart", names: Sequence[str], site: Site) -> None:
        super().__init__()
        self._world = site.world
        self._fault = fault
        self._now = site.now
        self._finalized = ""
        self._restarted: list[str] = []
        self._skipped: list[str] = []
        self._steps = self._procedure(names)
        self._over = False

    def begin(self) -> None:
        """Stops the first."""
        self.heal()

    def heal(self) -> bool:
        """Continues as far as possible now; true at the end."""
        if not self._over:
            self._over = next(self._steps, None) is None
        return self._over

    def evidence(self) -> Evidence:
        """Servers that it has restarted, and those that did not run or are left."""
        text = f"restarted {', '.join(self._restarted)}" if self._restarted else "nobody ran"
        if self._skipped:
            text += f"; not running: {', '.join(self._skipped)}"
        if self._fault.to is not None and self._restarted:
            text += f" with {self._fault.to.name}"
        text += self._finalized
        if not self._over:
            text += "; not at its end"
        return Evidence(bool(self._restarted), text)

    def _procedure(self, names: Sequence[str]) -> Iterator[str]:
        """Yields whenever it has to wait."""
        while self._is_ahead():
            yield "servers run older releases"
        for name in names:
            process = self._world.nodes[name]
            if not process.running or process.paused:
                self._skipped.append(name)
                continue
            yield from self._restart(name, process)
        if self._fault.to is not None and self._fault.finalize:
            yield from self._finalize(self._fault.to)

    def _restart(self, name: str, process: Process) -> Iterator[str]:
        self._restarted.append(name)
        process.shut_down()
        while process.running:
            yield "it is stopping"
        self._note(name, "has stopped")
        yield from self._wait(self._fault.down_us)
        while not self._world.host_of(name).powered:
            yield "its host has no power"
        if not process.running:
            if self._fault.to is not None:
                self._world.install(name, self._fault.to.name)
            process.start()
            self._note(name, "runs")
        while not self._world.is_in_sync(name):
            yield "it is catching up"
        self._note(name, "is in sync")
        yield from self._wait(self._fault.settle_us)

    def _is_ahead(self) -> bool:
        """True while a server runs a release before the last one, which two apart would not go."""
        to = self._fault.to
        if to is None:
            return False
        found = [self._world.release_of(name) for name in self._world.servers]
        return any(release not in {to.before, to.name} for release in found)

    def _note(self, server: str, text: str) -> None:
        """Notes a step of an upgrade; a restart with the same release has none."""
        if self._fault.to is not None:
            self.note(server, f"{text} {self._fault.to.name}" if text == "runs" else text)

    def _finalize(self, release: Release) -> Iterator[str]:
        """Upgrades features, which is tried again while a server is not ready for it."""
        outcome = ""
        for _ in range(FINALIZE_TIMES):
            request = UpdateFeaturesRequest(release.levels)
            operation = self._world.administrator.operate(request)
            while not operation.is_done:
                yield "the controller decides"
            outcome = f"features of {release.name}: {operation.outcome}"
            if operation.accepted:
                break
            yield from self._wait(FINALIZE_EVERY_US)
        self._note("", outcome)
        self._finalized = f"; {outcome}"

    def _wait(self, duration: Micros) -> Iterator[str]:
        until = self._now() + duration
        while self._now() < until:
            yield "time has to pass"


class _ProcessFault(TargetFault):
    """A fault of processes; healing starts or resumes each."""

    proof = "the process was running"
    may_break = _ACKS_1


class Crash(_ProcessFault):
    """Kill -9 of a process; the page cache stays; started again after `for`."""

    kind = "crash"
    outage: ClassVar[Outage] = "service"

    def on(self, names: tuple[str, ...], site: Site) -> Killing:
        """Action on these processes."""
        return Killing(site.world, names)


class Restart(_ProcessFault):
    """Start a process at once; one that still runs is killed first."""

    kind = "restart"
    proof = "the process runs in a new incarnation"
    span: ClassVar[Span] = "instant"

    def on(self, names: tuple[str, ...], site: Site) -> Restarting:
        """Action on these processes."""
        return Restarting(site.world, names)


class ControlledShutdown(_ProcessFault):
    """Stop a process as SIGTERM does, with hand-over; started again after `for`."""

    kind = "controlled-shutdown"
    outage: ClassVar[Outage] = "service"
    may_break = "nothing: leadership is handed over first"
    hits: ClassVar[Hits] = "server"

    def on(self, names: tuple[str, ...], site: Site) -> Stopping:
        """Action on these processes."""
        return Stopping(site.world, names)


class Pause(_ProcessFault):
    """Freeze a process (kill -STOP); its sockets stay open; resumed after `for`."""

    kind = "pause"
    outage: ClassVar[Outage] = "service"

    def on(self, names: tuple[str, ...], site: Site) -> Freezing:
        """Action on these processes."""
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

    to: Release | None = field(
        default=None, metadata=key("to", "release", "the next release, which each one runs then")
    )
    finalize: bool | None = field(
        default=None,
        metadata=key("finalize", "flag", "with to: features are upgraded, too, at the end"),
    )

    def on(self, names: tuple[str, ...], site: Site) -> RollingProcedure:
        """Action on these servers."""
        return RollingProcedure(self, names, site)


PROCESS_FAULTS: Final[tuple[type[Fault], ...]] = (
    Crash, Restart, ControlledShutdown, Pause, RollingRestart,
)  # fmt: skip
