"""The limits of the invariants: what each of them excuses, says that it excuses, and does not."""

import pytest

from sim.checking.chains import _PRUNE_AT
from sim.errors import InvariantBroken


def test_an_unclean_election_suspends_completeness_of_its_partition_and_says_so(facts):
    facts.change(1, 0, 0)
    facts.append(1, 10)
    facts.watermark(10)
    facts.change(2, 1, 1, "2", unclean=True)
    facts.lead(2, 1)
    facts.truncate(1, 0)
    facts.change(2, 1, 2, "2,3")
    for name in ("leader-complete", "in-sync-complete", "nothing-committed-truncated"):
        reasons = facts.report(name).suspended
        assert reasons
        assert all("unclean election" in reason for reason in reasons)


@pytest.mark.parametrize("reason", ["recovery", "unrecovered", "wiped", "overwritten"])
def test_lost_bytes_below_the_high_watermark_suspend_completeness(facts, reason):
    facts.replicate(10)
    facts.watermark(10)
    facts.truncate(2, 4, reason=reason)
    facts.lead(2, 1)
    assert facts.report("leader-complete").suspended == {
        "broker-2 lost bytes below the high watermark, seen at 0.005000 s": 1
    }


def test_what_a_misdirected_write_left_counts_as_the_log_s_end_but_as_nobody_s_records(facts):
    facts.replicate(7)
    facts.watermark(7)
    facts.truncate(2, 0, reason="overwritten")
    facts.recover(2, 9)
    assert facts.watch.observer.partition("orders", 0).replicas[2].log_end == 9
    facts.truncate(2, 0)  # and to give it up is no loss of what was committed
    assert facts.report("nothing-committed-truncated").suspended


def test_lost_bytes_above_the_high_watermark_suspend_nothing(facts):
    facts.replicate(10)
    facts.watermark(4)
    facts.truncate(2, 5, reason="recovery")
    facts.lead(2, 1)
    assert facts.checked("leader-complete") == 1
    with pytest.raises(InvariantBroken, match="leader-complete"):
        facts.lead(3, 2, end=3)


def lost_before_it_was_committed(facts):
    """Broker-2 had ten records and has five: its leader does not know."""
    facts.change(1, 0, 0)
    facts.replicate(10)
    facts.watermark(5)
    facts.truncate(2, 5, reason="recovery")


def test_what_a_leader_commits_by_records_that_were_lost_meanwhile_is_excused(facts):
    lost_before_it_was_committed(facts)
    facts.watermark(8)
    facts.change(1, 0, 1, "1,3", eligible="2")
    assert facts.report("in-sync-complete").suspended == {
        "broker-2 lost bytes below the high watermark, seen at 0.006000 s": 1
    }


def test_what_the_lost_records_never_reached_is_not(facts):
    """The limit: nobody has ever said that broker-2 has more than ten."""
    lost_before_it_was_committed(facts)
    facts.append(1, 5)
    facts.append(3, 5)
    facts.watermark(12)
    with pytest.raises(InvariantBroken, match="in-sync-complete"):
        facts.change(1, 0, 1, "1,2,3")


def test_nor_what_the_replica_has_again(facts):
    lost_before_it_was_committed(facts)
    facts.append(2, 5, base=5)
    facts.watermark(8)
    facts.change(1, 0, 1, "1,2,3")
    assert facts.report("in-sync-complete").suspended == {}


def test_a_leader_that_hears_late_of_its_epoch_needs_only_what_was_committed_before_it(facts):
    facts.replicate(10)
    facts.watermark(10)
    facts.lead(2, 2)
    facts.append(2, 5, epoch=2)
    facts.watermark(15, broker=2, epoch=2)
    facts.lead(3, 1)
    with pytest.raises(InvariantBroken, match="leader-complete"):
        facts.lead(3, 3)


def test_lost_bytes_of_one_partition_excuse_no_other_one(facts):
    facts.replicate(10, partition=1)
    facts.watermark(10, partition=1)
    facts.truncate(2, 0, partition=1, reason="wiped")
    facts.replicate(10)
    facts.watermark(10)
    with pytest.raises(InvariantBroken, match="leader-complete"):
        facts.lead(2, 1, end=9)


