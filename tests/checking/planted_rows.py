"""Violations of every invariant: rows that lead up to one, then the one row that must raise."""

from sim.checking.chains import _PRUNE_AT


def broken_by(name):
    def mark(case):
        CASES[case.__name__] = (name, case)
        return case

    return mark


CASES = {}


def transactional_life(facts):
    """A transaction with its marker in a partition of its own."""
    facts.coordinate("Empty")
    facts.coordinate("Ongoing")
    facts.pay(0)
    facts.stable(0, 4)
    facts.coordinate("PrepareCommit", epoch=1)
    facts.mark(4, epoch=1)
    facts.stable(5, 5)


@broken_by("stable-offset-below-open")
def readers_pass_an_open_transaction(f):
    f.coordinate("Ongoing")
    f.pay(0)
    return lambda: f.stable(1, 4)


@broken_by("stable-offset-below-open")
def readers_pass_a_marker_that_is_not_committed(f):
    f.coordinate("Ongoing")
    f.pay(0)
    f.coordinate("PrepareAbort", epoch=1)
    f.mark(4, epoch=1, committed=False)
    return lambda: f.stable(4, 4)


@broken_by("stable-offset-below-open")
def a_new_leader_forgets_a_transaction_whose_marker_it_lost(f):
    f.coordinate("PrepareCommit", epoch=0)
    f.pay(0)
    f.mark(4, epoch=0)
    f.row("leadership", 2, "pay", 0, "leader", 2, 1, 1, "2,3", 4, 4)
    return lambda: f.stable(4, 4, leader_epoch=1)


@broken_by("fenced-epoch-never-appends")
def a_zombie_appends_after_the_marker_of_a_bumped_epoch(f):
    transactional_life(f)
    return lambda: f.pay(5, epoch=0, sequence=0)


@broken_by("markers-follow-the-decision")
def a_marker_that_nobody_has_decided(f):
    f.coordinate("Ongoing")
    f.pay(0)
    return lambda: f.mark(4, epoch=1)


@broken_by("markers-follow-the-decision")
def a_marker_says_the_opposite(f):
    f.coordinate("PrepareCommit", epoch=1)
    return lambda: f.mark(4, epoch=1, committed=False)


@broken_by("markers-follow-the-decision")
def a_marker_comes_from_a_former_coordinator(f):
    f.coordinate("PrepareCommit", epoch=1, coordinator=4)
    return lambda: f.mark(4, epoch=1, coordinator=3)


@broken_by("offsets-contiguous")
def gap_in_a_log(f):
    f.append(1, 10)
    return lambda: f.append(1, 10, base=11)


@broken_by("offsets-contiguous")
def offsets_given_twice(f):
    f.append(1, 10)
    return lambda: f.append(1, 10, base=0)


@broken_by("offsets-contiguous")
def append_behind_the_end_that_a_truncation_left(f):
    f.append(1, 10)
    f.row("truncations", 1, "orders", 0, 10, 5, 5, 0, "diverging_epoch")
    return lambda: f.append(1, 10, base=10)


@broken_by("log-start-is-committed")
def retention_above_the_high_watermark(f):
    f.append(1, 30)
    f.watermark(20)
    f.move_start(1, 20)
    return lambda: f.move_start(1, 21, "retention.bytes", before=20)


@broken_by("log-start-is-committed")
def log_start_that_goes_back(f):
    f.append(1, 30)
    f.watermark(20)
    return lambda: f.move_start(1, 10, "delete_records", before=11)


@broken_by("log-start-behind-leader")
def log_start_that_no_leader_had(f):
    f.append(1, 30)
    f.watermark(20)
    f.move_start(1, 10)
    return lambda: f.move_start(2, 11, "leader")


def compacted(f, *, tombstones=()):
    """Four committed records of two keys in two replicas' logs."""
    f.keys(0, [5, 6, 5, 6], tombstones=tombstones)
    f.replicate(4, brokers=(1, 2))
    f.watermark(4)


