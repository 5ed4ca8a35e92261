"""The controller of ZooKeeper mode: the broker that owns the ``/controller`` znode.

One thread handles one event after the other; an event is a generator that yields operations for
ZooKeeper and is sent their outcomes, and the broker's machine drives it. Decisions are written to
ZooKeeper, conditionally on the version of each partition's node and on the controller's epoch, and
then sent to brokers. A new controller has no state: it reads every topic and every partition.

``fencing`` off is the behaviour before KAFKA-6082: the epoch is not part of the write, so a
controller that was deposed between decision and write overwrites its successor's. Nor is the epoch
incremented together with the node: a broker creates the node, then reads the epoch and increments
it. If its session ends in between and the event continues in the next one, it increments its
successor's epoch, and brokers obey it instead of the actual controller (catalogue:
honeycomb-2017-split-brain).

Left out: reassignment, deletion of topics, more partitions, offline log directories; new topics are
created as nodes under ``/brokers/topics``.

Source: ``kafka.controller.{KafkaController,ZkPartitionStateMachine,ZkReplicaStateMachine}`` (3.9).
"""

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import TypeAlias, TypeVar

from sim.ids import NO_LEADER, BrokerEpoch, NodeId, TopicPartition
from sim.protocol.zk_mode.channels import ControllerChannels
from sim.protocol.zk_mode.controller_types import (
    ControllerElected,
    ControllerLoaded,
    ControllerMoved,
    ControllerResigned,
    StatesLogged,
    ZkControllerConfig,
)
from sim.protocol.zk_mode.effects import Effects
from sim.protocol.zk_mode.elections import ZkElection, elect, initial, without
from sim.protocol.zk_mode.znodes import (
    BROKER_IDS,
    CONTROLLER,
    CONTROLLER_EPOCH,
    ISR_CHANGES,
    NO_FACTS,
    TOPICS,
    BrokerInfo,
    LeaderIsr,
    PartitionEntry,
    TopicAssignment,
    TopicFacts,
    state_path,
    topic_path,
)
from sim.protocol.zookeeper.session import ZkOperation
from sim.protocol.zookeeper.tree import (
    Check,
    Create,
    Delete,
    Exists,
    GetChildren,
    GetData,
    Multi,
    SessionId,
    SetData,
    ZkCode,
    ZkOutcome,
)

Steps: TypeAlias = Generator[list[ZkOperation], list[ZkOutcome], None]
"""An event of the controller: yields operations, is sent their outcomes in that order."""

Claim: TypeAlias = Generator[list[ZkOperation], list[ZkOutcome], SetData | None]
"""An attempt to become controller; returns the write that incremented the epoch on success."""

Item = TypeVar("Item")

Nodes: TypeAlias = tuple[NodeId, ...]
Decide: TypeAlias = Callable[[TopicPartition, LeaderIsr], LeaderIsr | None]
"""The new state of a partition; ``None``: leave it."""

_CHUNK = 10_000
"""Partitions whose outcomes are held at once; does not influence decisions."""


