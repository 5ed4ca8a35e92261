"""The closed table: each request that a broker serves is checked, and an unknown one refused."""

import pytest

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition
from sim.nodes.controller.role import QUORUM_REQUESTS
from sim.protocol.acls import Acl
from sim.protocol.authorization import CHECKS, ApiAuthorizer, AuthorizerConfig
from sim.protocol.broker.replication.replica_manager import REPLICA_REQUESTS
from sim.protocol.broker.share.manager import SHARE_REQUESTS
from sim.protocol.controller.controller import CONTROLLER_REQUESTS
from sim.protocol.coordinator.group.requests import GROUP_REQUESTS
from sim.protocol.coordinator.share.coordinator import SHARE_COORDINATOR_REQUESTS
from sim.protocol.coordinator.transaction.coordinator import TRANSACTION_REQUESTS
from sim.protocol.messages.base import Request
from sim.protocol.messages.consumer_group import ConsumerGroupHeartbeatRequest
from sim.protocol.messages.data import FetchRequest
from sim.protocol.messages.delete_records import (
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsResult,
)
from sim.protocol.messages.group import FindCoordinatorRequest
from sim.protocol.messages.group_admin import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
)
from sim.protocol.messages.leader_epochs import TombstoneOffsetsRequest
from sim.protocol.messages.log_dirs import AlterReplicaLogDirsRequest
from sim.protocol.messages.metadata import InitProducerIdRequest, MetadataRequest
from sim.protocol.messages.share import (
    ReadShareGroupStateRequest,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
    ShareGroupHeartbeatRequest,
)
from sim.protocol.messages.share_records import ShareKey
from sim.protocol.messages.transaction import WriteTxnMarkersRequest
from sim.protocol.rights.caller import ClientIdentity
from sim.scenario.model.acls import TOPICS_CHECKED

SERVED = (
    *REPLICA_REQUESTS, *GROUP_REQUESTS, *TRANSACTION_REQUESTS, *SHARE_REQUESTS,
    *SHARE_COORDINATOR_REQUESTS, MetadataRequest, FindCoordinatorRequest, InitProducerIdRequest,
    TombstoneOffsetsRequest,
)  # fmt: skip
"""Requests that a broker routes, whatever sends them."""

A, B = TopicPartition("a", 0), TopicPartition("b", 0)
TOPIC, GROUP = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.GROUP_AUTHORIZATION_FAILED
CLUSTER = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
LEADS = ("ClusterAction", "cluster", "kafka-cluster")
ALTERS = ("Alter", "cluster", "kafka-cluster")


def ruled(request, *rights, client="c"):
    """Outcome for a client with these rights (operation, type, name), and its denials."""
    api = ApiAuthorizer(AuthorizerConfig({"c": ClientIdentity("User:x", "c")}))
    api.authorizer.update(
        Acl(kind, name, "literal", "User:x", "*", operation, "allow")
        for operation, kind, name in rights
    )
    return api.rule(client, request), api.denials


@pytest.mark.parametrize(
    ("position", "consumer", "share"),
    [("all", TOPIC, TOPIC), ("consumer", TOPIC, None), ("none", None, None)],
)
def test_topics_of_heartbeats_are_checked_since_4_0_and_those_of_share_groups_since_4_1(
    position, consumer, share
):
    heartbeats = (
        ConsumerGroupHeartbeatRequest("g", "m", 0, topics=("a",)),
        ShareGroupHeartbeatRequest("g", "m", 0, topics=("a",)),
    )
    for request, error in zip(heartbeats, (consumer, share), strict=True):
        config = AuthorizerConfig(
            {"c": ClientIdentity("User:x", "c")}, topics_checked=TOPICS_CHECKED[position]
        )
        api = ApiAuthorizer(config)
        api.authorizer.update([Acl("group", "g", "literal", "User:x", "*", "Read", "allow")])
        ruling = api.rule("c", request)
        assert (None if ruling.response is None else ruling.response.error) == error
        assert len(api.denials) == (error is not None)