@broken_by("cleaner-keeps-last-values")
def cleaner_that_takes_the_last_record_of_a_key(f):
    compacted(f)
    f.contents(1, 0, 3, [2, 3])
    return lambda: f.contents(1, 0, 3, [3])


@broken_by("cleaner-keeps-last-values")
def cleaner_that_trusts_a_record_above_the_high_watermark(f):
    compacted(f)
    f.keys(4, [5])
    f.append(1, 1)
    return lambda: f.contents(1, 0, 4, [1, 3, 4])


@broken_by("tombstones-stay-their-time")
def cleaner_that_takes_a_tombstone_too_early(f):
    compacted(f, tombstones=[3])
    f.contents(1, 0, 3, [2, 3])
    return lambda: f.contents(1, 0, 3, [2], t=f.t + 990_000)


@broken_by("tombstones-stay-their-time")
def cleaner_that_takes_a_tombstone_at_once(f):
    compacted(f, tombstones=[3])
    return lambda: f.contents(1, 0, 3, [2])


@broken_by("batch-epochs-ordered")
def older_epoch_behind_a_newer_one(f):
    f.append(1, 10, epoch=3)
    return lambda: f.append(1, 10, epoch=2)


@broken_by("batch-epochs-ordered")
def older_epoch_behind_what_a_truncation_left(f):
    f.append(1, 10, epoch=1)
    f.append(1, 10, epoch=2)
    f.append(1, 10, epoch=3)
    f.truncate(1, 20)
    return lambda: f.append(1, 10, epoch=1)


@broken_by("one-leader-per-epoch")
def two_brokers_append_as_leader_of_one_epoch(f):
    f.append(1, 10, epoch=4)
    return lambda: f.append(2, 10, epoch=4, leader=True)


@broken_by("one-leader-per-epoch")
def broker_applies_an_epoch_that_another_leads(f):
    f.change(1, 4, 9)
    return lambda: f.lead(2, 4)


@broken_by("one-leader-per-epoch")
def controller_gives_an_epoch_away_twice(f):
    f.change(1, 4, 9)
    f.change(-1, 5, 10, "1")
    return lambda: f.change(2, 4, 11)


@broken_by("logs-match")
def follower_holds_other_bytes_at_an_offset_of_the_epoch(f):
    f.append(1, 10)
    return lambda: f.append(2, 10, crc=1)


@broken_by("logs-match")
def follower_cuts_batches_elsewhere(f):
    f.append(1, 10)
    f.append(1, 10)
    f.append(2, 5, crc=f.crcs[0, 0, 0])
    return lambda: f.append(2, 5)


@broken_by("logs-match")
def divergence_after_the_chain_was_pruned(f):
    f.change(1, 0, 0)
    for _ in range(_PRUNE_AT + 10):
        f.replicate(1)
    f.append(1, 1)
    return lambda: f.append(2, 1, crc=1)


@broken_by("nothing-committed-truncated")
def follower_truncates_committed_records(f):
    f.replicate(10)
    f.watermark(10)
    return lambda: f.truncate(2, 9)


@broken_by("nothing-committed-truncated")
def follower_truncates_committed_records_under_a_tail_of_its_own(f):
    f.replicate(10)
    f.watermark(10)
    f.append(1, 10)
    f.change(2, 1, 1)
    f.replicate(30, epoch=1, leader=2, brokers=(2, 3))
    f.watermark(40, broker=2, epoch=1)
    return lambda: f.truncate(1, 9)


@broken_by("applied-epochs-grow")
def broker_goes_back_to_an_older_leader_epoch(f):
    f.lead(2, 5, role="follower")
    return lambda: f.lead(2, 4, role="follower")


@broken_by("applied-epochs-grow")
def broker_goes_back_to_an_older_partition_epoch(f):
    f.lead(2, 5, role="follower", partition_epoch=8)
    return lambda: f.lead(2, 5, role="follower", partition_epoch=7)


@broken_by("high-watermark-within-log")
def leader_commits_more_than_it_has(f):
    f.append(1, 10)
    return lambda: f.watermark(11, end=10, lowest=11)


