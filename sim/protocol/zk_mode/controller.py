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

Source: ``kafka.controller.KafkaController`` (3.9).
"""

from collections.abc import Callable, Generator
from dataclasses import replace
from typing import TypeAlias

from sim.ids import NO_LEADER, NodeId, TopicPartition
from sim.protocol.zk_mode.administration.deletion import TopicDeletion
from sim.protocol.zk_mode.administration.reassignment import Reassignment
from sim.protocol.zk_mode.channels import ControllerChannels
from sim.protocol.zk_mode.controller_types import (
    ControllerElected,
    ControllerLoaded,
    ControllerResigned,
    ZkControllerConfig,
)
from sim.protocol.zk_mode.elections import ZkElection
from sim.protocol.zk_mode.log_dirs import OfflineReplicas
from sim.protocol.zk_mode.states import StateMachines, Steps
from sim.protocol.zk_mode.znodes import (
    BROKER_IDS,
    CONTROLLER,
    CONTROLLER_EPOCH,
    ISR_CHANGES,
    TOPICS,
    BrokerInfo,
    PartitionEntry,
    TopicAssignment,
    topic_path,
)
from sim.protocol.zookeeper.session import ZkOperation
from sim.protocol.zookeeper.tree import (
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

Claim: TypeAlias = Generator[list[ZkOperation], list[ZkOutcome], SetData | None]
"""An attempt to become controller; returns the write that incremented the epoch on success."""


class ZkController(StateMachines):
    """State and events of the controller; empty while another broker is the controller."""

    def __init__(
        self, node: NodeId, config: ZkControllerConfig, channels: ControllerChannels
    ) -> None:
        super().__init__(config, channels)
        self.node = node
        self.active = False
        self.controller: NodeId = NO_LEADER
        """The active controller, as far as this broker knows."""
        self.loaded_partitions = 0
        """Partitions read at the last take-over."""
        self.deletion = TopicDeletion(self)
        self.reassignment = Reassignment(self, self.deletion)
        self.log_dirs = OfflineReplicas(self, self.deletion)

    def resign(self) -> None:
        """Drops all state; queued requests are dropped (KAFKA-4447)."""
        if not self.config.cleans_up:
            return
        if self.active:
            self.out.append(ControllerResigned(self.epoch))
        self.active = False
        self.drop_state()
        self.deletion.clear()

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
        self.epoch, self.epoch_version = count.data, count.version + 1
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
        yield from self.log_dirs.load()
        yield [ZkOperation(Delete(f"{ISR_CHANGES}/{name}")) for name in changes.children]
        yield from self.read_topics(topics.children)
        yield from self.read_states(self.assignments)
        self.loaded_partitions = len(self.entries)
        yield from self.deletion.load()
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
            yield from self.remove_from_isr(self.replicas_on(broker), broker)
        yield from self.create_states()
        yield from self.elect_offline()
        yield from self.reassignment.resume()
        yield from self.deletion.resume()

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
            self.offline.pop(broker, None)
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
        yield from self.elect_offline()
        for broker in failed:
            hosted = self.replicas_on(broker)
            kept = [p for p in hosted if p.topic not in self.to_delete]
            yield from self.remove_from_isr(kept, broker)
            yield from self.deletion.failed(broker, [p for p in hosted if p not in kept])
        self.channels.update_metadata(self.live)
        self.flush()

    def _brokers_started(self, come: list[NodeId]) -> Steps:
        """Source: ``KafkaController.onBrokerStartup``."""
        self.channels.update_metadata(b for b in self.live if b not in come)
        self.flush()
        self.channels.update_metadata(come, self.kept())
        self.flush()
        for partition, entry in self.entries.items():
            mine = [
                b
                for b in self.assignments[partition]
                if b in come and not self.deletion.is_stopped(partition, b)
            ]
            if mine:
                self.channels.lead_or_follow(mine, entry)
        self.flush()
        yield from self.create_states()
        yield from self.elect_offline()
        yield from self.reassignment.resume_on(come)
        yield from self.deletion.resume_on(come)

    def topics_changed(self) -> Steps:
        """New topics: elects each partition's first leader."""
        (topics,) = yield [ZkOperation(GetChildren(TOPICS), watch=True)]
        known = dict.fromkeys(p.topic for p in self.assignments)
        yield from self.read_topics(t for t in topics.children if t not in known)
        yield from self.create_states()

    def topic_modified(self, topic: str) -> Steps:
        """A topic's node has changed: new partitions get leaders, unless it is to be deleted.

        Source: ``KafkaController.processPartitionModifications``.
        """
        (found,) = yield [ZkOperation(GetData(topic_path(topic)), watch=True)]
        if found.node is None or topic not in self.facts:
            return
        data = found.node.data
        assert isinstance(data, TopicAssignment)
        known = len(self.partitions_of(topic))
        if len(data.replicas) <= known:
            return
        if topic in self.to_delete:
            restored = replace(data, replicas=data.replicas[:known])
            outcomes = yield [self.fenced(SetData(topic_path(topic), restored))]
            self.succeeded(outcomes[0])
            return
        for number in range(known, len(data.replicas)):
            self.assignments[TopicPartition(topic, number)] = data.replicas[number]
        yield from self.create_states()

    def unclean_enabled(self, topic: str = "") -> Steps:
        """Unclean elections are enabled for a topic, or for all that have no value of their own.

        Source: ``KafkaController.processTopicUncleanLeaderElectionEnable``.
        """
        mine = [p for p in self.leaderless() if topic in {"", p.topic}]
        yield from self.elect(mine, ZkElection.OFFLINE)

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
        yield from self.read_states(changed)
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
        yield from self.remove_from_isr(followed, broker)
        answer(sum(self.entries[p].state.leader == broker for p in led))

    def rebalance(self) -> Steps:
        """Moves leadership back to brokers that lack more than a tenth of their preferred ones.

        Source: ``KafkaController.checkAndTriggerAutoLeaderRebalance``.
        """
        preferred: dict[NodeId, list[PartitionEntry]] = {}
        for entry in self.kept():
            preferred.setdefault(entry.replicas[0], []).append(entry)
        for broker, entries in preferred.items():
            away = [e.partition for e in entries if e.state.leader != broker]
            if broker in self.brokers and len(away) * 100 > (
                self.config.imbalance_percent * len(entries)
            ):
                yield from self.elect(away, ZkElection.PREFERRED)
