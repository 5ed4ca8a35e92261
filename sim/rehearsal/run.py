"""One rehearsal: boot before zero, run, heal and drain, kill everything, judge, write it down."""

import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

import numpy as np

from sim.errors import SimulationError
from sim.faults.draw import draw
from sim.faults.injector import Injector
from sim.rehearsal import limits
from sim.rehearsal.apache import Apache
from sim.rehearsal.clock import Clock
from sim.rehearsal.fleet import Fleet
from sim.rehearsal.judgement import Facts, Judgement
from sim.rehearsal.loads import Client, clients_of
from sim.rehearsal.noise import Sleeper
from sim.rehearsal.world import RealDisk, RealHost, RealSender, RealWorld
from sim.rng import Streams
from sim.scenario.run.directory import RunDirectory
from sim.scenario.run.result import Progress, Result
from sim.scenario.scenario import Scenario
from sim.trace.emit import Emit
from sim.trace.rows.cluster import NodeStates
from sim.units import MS, SECOND, Micros

BOOT_S: Final = 240
"""Patience with servers that start; three of them take about 20 s on two cores."""

HEADSTART_US: Final[Micros] = 1_500 * MS
"""From the order to begin to the scenario's zero: a follower of a new partition that fetched before
its leader led waits for a second (``replica.fetch.backoff.ms``)."""

WARM_UP_US: Final[Micros] = 8 * SECOND
"""Default of the load before the zero."""

DRAIN_STEP_US: Final[Micros] = 250 * MS
_BOOT_STEP_US: Final[Micros] = 250 * MS

_Key = TypeVar("_Key")


@dataclass(frozen=True, slots=True)
class Options:
    """Choices of the user."""

    seed: int
    out: Path
    force: bool = False
    scale: float = 1.0
    warm_up_us: Micros = WARM_UP_US
    """Time of the load of servers and clients before the scenario's zero."""


@dataclass(slots=True)
class Journal:
    """Rows that this process knows of: states of processes, and faults."""

    rows: list[tuple[Micros, Emit]] = field(default_factory=list)

    def write(self, t_us: Micros, emit: Emit) -> None:
        """Adds a row with its instant."""
        self.rows.append((t_us, emit))


