"""Violations of the invariants of the consumer protocol, beside those of ``planted_rows``."""

from tests.checking.planted_rows import broken_by


@broken_by("partitions-have-one-owner")
def a_partition_is_given_out_that_another_member_has(f):
    f.group(2)
    f.member("c-0", 1, "orders-0,orders-1")
    return lambda: f.member("c-1", 2, "orders-1")


@broken_by("partitions-have-one-owner")
def a_partition_is_given_out_before_it_is_given_up(f):
    f.group(2)
    f.member("c-0", 1, "orders-0", revokes="orders-1")
    return lambda: f.member("c-1", 2, "orders-1")


@broken_by("member-epochs-advance")
def a_member_is_set_back(f):
    f.group(4)
    f.member("c-0", 4)
    return lambda: f.member("c-0", 3)


@broken_by("member-epochs-advance")
def a_member_is_ahead_of_its_group(f):
    f.group(4)
    return lambda: f.member("c-0", 5)


@broken_by("member-epochs-advance")
def a_coordinator_takes_over_without_a_members_last_epoch(f):
    f.group(4)
    f.member("c-0", 4)
    f.group(4, reason="loaded")
    return lambda: f.member("c-0", 3)


@broken_by("commits-carry-the-member-epoch")
def commit_of_an_epoch_to_come_succeeds(f):
    f.group(4)
    f.member("c-0", 3)
    return lambda: f.commit(4)


@broken_by("commits-carry-the-member-epoch")
def commit_of_a_fenced_member_succeeds_long_after(f):
    f.group(4)
    f.member("c-0", 3)
    f.member("c-0", -1)
    return lambda: f.commit(3, t=f.t + 31_000_000)


@broken_by("commits-are-current")
def commit_of_a_member_epoch_succeeds_long_after_its_group_is_a_classic_one(f):
    f.group(4)
    f.member("c-0", 3)
    f.member("c-0", -1)
    f.group(4, reason="downgraded")
    return lambda: f.commit(3, t=f.t + 31_000_000)


@broken_by("commits-are-current")
def commit_of_a_generation_to_come_succeeds_in_a_group_that_was_downgraded(f):
    f.group(4)
    f.member("c-0", 4)
    f.member("c-0", -1)
    f.group(4, reason="downgraded")
    return lambda: f.commit(5)


@broken_by("partitions-have-one-owner")
def a_coordinator_creates_a_group_that_it_should_know(f):
    f.group(2)
    f.member("c-0", 2, "orders-0")
    f.group(0, reason="created")
    return lambda: f.member("c-1", 2, "orders-0")
