"""Every interleaving within stated bounds: which truncation rules are safe, and how others fail."""

import sys

import pytest

from sim.protocol.broker.truncation.registry import TRUNCATIONS
from tests.explore.brokers import Brokers
from tests.explore.properties import PROPERTIES
from tests.explore.search import search
from tests.explore.world import Bounds, World

LOG_MATCHING = {"log matching": PROPERTIES["log matching"]}
HONEST = {"honest views": PROPERTIES["honest views"]}
LEADER = {"leader completeness": PROPERTIES["leader completeness"]}


def world(rule, forgives=False, joins_at_epoch_start=True, idle=False, **bounds):
    machines = Brokers(TRUNCATIONS[rule], joins_at_epoch_start=joins_at_epoch_start, idle=idle)
    return World(machines, Bounds(**bounds), forgives=forgives)


def told(found):
    """The trace, for whoever reads the log of the tests."""
    sys.stdout.write(f"{found}\n")
    return found.trace


KIP_101_SCENARIO_1 = (
    "broker 1: record 1 is written: appends at offset 0 in epoch 0",
    "broker 1 is asked by 2: fetch at 0 (epoch -1)",
    "broker 2 has the answer of 1: copies offset 0 of epoch 0",
    "broker 1 is asked by 2: fetch at 1 (epoch -1): high watermark → 1",
    "broker 1 is killed",
    "broker 2 is killed",
    "broker 2 starts: cuts its log 1 → 0 (high_watermark, high watermark 0)",
    "the controller fences broker 1",
    "broker 2: learns: leader 2, epoch 1",
)


def test_hw_loses_a_committed_record_to_a_restart_and_an_election_kip101_scenario_1():
    bounds = {"records": 1, "moves": 0, "crashes": 2, "restarts": 1, "unnoticed": True}
    found = search(world("hw", **bounds), LEADER)
    assert told(found) == KIP_101_SCENARIO_1
    for rule in ("kip101", "kip279", "kip320"):
        assert not search(world(rule, **bounds)).trace


HARD_FAILURES = {"records": 2, "moves": 0, "crashes": 1, "losses": 1, "restarts": 2}


def test_hw_leaves_logs_apart_after_hard_failures_kip101_scenario_2():
    found = search(world("hw", forgives=True, **HARD_FAILURES), HONEST)
    trace = told(found)
    assert sum("loses power" in step for step in trace) == 1
    assert not any("cuts its log" in step for step in trace), "there is nothing above it to cut"


@pytest.mark.slow
def test_kip320_counts_only_what_followers_have_with_2_brokers_2_records_1_crash_1_power_loss():
    fixed = search(world("kip320", forgives=True, **HARD_FAILURES), HONEST)
    assert (fixed.trace, fixed.complete) == ((), True), fixed


KAFKA_6361 = (
    "broker 1: record 1 is written: appends at offset 0 in epoch 0",
    "the controller moves the leadership to 2",
    "broker 1: learns: leader 2, epoch 1",
    "broker 2: learns: leader 2, epoch 1",
    "broker 2: record 2 is written: appends at offset 0 in epoch 1",
    "the controller moves the leadership to 1",
    "broker 1: learns: leader 1, epoch 2",
    "broker 2: learns: leader 1, epoch 2",
    "broker 1 is asked by 2: fetch at 0 (epoch -1)",
    "broker 2 has the answer of 1",
    "broker 1 is asked by 2: where epoch 1 ends",
    "broker 2 has the answer of 1: cuts its log 1 → 1 (leader_epoch, high watermark 0)",
    "broker 1 is asked by 2: fetch at 1 (epoch -1): high watermark → 1",
    "broker 2 has the answer of 1: high watermark → 1",
)


def test_kip101_leaves_logs_apart_after_a_fast_failover_kafka_6361():
    bounds = {"records": 2, "moves": 2}
    found = search(world("kip101", **bounds), LOG_MATCHING | LEADER)
    assert told(found) == KAFKA_6361
    assert not search(world("kip279", **bounds), LOG_MATCHING | LEADER).trace


KIP_320_MOTIVE = (
    "broker 1: record 1 is written: appends at offset 0 in epoch 0",
    "the controller moves the leadership to 2",
    "the controller moves the leadership to 1",
    "the controller moves the leadership to 2",
    "broker 1 is asked by 2: fetch at 0 (epoch -1)",
    "broker 2 has the answer of 1: copies offset 0 of epoch 0",
    "broker 2: learns: leader 2, epoch 1",
    "broker 2: learns: leader 1, epoch 2",
    "broker 1 is asked by 2: fetch at 1 (epoch -1): high watermark → 1",
    "broker 2 has the answer of 1",
    "broker 1 is asked by 2: where epoch 1 ends",
    "broker 2 has the answer of 1: cuts its log 1 → 0 (leader_epoch, high watermark 0)",
    "broker 2: learns: leader 2, epoch 3",
)


def test_kip279_loses_a_committed_record_to_a_question_that_no_epoch_fences():
    """Broker 1 answers for epoch 0, not having heard of the two leaders since."""
    bounds = {"records": 2, "moves": 3}
    found = search(world("kip279", **bounds), LEADER)
    assert told(found) == KIP_320_MOTIVE
    assert found.broken.startswith("leader completeness")