class ZkController:
    """State and events of the controller; empty while another broker is the controller."""

    def __init__(
        self, node: NodeId, config: ZkControllerConfig, channels: ControllerChannels
    ) -> None:
        self.node = node
        self.config = config
        self.channels = channels
        self.active = False
        self.controller: NodeId = NO_LEADER
        """The active controller, as far as this broker knows."""
        self.epoch = 0
        self.brokers: dict[NodeId, BrokerEpoch] = {}
        """Live brokers."""
        self.infos: dict[NodeId, BrokerInfo] = {}
        """Their registrations."""
        self.stopping: dict[NodeId, None] = {}
        self.facts: dict[str, TopicFacts] = {}
        self.assignments: dict[TopicPartition, Nodes] = {}
        self.entries: dict[TopicPartition, PartitionEntry] = {}
        self.loaded_partitions = 0
        """Partitions read at the last take-over."""
        self.out: Effects = []
        """Receives effects; the owner sets it for each event."""
        self._epoch_version = 0

    @property
    def live(self) -> Nodes:
        """Live brokers, those that shut down included, by id."""
        return tuple(sorted(self.brokers))

    def resign(self) -> None:
        """Drops all state; queued requests are dropped (KAFKA-4447)."""
        if not self.config.cleans_up:
            return
        if self.active:
            self.out.append(ControllerResigned(self.epoch))
        self.active = False
        self.channels.clear()
        self.brokers = {}
        self.infos = {}
        self.stopping = {}
        self.facts = {}
        self.assignments = {}
        self.entries = {}

    # -- election ---------------------------------------------------------------------------------

    def become_controller(self, session: SessionId) -> Steps:
        """Becomes the controller if there is none; else watches the present one."""
        (seen,) = yield [ZkOperation(Exists(CONTROLLER), watch=True)]
        if seen.node is not None:
            self._note_controller(seen, session)
            return
        claim = self._claim if self.config.fencing else self._claim_by_steps
        count = yield from claim(session)
        if count is None:
            return
        assert isinstance(count.data, int)
        self.epoch, self._epoch_version = count.data, count.version + 1
        self.controller, self.active = self.node, True
        self.out.append(ControllerElected(self.epoch))
        yield from self._take_over()

    def _claim(self, session: SessionId) -> Claim:
        """Creates the controller's node and increments the epoch, both or neither (KAFKA-6082)."""
        count = yield from self._next_epoch()
        create = Create(CONTROLLER, self.node, ephemeral=True)
        (done,) = yield [ZkOperation(Multi((create, count)))]
        mine = done.code is ZkCode.OK or (yield from self._holds(session))
        return count if mine else None

    def _claim_by_steps(self, session: SessionId) -> Claim:
        """Creates the controller's node; then reads the epoch, and increments it.

        Source: ``ZookeeperLeaderElector.elect``, ``KafkaController.onControllerFailover`` (0.10).
        """
        (done,) = yield [ZkOperation(Create(CONTROLLER, self.node, ephemeral=True))]
        if done.code is not ZkCode.OK and not (yield from self._holds(session)):
            return None
        count = yield from self._next_epoch()
        (done,) = yield [ZkOperation(count)]
        mine = done.code is ZkCode.OK or (yield from self._holds(session))
        return count if mine else None

    def _next_epoch(self) -> Generator[list[ZkOperation], list[ZkOutcome], SetData]:
        """The write that increments the epoch, conditional on its version."""
        (epoch,) = yield [ZkOperation(GetData(CONTROLLER_EPOCH))]
        if epoch.node is None:
            yield [ZkOperation(Create(CONTROLLER_EPOCH, 0))]
            (epoch,) = yield [ZkOperation(GetData(CONTROLLER_EPOCH))]
        assert epoch.node is not None
        assert isinstance(epoch.node.data, int)
        return SetData(CONTROLLER_EPOCH, epoch.node.data + 1, epoch.node.version)

    def _holds(self, session: SessionId) -> Generator[list[ZkOperation], list[ZkOutcome], bool]:
        """True if the session owns the controller's node after all; notes its owner if not."""
        (seen,) = yield [ZkOperation(GetData(CONTROLLER))]
        if seen.node is not None and seen.node.owner == session:
            return True
        self._note_controller(seen, session)
        return False

    def controller_changed(self, session: SessionId) -> Steps:
        """The controller's node was created or deleted."""
        (seen,) = yield [ZkOperation(Exists(CONTROLLER), watch=True)]
        if self.active and (seen.node is None or seen.node.owner != session):
            self.resign()
        self._note_controller(seen, session)
        if seen.node is None:
            yield from self.become_controller(session)

    def _note_controller(self, seen: ZkOutcome, session: SessionId) -> None:
        """A node of a former session of this very broker counts as another broker's."""
        if seen.node is None:
            self.controller = NO_LEADER
            return
        assert isinstance(seen.node.data, int)
        own = seen.node.data == self.node and seen.node.owner != session
        self.controller = NO_LEADER if own else seen.node.data

    # -- taking over ------------------------------------------------------------------------------

    def _take_over(self) -> Steps:
        """Reads all state, sends it to every broker, and elects where leaders have failed.

        Source: ``KafkaController.onControllerFailover``.
        """
        yield from self._read_brokers()
        for broker, epoch in self.brokers.items():
            self.channels.add(broker, epoch)
        (changes,) = yield [ZkOperation(GetChildren(ISR_CHANGES), watch=True)]
        (topics,) = yield [ZkOperation(GetChildren(TOPICS), watch=True)]
        yield [ZkOperation(Delete(f"{ISR_CHANGES}/{name}")) for name in changes.children]
        yield from self._read_topics(topics.children)
        yield from self._read_states(self.assignments)
        self.loaded_partitions = len(self.entries)
        self.out.append(ControllerLoaded(self.loaded_partitions))
        live = self.live
        self.channels.update_metadata(live)
        self.flush()
        for partition, entry in self.entries.items():
            self.channels.lead_or_follow(self.assignments[partition], entry)
        self.flush()
        failed = dict.fromkeys(
            b for replicas in self.assignments.values() for b in replicas if b not in self.brokers
        )
        for broker in failed:
            yield from self._replicas_offline(broker)
        yield from self._create_states(p for p in self.assignments if p not in self.entries)
        yield from self._elect_offline()

    def _read_brokers(self) -> Steps:
        (ids,) = yield [ZkOperation(GetChildren(BROKER_IDS), watch=True)]
        outcomes = yield [ZkOperation(GetData(f"{BROKER_IDS}/{name}")) for name in ids.children]
        self.brokers = {
            int(name): outcome.node.created
            for name, outcome in zip(ids.children, outcomes, strict=True)
            if outcome.node is not None
        }
        for outcome in outcomes:
            if outcome.node is not None:
                assert isinstance(outcome.node.data, BrokerInfo)
                self.infos[outcome.node.data.broker] = outcome.node.data

    def _read_topics(self, topics: Iterable[str]) -> Steps:
        for chunk in _chunks(topics):
            outcomes = yield [ZkOperation(GetData(topic_path(topic))) for topic in chunk]
            for topic, outcome in zip(chunk, outcomes, strict=True):
                if outcome.node is None:
                    continue
                assert isinstance(outcome.node.data, TopicAssignment)
                self.facts[topic] = outcome.node.data.facts
                for number, replicas in enumerate(outcome.node.data.replicas):
                    self.assignments[TopicPartition(topic, number)] = replicas

    def _read_states(self, partitions: Iterable[TopicPartition]) -> Steps:
        for chunk in _chunks(partitions):
            outcomes = yield [ZkOperation(GetData(state_path(p))) for p in chunk]
            for partition, outcome in zip(chunk, outcomes, strict=True):
                node = outcome.node
                if node is not None and partition in self.assignments:
                    assert isinstance(node.data, LeaderIsr)
                    self.entries[partition] = self._entry(partition, node.data, node.version)

    def _entry(self, partition: TopicPartition, state: LeaderIsr, version: int) -> PartitionEntry:
        facts = self.facts.get(partition.topic, NO_FACTS)
        return PartitionEntry(partition, state, version, self.assignments[partition], facts)

    # -- events ------------------------------------------------------------------------------------

    def brokers_changed(self) -> Steps:
        """Brokers were added, removed, or bounced."""
        before = self.brokers
        yield from self._read_brokers()
        now = self.brokers
        bounced = [b for b in now if b in before and now[b] != before[b]]
        if not self.config.broker_epochs:
            bounced = []  # only numbers were compared
        failed = [b for b in before if b not in now] + bounced
        come = [b for b in now if b not in before] + bounced
        for broker in failed:
            self.channels.remove(broker)
            self.stopping.pop(broker, None)
        if failed:
            # A bounced broker first fails, then starts.
            self.brokers = {b: e for b, e in now.items() if b not in bounced}
            yield from self._brokers_failed(failed)
            self.brokers = now
        for broker in come:
            self.channels.add(broker, now[broker])
        if come:
            yield from self._brokers_started(come)

    def _brokers_failed(self, failed: list[NodeId]) -> Steps:
        """Source: ``KafkaController.onReplicasBecomeOffline``."""
        yield from self._elect_offline()
        for broker in failed:
            yield from self._replicas_offline(broker)
        self.channels.update_metadata(self.live)
        self.flush()

    def _brokers_started(self, come: list[NodeId]) -> Steps:
        """Source: ``KafkaController.onBrokerStartup``."""
        self.channels.update_metadata(b for b in self.live if b not in come)
        self.flush()
        self.channels.update_metadata(come, self.entries.values())
        self.flush()
        for partition, entry in self.entries.items():
            mine = [b for b in self.assignments[partition] if b in come]
            if mine:
                self.channels.lead_or_follow(mine, entry)
        self.flush()
        yield from self._create_states(p for p in self.assignments if p not in self.entries)
        yield from self._elect_offline()

    def topics_changed(self) -> Steps:
        """New topics: elects each partition's first leader."""
        (topics,) = yield [ZkOperation(GetChildren(TOPICS), watch=True)]
        known = dict.fromkeys(p.topic for p in self.assignments)
        yield from self._read_topics(t for t in topics.children if t not in known)
        yield from self._create_states(p for p in self.assignments if p not in self.entries)

    def isr_changed(self) -> Steps:
        """Reads the ISRs that leaders have written and announced (before 2.7)."""
        (names,) = yield [ZkOperation(GetChildren(ISR_CHANGES), watch=True)]
        paths = [f"{ISR_CHANGES}/{name}" for name in names.children]
        outcomes = yield [ZkOperation(GetData(path)) for path in paths]
        changed: dict[TopicPartition, None] = {}
        for outcome in outcomes:
            if outcome.node is not None:
                assert isinstance(outcome.node.data, tuple)
                changed.update(dict.fromkeys(outcome.node.data))
        yield from self._read_states(changed)
        entries = [self.entries[p] for p in changed if p in self.entries]
        self.channels.update_metadata(self.live, entries)
        self.flush()
        yield [ZkOperation(Delete(path)) for path in paths]

    def shut_down(self, broker: NodeId, answer: Callable[[int], None]) -> Steps:
        """Moves leadership away from a broker; ``answer`` gets the number that it still leads.

        Source: ``KafkaController.doControlledShutdown``.
        """
        self.stopping[broker] = None
        mine = [e for e in self.entries.values() if broker in e.replicas and len(e.replicas) > 1]
        led = [e.partition for e in mine if e.state.leader == broker]
        yield from self.elect(led, ZkElection.SHUTDOWN)
        followed = [e.partition for e in mine if self.entries[e.partition].state.leader != broker]
        for partition in followed:
            self.channels.stop(broker, partition)
        self.flush()
        yield from self._remove(followed, broker)
        answer(sum(self.entries[p].state.leader == broker for p in led))

    def rebalance(self) -> Steps:
        """Moves leadership back to brokers that lack more than a tenth of their preferred ones.

        Source: ``KafkaController.checkAndTriggerAutoLeaderRebalance``.
        """
        preferred: dict[NodeId, list[PartitionEntry]] = {}
        for entry in self.entries.values():
            preferred.setdefault(entry.replicas[0], []).append(entry)
        for broker, entries in preferred.items():
            away = [e.partition for e in entries if e.state.leader != broker]
            if broker in self.brokers and len(away) * 100 > (
                self.config.imbalance_percent * len(entries)
            ):
                yield from self.elect(away, ZkElection.PREFERRED)

    # -- the state machines -----------------------------------------------------------------------

    def _elect_offline(self) -> Steps:
        """Elects leaders for partitions whose leader is not live."""
        yield from self.elect(
            [e.partition for e in self.entries.values() if e.state.leader not in self.brokers],
            ZkElection.OFFLINE,
        )

    def elect(self, partitions: list[TopicPartition], kind: ZkElection) -> Steps:
        """Elects a leader for each partition that needs one and can have one."""

        def decide(partition: TopicPartition, old: LeaderIsr) -> LeaderIsr | None:
            elected = elect(
                kind,
                old,
                self.assignments[partition],
                self.brokers,
                stopping=self.stopping,
                unclean=self.config.unclean,
            )
            if elected is None or elected == (old.leader, old.in_sync):
                return None
            return LeaderIsr(elected[0], old.leader_epoch + 1, elected[1], self.epoch)

        yield from self._change(partitions, decide)
        self.flush()

    def _replicas_offline(self, broker: NodeId) -> Steps:
        """Removes a broker's replicas from the ISRs."""
        yield from self._remove(
            [p for p, replicas in self.assignments.items() if broker in replicas], broker
        )

    def _remove(self, partitions: list[TopicPartition], broker: NodeId) -> Steps:
        yield from self._change(
            partitions, lambda _, old: without(old, broker, self.epoch), excluded=broker
        )
        self.flush()

    def _change(
        self, partitions: list[TopicPartition], decide: Decide, excluded: NodeId = NO_LEADER
    ) -> Steps:
        """Reads, decides, writes on condition of the version; repeats it where that has changed.

        States written by a later controller are left alone.
        """
        todo = partitions
        while todo:
            again: list[TopicPartition] = []
            for chunk in _chunks(todo, _CHUNK if self.config.batched else 1):
                yield from self._read_states(chunk)
                changes: list[PartitionEntry] = []
                for partition in chunk:
                    entry = self.entries.get(partition)
                    if entry is None or entry.state.controller_epoch > self.epoch:
                        continue
                    new = decide(partition, entry.state)
                    if new is not None:
                        changes.append(entry._replace(state=new))
                yield from self._write(changes, again, excluded)
                if not self.config.batched:
                    self.flush()
            todo = again

    def _write(
        self, changes: list[PartitionEntry], conflicts: list[TopicPartition], excluded: NodeId
    ) -> Steps:
        outcomes = yield [
            self.fenced(SetData(state_path(e.partition), e.state, e.version)) for e in changes
        ]
        for entry, outcome in zip(changes, outcomes, strict=True):
            if self.succeeded(outcome):
                self._changed(entry._replace(version=entry.version + 1), excluded)
                if self.config.logs_every_state and excluded == NO_LEADER:  # it was an election
                    self.out.append(StatesLogged(len(self.entries)))
            elif outcome.code is ZkCode.BAD_VERSION:
                conflicts.append(entry.partition)

    def _create_states(self, partitions: Iterable[TopicPartition]) -> Steps:
        for chunk in _chunks(partitions):
            new: list[PartitionEntry] = []
            for partition in chunk:
                replicas = self.assignments[partition]
                state = initial(replicas, self.brokers, self.epoch)
                if state is not None:
                    new.append(self._entry(partition, state, 0))
            outcomes = yield [self.fenced(Create(state_path(e.partition), e.state)) for e in new]
            for entry, outcome in zip(new, outcomes, strict=True):
                if self.succeeded(outcome):
                    self._changed(entry)
        self.flush()

    def _changed(self, entry: PartitionEntry, excluded: NodeId = NO_LEADER) -> None:
        self.entries[entry.partition] = entry
        receivers = entry.replicas
        if excluded != NO_LEADER:
            receivers = tuple(b for b in receivers if b != excluded)
        self.channels.lead_or_follow(receivers, entry)

    def fenced(self, op: SetData | Create) -> ZkOperation:
        """The write, conditional on this controller's epoch (KAFKA-6082)."""
        if not self.config.fencing:
            return ZkOperation(op)
        return ZkOperation(Multi((Check(CONTROLLER_EPOCH, self._epoch_version), op)))

    def succeeded(self, outcome: ZkOutcome) -> bool:
        """True if the write was done.

        Raises:
            ControllerMoved: If another controller has been elected.
        """
        if outcome.parts and outcome.parts[0].code is ZkCode.BAD_VERSION:
            raise ControllerMoved
        return outcome.code is ZkCode.OK

    def flush(self) -> None:
        """Sends the batch."""
        live = tuple(self.infos.get(b) or BrokerInfo(b) for b in self.live)
        self.channels.flush(self.epoch, live, self.out)


def _chunks(items: Iterable[Item], size: int = _CHUNK) -> Iterator[list[Item]]:
    """Chunks of a list, made in advance: the source may change meanwhile."""
    every = list(items)
    for start in range(0, len(every), size):
        yield every[start : start + size]
