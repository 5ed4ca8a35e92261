"""Violations of the invariants of tiered storage."""

from tests.checking.planted_rows import broken_by


@broken_by("copied-before-deleted")
def a_local_segment_goes_before_its_copy_is_finished(f):
    f.remote(0, 9)
    f.remote(10, 19, "COPY_SEGMENT_STARTED", name="b")
    return lambda: f.local(2, 0, 20)


@broken_by("copied-before-deleted")
def a_follower_starts_behind_a_hole(f):
    f.remote(10, 19)
    return lambda: f.local(3, 0, 20, reason="rebuilt")


@broken_by("remote-log-without-hole")
def a_segment_is_deleted_that_the_log_still_needs(f):
    f.remote(0, 9)
    f.remote(10, 19, name="b")
    f.local(2, 0, 20)
    return lambda: f.remote(0, 9, "DELETE_SEGMENT_STARTED")