def test_kip320_is_safe_with_2_brokers_2_records_and_3_moves_of_the_leadership():
    found = search(world("kip320", records=2, moves=3))
    assert (found.trace, found.complete) == ((), True), found
    assert found.states == 35_437
    assert found.depth == 27


def test_kip320_is_safe_with_2_brokers_1_record_2_crashes_and_2_unnoticed_restarts():
    found = search(world("kip320", moves=0, crashes=2, restarts=2, unnoticed=True))
    assert (found.trace, found.complete) == ((), True), found
    assert found.states == 9_553


def test_kip320_is_safe_with_2_records_and_3_moves_where_fetchers_without_partitions_end():
    """What was asked on a connection that is closed may be read later; its answer is nobody's."""
    found = search(world("kip320", records=2, moves=3, idle=True))
    assert (found.trace, found.complete) == ((), True), found
    assert found.states == 11_155


@pytest.mark.slow
def test_kip320_is_safe_with_2_brokers_2_records_2_crashes_2_unnoticed_restarts_and_1_move():
    found = search(world("kip320", records=2, moves=1, crashes=2, restarts=2, unnoticed=True))
    assert (found.trace, found.complete) == ((), True), found
    assert found.states == 262_731


STANDING = {"min_in_sync": 2, "moves": 0, "crashes": 1, "losses": 1, "restarts": 1}
"""One follower dies, then the leader loses power and comes back."""


def test_without_elr_the_last_replica_standing_takes_what_it_lost_from_all():
    found = search(world("kip320", **STANDING), LEADER)
    trace = told(found)
    assert found.broken.startswith("leader completeness: leader 2 has ()")
    assert any("loses power" in step for step in trace)


def test_elr_survives_1_loss_of_power_with_2_brokers_min_isr_2_1_record_and_1_crash():
    found = search(world("kip320", elr=True, **STANDING))
    assert (found.trace, found.complete) == ((), True), found
    assert found.states == 6_341


def test_2_losses_of_power_are_more_than_elr_with_min_isr_2_promises_to_survive():
    bounds = {"brokers": 3, "in_sync": (1, 2), "min_in_sync": 2, "moves": 0, "elr": True}
    found = search(world("kip320", losses=2, **bounds))
    assert told(found)
    assert found.broken.startswith("kept somewhere")


@pytest.mark.slow
def test_elr_survives_1_loss_of_power_with_3_brokers_min_isr_2_and_1_record():
    bounds = {"brokers": 3, "min_in_sync": 2, "moves": 0, "losses": 1, "restarts": 1}
    found = search(world("kip320", elr=True, **bounds))
    assert (found.trace, found.complete) == ((), True), found
    assert found.states == 95_457


JOINING = {"brokers": 3, "in_sync": (1, 2), "min_in_sync": 2, "moves": 0, "crashes": 2}


def test_joining_at_the_high_watermark_elects_a_replica_without_committed_records_kafka_7128():
    found = search(world("kip320", joins_at_epoch_start=False, **JOINING), LEADER)
    trace = told(found)
    assert found.broken.startswith("leader completeness: leader 3 has ()")
    assert any("for the ISR [2, 3]" in step for step in trace)


@pytest.mark.slow
def test_joining_at_the_epochs_start_elects_no_such_replica_with_3_brokers_1_record_2_crashes():
    fixed = search(world("kip320", **JOINING), LEADER)
    assert (fixed.trace, fixed.complete) == ((), True), fixed


REPEATED_EPOCH = (
    "broker 1 is asked by 2: fetch at 0 (epoch 0)",
    "broker 1: record 1 is written: appends at offset 0 in epoch 0",
    "broker 2 has the answer of 1",
    "broker 1 is asked by 2: fetch at 0 (epoch 0)",
    "broker 2 has the answer of 1: copies offset 0 of epoch 0",
    "the controller is asked by 1 for the ISR [1, 2]",
    "broker 1 has the answer of 3001",
    "broker 1 is asked by 3: fetch at 0 (epoch 0)",
    "broker 1: learns: leader 1, epoch 0",
    "broker 1 is asked by 2: fetch at 1 (epoch 0): high watermark → 1",
    "the controller is asked by 1 for the ISR [1, 2, 3]",
)


def test_metadata_that_repeats_a_partition_epoch_makes_a_leader_forget_whom_it_is_adding():
    """Kafka 4.1 does the same: ``Partition.makeLeader`` takes metadata of an equal epoch.

    The leader has the ISR [1, 2] from the controller's answer and wishes for broker 3; then the
    metadata with [1, 2] arrives and ends the wish on its side only. Its high watermark moves
    without broker 3, which the controller takes in.
    """
    candidates = {"candidate completeness": PROPERTIES["candidate completeness"]}
    bounds = Bounds(brokers=3, in_sync=(1,), records=1, moves=0)
    found = search(World(Brokers(TRUNCATIONS["kip320"]), bounds), candidates)
    assert told(found) == REPEATED_EPOCH
    assert found.broken.startswith("candidate completeness: broker 3 has ()")
    once = World(Brokers(TRUNCATIONS["kip320"], repeats=False), bounds)
    assert not search(once, candidates, states_max=20_000).trace
