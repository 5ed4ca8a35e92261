"""What an administrator may ask: deletion, more partitions, settings, elections."""

import pytest

from sim.error_codes import ErrorCode as E
from sim.ids import NO_LEADER, TopicPartition
from sim.protocol.controller.controller import CONTROLLER_REQUESTS
from sim.protocol.controller.no_ops import is_no_op
from sim.protocol.events import RequestReceived
from sim.protocol.kraft.types import LeadershipChanged
from sim.protocol.messages.admin import (
    AlterPartitionReassignmentsRequest,
    CreatePartitionsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
)
from sim.protocol.messages.base import Response
from sim.protocol.messages.group import HeartbeatResponse
from sim.protocol.messages.raft_groups import RaftLeadersRequest
from sim.protocol.messages.raft_membership import DecommissionBrokerRequest
from tests.protocol.controller.controller_kit import ORDERS, SECOND, Desk
from tests.protocol.messages.filled import ADMIN, FILLED

ORDERS_1 = TopicPartition("orders", 1)


def configure(desk, topic, **changes):
    pairs = tuple((name.replace("_", "."), value) for name, value in changes.items())
    return desk.ask(IncrementalAlterConfigsRequest(topic, pairs)).error


def elect(desk, kind, *partitions):
    return dict(desk.ask(ElectLeadersRequest(kind, partitions)).errors)


def test_a_deleted_topic_is_gone_with_its_partitions_and_settings_and_its_end_is_told():
    desk = Desk()
    desk.create()
    topic_id = desk.controller.image.topic_ids["orders"]
    answer = desk.ask(DeleteTopicsRequest(("orders", "nobody")))
    assert answer.errors == (("orders", E.NONE), ("nobody", E.UNKNOWN_TOPIC_OR_PARTITION))
    image = desk.controller.image
    assert "orders" not in image.topic_ids
    assert ORDERS not in image.partitions
    assert "orders" not in image.topic_configs
    told = [row.row for row in desk.facts if row.table == "topic_deletions"]
    assert told == [(3001, "orders", topic_id)]


def test_a_topic_made_anew_has_another_id():
    desk = Desk()
    desk.create()
    before = desk.controller.image.topic_ids["orders"]
    desk.ask(DeleteTopicsRequest(("orders",)))
    desk.create()
    assert desk.controller.image.topic_ids["orders"] != before
    assert desk.state().leader_epoch == 0


def test_deletion_can_be_forbidden():
    desk = Desk(delete_topics=False)
    desk.create()
    answer = desk.ask(DeleteTopicsRequest(("orders",)))
    assert answer.errors == (("orders", E.TOPIC_DELETION_DISABLED),)
    assert ORDERS in desk.controller.image.partitions


def test_a_topic_grows_with_its_own_replication_factor_and_cannot_shrink():
    desk = Desk()
    desk.create()
    assert desk.ask(CreatePartitionsRequest("orders", 3)).error is E.NONE
    image = desk.controller.image
    assert image.partition_counts["orders"] == 3
    assert len(image.partitions[ORDERS_1].replicas) == 3
    assert image.partitions[ORDERS_1].leader != NO_LEADER
    assert desk.ask(CreatePartitionsRequest("orders", 3)).error is E.INVALID_PARTITIONS
    assert desk.ask(CreatePartitionsRequest("orders", 2)).error is E.INVALID_PARTITIONS
    unknown = desk.ask(CreatePartitionsRequest("nobody", 2))
    assert unknown.error is E.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("assignment", [((1, 2),), ((1, 2, 3), (1, 2, 3))])
def test_replicas_of_new_partitions_must_fit_the_topic(assignment):
    desk = Desk()
    desk.create()
    answer = desk.ask(CreatePartitionsRequest("orders", 2, assignment))
    assert answer.error is E.INVALID_REPLICA_ASSIGNMENT


def test_settings_change_and_can_be_forgotten():
    desk = Desk()
    desk.create()
    assert configure(desk, "orders", retention_ms="1000", segment_ms="5") is E.NONE
    assert configure(desk, "orders", segment_ms=None) is E.NONE
    configs = desk.controller.image.topic_configs["orders"]
    assert configs == {"min.insync.replicas": "2", "retention.ms": "1000"}
    assert configure(desk, "nobody", retention_ms="1") is E.UNKNOWN_TOPIC_OR_PARTITION


def test_what_is_so_already_is_answered_and_makes_no_record():
    """KAFKA-14136: a topic's setting that stays as it is is not written; nor is the same place."""
    desk = Desk()
    desk.create()
    end = desk.controller.image.offset
    same = IncrementalAlterConfigsRequest("orders", (("min.insync.replicas", "2"),))
    stays = AlterPartitionReassignmentsRequest(((ORDERS, (1, 2, 3)),))
    assert is_no_op(desk.controller.image, same)
    assert is_no_op(desk.controller.image, stays)
    assert desk.ask(same).error is E.NONE
    assert desk.ask(stays).errors == ((ORDERS, E.NONE),)
    assert desk.controller.image.offset == end
    other = IncrementalAlterConfigsRequest("orders", (("min.insync.replicas", "1"),))
    moves = AlterPartitionReassignmentsRequest(((ORDERS, (2, 1, 3)),))
    assert not is_no_op(desk.controller.image, other)
    assert not is_no_op(desk.controller.image, moves)
    desk.ask(other)
    desk.ask(moves)
    assert desk.controller.image.offset > end


