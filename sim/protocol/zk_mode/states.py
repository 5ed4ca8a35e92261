"""State that the controller of ZooKeeper mode holds, and its state machines.

Leaders and ISRs are read, decided, written to ZooKeeper on condition of the version of each
partition's node and of the controller's epoch, and sent to brokers. Topics that wait for their
deletion are left alone by elections, and their ISRs are not sent.

Source: ``kafka.controller.{ControllerContext,ZkPartitionStateMachine,ZkReplicaStateMachine}``
(3.9).
"""

from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from typing import TypeAlias, TypeVar

from sim.ids import NO_LEADER, BrokerEpoch, NodeId, TopicPartition
from sim.protocol.zk_mode.channels import ControllerChannels
from sim.protocol.zk_mode.controller_types import (
    ControllerMoved,
    StatesLogged,
    ZkControllerConfig,
)
from sim.protocol.zk_mode.effects import Effects
from sim.protocol.zk_mode.elections import ZkElection, elect, initial, without
from sim.protocol.zk_mode.znodes import (
    CONTROLLER_EPOCH,
    NO_FACTS,
    STAYS,
    TOPIC_CONFIGS,
    BrokerInfo,
    Configs,
    LeaderIsr,
    Move,
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
    GetData,
    Multi,
    SetData,
    ZkCode,
    ZkOutcome,
)

Steps: TypeAlias = Generator[list[ZkOperation], list[ZkOutcome], None]
"""An event of the controller: yields operations, is sent their outcomes in that order."""

Item = TypeVar("Item")

Nodes: TypeAlias = tuple[NodeId, ...]
Decide: TypeAlias = Callable[[TopicPartition, LeaderIsr], LeaderIsr | None]
"""The new state of a partition; ``None``: leave it."""

_CHUNK = 10_000
"""Partitions whose outcomes are held at once; does not influence decisions."""


