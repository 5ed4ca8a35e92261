"""Replicas in failed log directories, as the controller of ZooKeeper mode learns of them (KIP-112).

A broker announces that a directory has failed. The controller then sends it every role again, and
the answer says which replicas are offline: they lose their leaderships and leave their ISRs. It
forgets them with the broker's process, and learns them again from its first answer.

Source: ``kafka.controller.KafkaController.processLogDirEventNotification``,
``processLeaderAndIsrResponseReceived``, ``onReplicasBecomeOffline`` (3.9).
"""

from collections.abc import Iterable

from sim.ids import NodeId, TopicPartition
from sim.protocol.zk_mode.administration.deletion import TopicDeletion
from sim.protocol.zk_mode.states import StateMachines, Steps
from sim.protocol.zk_mode.znodes import LOG_DIR_EVENTS
from sim.protocol.zookeeper.session import ZkOperation
from sim.protocol.zookeeper.tree import Delete, GetChildren, GetData


class OfflineReplicas:
    """The controller's events about log directories.

    Args:
        states: The controller's state.
        deletion: Deletion of topics, which offline replicas hold up.
    """

    def __init__(self, states: StateMachines, deletion: TopicDeletion) -> None:
        self._states = states
        self._deletion = deletion

    def load(self) -> Steps:
        """Watches announcements, and deletes those for the former controller."""
        if not self._states.config.several_directories:
            return
        (events,) = yield [ZkOperation(GetChildren(LOG_DIR_EVENTS), watch=True)]
        yield from self._delete(events.children)

    def announced(self) -> Steps:
        """Brokers have announced failures: they get every role again."""
        states = self._states
        (events,) = yield [ZkOperation(GetChildren(LOG_DIR_EVENTS), watch=True)]
        found = yield [ZkOperation(GetData(f"{LOG_DIR_EVENTS}/{n}")) for n in events.children]
        brokers = {e.node.data: None for e in found if e.node is not None}
        for broker in states.brokers:
            if broker in brokers:
                for partition in states.replicas_on(broker):
                    if partition in states.entries:
                        states.channels.lead_or_follow((broker,), states.entries[partition])
        states.flush()
        yield from self._delete(events.children)

    def reported(self, broker: NodeId, partitions: Iterable[TopicPartition]) -> Steps:
        """A broker has answered that these replicas are in a failed directory."""
        states = self._states
        if broker not in states.brokers:
            return
        known = states.offline.setdefault(broker, {})
        new = [p for p in partitions if p not in known and p in states.assignments]
        if not new:
            return
        known.update(dict.fromkeys(new))
        kept = [p for p in new if p.topic not in states.to_delete]
        yield from states.elect_offline()
        for partition in kept:
            states.channels.stop(broker, partition)
        yield from states.remove_from_isr(kept, broker)
        yield from self._deletion.failed(broker, [p for p in new if p not in kept])
        if not kept:
            states.channels.update_metadata(states.live)
            states.flush()

    def _delete(self, names: Iterable[str]) -> Steps:
        states = self._states
        outcomes = yield [states.fenced(Delete(f"{LOG_DIR_EVENTS}/{name}")) for name in names]
        for outcome in outcomes:
            states.succeeded(outcome)
