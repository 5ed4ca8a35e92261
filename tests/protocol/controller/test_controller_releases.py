"""The controller of releases that finalize no ``metadata.version``: 2.8 to 3.2."""

import pytest

from sim.error_codes import ErrorCode as E
from sim.ids import NO_LEADER, SnapshotId
from sim.protocol.kraft.metadata_snapshot import image_records
from sim.protocol.kraft.types import LeadershipChanged, SnapshotLoaded
from sim.protocol.messages.admin import (
    AlterPartitionReassignmentsRequest,
    CreatePartitionsRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
)
from sim.protocol.metadata import records as mr
from sim.protocol.metadata.image import MetadataImage
from sim.protocol.metadata.versions import FEATURE, finalized, implied
from tests.protocol.controller.controller_kit import ORDERS, SECOND, Desk

V2_8, V3_0, V3_1, V3_2 = range(4)
"""Levels that these releases imply."""

UNCLEAN = (("unclean.leader.election.enable", "true"),)


def early(level, **config):
    """A controller of such a release, with its brokers."""
    plain = {"elr": False, "group_version": 0, "transaction_version": 0, "supported": ()}
    return Desk(**plain | {"metadata_version": level} | config)


def unclean_of(desk):
    return [row.row[-1] for row in desk.facts if row.table == "partition_changes"]


@pytest.mark.parametrize("level", [V2_8, V3_0, V3_1, V3_2])
def test_a_cluster_before_3_3_begins_with_no_record_at_all(level):
    desk = early(level, brokers=0)
    assert desk.controller.committed.offset == 1  # the leader's own
    assert early(7, brokers=0).controller.committed.offset == 2


def test_a_level_that_a_release_implies_is_never_written_and_survives_a_snapshot():
    desk = early(V3_1)
    desk.create()
    image = desk.controller.committed
    records = tuple(image_records(image, ()))
    assert not [r for r in records if isinstance(r, mr.FeatureLevelRecord)]
    assert (finalized(image.features), implied(image.features)) == ({}, {FEATURE: V3_1})
    desk.feed(LeadershipChanged(2, 3002, is_leader=False, log_end_offset=image.offset))
    desk.feed(SnapshotLoaded(SnapshotId(image.offset, 2), records))
    assert desk.controller.committed.features == {FEATURE: V3_1}
    assert desk.controller.committed.brokers.keys() == {1, 2, 3}


def test_a_cluster_that_finalizes_a_level_implies_none():
    desk = early(7)
    assert finalized(desk.controller.image.features) == {FEATURE: 7}
    assert (implied({FEATURE: 7}), implied({})) == ({}, {})


def test_cluster_wide_settings_are_written_once_though_no_feature_is():
    desk = early(V3_2, brokers=0, cluster_configs=(("min.insync.replicas", "2"),))
    assert desk.controller.committed.cluster_configs == {"min.insync.replicas": "2"}
    end = desk.controller.committed.offset
    desk.feed(LeadershipChanged(2, 3002, is_leader=False, log_end_offset=end))
    desk.feed(LeadershipChanged(3, 3001, is_leader=True, log_end_offset=end))
    assert desk.controller.committed.offset == end


# -- elections ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("level", "noted"), [(V3_0, False), (V3_1, False), (V3_2, True)])
def test_an_unclean_election_is_noted_with_its_partition_since_3_2_and_is_traced_in_all(
    level, noted
):
    """KIP-704."""
    desk = early(level)
    desk.create(assignment=((1, 2),), configs=UNCLEAN)
    desk.pass_time(11 * SECOND, alive=(2,))
    desk.beat(2, want_fence=True)
    assert desk.state().leader == NO_LEADER
    desk.join(1, incarnation="b")
    assert (desk.state().leader, desk.state().in_sync) == (1, (1,))
    assert desk.state().recovering is noted
    assert unclean_of(desk)[-1] is True
    assert unclean_of(desk).count(True) == 1


def test_2_8_elects_no_unclean_leader_whatever_the_setting_says():
    desk = early(V2_8)
    desk.create(assignment=((1, 2),), configs=UNCLEAN)
    desk.pass_time(11 * SECOND, alive=(2,))
    desk.beat(2, want_fence=True)
    desk.join(1, incarnation="b")
    desk.pass_time(700 * SECOND, alive=(1,))
    assert desk.state().leader == NO_LEADER
    assert True not in unclean_of(desk)


def test_a_clean_election_is_not_taken_for_an_unclean_one():
    desk = early(V3_0)
    desk.create(assignment=((1, 2),))
    desk.pass_time(11 * SECOND, alive=(2,))
    assert (desk.state().leader, desk.state().in_sync) == (2, (2,))
    assert True not in unclean_of(desk)


def test_planted_an_image_that_forgets_what_its_release_implies_is_found():
    """Without the level a controller of 3.0 would note recoveries as today's does."""
    desk = early(V3_0)
    desk.controller.image.features.clear()
    desk.create(assignment=((1, 2),), configs=UNCLEAN)
    desk.pass_time(11 * SECOND, alive=(2,))
    desk.beat(2, want_fence=True)
    desk.join(1, incarnation="b")
    assert desk.state().recovering


# -- brokers and administrators -------------------------------------------------------------------


@pytest.mark.parametrize("since_3_3", [True, False])
def test_a_broker_is_unfenced_when_it_has_its_registration_or_before_3_3_all_that_is_committed(
    since_3_3,
):
    """KAFKA-13959: while records come faster than its heartbeats, it stays fenced."""
    desk = early(V3_2, brokers=2, unfences_at_registration=since_3_3)
    desk.register(3)
    registered = desk.controller.image.brokers[3].registered_at
    desk.create(assignment=((1, 2),))
    answer = desk.beat(3, offset=registered)
    assert (answer.is_caught_up, answer.is_fenced) == (since_3_3, not since_3_3)
    assert desk.beat(3, offset=registered - 1).is_caught_up is False
    answer = desk.beat(3)
    assert (answer.is_caught_up, answer.is_fenced) == (True, False)


def test_what_is_not_committed_yet_is_not_needed_to_be_unfenced():
    desk = early(V3_2, brokers=2, unfences_at_registration=False)
    desk.register(3)
    last = desk.controller.committed.offset - 1
    desk.commits = False
    desk.create(assignment=((1, 2),))
    assert desk.controller.image.offset - 1 > last == desk.controller.committed.offset - 1
    desk.beat(3, offset=last)
    assert not desk.controller.image.brokers[3].fenced


@pytest.mark.parametrize("knows", [True, False])
def test_2_8_answers_what_moves_or_adds_partitions_with_unsupported_version(knows):
    desk = early(V2_8, knows_moves=knows)
    desk.create(assignment=((1, 2),))
    before = desk.controller.image.offset
    requests = [
        CreatePartitionsRequest("orders", 2),
        AlterPartitionReassignmentsRequest(((ORDERS, (2, 3)),)),
        ElectLeadersRequest("preferred", (ORDERS,)),
    ]
    found = [[error for _, error in desk.ask(each).named_errors()] for each in requests]
    assert all(errors for errors in found)
    assert all((errors == [E.UNSUPPORTED_VERSION]) is not knows for errors in found)
    assert (desk.controller.image.offset > before) is knows
    change = IncrementalAlterConfigsRequest("orders", (("retention.ms", "5"),))
    assert [error for _, error in desk.ask(change).named_errors()] == [E.NONE]


def test_a_new_image_is_that_of_today():
    assert MetadataImage().features == {}