def test_a_replica_may_append_again_what_it_truncated_but_only_there(facts):
    facts.append(1, 10)
    facts.append(1, 10)
    facts.truncate(1, 10)
    facts.append(1, 10)
    facts.truncate(1, 10)
    with pytest.raises(InvariantBroken, match="offsets-contiguous"):
        facts.append(1, 10, base=20)


def test_another_process_or_epoch_may_start_with_a_lower_high_watermark(facts):
    facts.append(1, 10)
    facts.watermark(8)
    facts.watermark(5, epoch=1)
    facts.recover(1, 10)
    facts.watermark(3, epoch=1)
    assert facts.checked("high-watermark-monotonic") == 3


def test_a_restarted_broker_may_apply_epochs_from_the_beginning(facts):
    facts.lead(2, 5, role="follower")
    facts.recover(2, 0)
    facts.lead(2, 1, role="follower")
    assert facts.checked("applied-epochs-grow") == 2


def test_a_process_with_nothing_to_recover_may_apply_epochs_from_the_beginning(facts):
    """Its disk is new, or its log empty; its metadata may begin with an older snapshot."""
    facts.lead(2, 5, role="follower", partition_epoch=3)
    facts.lead(3, 5, role="follower", partition_epoch=3)
    facts.node("broker-2", "started")
    facts.lead(2, 5, role="follower", partition_epoch=0)
    assert facts.checked("applied-epochs-grow") == 3
    with pytest.raises(InvariantBroken, match="applied-epochs-grow"):
        facts.lead(3, 5, role="follower", partition_epoch=0)


def test_a_follower_watermark_of_an_unknown_epoch_is_counted_as_not_held(facts):
    facts.append(2, 10)
    facts.follower_watermark(5, epoch=3)
    (reason,) = facts.report("follower-watermark-behind-leader").suspended
    assert "does not have" in reason


def test_a_broker_fenced_in_the_same_instant_is_not_held_against_the_isr(facts):
    facts.broker_state(2, "registered", 5)
    facts.broker_state(2, "unfenced", 5)
    facts.broker_state(2, "fenced", 5, t=50_000)
    facts.change(1, 0, 0, "1,2", t=50_000)
    facts.change(1, 0, 1, "1", t=60_000)
    facts.change(2, 1, 2, "2", t=70_000)
    facts.broker_state(2, "unfenced", 5, t=70_000)
    facts.change(2, 1, 3, "1,2", t=80_000)
    facts.change(2, 1, 4, "2", t=90_000)
    assert facts.checked("fenced-are-not-in-sync") == 5


def test_the_last_member_of_a_leaderless_partition_may_be_fenced(facts):
    facts.broker_state(2, "registered", 5)
    facts.broker_state(2, "fenced", 5)
    facts.change(-1, 0, 0, "2")
    facts.change(-1, 0, 1, "2")
    facts.change(2, 1, 2, "2")
    with pytest.raises(InvariantBroken, match="fenced-are-not-in-sync"):
        facts.change(2, 1, 3, "2")


def test_a_consumer_may_go_back_after_a_new_assignment_a_restart_or_a_loss(facts):
    facts.replicate(20)
    facts.watermark(20)
    facts.read(0, 9)
    facts.assign("c-0", 2, "orders-0")
    facts.read(5, 9)
    facts.node("c-0", "started")
    facts.read(0, 9)
    facts.truncate(2, 3, reason="wiped")
    facts.read(3, 9)
    assert facts.checked("reads-advance") == 0
    assert len(facts.report("reads-advance").suspended) == 1


def test_an_assignment_of_one_consumer_does_not_free_another_one(facts):
    facts.append(1, 20)
    facts.watermark(20)
    facts.read(0, 9)
    facts.assign("c-1", 2, "orders-0")
    with pytest.raises(InvariantBroken, match="reads-advance"):
        facts.read(5, 9)


def test_the_next_generation_may_give_a_partition_to_another_member(facts):
    facts.assign("c-0", 3, "orders-0")
    facts.assign("c-1", 4, "orders-0")
    facts.assign("c-0", 3, "orders-0")
    facts.assign("c-1", 5, "")
    assert facts.checked("assignments-disjoint") == 3