class StateMachines:
    """Holds what the controller knows, and changes partitions."""

    def __init__(self, config: ZkControllerConfig, channels: ControllerChannels) -> None:
        self.config = config
        self.channels = channels
        self.epoch = 0
        self.brokers: dict[NodeId, BrokerEpoch] = {}
        """Live brokers."""
        self.infos: dict[NodeId, BrokerInfo] = {}
        """Their registrations."""
        self.stopping: dict[NodeId, None] = {}
        self.facts: dict[str, TopicFacts] = {}
        self.assignments: dict[TopicPartition, Nodes] = {}
        self.entries: dict[TopicPartition, PartitionEntry] = {}
        self.moves: dict[TopicPartition, Move] = {}
        """Partitions that are being reassigned."""
        self.offline: dict[NodeId, dict[TopicPartition, None]] = {}
        """Replicas of live brokers in log directories that have failed."""
        self.unclean = config.unclean
        """True if this broker's topics may elect leaders from outside the ISR."""
        self.to_delete: dict[str, None] = {}
        """Topics that are marked for deletion."""
        self.out: Effects = []
        """Receives effects; the owner sets it for each event."""
        self.epoch_version = 0
        """Version of the epoch's node that this controller has written."""

    def drop_state(self) -> None:
        """Forgets everything: another broker is the controller."""
        self.channels.clear()
        self.brokers = {}
        self.infos = {}
        self.stopping = {}
        self.facts = {}
        self.assignments = {}
        self.entries = {}
        self.moves = {}
        self.offline = {}
        self.to_delete = {}

    def partitions_of(self, topic: str) -> list[TopicPartition]:
        """Partitions of a topic, by number."""
        return [p for p in self.assignments if p.topic == topic]

    def forget_topic(self, topic: str) -> None:
        """Drops a topic that is deleted."""
        for partition in self.partitions_of(topic):
            del self.assignments[partition]
            self.entries.pop(partition, None)
            self.moves.pop(partition, None)
        self.facts.pop(topic, None)
        self.to_delete.pop(topic, None)

    @property
    def live(self) -> Nodes:
        """Live brokers, those that shut down included, by id."""
        return tuple(sorted(self.brokers))

    # -- reading ----------------------------------------------------------------------------------

    def read_topics(self, topics: Iterable[str]) -> Steps:
        """Reads topics' ids and assignments."""
        for chunk in _chunks(topics):
            watched = self.config.is_administered
            outcomes = yield [ZkOperation(GetData(topic_path(topic)), watched) for topic in chunk]
            for topic, outcome in zip(chunk, outcomes, strict=True):
                if outcome.node is None:
                    continue
                assert isinstance(outcome.node.data, TopicAssignment)
                self.facts[topic] = outcome.node.data.facts
                for number, replicas in enumerate(outcome.node.data.replicas):
                    self.assignments[TopicPartition(topic, number)] = replicas
                for number, move in outcome.node.data.moves:
                    self.moves[TopicPartition(topic, number)] = move

    def read_states(self, partitions: Iterable[TopicPartition]) -> Steps:
        """Reads leaders and ISRs."""
        for chunk in _chunks(partitions):
            outcomes = yield [ZkOperation(GetData(state_path(p))) for p in chunk]
            for partition, outcome in zip(chunk, outcomes, strict=True):
                node = outcome.node
                if node is not None and partition in self.assignments:
                    assert isinstance(node.data, LeaderIsr)
                    self.entries[partition] = self._entry(partition, node.data, node.version)

    def _entry(self, partition: TopicPartition, state: LeaderIsr, version: int) -> PartitionEntry:
        facts = self.facts.get(partition.topic, NO_FACTS)
        replicas, move = self.assignments[partition], self.moves.get(partition, STAYS)
        return PartitionEntry(partition, state, version, replicas, facts, move)

    def is_online(self, broker: NodeId, partition: TopicPartition) -> bool:
        """True if the broker is live, and the replica is in no failed log directory."""
        return broker in self.brokers and partition not in self.offline.get(broker, ())

    def online(self, partition: TopicPartition) -> Collection[NodeId]:
        """Live brokers without those where the partition's replica is offline."""
        if not self.offline:
            return self.brokers
        return [b for b in self.brokers if self.is_online(b, partition)]

    def leaderless(self) -> list[TopicPartition]:
        """Partitions whose leader is not online, without those that wait for their deletion."""
        led = ((e.partition, e.state.leader) for e in self.kept())
        return [p for p, leader in led if not self.is_online(leader, p)]

    def kept(self) -> list[PartitionEntry]:
        """Partitions with a state, without those that wait for their deletion."""
        entries = self.entries.values()
        return [e for e in entries if e.partition.topic not in self.to_delete]

    # -- the state machines -----------------------------------------------------------------------

    def elect_offline(self) -> Steps:
        """Elects leaders for partitions whose leader is not live."""
        yield from self.elect(self.leaderless(), ZkElection.OFFLINE)

    def elect(self, partitions: list[TopicPartition], kind: ZkElection) -> Steps:
        """Elects a leader for each partition that needs one and can have one."""
        unclean: dict[str, bool] = {}
        if kind is ZkElection.OFFLINE:
            yield from self._read_unclean(partitions, unclean)

        def decide(partition: TopicPartition, old: LeaderIsr) -> LeaderIsr | None:
            elected = elect(
                kind,
                old,
                self.assignments[partition],
                self.online(partition),
                stopping=self.stopping,
                unclean=unclean.get(partition.topic, self.unclean),
            )
            if elected is None or elected == (old.leader, old.in_sync):
                return None
            return LeaderIsr(elected[0], old.leader_epoch + 1, elected[1], self.epoch)

        yield from self.change(partitions, decide)
        self.flush()

    def _read_unclean(self, partitions: list[TopicPartition], unclean: dict[str, bool]) -> Steps:
        """Reads ``unclean.leader.election.enable`` of topics that have lost an ISR.

        Source: ``ZkPartitionStateMachine.collectUncleanLeaderElectionState``.
        """
        lost = [p for p in partitions if not any(self.is_online(b, p) for b in self._isr_of(p))]
        topics = list(dict.fromkeys(p.topic for p in lost))
        for topic in topics:
            _note_unclean(topic, self.facts[topic].configs, unclean)
        if self.config.is_administered:
            outcomes = yield [ZkOperation(GetData(f"{TOPIC_CONFIGS}/{t}")) for t in topics]
            for topic, outcome in zip(topics, outcomes, strict=True):
                if outcome.node is not None:
                    unclean.pop(topic, None)
                    assert isinstance(outcome.node.data, tuple)
                    _note_unclean(topic, outcome.node.data, unclean)

    def _isr_of(self, partition: TopicPartition) -> Nodes:
        entry = self.entries.get(partition)
        return () if entry is None else entry.state.in_sync

    def replicas_on(self, broker: NodeId) -> list[TopicPartition]:
        """Partitions with a replica on the broker."""
        return [p for p, replicas in self.assignments.items() if broker in replicas]

    def remove_from_isr(self, partitions: list[TopicPartition], broker: NodeId) -> Steps:
        """Removes a broker's replicas from the ISRs, and sends them."""
        yield from self.change_isr_without(partitions, broker)
        self.flush()

    def change_isr_without(self, partitions: list[TopicPartition], broker: NodeId) -> Steps:
        """Removes a broker's replicas from the ISRs; they are sent with the batch."""
        yield from self.change(
            partitions, lambda _, old: without(old, broker, self.epoch), excluded=broker
        )

    def change(
        self, partitions: list[TopicPartition], decide: Decide, excluded: NodeId = NO_LEADER
    ) -> Steps:
        """Reads, decides, writes on condition of the version; repeats it where that has changed.

        States written by a later controller are left alone.
        """
        todo = partitions
        while todo:
            again: list[TopicPartition] = []
            for chunk in _chunks(todo, _CHUNK if self.config.batched else 1):
                yield from self.read_states(chunk)
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

    def create_states(self) -> Steps:
        """Elects the first leader of each partition without a state."""
        missing = (p for p in self.assignments if p not in self.entries)
        for chunk in _chunks(p for p in missing if p.topic not in self.to_delete):
            new: list[PartitionEntry] = []
            for partition in chunk:
                replicas = self.assignments[partition]
                state = initial(replicas, self.online(partition), self.epoch)
                if state is not None:
                    new.append(self._entry(partition, state, 0))
            outcomes = yield [self.fenced(Create(state_path(e.partition), e.state)) for e in new]
            for entry, outcome in zip(new, outcomes, strict=True):
                if self.succeeded(outcome):
                    self._changed(entry)
        self.flush()

    def _changed(self, entry: PartitionEntry, excluded: NodeId = NO_LEADER) -> None:
        self.entries[entry.partition] = entry
        if entry.partition.topic in self.to_delete:
            return
        receivers = entry.replicas
        if excluded != NO_LEADER:
            receivers = tuple(b for b in receivers if b != excluded)
        self.channels.lead_or_follow(receivers, entry)

    def fenced(self, op: SetData | Create | Delete) -> ZkOperation:
        """The write, conditional on this controller's epoch (KAFKA-6082)."""
        if not self.config.fencing:
            return ZkOperation(op)
        return ZkOperation(Multi((Check(CONTROLLER_EPOCH, self.epoch_version), op)))

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


def _note_unclean(topic: str, configs: Configs, unclean: dict[str, bool]) -> None:
    for name, value in configs:
        if name == "unclean.leader.election.enable":
            unclean[topic] = value == "true"


def _chunks(items: Iterable[Item], size: int = _CHUNK) -> Iterator[list[Item]]:
    """Chunks of a list, made in advance: the source may change meanwhile."""
    every = list(items)
    for start in range(0, len(every), size):
        yield every[start : start + size]
