"""Deletion of topics by the controller of ZooKeeper mode.

An administrator marks a topic. Its leaders are removed from the metadata of every broker, its
replicas are stopped and then deleted; when every replica's broker has answered, its nodes are
deleted. One replica that is not live holds the whole topic up, until its broker is back. The mark
outlives the controller.

Approximate: a topic's nodes are deleted in two steps, those of its partitions first, where Kafka
lists and deletes one level of nodes after the other.

Source: ``kafka.controller.TopicDeletionManager``, ``KafkaController.processTopicDeletion``,
``processTopicDeletionStopReplicaResponseReceived`` (3.9).
"""

from collections.abc import Iterable
from enum import Enum, auto

from sim.error_codes import ErrorCode
from sim.ids import NodeId, TopicPartition
from sim.protocol.zk_mode.states import StateMachines, Steps
from sim.protocol.zk_mode.znodes import (
    EPOCH_DURING_DELETE,
    LEADER_DURING_DELETE,
    TOPIC_CONFIGS,
    TOPIC_DELETIONS,
    ControlResponse,
    LeaderIsr,
    PartitionEntry,
    StopReplicaRequest,
    deletion_path,
    state_path,
    topic_path,
)
from sim.protocol.zookeeper.session import ZkOperation
from sim.protocol.zookeeper.tree import Delete, GetChildren

Replica = tuple[TopicPartition, NodeId]


class ReplicaState(Enum):
    """State of a replica whose topic is being deleted."""

    STARTED = auto()
    """ReplicaDeletionStarted: its broker is to delete it."""
    SUCCESSFUL = auto()
    """ReplicaDeletionSuccessful."""
    INELIGIBLE = auto()
    """ReplicaDeletionIneligible: its broker is not live, or could not delete it."""