def test_each_request_that_a_broker_serves_is_in_the_table_and_no_other():
    assert sorted(each.__name__ for each in SERVED) == sorted(each.__name__ for each in CHECKS)


class NovelRequest(Request):
    """A request that a later change brings."""


@pytest.mark.parametrize("kind", [NovelRequest, *CONTROLLER_REQUESTS, *QUORUM_REQUESTS])
def test_a_request_that_is_not_in_the_table_closes_the_connection_of_a_client(kind):
    request = object.__new__(kind)
    got, denials = ruled(request)
    assert (got.request, got.response, got.closes) == (None, None, True)
    assert [each.operation for each in denials] == ["ClusterAction"]
    assert ruled(request, client="broker-1")[0].request is request, "servers are super users"


JOINS = ("Read", "group", "g")
GROUPS = [
    (DescribeGroupsRequest("g"), ("Describe", "group", "g")),
    (DeleteGroupsRequest("g"), ("Delete", "group", "g")),
    (OffsetDeleteRequest("g", ()), ("Delete", "group", "g")),
    (ShareGroupHeartbeatRequest("g", "m", 0), JOINS),
    (ShareFetchRequest("g", "m", 0, 0, 0, 0), JOINS),
    (ShareAcknowledgeRequest("g", "m", 0), JOINS),
]


@pytest.mark.parametrize(("request_", "right"), GROUPS)
def test_a_request_to_a_groups_coordinator_needs_the_right_on_the_group(request_, right):
    assert ruled(request_, right)[0].request is request_
    without, (denial,) = ruled(request_)
    assert without.response.error is GROUP
    assert (denial.operation, denial.resource_type, denial.error) == (*right[:2], GROUP.name)


def test_a_share_heartbeat_with_a_topic_that_its_member_may_not_see_is_refused():
    request = ShareGroupHeartbeatRequest("g", "m", 0, ("a", "b"))
    sees = ("Describe", "topic", "a"), ("Describe", "topic", "b")
    assert ruled(request, JOINS, sees[0])[0].response.error is TOPIC
    assert ruled(request, JOINS, *sees)[0].request is request


def test_offsets_of_topics_that_the_client_may_not_read_are_kept():
    deletes = ("Delete", "group", "g")
    request = OffsetDeleteRequest("g", (A, B))
    part, _ = ruled(request, deletes, ("Read", "topic", "a"))
    assert part.request == OffsetDeleteRequest("g", (A,))
    done = OffsetDeleteResponse(ErrorCode.NONE, ((A, ErrorCode.NONE),))
    assert part.merge(done).results == ((A, ErrorCode.NONE), (B, TOPIC))
    nothing, _ = ruled(request, deletes)
    assert nothing.response == OffsetDeleteResponse(ErrorCode.NONE, ((A, TOPIC), (B, TOPIC)))


def test_records_of_topics_that_the_client_may_not_delete_are_kept():
    request = DeleteRecordsRequest(((A, 5), (B, 7)), 1)
    part, _ = ruled(request, ("Delete", "topic", "b"))
    assert part.request == DeleteRecordsRequest(((B, 7),), 1)
    kept = DeleteRecordsResult(A, TOPIC, -1)
    assert part.merge(DeleteRecordsResponse(())).results == (kept,)
    assert ruled(request)[0].response.results[0] == kept


def test_requests_of_servers_need_a_right_on_the_cluster():
    follower = FetchRequest.__new__(FetchRequest)
    object.__setattr__(follower, "replica_id", 2)
    read = ReadShareGroupStateRequest(ShareKey("g", "t", 0), 1)
    markers = object.__new__(WriteTxnMarkersRequest)
    for request in (follower, read, markers):
        assert ruled(request)[0].closes
        assert ruled(request, LEADS)[0].request is request
    assert ruled(markers, ALTERS)[0].request is markers
    moves = AlterReplicaLogDirsRequest(((A, "d2"),))
    assert ruled(moves)[0].response.errors == ((A, CLUSTER),)
    assert ruled(moves, ALTERS)[0].request is moves
