"""Rights of requests to the coordinators of groups, and of share groups' fetches.

Source: ``kafka.server.KafkaApis``; KIP-932; KAFKA-18813.
"""

from dataclasses import replace
from functools import partial
from typing import Final

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition
from sim.protocol.messages.base import Request, Response
from sim.protocol.messages.consumer_group import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from sim.protocol.messages.group import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from sim.protocol.messages.group_admin import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
)
from sim.protocol.messages.share import (
    InitializeShareGroupStateRequest,
    ReadShareGroupStateRequest,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareFetchRequest,
    ShareFetchResponse,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    WriteShareGroupStateRequest,
)
from sim.protocol.rights.caller import (
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


def _find_coordinator(caller: Caller, request: Request) -> Ruling | None:
    assert isinstance(request, FindCoordinatorRequest)
    of_group = request.kind == "group"
    if caller.has("Describe", "group" if of_group else "transactional-id", request.key):
        return None
    return Ruling(response=FindCoordinatorResponse(GROUP_DENIED if of_group else ID_DENIED))


def _join(caller: Caller, request: Request) -> Ruling | None:
    assert isinstance(request, JoinGroupRequest)
    return of_group(caller, request.group, JoinGroupResponse(GROUP_DENIED))


def _sync(caller: Caller, request: Request) -> Ruling | None:
    assert isinstance(request, SyncGroupRequest)
    return of_group(caller, request.group, SyncGroupResponse(GROUP_DENIED))


def _heartbeat(caller: Caller, request: Request) -> Ruling | None:
    assert isinstance(request, HeartbeatRequest)
    return of_group(caller, request.group, HeartbeatResponse(GROUP_DENIED))


def _leave(caller: Caller, request: Request) -> Ruling | None:
    assert isinstance(request, LeaveGroupRequest)
    return of_group(caller, request.group, LeaveGroupResponse(GROUP_DENIED))


def _consumer_heartbeat(caller: Caller, request: Request) -> Ruling | None:
    assert isinstance(request, ConsumerGroupHeartbeatRequest)
    if not caller.has("Read", "group", request.group):
        return Ruling(response=ConsumerGroupHeartbeatResponse(GROUP_DENIED))
    if caller.may_name(request.topics):
        return None
    return Ruling(response=ConsumerGroupHeartbeatResponse(TOPIC_DENIED))


def _share_heartbeat(caller: Caller, request: Request) -> Ruling | None:
    assert isinstance(request, ShareGroupHeartbeatRequest)
    if not caller.has("Read", "group", request.group):
        return Ruling(response=ShareGroupHeartbeatResponse(GROUP_DENIED))
    if caller.may_name(request.topics):
        return None
    return Ruling(response=ShareGroupHeartbeatResponse(TOPIC_DENIED))


def _share_fetch(caller: Caller, request: Request) -> Ruling | None:
    assert isinstance(request, ShareFetchRequest)
    return of_group(caller, request.group, ShareFetchResponse(GROUP_DENIED))


def _share_acknowledge(caller: Caller, request: Request) -> Ruling | None:
    assert isinstance(request, ShareAcknowledgeRequest)
    return of_group(caller, request.group, ShareAcknowledgeResponse(GROUP_DENIED))


def _describe_group(caller: Caller, request: Request) -> Ruling | None:
    assert isinstance(request, DescribeGroupsRequest)
    allowed = caller.has("Describe", "group", request.group)
    return None if allowed else Ruling(response=request.refused(GROUP_DENIED))


def _delete_group(caller: Caller, request: Request) -> Ruling | None:
    assert isinstance(request, DeleteGroupsRequest)
    allowed = caller.has("Delete", "group", request.group)
    return None if allowed else Ruling(response=request.refused(GROUP_DENIED))


def _delete_offsets(caller: Caller, request: Request) -> Ruling | None:
    assert isinstance(request, OffsetDeleteRequest)
    if not caller.has("Delete", "group", request.group):
        return Ruling(response=request.refused(GROUP_DENIED))
    denied = [place for place in request.partitions if not caller.on_topic("Read", place.topic)]
    if not denied:
        return None
    results = tuple((place, TOPIC_DENIED) for place in denied)
    if len(denied) == len(request.partitions):
        return Ruling(response=OffsetDeleteResponse(ErrorCode.NONE, results))
    rest = tuple(place for place in request.partitions if place not in denied)
    return Ruling(replace(request, partitions=rest), None, partial(_with_kept, results))


def _with_kept(
    denied: tuple[tuple[TopicPartition, ErrorCode], ...], response: Response
) -> Response:
    assert isinstance(response, OffsetDeleteResponse)
    return OffsetDeleteResponse(response.error, response.results + denied)


def _offset_commit(caller: Caller, request: Request) -> Ruling | None:
    assert isinstance(request, OffsetCommitRequest)
    if not caller.has("Read", "group", request.group):
        return Ruling(response=OffsetCommitResponse(GROUP_DENIED))
    allowed = tuple(each for each in request.offsets if caller.on_topic("Read", each[0].topic))
    if len(allowed) == len(request.offsets):
        return None
    if not allowed:
        return Ruling(response=OffsetCommitResponse(TOPIC_DENIED))
    return Ruling(replace(request, offsets=allowed), None, commit_in_part)


def _offset_fetch(caller: Caller, request: Request) -> Ruling | None:
    assert isinstance(request, OffsetFetchRequest)
    if not caller.has("Describe", "group", request.group):
        return Ruling(response=OffsetFetchResponse(GROUP_DENIED))
    # A client reports unauthorised topics and nothing else, even if it got offsets of others.
    if all_topics(caller, "Describe", request.partitions):
        return None
    return Ruling(response=OffsetFetchResponse(TOPIC_DENIED))


GROUP_CHECKS: Final[dict[type[Request], Check]] = {
    FindCoordinatorRequest: _find_coordinator,
    JoinGroupRequest: _join,
    SyncGroupRequest: _sync,
    HeartbeatRequest: _heartbeat,
    LeaveGroupRequest: _leave,
    ConsumerGroupHeartbeatRequest: _consumer_heartbeat,
    OffsetCommitRequest: _offset_commit,
    OffsetFetchRequest: _offset_fetch,
    DescribeGroupsRequest: _describe_group,
    DeleteGroupsRequest: _delete_group,
    OffsetDeleteRequest: _delete_offsets,
    ShareGroupHeartbeatRequest: _share_heartbeat,
    ShareFetchRequest: _share_fetch,
    ShareAcknowledgeRequest: _share_acknowledge,
    InitializeShareGroupStateRequest: of_servers,
    ReadShareGroupStateRequest: of_servers,
    WriteShareGroupStateRequest: of_servers,
}