@broken_by("high-watermark-within-log")
def follower_commits_more_than_it_has(f):
    f.append(2, 10)
    return lambda: f.follower_watermark(11, end=10)


@broken_by("high-watermark-monotonic")
def leader_moves_its_high_watermark_back(f):
    f.append(1, 10)
    f.watermark(8)
    return lambda: f.watermark(7)


@broken_by("follower-watermark-behind-leader")
def follower_is_ahead_of_what_it_was_sent(f):
    f.append(2, 10)
    return lambda: f.follower_watermark(6, sent=5)


@broken_by("follower-watermark-behind-leader")
def follower_was_sent_more_than_the_leader_reached(f):
    f.replicate(10)
    f.watermark(5)
    return lambda: f.follower_watermark(6, sent=6)


@broken_by("high-watermark-needs-min-in-sync")
def high_watermark_moves_below_min_in_sync(f):
    f.append(1, 10)
    return lambda: f.watermark(10, in_sync=1, needed=2)


@broken_by("high-watermark-needs-in-sync-ends")
def high_watermark_passes_a_member_of_the_isr(f):
    f.append(1, 10)
    return lambda: f.watermark(10, lowest=9)


@broken_by("acknowledged-is-committed")
def acks_all_is_answered_before_the_high_watermark_passed(f):
    f.append(1, 10)
    return lambda: f.acknowledge(0, 9, 9)


@broken_by("acknowledged-is-committed")
def acks_all_is_answered_below_min_in_sync(f):
    f.append(1, 10)
    return lambda: f.acknowledge(0, 9, 10, in_sync=1)


@broken_by("refused-is-not-appended")
def not_enough_replicas_and_yet_appended(f):
    f.append(1, 10)
    return lambda: f.acknowledge(0, 9, 0, error="NOT_ENOUGH_REPLICAS")


@broken_by("leader-complete")
def clean_leader_lacks_committed_records(f):
    f.append(1, 10)
    f.watermark(10)
    f.append(2, 9)
    return lambda: f.lead(2, 1)


@broken_by("in-sync-complete")
def replica_joins_the_isr_without_the_committed_records(f):
    f.change(1, 0, 0, "1")
    f.append(1, 10)
    f.watermark(10, in_sync=2)
    f.append(2, 9)
    return lambda: f.change(1, 0, 1, "1,2")


@broken_by("in-sync-complete")
def eligible_replica_lacks_committed_records(f):
    f.change(1, 0, 0, "1")
    f.append(1, 10)
    f.watermark(10, in_sync=2)
    return lambda: f.change(1, 0, 1, "1", eligible="3")


@broken_by("in-sync-are-replicas")
def leader_is_outside_the_isr(f):
    return lambda: f.change(1, 0, 0, "2,3")


@broken_by("in-sync-are-replicas")
def stranger_is_in_the_isr(f):
    return lambda: f.change(1, 0, 0, "1,4")


@broken_by("in-sync-are-replicas")
def replica_is_in_sync_and_eligible(f):
    return lambda: f.change(1, 0, 0, "1,2", eligible="2")


@broken_by("partition-epochs-step")
def leader_changes_without_a_new_leader_epoch(f):
    f.change(1, 0, 0)
    return lambda: f.change(-1, 0, 1, "1")


@broken_by("partition-epochs-step")
def partition_epoch_jumps(f):
    f.change(1, 0, 0)
    return lambda: f.change(1, 0, 2)


@broken_by("partition-epochs-step")
def leader_epoch_goes_back(f):
    f.change(1, 3, 4)
    return lambda: f.change(1, 2, 5)


@broken_by("partition-epochs-step")
def other_replicas_come_without_a_new_partition_epoch(f):
    f.change(1, 0, 1)
    return lambda: f.change(1, 0, 1, replicas="1,2,3,4")


@broken_by("partition-epochs-step")
def more_than_the_replicas_changes_beside_the_epoch_in_zookeeper_mode(f):
    f.row("controllers", 1, "elected", 1, 0)
    f.change(1, 0, 1)
    f.change(1, 0, 1, replicas="1,2,3,4")
    return lambda: f.change(1, 0, 1, "1,2", replicas="1,2,3")


