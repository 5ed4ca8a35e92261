"""Reassignment of partitions by the controller of ZooKeeper mode, since 2.4 (KIP-455).

The topic's node has the replicas before and after at once, and says which are added and which are
removed. When every target replica is in the ISR, the others are stopped and deleted, and the node
gets the target alone; it is written last, so that a new controller resumes what it finds there.

Source: ``kafka.controller.KafkaController.onPartitionReassignment``,
``processApiPartitionReassignment`` (3.9), ``kafka.controller.ReplicaAssignment``.
"""

from collections.abc import Callable, Iterable

from sim.error_codes import ErrorCode
from sim.ids import NO_LEADER, NodeId, TopicPartition
from sim.protocol.messages.admin import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from sim.protocol.zk_mode.administration.deletion import TopicDeletion
from sim.protocol.zk_mode.elections import ZkElection
from sim.protocol.zk_mode.states import Nodes, StateMachines, Steps
from sim.protocol.zk_mode.znodes import (
    STAYS,
    LeaderIsr,
    Move,
    TopicAssignment,
    state_path,
    topic_path,
)
from sim.protocol.zookeeper.session import ZkOperation
from sim.protocol.zookeeper.tree import GetData, SetData

Assignment = tuple[Nodes, Move]
"""All replicas of a partition, and which of them are added and removed."""