def test_a_group_whose_records_were_lost_counts_its_generations_anew(facts):
    facts.append(1, 5, topic="__consumer_offsets")
    facts.watermark(5, topic="__consumer_offsets")
    facts.assign("c-0", 1, "orders-0")
    facts.group(0, state="Empty", reason="created")
    with pytest.raises(InvariantBroken, match="assignments-disjoint"):
        facts.assign("c-1", 1, "orders-0")
    facts.truncate(1, 0, topic="__consumer_offsets", reason="recovery")
    facts.group(0, state="Empty", reason="created")
    facts.assign("c-1", 1, "orders-0")
    assert len(facts.report("assignments-disjoint").suspended) == 1


def test_a_commit_may_be_answered_while_the_next_generation_begins(facts):
    facts.group(3)
    facts.group(4)
    facts.commit(3)
    facts.commit(2, error="ILLEGAL_GENERATION")
    facts.commit(-1)
    assert facts.checked("commits-are-current") == 1


def test_a_coordinator_may_fall_back_to_a_generation_that_was_written(make_facts):
    facts = make_facts()
    facts.group(3)
    facts.group(4)
    facts.row("groups", 2, "billing", "Stable", 3, 2, "loaded")
    facts.commit(3, t=90_000_000)
    facts.row("groups", 2, "billing", "Dead", 3, 0, "deleted")
    facts.commit(3, t=120_000_000)
    with pytest.raises(InvariantBroken, match="commits-are-current"):
        facts.commit(3, t=120_001_001 + 30_000_000)


def test_a_process_that_registers_again_keeps_its_epoch(facts):
    facts.broker_state(1, "registered", 50)
    facts.broker_state(1, "registered", 50)
    facts.broker_state(1, "unfenced", 50)
    assert facts.checked("broker-epochs-grow") == 3


def test_a_coordinator_may_take_over_from_one_whose_generation_was_never_committed(facts):
    facts.group(3, reason="assignment committed")
    facts.group(4, reason="member left")
    facts.group(3, reason="loaded")
    assert facts.checked("generations-are-kept") == 1


@pytest.mark.parametrize("ended", [False, True])
def test_a_broker_that_was_frozen_may_load_what_it_has_in_an_epoch_that_has_ended(facts, ended):
    """It applies the metadata that it missed in order; seed 388 of the tasks of KIP-848."""
    facts.group(3, reason="assignment committed")
    facts.change(1, 1, 1, topic="__consumer_offsets")
    facts.row("leadership", 1, "__consumer_offsets", 0, "leader", 1, 1, 1, "1,2,3", 0, 0)
    if ended:
        facts.change(2, 2, 2, topic="__consumer_offsets")
        facts.group(2, reason="loaded")
        assert len(facts.report("generations-are-kept").suspended) == 1
    else:
        with pytest.raises(InvariantBroken, match="generations-are-kept"):
            facts.group(2, reason="loaded")


def test_a_group_whose_records_were_lost_may_be_loaded_in_an_earlier_generation(facts):
    facts.append(1, 5, topic="__consumer_offsets")
    facts.watermark(5, topic="__consumer_offsets")
    facts.group(4, reason="assignment committed")
    facts.truncate(1, 0, topic="__consumer_offsets", reason="recovery")
    facts.group(3, reason="loaded")
    assert facts.checked("generations-are-kept") == 0
    assert len(facts.report("generations-are-kept").suspended) == 1


def test_after_a_truncation_a_producer_goes_on_where_the_log_ends(facts):
    facts.pay(0)
    facts.pay(4, sequence=4)
    facts.row("truncations", 1, "pay", 0, 8, 4, 4, 0, "diverging_epoch")
    facts.pay(4, n=2, sequence=4)
    facts.pay(6, sequence=6)
    assert facts.checked("sequences-contiguous") == 3


def test_sequence_numbers_begin_again_after_the_largest(facts):
    facts.pay(0, n=1, sequence=2**31 - 2)
    facts.pay(1, n=2, sequence=2**31 - 1)
    facts.pay(3, sequence=1)
    assert facts.checked("sequences-contiguous") == 2


def test_a_marker_leaves_the_numbers_of_its_epoch_and_begins_those_of_the_next(facts):
    for epoch, sequence in ((0, 4), (1, 0)):
        facts.coordinate("Ongoing")
        facts.pay(0, sequence=0)
        facts.coordinate("PrepareCommit", epoch=epoch)
        facts.mark(4, epoch=epoch)
        facts.pay(5, epoch=epoch, sequence=sequence)
        facts.row("truncations", 1, "pay", 0, 9, 0, 0, 0, "diverging_epoch")
    assert facts.checked("sequences-contiguous") == 2