def rehearse(
    scenario: Scenario,
    apache: Apache,
    options: Options,
    on_progress: Callable[[Progress], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> Result:
    """Runs a scenario on real processes, and leaves a run directory.

    Args:
        scenario: Its rates scaled already, and nothing in it that is refused.
        apache: Kafka.
        options: Seed, directory, and by what the rates were scaled.
        on_progress: Called now and then.
        should_stop: Asked often; when it says so the rehearsal ends early, readable and marked
            ``complete: false``.

    Raises:
        SimulationError: If the directory is taken, or the cluster cannot come up.
    """
    directory = RunDirectory(options.out, force=options.force)
    try:
        return _Rehearsal(scenario, apache, options, directory, on_progress, should_stop).execute()
    finally:
        directory.release()


class _Rehearsal:
    """The rehearsal while it lasts."""

    def __init__(
        self,
        scenario: Scenario,
        apache: Apache,
        options: Options,
        directory: RunDirectory,
        on_progress: Callable[[Progress], None] | None,
        should_stop: Callable[[], bool] | None,
    ) -> None:
        self._scenario = scenario
        self._apache = apache
        self._options = options
        self._directory = directory
        self._on_progress = on_progress
        self._should_stop = should_stop
        self._stopped = False
        self._phase = "boot"
        self._until: Micros = 0
        self._clock = Clock()
        self._early: list[tuple[Micros, Emit]] = []
        self._journal = Journal()
        self._sleeper = Sleeper()
        self._clients = clients_of(scenario)
        directory.write_text("scenario.yaml", scenario.as_yaml())
        self._streams = Streams(options.seed)
        self._calendar = draw(scenario.faults, self._streams, scenario.run.for_us)
        self._fleet = Fleet(scenario, self._clients, apache, directory.path, self._note)
        self._injector: Injector | None = None

    def execute(self) -> Result:
        """All phases; no process is left, whatever happens."""
        self._clock.begin_in(0)
        with self._fleet as fleet:
            self._boot(fleet)
            self._workload()
            if self._scenario.run.drain:
                self._drain(fleet)
            for process in fleet.clients.values():
                if process.running and not process.paused:
                    process.order("close")
            end = self._clock.now()
            fleet.freeze()
        self._phase = "judge"
        self._beat()
        return self._judge(fleet, end)

    # -- phases -----------------------------------------------------------------------------------

    def _boot(self, fleet: Fleet) -> None:
        fleet.start_servers()
        fleet.start_clients(self._calendar, self._options.seed)
        brokers = [spec.node for spec in self._scenario.cluster.brokers]
        self._wait_for("its brokers", lambda: self._serve(fleet, brokers))
        if self._stopped:
            return
        fleet.make_topics()
        self._wait_for("its topics", lambda: self._in_sync(fleet))
        self._warm_up(fleet)
        for process in fleet.clients.values():
            if not self._stopped:
                process.order("prepare")
        before = self._clock.zero_us
        self._clock.begin_in(HEADSTART_US)
        shift = self._clock.zero_us - before
        self._journal.rows = [(at - shift, row) for at, row in self._journal.rows]
        self._injector = Injector(
            self._clock, self._world(fleet), self._calendar, self._journal, self._streams
        )
        self._injector.arm()
        for process in fleet.clients.values():
            process.order("start", str(self._clock.zero_us))
        self._sleeper.start()

    def _warm_up(self, fleet: Fleet) -> None:
        """Load in a topic of its own, which is deleted afterwards.

        Virtual machines interpret code that they have met a few times, and a simulated cluster is
        one that has run for long.
        """
        lasts = self._options.warm_up_us
        if self._stopped or not lasts or not fleet.clients:
            return
        self._phase = "warm up"
        first, *_ = processes = [*fleet.clients.values()]
        for process in processes:
            fleet.warm(process)
        self._clock.advance(self._clock.now() + lasts, self._beat)
        for process in processes:
            process.order("cool")
        first.order("remove")
        self._phase = "boot"

    def _serve(self, fleet: Fleet, brokers: Sequence[int]) -> bool:
        serving = fleet.cluster().serving
        return all(serving.get(node, False) for node in brokers)

    def _in_sync(self, fleet: Fleet) -> bool:
        states = fleet.cluster().partitions
        return all(
            partition in states
            and states[partition].leader >= 0
            and len(states[partition].in_sync) == len(states[partition].replicas)
            for partition in self._scenario.partitions
        )

    def _wait_for(self, what: str, is_there: Callable[[], bool]) -> None:
        """Waits during the boot.

        Raises:
            SimulationError: If a process ends meanwhile, or it takes too long.
        """
        limit = self._clock.now() + BOOT_S * SECOND
        while not is_there() and not self._stopped:
            self._clock.advance(self._clock.now() + _BOOT_STEP_US, self._beat)
            exits = self._fleet.exits()
            if exits or self._clock.now() > limit:
                why = exits[0] if exits else f"{BOOT_S} s have passed"
                name = exits[0].partition(" ")[0] if exits else next(iter(self._fleet.servers))
                ended = next(each for each in self._fleet.all if each.name == name)
                raise SimulationError(
                    f"the real cluster did not have {what}: {why}; {ended.log} ends with:\n"
                    f"{ended.tail()}"
                )

    def _workload(self) -> None:
        self._advance("run", self._scenario.run.for_us)

    def _drain(self, fleet: Fleet) -> None:
        """Heals everything, then waits until clients are done and replicas agree."""
        if self._stopped or self._injector is None:
            return
        self._injector.heal_all()
        limit = self._scenario.run.for_us + self._scenario.run.drain_timeout_us
        while self._clock.now() < limit and not self._stopped:
            self._advance("drain", min(self._clock.now() + DRAIN_STEP_US, limit))
            if self._injector.is_settled and self._is_quiet(fleet):
                return

    def _is_quiet(self, fleet: Fleet) -> bool:
        """No producer has anything open, every replica is in sync, and groups have read it all."""
        acked: dict[str, int] = {}
        reached: dict[tuple[str, str], int] = {}
        for process in fleet.clients.values():
            if not process.running or process.paused:
                continue
            for kind, _, *fields in process.order("status"):
                if kind == "producer":
                    sending, left, *ends = fields
                    if int(sending) or int(left):
                        return False
                    _raise_to(acked, dict(map(_pair, ends)))
                else:
                    group, *positions = fields
                    found = {(group, name): at for name, at in map(_pair, positions)}
                    _raise_to(reached, found)
        topics = {spec.group: spec.topics for spec in self._scenario.consumers if spec.group}
        behind = [
            name
            for group, names in topics.items()
            for name, end in acked.items()
            if name.rpartition("-")[0] in names and reached.get((group, name), 0) < end
        ]
        return not behind and self._in_sync(fleet)

    def _advance(self, phase: str, until: Micros) -> None:
        if self._stopped:
            return
        self._phase = phase
        self._until = until
        self._clock.advance(until, self._beat)

    def _beat(self) -> bool:
        self._fleet.look()
        if self._should_stop is not None and self._should_stop():
            self._stopped = True
        if self._on_progress is not None:
            begun = 0 if self._injector is None else self._injector.begun
            faults = len(self._calendar)
            progress = Progress(self._phase, self._clock.now(), self._until, 0, begun, faults)
            self._on_progress(progress)
        return self._stopped

    # -- what is observed -------------------------------------------------------------------------

    def _note(self, name: str, state: str, incarnation: int) -> None:
        row = NodeStates.row(name, state=state, incarnation=incarnation)
        self._journal.write(self._clock.now(), row)

    def _world(self, fleet: Fleet) -> RealWorld:
        specs = self._scenario.cluster.servers
        hosts = {
            spec.name: RealHost(
                spec.name,
                spec.rack,
                [RealDisk(path, spec.node, fleet.formats) for path in fleet.directories(spec)],
                fleet.supply(spec),
            )
            for spec in specs
        }
        hosts |= {each.process: RealHost(each.process, each.rack) for each in self._clients}
        hosted = {each.name: each.process for each in self._clients}
        nodes = dict(fleet.servers) | {
            name: fleet.clients[process] for name, process in hosted.items()
        }
        senders = {
            each.name: RealSender(self._meant(fleet, each))
            for each in self._clients
            if each.index >= 0
        }
        return RealWorld(
            nodes, hosts, hosted, [spec.name for spec in specs], fleet.links, fleet.cluster, senders
        )

    def _meant(self, fleet: Fleet, client: Client) -> Callable[[], int]:
        instants = fleet.instants(client.name)
        return lambda: int(np.searchsorted(instants, self._clock.now()))

    # -- the end ----------------------------------------------------------------------------------

    def _judge(self, fleet: Fleet, end: Micros) -> Result:
        noise = self._sleeper.report()
        scenario = self._scenario
        brokers = {spec.node: fleet.directories(spec) for spec in scenario.cluster.brokers}
        facts = Facts(
            zero_us=self._clock.zero_us,
            end_us=end,
            complete=not self._stopped,
            cluster=fleet.cluster(self._clock.zero_us),
            brokers=brokers,
            logs=[process.events for process in fleet.clients.values()],
            rows=self._journal.rows,
            reports=() if self._injector is None else self._injector.reports(),
            instants=frozenset() if self._injector is None else self._injector.instants(),
        )
        card = self._card(fleet, noise)
        return Judgement(scenario, self._options.seed, self._directory, facts, card).conclude()

    def _card(self, fleet: Fleet, noise: Mapping[str, int]) -> dict[str, object]:
        """Part of the run card that only a rehearsal has."""
        return {
            "real": True,
            "kafka": self._apache.release,
            "date": self._clock.date(),
            "machine": {
                "system": platform.system(),
                "kernel": platform.release(),
                "cores": os.cpu_count() or 0,
                "memory_bytes": limits.total_bytes(),
                "java": fleet.java,
            },
            "scale": self._options.scale,
            "warm_up_us": self._options.warm_up_us,
            "noise": dict(noise),
            "settings": dict(fleet.ours),
            "heap": fleet.heap,
            "unordered_exits": fleet.exits(),
        }


def _raise_to(known: dict[_Key, int], found: Mapping[_Key, int]) -> None:
    for key, value in found.items():
        known[key] = max(value, known.get(key, 0))


def _pair(text: str) -> tuple[str, int]:
    """``orders-0=17`` as a pair."""
    name, _, number = text.rpartition("=")
    return name, int(number)
