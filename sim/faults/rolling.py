"""A rolling restart: servers one after the other, each in good order.

The administrator stops a process, lets it be down for a while, starts it, waits until it is back in
every ISR that it belongs to, and a little longer, and goes on with the next. Nothing is undone by
healing: it is a procedure, and is over when it has come to its end.

Source: Kafka's operations manual, "Graceful shutdown"; the failure catalogue E3.
"""

from collections.abc import Callable, Iterator, Sequence

from sim.faults.action import Evidence
from sim.faults.spec import Fault
from sim.faults.surface import Process, World
from sim.units import Micros


class RollingRestart:
    """Restarts processes in the order given.

    Args:
        world: The cluster.
        names: Whom to restart; clients are not meant.
        fault: How long each is down, and how long to wait when it is back.
        now: The true time.
    """

    def __init__(
        self, world: World, names: Sequence[str], fault: Fault, now: Callable[[], Micros]
    ) -> None:
        self._world = world
        self._fault = fault
        self._now = now
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
