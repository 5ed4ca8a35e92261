"""AlterPartition at the controller of ZooKeeper mode.

Source: ``kafka.controller.KafkaController.processAlterPartition`` (2.7 to 3.9); KIP-497.
"""

from collections.abc import Callable

from sim.error_codes import ErrorCode
from sim.ids import NodeId, TopicPartition
from sim.protocol.messages.cluster import (
    AlterPartitionItem,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResult,
)
from sim.protocol.zk_mode.controller import ZkController
from sim.protocol.zk_mode.states import Steps
from sim.protocol.zk_mode.znodes import LeaderIsr, PartitionEntry, state_path
from sim.protocol.zookeeper.tree import SetData


def alter(
    controller: ZkController,
    request: AlterPartitionRequest,
    answer: Callable[[AlterPartitionResponse], None],
) -> Steps:
    """Handles leaders' requested ISRs, and writes them (2.7 to 3.9, KIP-497).

    Source: ``KafkaController.processAlterPartition``.
    """
    if controller.brokers.get(request.broker) != request.broker_epoch:
        answer(AlterPartitionResponse(ErrorCode.STALE_BROKER_EPOCH))
        return
    results: dict[TopicPartition, ErrorCode] = {}
    changes: list[PartitionEntry] = []
    for item in request.items:
        error = _refusal(controller, request.broker, item)
        results[item.partition] = error
        if error is ErrorCode.NONE:
            entry = controller.entries[item.partition]
            in_sync = tuple(member.broker for member in item.in_sync)
            state = LeaderIsr(entry.state.leader, item.leader_epoch, in_sync, controller.epoch)
            changes.append(entry._replace(state=state))
    outcomes = yield [
        controller.fenced(SetData(state_path(e.partition), e.state, e.version)) for e in changes
    ]
    for entry, outcome in zip(changes, outcomes, strict=True):
        if controller.succeeded(outcome):
            controller.entries[entry.partition] = entry._replace(version=entry.version + 1)
        else:
            results[entry.partition] = ErrorCode.INVALID_UPDATE_VERSION
    done = [controller.entries[p] for p, error in results.items() if error is ErrorCode.NONE]
    answer(
        AlterPartitionResponse(
            ErrorCode.NONE, tuple(_result(controller, p, error) for p, error in results.items())
        )
    )
    controller.channels.update_metadata(controller.live, done)
    controller.flush()
    for entry in done:
        yield from controller.reassignment.isr_changed(entry.partition)


def _refusal(controller: ZkController, sender: NodeId, item: AlterPartitionItem) -> ErrorCode:
    entry = controller.entries.get(item.partition)
    if entry is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if item.leader_epoch > entry.state.leader_epoch:
        return ErrorCode.NOT_CONTROLLER
    if item.leader_epoch < entry.state.leader_epoch or sender != entry.state.leader:
        return ErrorCode.FENCED_LEADER_EPOCH
    if item.partition_epoch != entry.version:
        return ErrorCode.INVALID_UPDATE_VERSION
    requested = [member.broker for member in item.in_sync]
    if controller.config.checks_eligibility and any(
        b not in controller.brokers or b in controller.stopping for b in requested
    ):
        return ErrorCode.INELIGIBLE_REPLICA
    return ErrorCode.NONE


def _result(
    controller: ZkController, partition: TopicPartition, error: ErrorCode
) -> AlterPartitionResult:
    if error is not ErrorCode.NONE:
        return AlterPartitionResult(partition, error)
    entry = controller.entries[partition]
    state = entry.state
    return AlterPartitionResult(
        partition, error, state.leader, state.leader_epoch, state.in_sync, entry.version
    )
