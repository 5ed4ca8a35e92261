"""Faults of processes: crash, restart, controlled shutdown, pause.

Source: kill -9, SIGTERM, SIGSTOP and SIGCONT as they meet a Kafka process.
"""

from collections.abc import Sequence

from sim.faults.action import Evidence
from sim.faults.surface import Host, Process, World


class Crash:
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


class Restart(Crash):
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


class ControlledShutdown:
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


class Pause:
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
