"""Requests of a group coordinator, and their refusals."""

from typing import assert_never

from sim.error_codes import ErrorCode
from sim.protocol.messages.base import Response
from sim.protocol.messages.consumer_group import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from sim.protocol.messages.group import (
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
)
from sim.protocol.messages.share import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from sim.protocol.messages.transaction import TxnOffsetCommitRequest, TxnOffsetCommitResponse

GroupRequest = (
    JoinGroupRequest
    | SyncGroupRequest
    | HeartbeatRequest
    | LeaveGroupRequest
    | OffsetCommitRequest
    | OffsetFetchRequest
    | TxnOffsetCommitRequest
    | ConsumerGroupHeartbeatRequest
    | ShareGroupHeartbeatRequest
    | DescribeGroupsRequest
    | DeleteGroupsRequest
    | OffsetDeleteRequest
)
"""Requests that a coordinator answers; FindCoordinator is answered from the metadata."""

GROUP_REQUESTS = (
    JoinGroupRequest,
    SyncGroupRequest,
    HeartbeatRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    TxnOffsetCommitRequest,
    ConsumerGroupHeartbeatRequest,
    ShareGroupHeartbeatRequest,
    DescribeGroupsRequest,
    DeleteGroupsRequest,
    OffsetDeleteRequest,
)
"""The same types, for a broker's routes."""


def refusal(request: GroupRequest, error: ErrorCode) -> Response:
    """Response of that type with only an error."""
    match request:
        case JoinGroupRequest():
            return JoinGroupResponse(error, request.member_id)
        case SyncGroupRequest():
            return SyncGroupResponse(error)
        case HeartbeatRequest():
            return HeartbeatResponse(error)
        case LeaveGroupRequest():
            return LeaveGroupResponse(error)
        case OffsetCommitRequest():
            return OffsetCommitResponse(error)
        case OffsetFetchRequest():
            return OffsetFetchResponse(error)
        case TxnOffsetCommitRequest():
            return TxnOffsetCommitResponse(error)
        case ConsumerGroupHeartbeatRequest():
            return ConsumerGroupHeartbeatResponse(error, request.member_id)
        case ShareGroupHeartbeatRequest():
            return ShareGroupHeartbeatResponse(error, request.member_id)
        case DescribeGroupsRequest() | DeleteGroupsRequest() | OffsetDeleteRequest():
            return request.refused(error)
        case _:
            assert_never(request)
