"""Trace rows of committed transactions of ZooKeeper.

The ensemble commits a transaction once; rows are made when the first server applies it. Together
they give the image that an omniscient observer has: the state in ZooKeeper, whatever brokers
believe.

Source: ``kafka.zk.ZkData`` (3.9).
"""

from dataclasses import replace

from sim.ids import NO_LEADER, NodeId, TopicPartition
from sim.protocol.metadata.image import MetadataImage, PartitionRegistration
from sim.protocol.zk_mode.images import (
    alive,
    configure,
    note_topic,
    registration,
    remove_partition,
)
from sim.protocol.zk_mode.znodes import (
    BROKER_CONFIGS,
    BROKER_IDS,
    CONTROLLER,
    DEFAULT_ENTITY,
    NO_FACTS,
    STAYS,
    TOPIC_CONFIGS,
    TOPIC_DELETIONS,
    TOPICS,
    BrokerInfo,
    Configs,
    LeaderIsr,
    PartitionEntry,
    TopicAssignment,
    partition_of,
)
from sim.protocol.zookeeper.effects import TreeChanged
from sim.protocol.zookeeper.messages import ZkTransaction
from sim.protocol.zookeeper.server import ZooKeeperServer
from sim.protocol.zookeeper.tree import SessionId, WatchEvent, ZkOutcome, Znode, Zxid
from sim.trace.emit import Emit
from sim.trace.rows.cluster import BrokerStates, PartitionChanges, TopicDeletions


class TracingServer(ZooKeeperServer):
    """A server that emits the changes of transactions that it applies."""

    def _applied(
        self, transaction: ZkTransaction, outcome: ZkOutcome, changes: list[tuple[str, WatchEvent]]
    ) -> None:
        super()._applied(transaction, outcome, changes)
        if changes:
            nodes = self.store.tree.nodes
            changed = tuple(
                (path, nodes.get(path))
                for path, change in changes
                if change is not WatchEvent.CHILDREN_CHANGED
            )
            self._out.append(TreeChanged(transaction.zxid, transaction.session, changed))


