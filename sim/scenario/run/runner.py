"""One scenario, one seed, one run: boot before zero, run, heal and drain, judge, write it down.

Also the whole Python face: ``load(path)``, ``run(scenario, seed)`` and the ``Result`` it returns.
"""

from collections.abc import Callable
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from sim.checking.durability import Judge
from sim.checking.fault_windows import FaultWindows
from sim.compiled import WHY_SOURCES
from sim.errors import SimulationError
from sim.faults.draw import draw
from sim.faults.injector import Injector
from sim.ids import TopicPartition
from sim.kernel import Kernel
from sim.nodes.process.base import Node
from sim.nodes.process.deliveries import Deliveries
from sim.nodes.sampler import Sampler
from sim.rng import Streams
from sim.scenario.build import replication as replication_runs
from sim.scenario.build.cluster import Builder
from sim.scenario.build.connectors import Connectors, Reader
from sim.scenario.build.starts import BOOT_AT, TOKENS_AT, TOPICS_AT, start_of
from sim.scenario.expect.bounds import evaluate
from sim.scenario.expect.slicing import measured, slices
from sim.scenario.expect.stories import first_loss, with_stories
from sim.scenario.expect.unserved import unserved
from sim.scenario.loader import load
from sim.scenario.run.answer import answer
from sim.scenario.run.directory import RunDirectory
from sim.scenario.run.hooks import NO_HOOKS, Hooks
from sim.scenario.run.promises import watch
from sim.scenario.run.regions import CLUSTERS, Region, Regions, seed_of
from sim.scenario.run.result import Progress, Result
from sim.scenario.run.tidy import seldom_collecting
from sim.scenario.scenario import OtherCluster, Scenario
from sim.trace.schema import VERSION, Level
from sim.trace.writer import Trace
from sim.units import MS, SECOND, Micros, show_instant

__all__ = ["Progress", "Result", "load", "run"]

DRAIN_STEP_US: Micros = 250 * MS
"""Interval at which the drain looks for what is not done."""

CLOSING_US: Micros = 1 * SECOND
"""Time that consumers have to commit and leave at the end."""