class Reassignment:
    """Partitions that the controller moves.

    Args:
        states: The controller's state.
        deletion: Deletion of topics, which waits for reassignments.
    """

    def __init__(self, states: StateMachines, deletion: TopicDeletion) -> None:
        self._states = states
        self._deletion = deletion

    # -- events -----------------------------------------------------------------------------------

    def alter(
        self,
        request: AlterPartitionReassignmentsRequest,
        answer: Callable[[AlterPartitionReassignmentsResponse], None],
    ) -> Steps:
        """Begins, replaces or cancels reassignments; the response comes when that is written."""
        errors: list[tuple[TopicPartition, ErrorCode]] = []
        todo: list[tuple[TopicPartition, Assignment]] = []
        for partition, target in request.items:
            error = ErrorCode.NONE if target is None else self._refusal(partition, target)
            if error is ErrorCode.NONE and target is None and not self._is_moving(partition):
                error = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
            topic, known = partition.topic, partition in self._states.assignments
            if error is ErrorCode.NONE and (topic in self._states.to_delete or not known):
                error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            errors.append((partition, error))
            if error is ErrorCode.NONE:
                todo.append((partition, self._to(partition, target)))
        for partition, assignment in todo:
            yield from self._reassign(partition, assignment)
        answer(AlterPartitionReassignmentsResponse(tuple(errors)))

    def resume(self) -> Steps:
        """Resumes every reassignment, at a take-over."""
        yield from self._resume(tuple(self._states.moves))

    def resume_on(self, brokers: Iterable[NodeId]) -> Steps:
        """Brokers have started: reassignments to them are resumed."""
        come = tuple(brokers)
        yield from self._resume(
            [p for p in self._states.moves if any(b in come for b in self._target(p))]
        )

    def isr_changed(self, partition: TopicPartition) -> Steps:
        """The ISR of a partition has changed: its reassignment may be complete."""
        if not self._is_moving(partition):
            return
        complete: list[bool] = []
        yield from self._read_complete(partition, complete)
        if complete[0]:
            yield from self._reassign(partition, self._current(partition))

    # -- assignments ------------------------------------------------------------------------------

    def _is_moving(self, partition: TopicPartition) -> bool:
        return partition in self._states.moves

    def _current(self, partition: TopicPartition) -> Assignment:
        states = self._states
        return states.assignments[partition], states.moves.get(partition, STAYS)

    def _target(self, partition: TopicPartition) -> Nodes:
        replicas, move = self._current(partition)
        return tuple(b for b in replicas if b not in move.removing)

    def _to(self, partition: TopicPartition, target: Nodes | None) -> Assignment:
        """Source: ``ReplicaAssignment.reassignTo``; ``None``: back to the origin."""
        replicas, move = self._current(partition)
        origin = tuple(b for b in replicas if b not in move.adding)
        target = origin if target is None else target
        every = tuple(dict.fromkeys((*target, *origin)))
        adding = tuple(b for b in every if b not in origin)
        return every, Move(adding, tuple(b for b in every if b not in target))

    def _refusal(self, partition: TopicPartition, target: Nodes) -> ErrorCode:
        """Source: ``KafkaController.validateReplicas``."""
        if not target or len(dict.fromkeys(target)) != len(target):
            return ErrorCode.INVALID_REPLICA_ASSIGNMENT
        adding = target
        if partition in self._states.assignments:
            adding = self._to(partition, target)[1].adding
        live = self._states.brokers
        if any(b not in live or b in self._states.stopping for b in adding):
            return ErrorCode.INVALID_REPLICA_ASSIGNMENT
        return ErrorCode.NONE

    # -- the phases -------------------------------------------------------------------------------

    def _resume(self, partitions: Iterable[TopicPartition]) -> Steps:
        for partition in partitions:
            if self._is_moving(partition):
                yield from self._reassign(partition, self._current(partition))

    def _reassign(self, partition: TopicPartition, assignment: Assignment) -> Steps:
        """Writes the assignment; adds replicas, or removes others if every target is in sync."""
        states = self._states
        self._deletion.hold_up(partition.topic)
        yield from self._update(partition, assignment)
        complete: list[bool] = []
        yield from self._read_complete(partition, complete)
        if complete[0]:
            yield from self._complete(partition, assignment[1])
            return
        yield from self._bump_epoch(partition)
        entry = states.entries.get(partition)
        for broker in assignment[1].adding:
            if entry is not None:
                states.channels.lead_or_follow((broker,), entry)
                states.flush()

    def _update(self, partition: TopicPartition, assignment: Assignment) -> Steps:
        """Phase U: the topic's node, then memory; replicas that are not needed any more stop."""
        states = self._states
        former = self._current(partition)
        if former != assignment:
            yield from self._write(partition, assignment)
            states.assignments[partition] = assignment[0]
        states.moves[partition] = assignment[1]
        yield from self._stop(partition, [b for b in former[0] if b not in assignment[0]])

    def _complete(self, partition: TopicPartition, move: Move) -> Steps:
        """Phase B."""
        states = self._states
        target = self._target(partition)
        states.assignments[partition] = target
        states.moves[partition] = STAYS
        entry = states.entries.get(partition)
        leader = NO_LEADER if entry is None else entry.state.leader
        if leader in target and states.is_online(leader, partition):
            yield from self._bump_epoch(partition)
        else:
            yield from states.elect([partition], ZkElection.REASSIGN)
        yield from self._stop(partition, move.removing)
        yield from self._write(partition, (target, STAYS))
        states.moves.pop(partition, None)
        yield from states.read_states([partition])
        known = [states.entries[partition]] if partition in states.entries else []
        states.channels.update_metadata(states.live, known)
        states.flush()
        yield from self._deletion.resume_for([partition.topic])

    def _read_complete(self, partition: TopicPartition, complete: list[bool]) -> Steps:
        """Reads if every target is in sync; leaves a watch where leaders write the ISR."""
        states = self._states
        is_moving = states.moves.get(partition, STAYS) != STAYS
        if is_moving and states.config.leaders_write_isr:
            yield [ZkOperation(GetData(state_path(partition)), watch=True)]
        yield from states.read_states([partition])
        entry = states.entries.get(partition)
        in_sync = () if entry is None else entry.state.in_sync
        complete.append(not is_moving or all(b in in_sync for b in self._target(partition)))

    def _bump_epoch(self, partition: TopicPartition) -> Steps:
        """Begins a leader epoch, in which every replica learns the assignment."""
        states = self._states

        def bumped(_partition: TopicPartition, old: LeaderIsr) -> LeaderIsr:
            return LeaderIsr(old.leader, old.leader_epoch + 1, old.in_sync, states.epoch)

        yield from states.change([partition], bumped)
        states.flush()

    def _stop(self, partition: TopicPartition, brokers: Iterable[NodeId]) -> Steps:
        """Removes replicas from the ISR, stops them, and deletes them; nobody waits for that."""
        states, removed = self._states, tuple(brokers)
        for broker in removed:
            states.channels.stop(broker, partition)
            yield from states.change_isr_without([partition], broker)
        states.flush()
        for broker in removed:
            states.channels.stop(broker, partition, delete=True)
        states.flush()

    def _write(self, partition: TopicPartition, assignment: Assignment) -> Steps:
        """Writes the topic's node, as it is known, with another assignment of one partition."""
        states, topic = self._states, partition.topic
        replicas: list[Nodes] = []
        moves: list[tuple[int, Move]] = []
        for other in states.partitions_of(topic):
            every, move = assignment if other == partition else self._current(other)
            replicas.append(every)
            if move != STAYS:
                moves.append((other.partition, move))
        data = TopicAssignment(tuple(replicas), states.facts[topic], tuple(moves))
        (done,) = yield [states.fenced(SetData(topic_path(topic), data))]
        states.succeeded(done)
