"""Rights of requests for producer ids, and to transaction coordinators.

Source: ``kafka.server.KafkaApis``; KIP-679.
"""

from dataclasses import replace
from typing import Final

from sim.protocol.acls import CLUSTER
from sim.protocol.messages.base import Request
from sim.protocol.messages.metadata import InitProducerIdRequest, InitProducerIdResponse
from sim.protocol.messages.transaction import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnRequest,
    EndTxnResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    WriteTxnMarkersRequest,
)
from sim.protocol.rights.caller import (
    CLUSTER_DENIED,
    GROUP_DENIED,
    ID_DENIED,
    TOPIC_DENIED,
    Caller,
    Check,
    Ruling,
    all_topics,
    commit_in_part,
    of_group,
    of_servers,
)


def _init_producer_id(caller: Caller, request: Request) -> Ruling | None:
    assert isinstance(request, InitProducerIdRequest)
    if request.transactional_id:
        if caller.has("Write", "transactional-id", request.transactional_id):
            return None
        return Ruling(response=InitProducerIdResponse(ID_DENIED))
    if caller.has_any("Write", "topic") or caller.has("IdempotentWrite", "cluster", CLUSTER):
        return None
    return Ruling(response=InitProducerIdResponse(CLUSTER_DENIED))


def _add_partitions(caller: Caller, request: Request) -> Ruling | None:
    assert isinstance(request, AddPartitionsToTxnRequest)
    if not caller.has("Write", "transactional-id", request.transactional_id):
        return Ruling(response=AddPartitionsToTxnResponse(ID_DENIED))
    # Partitions of other topics are not attempted then.
    if all_topics(caller, "Write", request.partitions):
        return None
    return Ruling(response=AddPartitionsToTxnResponse(TOPIC_DENIED))


def _add_offsets(caller: Caller, request: Request) -> Ruling | None:
    assert isinstance(request, AddOffsetsToTxnRequest)
    if not caller.has("Write", "transactional-id", request.transactional_id):
        return Ruling(response=AddOffsetsToTxnResponse(ID_DENIED))
    return of_group(caller, request.group, AddOffsetsToTxnResponse(GROUP_DENIED))


def _commit_in_transaction(caller: Caller, request: Request) -> Ruling | None:
    assert isinstance(request, TxnOffsetCommitRequest)
    if not caller.has("Write", "transactional-id", request.transactional_id):
        return Ruling(response=TxnOffsetCommitResponse(ID_DENIED))
    if not caller.has("Read", "group", request.group):
        return Ruling(response=TxnOffsetCommitResponse(GROUP_DENIED))
    allowed = tuple(each for each in request.offsets if caller.on_topic("Read", each[0].topic))
    if len(allowed) == len(request.offsets):
        return None
    if not allowed:
        return Ruling(response=TxnOffsetCommitResponse(TOPIC_DENIED))
    return Ruling(replace(request, offsets=allowed), None, commit_in_part)


def _end(caller: Caller, request: Request) -> Ruling | None:
    assert isinstance(request, EndTxnRequest)
    if caller.has("Write", "transactional-id", request.transactional_id):
        return None
    return Ruling(response=EndTxnResponse(ID_DENIED))


def _markers(caller: Caller, request: Request) -> Ruling | None:
    allowed = caller.has("Alter", "cluster", CLUSTER)
    return None if allowed else of_servers(caller, request)


PRODUCER_CHECKS: Final[dict[type[Request], Check]] = {
    InitProducerIdRequest: _init_producer_id,
    AddPartitionsToTxnRequest: _add_partitions,
    AddOffsetsToTxnRequest: _add_offsets,
    TxnOffsetCommitRequest: _commit_in_transaction,
    EndTxnRequest: _end,
    WriteTxnMarkersRequest: _markers,
}