def run(
    scenario: Scenario | str | Path,
    seed: int | None = None,
    out: str | Path | None = None,
    *,
    force: bool = False,
    level: Level = "detail",
    on_progress: Callable[[Progress], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
    hooks: Hooks = NO_HOOKS,
) -> Result:
    """Run a scenario and leave a run directory.

    Args:
        scenario: A scenario, or the path of its file.
        seed: Instead of the scenario's own.
        out: The run directory; ``runs/<scenario>-s<seed>`` if not given.
        force: Replace an earlier run there.
        level: ``facts`` leaves the detail tables of the trace unwritten; no verdict changes by it.
        on_progress: Called now and then.
        should_stop: Asked now and then; when it says so the run ends early, readable and marked
            ``complete: false``.
        hooks: Called at instants of the run, by those who watch it.

    Raises:
        ScenarioError: If the scenario cannot be run.
        SimulationError: If the directory is taken, or the cluster cannot come up.
        InvariantBroken: If a promise of Kafka was broken: a defect of the simulator.
        OSError: If the real disk fills up; the directory stays readable.
    """
    loaded = load(Path(scenario)) if not isinstance(scenario, Scenario) else scenario
    chosen = loaded.run.seed if seed is None else seed
    path = Path(out) if out is not None else Path("runs") / f"{loaded.name}-s{chosen}"
    directory = RunDirectory(path, force=force)
    try:
        work = Work(loaded, chosen, directory, level, on_progress, should_stop, hooks=hooks)
        return work.execute()
    finally:
        directory.release()


class Work(Region):
    """The run while it lasts.

    Args:
        scenario: What is run.
        seed: Of its chance.
        directory: Where it writes.
        level: Of the trace.
        on_progress: As in :func:`run`.
        should_stop: As in :func:`run`.
        keeps: Whether trace, scenario and run card are written down; the simulated disks are real
            files in any case, as far as bytes were written back to them. No number of the verdict
            depends on it.
        kernel: Of a run that this one is a part of: that of another cluster beside its own.
        hooks: As in :func:`run`.
    """

    def __init__(
        self,
        scenario: Scenario,
        seed: int,
        directory: RunDirectory,
        level: Level,
        on_progress: Callable[[Progress], None] | None = None,
        should_stop: Callable[[], bool] | None = None,
        *,
        keeps: bool = True,
        kernel: Kernel | None = None,
        hooks: Hooks = NO_HOOKS,
    ) -> None:
        self.scenario = scenario
        self.seed = seed
        self.directory = directory
        self.level = level
        self._keeps = keeps
        self._on_progress = on_progress
        self._should_stop = should_stop
        self._hooks = hooks
        self._stopped = False
        self._phase = "boot"
        self._until: Micros = 0
        if keeps:
            for file, text in (("scenario.yaml", scenario.as_yaml()), *scenario.modules):
                directory.write_text(file, text)
        self.kernel = kernel or Kernel(BOOT_AT)
        self.streams = Streams(seed)
        self.trace = Trace(directory.trace if keeps else None, level=level)
        self.watch = watch(scenario, self.trace)
        self.judge = Judge(
            self.trace, self.watch, controller_elects=scenario.cluster.replication != "raft"
        )
        self.slices = slices(scenario.expect, self.trace, scenario.run.for_us)
        self.windows = FaultWindows(self.trace)
        self.builder = builder = Builder(
            scenario, self.kernel, self.streams, self.trace, directory.disks
        )
        self.cluster = builder.cluster
        deliveries = Deliveries(self.kernel, self.trace)
        self.cluster.network.on_delivery = deliveries.note
        builder.servers()
        self.admin = builder.admin()
        self.producers = builder.producers()
        self.consumers = builder.consumers()
        self.processors = builder.processors(len(self.producers))
        self.connectors = Connectors(builder, len(self.producers) + len(self.processors))
        self._mirrored_by: list[str] = []
        self._others = [self._other(each) for each in scenario.clusters]
        self.regions = Regions(self, self._others)
        calendar = draw(scenario.faults, self.streams, scenario.run.for_us)
        self.injector = Injector(self.kernel, self.cluster, calendar, self.trace, self.streams)
        self.sampler = Sampler(self.cluster, self._lags, self._committed_groups())
        hooks.hear(self.trace, self.watch.observer)
        if keeps:
            directory.write_card(self._card(complete=False))

    def _other(self, other: OtherCluster) -> "Work":
        """The part of the run that another cluster is, with chance and a directory of its own."""
        return Work(
            other.scenario,
            seed_of(self.seed, other.alias),
            RunDirectory(self.directory.path / CLUSTERS / other.alias, force=False, is_part=True),
            self.level,
            keeps=self._keeps,
            kernel=self.kernel,
        )

    def _committed_groups(self) -> list[str]:
        """Groups that read committed data only."""
        committed = [c.group for c in self.scenario.consumers if c.reads_committed]
        committed += [task.group for task in self.scenario.processors if task.reads_committed]
        return committed + list(self.connectors.committed_groups)

    def add_mirror(self, name: str) -> int:
        """A mirror writes to this cluster; returns its number among the cluster's producers."""
        self._mirrored_by.append(name)
        return len(self.producers) + len(self.processors) + len(self._mirrored_by) - 1

    # -- phases -----------------------------------------------------------------------------------

    def execute(self) -> Result:
        """All phases; whatever happens, what was recorded until then is closed and readable."""
        with seldom_collecting():
            return self._execute()

    def _execute(self) -> Result:
        try:
            self._boot()
            self._workload()
            if self.scenario.run.drain:
                self._drain()
            self._hooks.rest(self.kernel.now())
            self._close_clients()
            for part in self._parts:
                part.report_unrecovered()
        except BaseException:
            self.leave_readable()
            raise
        return self.conclude(complete=not self._stopped)

    def _boot(self) -> None:
        for part in self._parts:
            part.arm()
        self._advance("boot", 0)
        for part in self._parts:
            if not self._stopped:
                part.check_boot()

    @property
    def _parts(self) -> "tuple[Work, ...]":
        """This run and, beside it, those of the other clusters."""
        return (self, *self._others)

    def check_boot(self) -> None:
        """True if the cluster is ready at the scenario's zero.

        Raises:
            SimulationError: If it is not.
        """
        admin = self.admin
        if not admin.admin.done:
            why = "; ".join(f"{name}: {error.name}" for name, error in admin.admin.refused.items())
            raise SimulationError(
                f"the topics did not exist at {show_instant(0)}: {why or 'no answer'}; "
                "look at cluster.config and the numbers of controllers and brokers"
            )
        for what, refusal in admin.refusals:
            if refusal:
                raise SimulationError(
                    f"the {what} were not set at {show_instant(0)}: {refusal}; look at "
                    f"{what.lower()}, and at the number of controllers"
                )

    def arm(self) -> None:
        """Everything that is to happen by the calendar."""
        for server in [process for process in self.cluster.processes if not process.spare]:
            self._start_at(start_of(server.node_id, server.name, self.streams), server)
        self._start_at(TOPICS_AT, self.admin)
        if self.admin.has_tokens:
            self.kernel.call_at(TOKENS_AT, self.admin.make_tokens)
        specs = [s for p in self.scenario.producers for s in [p] * p.count]
        for spec, producer in zip(specs, self.producers, strict=True):
            self._start_at(spec.start_us, producer)
        readers = [s for c in self.scenario.consumers for s in [c] * c.count]
        for reader, consumer in zip(readers, self.consumers, strict=True):
            self._start_at(reader.start_us, consumer)
            if reader.stop_us is not None:
                self.kernel.call_at(reader.stop_us, consumer.close)
        tasks = [s for p in self.scenario.processors for s in [p] * p.count]
        for task, processor in zip(tasks, self.processors, strict=True):
            self._start_at(task.start_us, processor)
            if task.stop_us is not None:
                self.kernel.call_at(task.stop_us, processor.close)
        self.connectors.arm(self._start_at)
        for mirror, node in zip(self.scenario.mirrors, self.regions.mirrors, strict=True):
            self._start_at(mirror.start_us, node)
        self.injector.arm()
        self.sampler.start(0)

    def _start_at(self, at: Micros, node: Node) -> None:
        def start() -> None:
            if not node.running and node.host.powered:
                node.start()

        self.kernel.call_at(at, start)

    def _workload(self) -> None:
        for at in self._hooks.instants:
            self._advance("run", at)
            self._hooks.pause(at, self)
        self._advance("run", self.scenario.run.for_us)

    def _drain(self) -> None:
        """Heal everything, then wait until clients are done and replicas agree."""
        for part in self._parts:
            part.injector.heal_all()
        limit = self.scenario.run.for_us + self.scenario.run.drain_timeout_us
        while self.kernel.now() < limit and not self._stopped:
            self._advance("drain", min(self.kernel.now() + DRAIN_STEP_US, limit))
            quiet = all(part.injector.is_settled and part.is_quiet() for part in self._parts)
            if quiet and self._hooks.is_at_rest(self.kernel.now()):
                return

    def is_quiet(self) -> bool:
        """No producer has anything open, every replica is in sync, and groups have read it all."""
        senders = (*self.producers, *self.processors)
        if not all(sender.is_idle for sender in senders if sender.running):
            return False
        if not self.connectors.is_idle:
            return False
        if not all(mirror.is_idle for mirror in self.regions.mirrors if mirror.running):
            return False
        topics = [topic.name for topic in self.scenario.topics]
        kind = self.scenario.cluster.replication
        for partition, state in self.cluster.image.partitions.items():
            if partition.topic not in topics:
                continue
            if not self.cluster.serves(state.leader) or len(state.in_sync) < len(state.replicas):
                return False
            if not replication_runs.is_level(kind, self.cluster, partition):
                return False
        return all(
            position >= high_watermark
            for _, partition, position, _ in self._lags()
            if (high_watermark := self.sampler.high_watermark(partition)) >= 0
        )

    def _close_clients(self) -> None:
        for part in self._parts:
            for consumer in (*part.consumers, *part.regions.mirrors):
                if consumer.running:
                    consumer.close()
            for processor in part.processors:
                if processor.running:
                    processor.close()
            part.connectors.close()
        self._advance("close", self.kernel.now() + CLOSING_US)
        for part in self._parts:
            for producer in (*part.producers, *part.processors):
                producer.finish()
            part.connectors.finish()
        for mirror in self.regions.mirrors:
            mirror.target.finish()

    def _advance(self, phase: str, until: Micros) -> None:
        if self._stopped:
            return
        self._phase = phase
        self._until = until
        self.kernel.run(until, on_beat=self._beat)

    def _beat(self) -> None:
        if self._should_stop is not None and self._should_stop():
            self._stopped = True
            self.kernel.stop()
        if self._on_progress is not None:
            self._on_progress(
                Progress(
                    self._phase,
                    self.kernel.now(),
                    self._until,
                    self.kernel.events,
                    self.injector.begun,
                    len(self.injector),
                )
            )

    # -- what is observed -------------------------------------------------------------------------

    def _lags(self) -> list[tuple[str, TopicPartition, int, int]]:
        """Group, partition, position, committed: for every partition of every group's topics."""
        rows: list[tuple[str, TopicPartition, int, int]] = []
        groups: dict[str, dict[TopicPartition, tuple[int, int]]] = {}
        counts = self.cluster.image.partition_counts
        readers: list[Reader] = [(c.config, c.position, c.committed) for c in self.consumers]
        readers += [(t.consumer_config, t.position, t.committed) for t in self.processors]
        readers += self.connectors.readers()
        readers += [(m.config, m.position, m.committed) for m in self.regions.mirrors]
        for config, position_in, committed_in in readers:
            group = config.group_id
            if not group:
                continue
            seen = groups.setdefault(group, {})
            for topic in config.topics:
                for number in range(counts.get(topic, 0)):
                    partition = TopicPartition(topic, number)
                    position, committed = seen.get(partition, (-1, -1))
                    seen[partition] = (
                        max(position, position_in(partition)),
                        max(committed, committed_in(partition)),
                    )
        for group, partitions in groups.items():
            rows += [(group, p, position, done) for p, (position, done) in partitions.items()]
        return rows

    # -- the end ----------------------------------------------------------------------------------

    def report_unrecovered(self) -> None:
        """Write rows of what brokers lost that are down for good: only their disks know it."""
        for broker in self.cluster.brokers.values():
            if not broker.running:
                with TemporaryDirectory(dir=self.directory.path) as scratch:
                    broker.note_unrecovered(Path(scratch))

    def conclude(self, *, complete: bool) -> Result:
        """Judge, and write down what came of it."""
        self._phase = "judge"
        self.injector.conclude()
        end = self.kernel.now()
        windows = self.windows.report(end, self.judge.outages(), self.injector.instants())
        verdict = self.judge.verdict(end) | self.regions.verdict() | {"windows": windows}
        reports = self.injector.reports()
        unaffected = tuple(
            f"fault {r.fault} ({r.kind} of {r.target}): {r.effect}"
            for r in reports
            # Components that fail by chance may well meet what is down already.
            if not r.took_effect and r.fault < len(self.scenario.faults)
        )
        expect = self.scenario.expect
        sliced = measured(expect, self.slices, self.judge, end)
        held = evaluate(expect, verdict, sliced)
        others = self.regions.conclude(complete=complete)
        unaffected += others.unaffected
        refused = unserved(expect, verdict) + others.unserved
        self.leave_readable()
        if self._keeps:
            held = with_stories(expect, held, verdict, self.directory.trace, reports, sliced)
        held += others.held
        verdict |= others.verdict
        verdict |= {
            "complete": complete,
            "expectations": list(held),
            "faults": [asdict(report) for report in reports],
            "unserved": list(refused),
            "held": complete
            and not unaffected
            and not refused
            and all(line["held"] for line in held),
        }
        card: dict[str, object] = {}
        verdict["answer"] = answer(verdict, first_loss(verdict, self.directory.trace, reports))
        if self._keeps:
            self.directory.write_json("verdict.json", verdict)
            card = self._card(complete=complete)
            self.directory.write_card(card)
        return Result(
            self.scenario.name,
            self.seed,
            self.directory.path,
            complete,
            card,
            verdict,
            tuple(held),
            unaffected,
            refused,
        )

    def leave_readable(self) -> None:
        """Close the trace and write the page caches back; files that are kept are all made."""
        self.regions.leave_readable()
        try:
            self.trace.close()
        finally:
            for host in self.cluster.hosts.values():
                for disk in host.disks:
                    disk.store.write_back_all()
                    if self._keeps:
                        disk.store.settle()
                    disk.store.close()

    def _card(self, *, complete: bool) -> dict[str, object]:
        """The run card; digests only once everything is written."""
        scenario = self.scenario
        card: dict[str, object] = {
            "logquake": version("logquake"),
            "compiled": not WHY_SOURCES,
            "trace_schema": VERSION,
            "scenario": scenario.name,
            "claim": scenario.claim,
            "scenario_digest": scenario.digest,
            "seed": self.seed,
            "off_default": [asdict(option) for option in scenario.off_default],
            "level": self.level,
            "simulated_us": self.kernel.now(),
            "run_us": scenario.run.for_us,
            "wall_us": self.directory.wall_us(),
            "events": self.kernel.events,
            "rows": dict(self.trace.counts),
            "producers": [
                *(n.name for n in (*self.producers, *self.processors, *self.connectors.sources)),
                *self._mirrored_by,
            ],
            "trace_digest": "",
            "disk_digest": "",
            "complete": complete,
            "kept": "all",
        }
        if complete:
            card["trace_digest"] = self.trace.digest()
            card["table_digests"] = self.trace.table_digests()
            card["disk_digest"] = self.directory.disk_digest()
        return self.regions.on_card(card)