def test_the_same_minimum_isr_leaves_the_eligible_leaders():
    desk = Desk()
    desk.create()
    for seconds in range(2, 14, 2):
        desk.pass_time(seconds * SECOND, alive=(1,))
    before = desk.state().eligible
    configure(desk, "orders", min_insync_replicas="2")
    assert desk.state().eligible == before != ()


def test_a_write_to_the_minimum_isr_clears_the_eligible_leaders_of_that_topic_alone():
    desk = Desk()
    desk.create()
    desk.create("other")
    for seconds in range(2, 14, 2):
        desk.pass_time(seconds * SECOND, alive=(1,))
    others = TopicPartition("other", 0)
    assert sorted(desk.state().eligible) == sorted(desk.state(others).eligible) != []
    configure(desk, "orders", min_insync_replicas="1")
    assert desk.state().eligible == ()
    assert desk.state(others).eligible != ()


def test_another_setting_leaves_the_eligible_leaders():
    desk = Desk()
    desk.create()
    for seconds in range(2, 14, 2):
        desk.pass_time(seconds * SECOND, alive=(1,))
    before = desk.state().eligible
    configure(desk, "orders", retention_ms="1000")
    assert desk.state().eligible == before != ()


def test_a_preferred_leader_can_be_asked_for():
    desk = Desk()
    desk.create()
    assert elect(desk, "preferred", ORDERS) == {ORDERS: E.ELECTION_NOT_NEEDED}
    desk.ask(AlterPartitionReassignmentsRequest(((ORDERS, (2, 1, 3)),)))
    assert desk.state().leader == 1
    assert elect(desk, "preferred", ORDERS) == {ORDERS: E.NONE}
    assert (desk.state().leader, desk.state().leader_epoch) == (2, 1)
    assert elect(desk, "preferred") == {}, "of all partitions, none needs one"


def test_an_unclean_election_that_is_asked_for_needs_no_leave():
    desk = Desk()
    desk.create(configs=(("min.insync.replicas", "1"), ("unclean.leader.election.enable", "false")))
    for seconds in range(2, 14, 2):
        desk.pass_time(seconds * SECOND, alive=(1,))
    for seconds in range(14, 28, 2):
        desk.pass_time(seconds * SECOND)
    desk.join(2, incarnation="b")
    assert desk.state().leader == NO_LEADER
    assert elect(desk, "unclean", ORDERS) == {ORDERS: E.NONE}
    assert (desk.state().leader, desk.state().recovering) == (2, True)
    assert elect(desk, "unclean", ORDERS) == {ORDERS: E.ELECTION_NOT_NEEDED}


def test_nobody_to_elect_is_said():
    desk = Desk()
    desk.create()
    for seconds in range(2, 28, 2):
        desk.pass_time(seconds * SECOND)
    assert elect(desk, "unclean", ORDERS) == {ORDERS: E.ELIGIBLE_LEADERS_NOT_AVAILABLE}
    assert elect(desk, "unclean", ORDERS_1) == {ORDERS_1: E.UNKNOWN_TOPIC_OR_PARTITION}


ASKED = [fill(1) for fill, _ in FILLED if isinstance(fill(1), CONTROLLER_REQUESTS)]


def test_a_standby_refuses_every_request():
    desk = Desk()
    desk.create()
    standby = Desk(brokers=0).controller
    end = standby.image.offset
    standby.handle(LeadershipChanged(2, 3002, is_leader=False, log_end_offset=end), 0)
    for request in (*ASKED, RaftLeadersRequest(1, 1, ()), DecommissionBrokerRequest(1)):
        (reply,) = standby.handle(RequestReceived(1, "admin", request), 0)
        answer = reply.response
        assert type(answer).__name__ == type(request).__name__.replace("Request", "Response")
        error = answer.error if hasattr(answer, "error") else answer.errors[0][1]
        assert error is E.NOT_CONTROLLER
    assert len(ASKED) + 2 == len(CONTROLLER_REQUESTS)


def test_every_response_to_an_administrator_names_its_errors():
    answers = [fill(1) for fill, _ in ADMIN if isinstance(fill(1), Response)]
    assert [[error for _, error in a.named_errors()] for a in answers] == [[E.NONE]] * len(answers)
    with pytest.raises(AssertionError, match="not a response to an administrator: HeartbeatRes"):
        HeartbeatResponse(E.NONE).named_errors()


def test_settings_of_a_group_are_records_of_their_own_kind_and_touch_nothing_else():
    desk = Desk()
    desk.create()
    limit = (("share.delivery.count.limit", "3"), ("min.insync.replicas", "1"))
    request = IncrementalAlterConfigsRequest("", limit, group="work")
    assert desk.ask(request).error is E.NONE
    image = desk.controller.image
    assert image.group_configs == {"work": dict(limit)}
    assert not image.cluster_configs.get("share.delivery.count.limit")
    assert is_no_op(image, request)
    assert not is_no_op(image, IncrementalAlterConfigsRequest("", limit, group="other"))
    gone = tuple((name, None) for name, _ in limit)
    assert desk.ask(IncrementalAlterConfigsRequest("", gone, group="work")).error is E.NONE
    assert desk.controller.image.group_configs == {}