class TopicDeletion:
    """Topics that the controller deletes.

    Args:
        states: The controller's state.
    """

    def __init__(self, states: StateMachines) -> None:
        self._states = states
        self.clear()

    def clear(self) -> None:
        """Forgets everything: another broker is the controller."""
        self._held_up: dict[str, None] = {}
        self._begun: dict[str, None] = {}
        self._replicas: dict[Replica, ReplicaState] = {}

    def is_stopped(self, partition: TopicPartition, broker: NodeId) -> bool:
        """True if the broker is to delete the replica, or has."""
        known = self._replicas.get((partition, broker))
        return known in {ReplicaState.STARTED, ReplicaState.SUCCESSFUL}

    # -- events -----------------------------------------------------------------------------------

    def load(self) -> Steps:
        """Reads the marks, at a take-over."""
        states = self._states
        if not states.config.is_administered:
            return
        (marks,) = yield [ZkOperation(GetChildren(TOPIC_DELETIONS), watch=True)]
        states.to_delete.update(dict.fromkeys(marks.children))
        for topic in states.to_delete:
            replicas = self._replicas_of(topic)
            is_moving = any(p.topic == topic for p in states.moves)
            if is_moving or any(not states.is_online(b, p) for p, b in replicas):
                self._held_up[topic] = None

    def hold_up(self, topic: str) -> None:
        """A reassignment is in progress: the topic is not deleted before its end."""
        if topic in self._states.to_delete:
            self._held_up[topic] = None

    def marked(self) -> Steps:
        """An administrator has marked topics."""
        states = self._states
        (marks,) = yield [ZkOperation(GetChildren(TOPIC_DELETIONS), watch=True)]
        unknown = [t for t in marks.children if t not in states.facts]
        yield from self._write(Delete(deletion_path(topic)) for topic in unknown)
        states.to_delete.update(dict.fromkeys(t for t in marks.children if t in states.facts))
        for partition in states.moves:
            self.hold_up(partition.topic)
        yield from self.resume()

    def failed(self, broker: NodeId, partitions: Iterable[TopicPartition]) -> Steps:
        """A broker could not delete these replicas: it has failed, or says so."""
        replicas = [(p, broker) for p in partitions if p.topic in self._states.to_delete]
        if not replicas:
            return
        for replica in replicas:
            if self._replicas.get(replica) is not ReplicaState.SUCCESSFUL:
                self._replicas[replica] = ReplicaState.INELIGIBLE
        self._held_up.update(dict.fromkeys(p.topic for p, _ in replicas))
        yield from self.resume()

    def resume_on(self, brokers: Iterable[NodeId]) -> Steps:
        """Brokers have started: topics with replicas there are not held up any more."""
        come = tuple(brokers)
        yield from self.resume_for(
            topic
            for topic in tuple(self._states.to_delete)
            if any(broker in come for _, broker in self._replicas_of(topic))
        )

    def resume_for(self, topics: Iterable[str]) -> Steps:
        """Topics are not held up any more."""
        freed = [topic for topic in topics if topic in self._states.to_delete]
        for topic in freed:
            self._held_up.pop(topic, None)
        if freed:
            yield from self.resume()

    def answered(
        self, broker: NodeId, request: StopReplicaRequest, response: ControlResponse
    ) -> Steps:
        """A broker has answered a request to delete replicas."""
        requested = [p for p in request.deleted if p.topic in self._begun]
        errors = dict(response.errors)
        wrong = [p for p in requested if response.error is not ErrorCode.NONE or p in errors]
        yield from self.failed(broker, wrong)
        done = [p for p in requested if p not in wrong and p.topic in self._states.to_delete]
        for partition in done:
            self._replicas[partition, broker] = ReplicaState.SUCCESSFUL
        if done:
            yield from self.resume()

    # -- the work ---------------------------------------------------------------------------------

    def resume(self) -> Steps:
        """Completes, tries again, or begins whatever deletion can be.

        Source: ``TopicDeletionManager.resumeDeletions``.
        """
        again: list[Replica] = []
        free: list[str] = []
        for topic in tuple(self._states.to_delete):
            replicas = self._replicas_of(topic)
            known = [self._replicas.get(replica) for replica in replicas]
            if all(state is ReplicaState.SUCCESSFUL for state in known):
                yield from self._complete(topic)
            elif ReplicaState.STARTED not in known:
                again += [
                    replica
                    for replica, state in zip(replicas, known, strict=True)
                    if state is ReplicaState.INELIGIBLE
                ]
                if topic not in self._held_up:
                    free.append(topic)
        yield from self._take_offline(again)
        if free:
            yield from self._delete(free)

    def _delete(self, topics: list[str]) -> Steps:
        """Source: ``TopicDeletionManager.onTopicDeletion``, ``onPartitionDeletion``."""
        states = self._states
        self._begun.update(dict.fromkeys(topics))
        known = [e for e in states.entries.values() if e.partition.topic in topics]
        states.channels.update_metadata(states.live, [_during_deletion(e) for e in known])
        states.flush()
        left: list[Replica] = []
        for topic in topics:
            for replica in self._replicas_of(topic):
                if not states.is_online(replica[1], replica[0]):
                    self._replicas[replica] = ReplicaState.INELIGIBLE
                    self._held_up[topic] = None
                elif self._replicas.get(replica) is not ReplicaState.SUCCESSFUL:
                    left.append(replica)
        yield from self._take_offline(left)
        for partition, broker in left:
            self._replicas[partition, broker] = ReplicaState.STARTED
            states.channels.stop(broker, partition, delete=True)
        states.flush()

    def _take_offline(self, replicas: list[Replica]) -> Steps:
        """Stops replicas, and removes them from the ISRs."""
        states = self._states
        for broker in dict.fromkeys(broker for _, broker in replicas):
            mine = [p for p, other in replicas if other == broker]
            for partition in mine:
                self._replicas.pop((partition, broker), None)
                states.channels.stop(broker, partition)
            yield from states.change_isr_without(mine, broker)
        states.flush()

    def _complete(self, topic: str) -> Steps:
        """Deletes the topic's nodes, and the mark as the last."""
        states = self._states
        partitions = states.partitions_of(topic)
        yield from self._write(Delete(state_path(p)) for p in partitions)
        yield from self._write([Delete(topic_path(topic))])
        yield from self._write([Delete(f"{TOPIC_CONFIGS}/{topic}")])
        yield from self._write([Delete(deletion_path(topic))])
        for replica in self._replicas_of(topic):
            self._replicas.pop(replica, None)
        self._begun.pop(topic, None)
        self._held_up.pop(topic, None)
        states.forget_topic(topic)

    def _write(self, deletions: Iterable[Delete]) -> Steps:
        outcomes = yield [self._states.fenced(deletion) for deletion in deletions]
        for outcome in outcomes:
            self._states.succeeded(outcome)

    def _replicas_of(self, topic: str) -> list[Replica]:
        states = self._states
        return [(p, b) for p in states.partitions_of(topic) for b in states.assignments[p]]


def _during_deletion(entry: PartitionEntry) -> PartitionEntry:
    state = entry.state
    none = LeaderIsr(
        LEADER_DURING_DELETE, EPOCH_DURING_DELETE, state.in_sync, state.controller_epoch
    )
    return entry._replace(state=none)