def test_a_deposed_leader_may_still_commit_what_its_successor_has(facts):
    facts.replicate(10)
    facts.watermark(5)
    facts.lead(2, 1, hw=5)
    facts.watermark(10)
    assert facts.checked("deposed-leaders-stay-behind") == 1


def test_a_topic_created_again_under_its_name_starts_from_nothing(facts):
    facts.change(1, 5, 7)
    facts.replicate(10, epoch=5)
    facts.watermark(10, epoch=5)
    facts.change(2, 0, 0)
    facts.ends.clear()
    facts.replicate(10, epoch=0, leader=2)
    facts.lead(2, 0)
    assert facts.checked("offsets-contiguous") == 6


def test_batches_that_every_replica_has_are_forgotten_and_a_wiped_replica_is_told_so(facts):
    facts.change(1, 0, 0)
    for _ in range(_PRUNE_AT):
        facts.replicate(1)
    facts.truncate(3, 0, reason="wiped")
    facts.append(3, 1, crc=5)
    chain = facts.watch.observer.partition("orders", 0).chains
    assert len(chain._chains[0].bases) < 10
    assert sum(facts.report("logs-match").suspended.values()) == 1


def test_batches_that_one_replica_lacks_are_kept_to_be_compared(facts):
    facts.change(1, 0, 0)
    for _ in range(2 * _PRUNE_AT):
        facts.replicate(1, brokers=(1, 2))
    for _ in range(2 * _PRUNE_AT - 1):
        facts.append(3, 1)
    with pytest.raises(InvariantBroken, match="logs-match"):
        facts.append(3, 1, crc=5)


def test_what_policy_removed_elsewhere_may_be_truncated_and_what_it_left_may_not(facts):
    """A follower whose log start was lost in a crash, and whose epochs began at it."""
    facts.replicate(8)
    facts.watermark(8)
    facts.move_start(1, 8, "delete_records")
    facts.truncate(2, 0)
    assert facts.checked("nothing-committed-truncated") == 1
    facts.append(1, 2)
    facts.append(3, 2)
    facts.watermark(10)
    with pytest.raises(InvariantBroken, match="nothing-committed-truncated"):
        facts.truncate(3, 0)


def decided_twice(facts):
    """Two transactions of one epoch (before KIP-890): committed, then aborted."""
    facts.pay(0)
    facts.coordinate("PrepareCommit")
    facts.mark(4, epoch=0)
    facts.pay(5, sequence=4)
    facts.coordinate("PrepareAbort")


def test_a_marker_of_a_former_decision_comes_only_where_a_message_came_twice(facts):
    """A leader of then takes it, if epoch and coordinator are the same (checkProducerEpoch)."""
    decided_twice(facts)
    facts.row("faults", 0, "duplicate", "began", "", "", True, "")
    facts.mark(9, epoch=0)
    assert facts.report("markers-follow-the-decision").suspended
    with pytest.raises(InvariantBroken, match=r"decided is \(0, False, 3\)"):
        facts.mark(10, epoch=1)


def test_without_such_a_fault_a_marker_of_a_former_decision_breaks_the_promise(facts):
    decided_twice(facts)
    facts.row("faults", 0, "delay", "began", "", "", True, "")
    with pytest.raises(InvariantBroken, match="markers-follow-the-decision"):
        facts.mark(9, epoch=0)


def test_a_leader_that_was_replaced_may_write_what_a_former_coordinator_said(facts):
    """Nobody else will have it: what it knows of coordinators is as old as its office."""
    facts.pay(0)
    facts.coordinate("PrepareCommit", epoch=1, coordinator=4)
    facts.change(2, 1, 1, topic="pay")
    facts.mark(4, epoch=1, coordinator=3)
    assert facts.report("markers-follow-the-decision").suspended
    facts.change(1, 2, 2, topic="pay")
    with pytest.raises(InvariantBroken, match="coordinator epoch 3; epoch 4 is known"):
        facts.mark(5, epoch=1, coordinator=3)