class ZkTraceRows:
    """The cluster's state in ZooKeeper, and its rows."""

    def __init__(self) -> None:
        self.image = MetadataImage()
        self.controller: NodeId = NO_LEADER
        """Owner of the controller's node."""
        self._zxid: Zxid = 0
        self._assignments: dict[str, TopicAssignment] = {}
        self._deleted: dict[str, None] = {}
        """Topics that are marked for deletion: nobody has a claim to them any more."""
        self._sessions: dict[SessionId, NodeId] = {}

    def take(self, change: TreeChanged) -> tuple[Emit, ...]:
        """Applies a transaction; rows for the trace, none if another server applied it first."""
        if change.zxid <= self._zxid:
            return ()
        self._zxid = change.zxid
        self.image.offset += 1
        rows: list[Emit] = []
        for path, node in change.nodes:
            self._changed(change.session, path, node, rows)
        return tuple(rows)

    def _changed(self, session: SessionId, path: str, node: Znode | None, rows: list[Emit]) -> None:
        if path == CONTROLLER:
            self.controller = NO_LEADER if node is None else _number(node.data)
        elif path.startswith(f"{BROKER_IDS}/"):
            self._broker(int(path[len(BROKER_IDS) + 1 :]), node, rows)
        elif path.startswith((f"{TOPIC_CONFIGS}/", f"{BROKER_CONFIGS}/")):
            self._configured(path, node)
        elif path.startswith(f"{TOPIC_DELETIONS}/"):
            self._marked(path[len(TOPIC_DELETIONS) + 1 :], node, rows)
        elif node is not None and isinstance(node.data, TopicAssignment):
            self._assigned(session, path[len(TOPICS) + 1 :], node.data, rows)
        elif node is not None and isinstance(node.data, LeaderIsr):
            partition = partition_of(path)
            assert partition is not None, f"{path} is no partition's state"
            if partition.topic not in self._deleted:
                rows.append(self._partition(session, partition, node))

    def _configured(self, path: str, node: Znode | None) -> None:
        root, _, name = path.rpartition("/")
        configs: Configs = ()
        if node is not None:
            assert isinstance(node.data, tuple)
            configs = node.data
        if root == BROKER_CONFIGS:
            broker = NO_LEADER if name == DEFAULT_ENTITY else int(name)
            configure(self.image, "", broker, configs)
        elif node is not None:
            configure(self.image, name, NO_LEADER, configs)

    def _marked(self, topic: str, node: Znode | None, rows: list[Emit]) -> None:
        """Topics are deleted with their mark, which nobody takes back: replicas follow."""
        if node is None:
            self._deleted.pop(topic, None)
            return
        self._deleted[topic] = None
        topic_id = self._assignments[topic].facts.topic_id
        rows.append(TopicDeletions.row(self.controller, topic, topic_id=topic_id))
        for partition in [p for p in self.image.partitions if p.topic == topic]:
            remove_partition(self.image, partition)
        self.image.topic_configs.pop(topic, None)

    def _broker(self, broker: NodeId, node: Znode | None, rows: list[Emit]) -> None:
        """A broker's node exists with its session, and is deleted with it."""
        if node is None:
            old = self.image.brokers.pop(broker)
            where = (self.controller, broker)
            rows.append(BrokerStates.row(*where, state="unregistered", broker_epoch=old.epoch))
            return
        assert isinstance(node.data, BrokerInfo)
        self._sessions[node.owner] = broker
        self.image.brokers[broker] = alive(node.data, node.created)
        rows.extend(
            BrokerStates.row(self.controller, broker, state=state, broker_epoch=node.created)
            for state in ("registered", "unfenced")
        )

    def _assigned(
        self, session: SessionId, topic: str, data: TopicAssignment, rows: list[Emit]
    ) -> None:
        """Partitions that exist get the replicas that their topic's node has now.

        Where the state is the first one still, the next has them: its epoch says what is new.
        """
        self._assignments[topic] = data
        for number, replicas in enumerate(data.replicas):
            key, move = TopicPartition(topic, number), data.move_of(number)
            old = self.image.partitions.get(key)
            if old is None or topic in self._deleted:
                continue
            left = _and_in_sync(replicas, old.in_sync)
            now = replace(old, replicas=left, adding=move.adding, removing=move.removing)
            self.image.partitions[key] = now
            if now != old and now.partition_epoch > 0:
                rows.append(self._row(session, key, now, unclean=False))

    def _partition(self, session: SessionId, partition: TopicPartition, node: Znode) -> Emit:
        assert isinstance(node.data, LeaderIsr)
        assignment = self._assignments.get(partition.topic)
        facts = NO_FACTS if assignment is None else assignment.facts
        replicas = () if assignment is None else assignment.replicas[partition.partition]
        replicas = _and_in_sync(replicas, node.data.in_sync)
        before = self.image.partitions.get(partition)
        move = STAYS if assignment is None else assignment.move_of(partition.partition)
        entry = PartitionEntry(partition, node.data, node.version, replicas, facts, move)
        note_topic(self.image, partition, facts)
        now = self.image.partitions[partition] = registration(entry)
        return self._row(session, partition, now, unclean=_is_unclean(before, now))

    def _row(
        self,
        session: SessionId,
        partition: TopicPartition,
        now: PartitionRegistration,
        *,
        unclean: bool,
    ) -> Emit:
        return PartitionChanges.row(
            self._sessions.get(session, NO_LEADER),
            *partition,
            leader=now.leader,
            leader_epoch=now.leader_epoch,
            partition_epoch=now.partition_epoch,
            in_sync=_joined(tuple(sorted(now.in_sync))),
            eligible="",
            replicas=_joined(now.replicas),
            unclean=unclean,
        )


def _is_unclean(before: PartitionRegistration | None, now: PartitionRegistration) -> bool:
    """True if the new leader was not in the ISR before."""
    if before is None or now.leader in {NO_LEADER, before.leader}:
        return False
    return now.leader not in before.in_sync


def _and_in_sync(replicas: tuple[NodeId, ...], in_sync: tuple[NodeId, ...]) -> tuple[NodeId, ...]:
    """Replicas, and those that were removed from the assignment and are in the ISR still.

    The controller writes the assignment before the ISR where it cancels a reassignment.
    """
    return (*replicas, *(broker for broker in in_sync if broker not in replicas))


def _joined(nodes: tuple[NodeId, ...]) -> str:
    return ",".join(map(str, nodes))


def _number(data: object) -> NodeId:
    assert isinstance(data, int)
    return data
