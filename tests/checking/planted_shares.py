"""Violations of the invariants of share groups, beside those of ``planted_rows``."""

from tests.checking.planted_rows import broken_by


@broken_by("records-have-one-holder")
def a_record_is_given_out_that_another_member_has(f):
    f.acquire(0, 9, consumer="w-0")
    return lambda: f.acquire(9, 12, consumer="w-1")


@broken_by("records-have-one-holder")
def a_record_is_given_to_its_holder_again(f):
    f.acquire(0, 9)
    f.state(0, 4, "AVAILABLE", "release")
    return lambda: f.acquire(4, 5)


@broken_by("acknowledged-is-not-delivered")
def an_accepted_record_is_delivered_again(f):
    f.acquire(0, 9)
    f.state(0, 9, "ACKNOWLEDGED", "accept")
    return lambda: f.acquire(5, 5, count=2)


@broken_by("acknowledged-is-not-delivered")
def a_later_leader_does_not_know_what_was_rejected(f):
    f.acquire(0, 9)
    f.state(3, 3, "ARCHIVED", "reject")
    f.share(0, epoch=1, reason="loaded")
    return lambda: f.acquire(0, 9, epoch=1)


@broken_by("deliveries-are-limited")
def a_record_is_delivered_once_too_often(f):
    f.share(0, reason="loaded", limit=2)
    f.acquire(0, 0, count=1)
    f.state(0, 0, "AVAILABLE", "lock timeout", count=1)
    return lambda: f.acquire(0, 0, count=3)


@broken_by("share-starts-advance")
def a_start_offset_goes_back(f):
    f.share(0, reason="loaded")
    f.share(10)
    return lambda: f.share(9)


@broken_by("renewed-locks-hold")
def a_renewed_lock_expires_as_if_it_had_not_been_renewed(f):
    f.acquire(0, 9)
    f.renew(5, 9, f.t + 30_000_000)
    return lambda: f.state(0, 9, "AVAILABLE", "lock timeout")


@broken_by("renewed-locks-hold")
def a_member_renews_the_lock_of_another(f):
    f.acquire(0, 9, consumer="w-1")
    return lambda: f.renew(9, 9, f.t + 30_000_000)


@broken_by("renewed-locks-hold")
def a_member_renews_what_was_given_back(f):
    f.acquire(0, 9)
    f.state(0, 9, "AVAILABLE", "release")
    return lambda: f.renew(0, 9, f.t + 30_000_000)
