"""Requests of brokers and administrators to the controller of ZooKeeper mode, as its events.

Approximate: topics are created, extended and marked for deletion by the controller's one thread,
and the response comes when their nodes exist; Kafka's admin manager writes them beside that thread,
and waits until the metadata has, or lacks, the topic. Blocks of producer ids go through the
controller in every version; brokers allocated them directly before 3.0.

Source: ``kafka.server.ZkAdminManager``, ``kafka.zk.AdminZkClient``,
``kafka.controller.KafkaController`` (3.9); KIP-460, KIP-730.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from sim.error_codes import ErrorCode
from sim.ids import NO_LEADER, NodeId, TopicPartition
from sim.protocol.controller.placement import PlacementImpossible
from sim.protocol.controller.topics import PRODUCER_ID_BLOCK, new_id
from sim.protocol.messages.admin import (
    AlterPartitionReassignmentsRequest,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    IncrementalAlterConfigsRequest,
)
from sim.protocol.messages.base import Request, Response
from sim.protocol.messages.cluster import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterPartitionRequest,
    CreateTopicsRequest,
    CreateTopicsResponse,
    NewTopic,
)
from sim.protocol.zk_mode.administration.configs import alter_configs
from sim.protocol.zk_mode.alter_partition import alter
from sim.protocol.zk_mode.controller import ZkController
from sim.protocol.zk_mode.elections import ZkElection
from sim.protocol.zk_mode.placement import assign_replicas
from sim.protocol.zk_mode.states import Steps
from sim.protocol.zk_mode.znodes import (
    PRODUCER_IDS,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    TopicAssignment,
    TopicFacts,
    deletion_path,
    topic_path,
)
from sim.protocol.zookeeper.session import ZkOperation
from sim.protocol.zookeeper.tree import Create, GetData, SetData, ZkCode

Answer: TypeAlias = Callable[[Response], None]

TO_CONTROLLER: tuple[type[Request], ...] = (
    AlterPartitionRequest,
    ControlledShutdownRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    CreatePartitionsRequest,
    AllocateProducerIdsRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
    AlterPartitionReassignmentsRequest,
)
"""Requests that only the controller answers."""

_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def event_of(
    controller: ZkController, request: Request, answer: Answer, unit: Callable[[], float]
) -> Steps:
    """The controller's event for a request.

    Args:
        controller: The controller.
        request: One of :data:`TO_CONTROLLER`.
        answer: Called once with the response, unless the event is dropped.
        unit: Draws of placement and of topic ids.
    """
    match request:
        case AlterPartitionRequest():
            return alter(controller, request, answer)
        case ControlledShutdownRequest():
            return _shut_down(controller, request, answer)
        case CreateTopicsRequest():
            return _create_topics(controller, request, answer, unit)
        case DeleteTopicsRequest():
            return _delete_topics(controller, request, answer)
        case AlterPartitionReassignmentsRequest():
            return controller.reassignment.alter(request, answer)
        case CreatePartitionsRequest():
            return _create_partitions(controller, request, answer)
        case IncrementalAlterConfigsRequest():
            return alter_configs(controller, request, answer)
        case AllocateProducerIdsRequest():
            return _allocate(controller, request, answer)
        case ElectLeadersRequest():
            return _elect(controller, request, answer)
        case _:
            message = f"not a request to the controller: {request}"
            raise AssertionError(message)


def _shut_down(
    controller: ZkController, request: ControlledShutdownRequest, answer: Answer
) -> Steps:
    if 0 <= request.broker_epoch < controller.brokers.get(request.broker, 0):
        answer(ControlledShutdownResponse(ErrorCode.STALE_BROKER_EPOCH))
        return
    yield from controller.shut_down(
        request.broker, lambda left: answer(ControlledShutdownResponse(ErrorCode.NONE, left))
    )


def _create_topics(
    controller: ZkController,
    request: CreateTopicsRequest,
    answer: Answer,
    unit: Callable[[], float],
) -> Steps:
    errors: list[tuple[str, ErrorCode]] = []
    for topic in request.topics:
        placed = _placed(controller, topic, unit)
        if isinstance(placed, ErrorCode):
            errors.append((topic.name, placed))
            continue
        facts = TopicFacts(new_id(unit), topic.configs)
        node = Create(topic_path(topic.name), TopicAssignment(placed, facts))
        (made,) = yield [ZkOperation(node)]
        done = made.code is ZkCode.OK
        errors.append((topic.name, ErrorCode.NONE if done else ErrorCode.TOPIC_ALREADY_EXISTS))
    answer(CreateTopicsResponse(tuple(errors)))


def _delete_topics(controller: ZkController, request: DeleteTopicsRequest, answer: Answer) -> Steps:
    """Marks topics; one that is marked and not yet deleted is not in the metadata any more.

    Where deletion is off, the controller takes the mark away, and the request runs out of time.
    """
    errors: list[tuple[str, ErrorCode]] = []
    for name in request.topics:
        if not controller.config.deletes_topics:
            errors.append((name, ErrorCode.REQUEST_TIMED_OUT))
        elif name not in controller.facts or name in controller.to_delete:
            errors.append((name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        else:
            yield [ZkOperation(Create(deletion_path(name), None))]
            errors.append((name, ErrorCode.NONE))
    answer(DeleteTopicsResponse(tuple(errors)))


def _placed(
    controller: ZkController, topic: NewTopic, unit: Callable[[], float]
) -> tuple[tuple[int, ...], ...] | ErrorCode:
    if topic.name in {".", ".."} or not _TOPIC_NAME.fullmatch(topic.name):
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if topic.partitions <= 0:
        return ErrorCode.INVALID_PARTITIONS
    racks = _racks(controller)
    if topic.assignment:
        known = all(broker in racks for replicas in topic.assignment for broker in replicas)
        return topic.assignment if known else ErrorCode.INVALID_REPLICA_ASSIGNMENT
    try:
        return assign_replicas(racks, topic.partitions, topic.replication_factor, unit)
    except PlacementImpossible:
        return ErrorCode.INVALID_REPLICATION_FACTOR


def _racks(controller: ZkController) -> dict[NodeId, str]:
    """Live brokers with their racks; without racks, where placement does not look at them."""
    racks = {b: controller.infos[b].rack if b in controller.infos else "" for b in controller.live}
    return racks if controller.config.rack_aware else dict.fromkeys(racks, "")


def _create_partitions(
    controller: ZkController, request: CreatePartitionsRequest, answer: Answer
) -> Steps:
    """Writes the replicas of the new partitions; the controller's watch elects their leaders."""
    topic = request.topic
    (node,) = yield [ZkOperation(GetData(topic_path(topic)))]
    if topic in controller.to_delete:
        answer(CreatePartitionsResponse(ErrorCode.INVALID_TOPIC_EXCEPTION))
        return
    if node.node is None:
        answer(CreatePartitionsResponse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        return
    known = node.node.data
    assert isinstance(known, TopicAssignment)
    if known.moves:
        answer(CreatePartitionsResponse(ErrorCode.REASSIGNMENT_IN_PROGRESS))
        return
    placed = _more(controller, request, known.replicas)
    if isinstance(placed, ErrorCode):
        answer(CreatePartitionsResponse(placed))
        return
    grown = replace(known, replicas=(*known.replicas, *placed))
    (done,) = yield [ZkOperation(SetData(topic_path(topic), grown, node.node.version))]
    is_done = done.code is ZkCode.OK
    answer(CreatePartitionsResponse(ErrorCode.NONE if is_done else ErrorCode.NOT_CONTROLLER))


def _more(
    controller: ZkController,
    request: CreatePartitionsRequest,
    known: tuple[tuple[NodeId, ...], ...],
) -> tuple[tuple[NodeId, ...], ...] | ErrorCode:
    """Replicas of the new partitions. Source: ``AdminZkClient.createNewPartitionsAssignment``."""
    more, factor, racks = request.count - len(known), len(known[0]), _racks(controller)
    if more <= 0:
        return ErrorCode.INVALID_PARTITIONS
    if request.assignment:
        is_good = len(request.assignment) == more and all(
            len(replicas) == len(dict.fromkeys(replicas)) == factor
            and all(broker in racks for broker in replicas)
            for replicas in request.assignment
        )
        return request.assignment if is_good else ErrorCode.INVALID_REPLICA_ASSIGNMENT
    try:
        return assign_replicas(racks, more, factor, _nothing_to_draw, known)
    except PlacementImpossible:
        return ErrorCode.INVALID_REPLICATION_FACTOR


def _nothing_to_draw() -> float:
    raise AssertionError("the first partition decides")


def _allocate(
    controller: ZkController, request: AllocateProducerIdsRequest, answer: Answer
) -> Steps:
    """Allocates the next block, on condition of the version that was read; again if that failed."""
    if controller.brokers.get(request.broker) != request.broker_epoch:
        answer(AllocateProducerIdsResponse(ErrorCode.STALE_BROKER_EPOCH))
        return
    while True:
        (block,) = yield [ZkOperation(GetData(PRODUCER_IDS))]
        if block.node is None:
            yield [ZkOperation(Create(PRODUCER_IDS, 0))]
            continue
        first = block.node.data
        assert isinstance(first, int)
        write = SetData(PRODUCER_IDS, first + PRODUCER_ID_BLOCK, block.node.version)
        (done,) = yield [ZkOperation(write)]
        if done.code is ZkCode.OK:
            answer(AllocateProducerIdsResponse(ErrorCode.NONE, first, PRODUCER_ID_BLOCK))
            return


def _elect(controller: ZkController, request: ElectLeadersRequest, answer: Answer) -> Steps:
    preferred = request.kind == "preferred"
    kind = ZkElection.PREFERRED if preferred else ZkElection.UNCLEAN
    errors: dict[TopicPartition, ErrorCode] = {}
    todo: list[TopicPartition] = []
    for partition in request.partitions or tuple(controller.entries):
        entry = controller.entries.get(partition)
        if entry is None:
            errors[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            continue
        if partition.topic in controller.to_delete:
            errors[partition] = ErrorCode.INVALID_TOPIC_EXCEPTION
            continue
        leader = entry.state.leader
        if leader != entry.replicas[0] if preferred else leader not in controller.brokers:
            todo.append(partition)
        elif request.partitions:
            errors[partition] = ErrorCode.ELECTION_NOT_NEEDED
    before = {p: controller.entries[p].state.leader_epoch for p in todo}
    yield from controller.elect(todo, kind)
    nobody = (
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        if preferred
        else ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    )
    for partition in todo:
        state = controller.entries[partition].state
        elected = state.leader != NO_LEADER and state.leader_epoch > before[partition]
        errors[partition] = ErrorCode.NONE if elected else nobody
    answer(ElectLeadersResponse(tuple(errors.items())))