@broken_by("fenced-are-not-in-sync")
def fenced_broker_rejoins_the_isr(f):
    f.broker_state(2, "registered", 5)
    f.broker_state(2, "fenced", 5)
    f.change(1, 0, 0, "1,2")
    return lambda: f.change(1, 0, 1, "1,2,3")


@broken_by("one-quorum-leader")
def two_controllers_lead_one_epoch(f):
    f.quorum(3001, "leader", 4, leader=3001)
    return lambda: f.quorum(3002, "leader", 4, leader=3002)


@broken_by("one-quorum-leader")
def member_follows_another_leader_of_the_epoch(f):
    f.quorum(3001, "leader", 4, leader=3001)
    return lambda: f.quorum(3003, "follower", 4, leader=3002)


@broken_by("one-quorum-leader")
def voter_votes_twice_in_one_epoch(f):
    f.quorum(3003, "unattached", 4, voted_for=3001)
    f.node("controller-3", "started")
    return lambda: f.quorum(3003, "unattached", 4, voted_for=3002)


@broken_by("one-quorum-leader")
def voter_forgets_its_epoch_in_a_restart(f):
    f.quorum(3003, "follower", 4)
    f.node("controller-3", "started")
    return lambda: f.quorum(3003, "unattached", 3)


@broken_by("broker-epochs-grow")
def broker_registers_with_an_old_epoch(f):
    f.broker_state(1, "registered", 50)
    return lambda: f.broker_state(1, "registered", 49)


@broken_by("broker-epochs-grow")
def state_of_a_stale_registration_commits(f):
    f.broker_state(1, "registered", 50)
    f.broker_state(1, "registered", 60)
    return lambda: f.broker_state(1, "unfenced", 50)


@broken_by("reads-are-committed")
def consumer_reads_past_the_high_watermark(f):
    f.append(1, 10)
    f.watermark(9, lowest=10)
    return lambda: f.read(0, 9, hw=9)


@broken_by("reads-are-committed")
def consumer_is_told_a_high_watermark_nobody_reached(f):
    f.append(1, 10)
    f.watermark(5)
    return lambda: f.read(0, 6, hw=7)


@broken_by("reads-advance")
def consumer_gets_an_offset_again(f):
    f.append(1, 20)
    f.watermark(20)
    f.read(0, 9)
    return lambda: f.read(9, 15)


@broken_by("assignments-disjoint")
def partition_is_assigned_twice_in_a_generation(f):
    f.assign("c-0", 3, "orders-0,orders-1")
    return lambda: f.assign("c-1", 3, "orders-1,orders-2")


@broken_by("generations-are-kept")
def a_coordinator_takes_over_without_the_last_generation(f):
    f.group(3, reason="assignment committed")
    f.group(4, reason="assignment committed")
    return lambda: f.group(3, reason="loaded")


@broken_by("sequences-contiguous")
def a_producers_batch_is_appended_twice(f):
    f.pay(0)
    f.pay(4, sequence=4)
    return lambda: f.pay(8, sequence=4)


@broken_by("sequences-contiguous")
def a_producers_batch_overtakes_the_one_before(f):
    f.pay(0)
    return lambda: f.pay(4, sequence=8)


@broken_by("sequences-contiguous")
def a_bumped_epoch_does_not_begin_at_zero(f):
    f.pay(0)
    return lambda: f.pay(4, epoch=1, sequence=4)


@broken_by("deposed-leaders-stay-behind")
def a_deposed_leader_commits_what_its_successor_does_not_have(f):
    f.replicate(10)
    f.watermark(5)
    f.truncate(2, 8)
    f.lead(2, 1, hw=5)
    return lambda: f.watermark(10)


@broken_by("commits-are-current")
def commit_of_a_generation_to_come_succeeds(f):
    f.group(3)
    return lambda: f.commit(4)


@broken_by("commits-are-current")
def commit_of_a_zombie_succeeds_long_after_its_generation(f):
    f.group(3)
    f.group(4)
    return lambda: f.commit(3, t=f.t + 31_000_000)
