"""Who belongs to a cluster of Raft groups: joining, draining, removed."""

import random

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition
from sim.protocol.controller.members import Members, has_cause
from sim.protocol.controller.partition_balancer import RULES, BalancerConfig, Plan
from sim.protocol.kraft.metadata_snapshot import image_records
from sim.protocol.messages.raft_membership import DecommissionBrokerRequest
from sim.protocol.metadata.image import BrokerRegistration, MetadataImage, PartitionRegistration
from sim.protocol.metadata.records import DRAINING, JOINING, REMOVED
from sim.units import SECOND

EVEN = Plan({}, (), is_even=True)
P = TopicPartition("orders", 0)


def cluster(brokers=3, replicas=(1, 2, 3), fenced=(), **partition):
    image = MetadataImage()
    for broker in range(1, brokers + 1):
        image.brokers[broker] = BrokerRegistration(
            broker, 7, "", "", fenced=broker in fenced, in_controlled_shutdown=False
        )
    image.partitions[P] = PartitionRegistration("id", replicas, replicas, 1, 1, 0, **partition)
    return image


def members(**config):
    return Members(BalancerConfig(**config), random.Random(1).random, RULES)


def replay(image, records):
    for record in records:
        image.replay(image.offset, 0, record)


def test_a_broker_that_comes_is_to_be_given_its_share_unless_there_is_nothing_to_share():
    assert members().joined(MetadataImage(), 1) == ()
    image = cluster()
    assert members().joined(image, 3) == ()
    replay(image, members().joined(image, 4))
    assert image.memberships == {4: JOINING}
    assert has_cause(image)
    replay(image, members().completed_members(image, EVEN._replace(is_even=False)))
    assert image.memberships == {4: JOINING}
    replay(image, members().completed_members(image, EVEN))
    assert image.memberships == {}
    assert not has_cause(image)


def test_a_broker_is_a_member_until_no_partition_has_a_replica_on_it():
    image = cluster(brokers=4, replicas=(2, 3, 4, 1), removing=(1,), adding=(4,))
    decision = members().decommission(image, DecommissionBrokerRequest(1))
    replay(image, decision.records)
    assert decision.response.error is ErrorCode.NONE
    assert image.memberships == {1: DRAINING}
    assert members().decommission(image, DecommissionBrokerRequest(1)).records == ()
    assert members().completed_members(image, EVEN) == ()
    image.partitions[P] = PartitionRegistration("id", (2, 3, 4), (2, 3, 4), 2, 1, 0)
    replay(image, members().completed_members(image, EVEN))
    assert image.memberships == {1: REMOVED}
    assert 1 not in image.brokers
    assert not has_cause(image)


def test_a_stranger_cannot_be_decommissioned():
    response = members().decommission(cluster(), DecommissionBrokerRequest(9)).response
    assert response.error is ErrorCode.BROKER_ID_NOT_REGISTERED


def test_a_snapshot_says_who_comes_and_goes():
    image = MetadataImage()
    replay(image, members().joined(cluster(), 4))
    image.memberships[2] = REMOVED
    again = MetadataImage()
    again.load(1, 1, tuple(image_records(image)))
    assert again.memberships == {4: JOINING, 2: REMOVED}
    assert image.copy().memberships == image.memberships


def test_time_away_is_counted_from_the_last_sign_of_life_and_from_the_take_over_at_the_earliest():
    image = cluster(brokers=4, fenced=(3,))
    made = members(mode="continuous", availability_timeout_us=10 * SECOND)
    made.activated(image, 5 * SECOND)
    assert made.plan(image, 15 * SECOND).moves == {}
    assert made.plan(image, 15 * SECOND + 1).moves == {P: (1, 2, 4)}
    made.note_contact(3, 9 * SECOND)
    assert made.plan(image, 15 * SECOND + 1).moves == {}


def test_the_next_plan_is_due_when_a_fifth_of_the_moves_has_ended():
    image = cluster(replicas=(1, 2, 4, 3), removing=(3,), adding=(4,))
    made = members()
    made.under_way = 0
    assert not made.is_due(image)
    made.under_way = 1
    assert not made.is_due(image)
    made.under_way = 2
    assert made.is_due(image)
