"""Which offset of the target cluster stands for which offset of the source cluster.

Source: ``OffsetSyncWriter``, ``OffsetSyncStore``; KAFKA-12468, KAFKA-12635, KAFKA-14666; that both
do what Kafka's own do is held by ``tests/kafka/test_kafka_mirrors.py``.
"""

from sim.ids import TopicPartition
from sim.protocol.mirror.offsets import OffsetSync, OffsetSyncStore, OffsetSyncWriter

ORDERS = TopicPartition("orders", 0)


def sync(upstream, downstream):
    return OffsetSync(ORDERS, upstream, downstream)


def store(*syncs, extrapolates=False):
    made = OffsetSyncStore(extrapolates=extrapolates)
    for upstream, downstream in syncs:
        made.take(sync(upstream, downstream))
    return made


def test_a_sync_is_told_for_the_first_record_and_then_every_lag_max_and_one():
    writer = OffsetSyncWriter(100)
    told = writer.mirrored(ORDERS, 0, 0, 250)
    assert told == [sync(0, 0), sync(101, 101), sync(202, 202)]
    assert writer.mirrored(ORDERS, 250, 250, 10) == []


def test_with_lag_max_0_every_record_is_told():
    writer = OffsetSyncWriter(0)
    assert writer.mirrored(ORDERS, 0, 0, 3) == [sync(0, 0), sync(1, 1), sync(2, 2)]


def test_a_gap_in_the_source_and_a_target_that_was_cut_are_told_at_once():
    writer = OffsetSyncWriter(100)
    writer.mirrored(ORDERS, 0, 0, 10)
    assert writer.mirrored(ORDERS, 11, 10, 10) == [sync(11, 10)]
    assert writer.mirrored(ORDERS, 21, 5, 1) == [sync(21, 5)]


def test_what_was_not_told_is_told_when_the_task_commits_and_only_once():
    writer = OffsetSyncWriter(100)
    writer.mirrored(ORDERS, 0, 0, 50)
    assert writer.promote() == [sync(49, 49)]
    assert writer.promote() == []
    assert writer.mirrored(ORDERS, 50, 50, 52)[-1] == sync(101, 101)
    assert writer.promote() == [], "the last record was told already"


def test_where_offsets_are_extrapolated_only_gaps_are_told():
    writer = OffsetSyncWriter(100, extrapolates=True)
    assert writer.mirrored(ORDERS, 0, 0, 1_000) == [sync(0, 0)]
    assert writer.mirrored(ORDERS, 1_001, 1_000, 1_000) == [sync(1_001, 1_000)]
    assert writer.promote() == []


def test_an_offset_between_syncs_is_the_one_behind_the_older_copy():
    known = store((0, 0), (101, 91), (203, 180))
    assert known.translate(ORDERS, 101) == 91
    assert known.translate(ORDERS, 150) == 92
    assert known.translate(ORDERS, 9_999) == 181


def test_an_offset_before_every_sync_and_a_partition_without_any_are_not_translated():
    known = store((900_000, 0))
    assert known.translate(ORDERS, 899_999) == -1
    assert known.translate(TopicPartition("orders", 1), 5) is None


def test_recent_syncs_are_kept_close_together_and_old_ones_apart():
    known = store(*((place, place) for place in range(10_000)))
    assert known.translate(ORDERS, 9_990) > 9_980
    assert 9_000 - known.translate(ORDERS, 9_000) < 1_024
    assert known.translate(ORDERS, 5_000) <= 5_001


def test_a_sync_that_goes_back_makes_the_others_void():
    known = store((0, 0), (500, 500), (100, 600))
    assert known.translate(ORDERS, 50) == -1
    assert known.translate(ORDERS, 700) == 601


def test_extrapolation_counts_gaps_that_the_target_does_not_have():
    """The truth for 111 is 100: ten records behind the sync, and a marker."""
    was, now = store((100, 90), extrapolates=True), store((100, 90))
    assert was.translate(ORDERS, 111) == 101
    assert now.translate(ORDERS, 111) == 91
    assert was.translate(ORDERS, 99) == -1


def test_without_a_sync_extrapolation_takes_the_offset_as_it_is():
    """An empty partition whose log begins at 900,000 (KAFKA-12635)."""
    assert store(extrapolates=True).translate(ORDERS, 900_000) == 900_000
