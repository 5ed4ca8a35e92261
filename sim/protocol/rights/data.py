"""Rights of requests for records, offsets and metadata of topics.

Source: ``kafka.server.KafkaApis``.
"""

from dataclasses import replace
from functools import partial
from typing import Final

from sim.error_codes import ErrorCode
from sim.protocol.acls import CLUSTER
from sim.protocol.messages.base import Request, Response
from sim.protocol.messages.data import (
    FetchRequest,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceResult,
)
from sim.protocol.messages.delete_records import (
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsResult,
)
from sim.protocol.messages.leader_epochs import (
    GetReplicaLogInfoRequest,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    TombstoneOffsetsRequest,
)
from sim.protocol.messages.log_dirs import AlterReplicaLogDirsRequest
from sim.protocol.messages.metadata import MetadataRequest, MetadataResponse
from sim.protocol.rights.caller import (
    CLUSTER_DENIED,
    ID_DENIED,
    TOPIC_DENIED,
    Caller,
    Check,
    Ruling,
    of_servers,
)


def _produce(caller: Caller, request: Request) -> Ruling | None:
    assert isinstance(request, ProduceRequest)
    transactional_id = request.transactional_id
    if transactional_id and not caller.has("Write", "transactional-id", transactional_id):
        return _nothing_written(request, ID_DENIED)
    allowed = tuple(each for each in request.batches if caller.on_topic("Write", each[0].topic))
    if len(allowed) == len(request.batches):
        return None
    if not allowed:
        return _nothing_written(request, TOPIC_DENIED)
    refused = tuple(
        ProduceResult(partition, TOPIC_DENIED)
        for partition, _ in request.batches
        if not caller.on_topic("Write", partition.topic)
    )
    rest = ProduceRequest(request.acks, request.timeout_us, allowed, transactional_id)
    return Ruling(rest, None, partial(_with_results, refused), closes=request.acks == 0)


def _nothing_written(request: ProduceRequest, error: ErrorCode) -> Ruling:
    if request.acks == 0:
        return Ruling(closes=True)
    results = tuple(ProduceResult(partition, error) for partition, _ in request.batches)
    return Ruling(response=ProduceResponse(results))


def _with_results(refused: tuple[ProduceResult, ...], response: Response) -> Response:
    assert isinstance(response, ProduceResponse)
    return ProduceResponse(response.results + refused)


def _list_offsets(caller: Caller, request: Request) -> Ruling | None:
    assert isinstance(request, ListOffsetsRequest)
    partition = request.partition
    if caller.on_topic("Describe", partition.topic):
        return None
    return Ruling(response=ListOffsetsResponse(partition, TOPIC_DENIED))


def _leader_epoch(caller: Caller, request: Request) -> Ruling | None:
    assert isinstance(request, OffsetForLeaderEpochRequest)
    partition = request.partition
    if caller.on_topic("Describe", partition.topic):
        return None
    return Ruling(response=OffsetForLeaderEpochResponse(partition, TOPIC_DENIED))


def _metadata(caller: Caller, request: Request) -> Ruling | None:
    assert isinstance(request, MetadataRequest)
    assert request.topics is not None, "a pattern is refused beside an authorizer"
    allowed = tuple(topic for topic in request.topics if caller.on_topic("Describe", topic))
    if len(allowed) == len(request.topics):
        return None
    hidden = tuple(topic for topic in request.topics if topic not in allowed)
    return Ruling(MetadataRequest(allowed), None, partial(_with_hidden, hidden))


def _with_hidden(hidden: tuple[str, ...], response: Response) -> Response:
    assert isinstance(response, MetadataResponse)
    return replace(response, unauthorized=hidden)


def _fetch(caller: Caller, request: Request) -> Ruling | None:
    assert isinstance(request, FetchRequest)
    return None if request.replica_id < 0 else of_servers(caller, request)


def _move_replicas(caller: Caller, request: Request) -> Ruling | None:
    assert isinstance(request, AlterReplicaLogDirsRequest)
    if caller.has("Alter", "cluster", CLUSTER):
        return None
    return Ruling(response=request.refused(CLUSTER_DENIED))


def _delete_records(caller: Caller, request: Request) -> Ruling | None:
    assert isinstance(request, DeleteRecordsRequest)
    places = [partition for partition, _ in request.offsets]
    denied = [place for place in places if not caller.on_topic("Delete", place.topic)]
    if not denied:
        return None
    results = tuple(DeleteRecordsResult(place, TOPIC_DENIED, -1) for place in denied)
    if len(denied) == len(places):
        return Ruling(response=DeleteRecordsResponse(results))
    rest = tuple(each for each in request.offsets if each[0] not in denied)
    return Ruling(replace(request, offsets=rest), None, partial(_with_undeleted, results))


def _with_undeleted(denied: tuple[DeleteRecordsResult, ...], response: Response) -> Response:
    assert isinstance(response, DeleteRecordsResponse)
    return DeleteRecordsResponse(response.results + denied)


DATA_CHECKS: Final[dict[type[Request], Check]] = {
    ProduceRequest: _produce,
    FetchRequest: _fetch,
    ListOffsetsRequest: _list_offsets,
    OffsetForLeaderEpochRequest: _leader_epoch,
    GetReplicaLogInfoRequest: of_servers,
    TombstoneOffsetsRequest: of_servers,
    DeleteRecordsRequest: _delete_records,
    AlterReplicaLogDirsRequest: _move_replicas,
    MetadataRequest: _metadata,
}
