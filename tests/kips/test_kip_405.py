"""KIP-405: closed segments below the last stable offset are copied to a remote log, and live there.

Local retention waits for the copy; total retention deletes there, behind the log start. Consumers
below the local log read from the remote one, and a follower there takes over its state.
"""

from collections.abc import Sequence

import pytest

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition, uuid_text
from sim.protocol.broker.tiered.cache import RemoteLogMetadataCache
from sim.protocol.broker.tiered.manager import RemoteLogManager
from sim.protocol.broker.tiered.metadata_topic import metadata_partition_of
from sim.protocol.broker.tiered.ports import (
    ClosedSegment,
    CopySegment,
    DeleteSegment,
    EventsRead,
    Published,
    PublishEvent,
    RaiseLogStart,
    RemoteReadDone,
    RemoteReadRequested,
    RoleApplied,
    StorageDone,
    TieredConfig,
)
from sim.protocol.broker.tiered.retention import expired, highest_copied
from sim.protocol.broker.tiered.segments import (
    RemoteSegment,
    SegmentState,
    epoch_at,
    epochs_between,
    is_within,
    update_of,
)
from sim.records.remote_log_metadata import batch_for, events_in
from tests.scenarios.run_kit import go

P = TopicPartition("orders", 0)
TOPIC = uuid_text("orders")
MINUTE_MS = 60_000
ONE_PARTITION = TieredConfig(metadata_partitions=1)


def segment(name, start, end, epochs=((0, 0),), size=100, at_ms=0):
    own = epochs_between(epochs, start, end + 1)
    return RemoteSegment(uuid_text(name), TOPIC, P, start, end, at_ms, 1, 0, size, own)


def cache_of(*segments, finished=True):
    cache = RemoteLogMetadataCache()
    for each in segments:
        cache.apply(each)
        if finished:
            cache.apply(update_of(each, SegmentState.COPY_SEGMENT_FINISHED, 1, 0))
    return cache


class Log:
    """A leader's log of ten records a segment."""

    def __init__(self, end=50, stable=None, local=0, start=0, retention=(-1, -1)):
        self.epochs: Sequence[tuple[int, int]] = ((0, 0),)
        self.log_start_offset = start
        self.local_log_start_offset = local
        self.log_end_offset = end
        self.last_stable_offset = end if stable is None else stable
        self.retention = retention
        self.highest = -1

    def closed_segments(self, start):
        bases = range(self.local_log_start_offset, self.log_end_offset - 10, 10)
        return [ClosedSegment(b, b + 10, 100, 0, True) for b in bases if b + 10 > start]

    def only_local_bytes(self):
        return (self.log_end_offset - self.highest - 1) * 10

    def note_copied(self, highest):
        self.highest = highest


class Broker:
    """A remote log manager whose events are written and read back at once."""

    def __init__(self, log, config=ONE_PARTITION):
        self.machine = RemoteLogManager(1, 1, config, lambda _: log)
        self.effects = []
        self.offset = 0
        self.refuses = False
        self.give(RoleApplied(P, TOPIC, True, 0))
        self.give(EventsRead(0, (), True))

    def give(self, event, now=0):
        for effect in self.machine.handle(event, now):
            self.effects.append(effect)
            if isinstance(effect, PublishEvent):
                self.offset += 1
                self.give(EventsRead(0, ((self.offset, effect.event),), True), now)
                self.give(Published(effect.token, True), now)
            elif isinstance(effect, (CopySegment, DeleteSegment)):
                self.give(StorageDone(effect.token, not self.refuses), now)

    def of(self, kind):
        return [effect for effect in self.effects if isinstance(effect, kind)]


# -- copying --------------------------------------------------------------------------------------


def test_only_closed_segments_below_the_last_stable_offset_are_copied():
    log = Log(end=50, stable=25)
    broker = Broker(log)
    copied = [(e.segment.start, e.segment.end) for e in broker.of(CopySegment)]
    assert copied == [(0, 9), (10, 19)]
    assert log.highest == 19


def test_a_copy_is_announced_before_and_after_its_objects_are_written():
    broker = Broker(Log(end=20))
    kinds = [
        effect.event.state.name if isinstance(effect, PublishEvent) else "objects"
        for effect in broker.effects
        if isinstance(effect, (PublishEvent, CopySegment))
    ]
    assert kinds == ["COPY_SEGMENT_STARTED", "objects", "COPY_SEGMENT_FINISHED"]


@pytest.mark.parametrize("deletes", [True, False])
def test_a_copy_that_fails_is_deleted_since_kafka_17062(deletes):
    log = Log(end=20)
    broker = Broker(log, TieredConfig(metadata_partitions=1, deletes_failed=deletes))
    broker.refuses = True
    log.log_end_offset = log.last_stable_offset = 30
    broker.give(RoleApplied(P, TOPIC, False, 1))
    broker.give(RoleApplied(P, TOPIC, True, 2))
    assert log.highest == 9, "only the first segment was copied"
    assert bool(broker.of(DeleteSegment)) is deletes


def test_a_new_leader_goes_on_behind_the_highest_copy_of_its_lineage():
    cache = cache_of(segment("a", 0, 9), segment("b", 10, 19))
    assert highest_copied(cache, ((0, 0),), 40) == 19
    assert highest_copied(cache, ((0, 0), (1, 15)), 40) == 14, "epoch 0 ended there"
    assert highest_copied(RemoteLogMetadataCache(), ((0, 0),), 40) == -1


# -- metadata -------------------------------------------------------------------------------------


def test_readers_get_finished_segments_alone():
    one = segment("a", 0, 9)
    cache = cache_of(one, finished=False)
    assert cache.find(0, 5) is None
    cache.apply(update_of(one, SegmentState.COPY_SEGMENT_FINISHED, 1, 0))
    assert cache.find(0, 5) is not None
    assert cache.find(0, 10) is None
    cache.apply(update_of(one, SegmentState.DELETE_SEGMENT_STARTED, 1, 0))
    assert cache.find(0, 5) is None
    assert len(cache.of_epoch(0)) == 1, "its deletion may have to be repeated"
    cache.apply(update_of(one, SegmentState.DELETE_SEGMENT_FINISHED, 1, 0))
    assert cache.segments() == ()


def test_a_larger_copy_of_a_new_leader_replaces_the_smaller_one():
    cache = cache_of(segment("small", 10, 90), segment("large", 5, 100))
    found = cache.find(0, 50)
    assert found is not None
    assert found.start == 5


def test_an_offset_belongs_to_the_epoch_that_began_last_before_it():
    epochs = ((0, 0), (2, 10), (5, 20))
    assert [epoch_at(epochs, offset) for offset in (0, 9, 10, 25)] == [0, 0, 2, 5]
    assert epochs_between(epochs, 5, 15) == ((0, 5), (2, 10))


def test_a_segment_of_another_lineage_is_not_the_logs():
    epochs = ((0, 0), (1, 10), (2, 20))
    assert is_within(segment("a", 5, 15, epochs), 40, epochs)
    assert not is_within(segment("b", 5, 15, ((0, 0), (1, 8))), 40, epochs)
    assert not is_within(segment("c", 0, 15, ((0, 0),)), 40, epochs), "beyond the end of epoch 0"
    assert not is_within(segment("d", 35, 45, epochs), 40, epochs), "beyond the log's end"


def test_events_are_kafkas_records_and_come_back_as_they_were():
    one = segment("a", 5, 15, ((0, 0), (1, 10)), size=77, at_ms=9)
    for event in (one, update_of(one, SegmentState.DELETE_SEGMENT_STARTED, 2, 8)):
        ((offset, read),) = events_in([batch_for(event, 0).stamped(4, 0)])
        assert (offset, read) == (4, event)


def test_the_partition_of_a_topics_events_depends_on_its_id():
    found = {metadata_partition_of(uuid_text(f"t{n}"), n % 3, 5) for n in range(60)}
    assert found == {0, 1, 2, 3, 4}
    assert metadata_partition_of(TOPIC, 0, 50) == metadata_partition_of(TOPIC, 0, 50)


# -- retention ------------------------------------------------------------------------------------


def test_retention_by_size_counts_the_remote_and_the_local_log():
    cache = cache_of(*(segment(str(n), n, n + 9) for n in (0, 10, 20)))
    log = Log(end=50, local=30, retention=(-1, 350))
    log.note_copied(29)
    found = expired(cache, log, 0, {}, counts_failed=False)
    assert ([s.start for s in found.segments], found.log_start) == ([0], 10)
    assert found.reason == "retention.bytes"


def test_retention_by_time_goes_by_the_largest_timestamp():
    cache = cache_of(segment("a", 0, 9, at_ms=0), segment("b", 10, 19, at_ms=MINUTE_MS))
    log = Log(local=20, retention=(MINUTE_MS, -1))
    found = expired(cache, log, MINUTE_MS + 1, {}, counts_failed=False)
    assert ([s.start for s in found.segments], found.reason) == ([0], "retention.ms")


def test_copies_that_failed_count_as_data_before_kafka_17062():
    whole = segment("a", 0, 9)
    cache = cache_of(whole)
    for n in range(5):
        cache.apply(segment(f"failed-{n}", 10, 19))
    log = Log(end=30, retention=(-1, 400))
    log.note_copied(9)
    assert expired(cache, log, 0, {}, counts_failed=False).log_start == -1
    assert expired(cache, log, 0, {}, counts_failed=True).log_start == 20


def test_the_log_start_moves_before_anything_is_deleted():
    log = Log(end=30)
    broker = Broker(log)
    broker.effects.clear()
    log.retention = (-1, 100)
    broker.give(RoleApplied(P, TOPIC, False, 1))
    broker.give(RoleApplied(P, TOPIC, True, 2))
    order = [type(e) for e in broker.effects if isinstance(e, (RaiseLogStart, DeleteSegment))]
    assert order[0] is RaiseLogStart
    assert DeleteSegment in order


# -- reading --------------------------------------------------------------------------------------


def test_an_offset_that_no_segment_has_is_out_of_range():
    broker = Broker(Log(end=20))
    broker.give(RemoteReadRequested(7, P, 15))
    assert broker.of(RemoteReadDone) == [RemoteReadDone(7, ErrorCode.OFFSET_OUT_OF_RANGE)]


# -- whole runs -----------------------------------------------------------------------------------

CONFIG = {
    "remote.log.storage.system.enable": True,
    "remote.log.manager.task.interval.ms": 500,
    "rlmm.config.remote.log.metadata.topic.num.partitions": 1,
    "log.initial.task.delay.ms": 500,
    "log.retention.check.interval.ms": 500,
    "log.segment.delete.delay.ms": 500,
}
STORE = {"object-store": {"latency": {"p50": "20ms", "p99": "40ms"}, "bandwidth": "100MB/s"}}
TIERED = {
    "partitions": 1,
    "config": {
        "min.insync.replicas": 2,
        "remote.storage.enable": True,
        "segment.bytes": 1 << 20,
        "local.retention.bytes": 1 << 20,
    },
}
SHOP = {"rate": "800/s", "record.size": "1KB"}


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    return go(
        tmp_path_factory.mktemp("tiered"),
        config=CONFIG,
        cluster=STORE,
        topic=TIERED,
        producer=SHOP,
        consumers=[
            {
                "name": "late", "group": "late", "topics": "orders", "start": "12s",
                "config": {"auto.offset.reset": "earliest"},
            }
        ],
        faults=[
            {"at": "3s", "do": "wiped-disk", "target": "follower of orders-0"},
            # Copies begin at most 1.78 s after each other: a segment of 1 MiB is full each 1.28 s
            # at 800/s of 1 KB, and waits for a task interval of 0.5 s. With a slow PUT of 0.12 s
            # behind it, 1.9 s have a copy in them wherever they begin.
            {"at": "12s", "do": "slow-object-store", "factor": 3, "for": "1900ms"},
            {"at": "14s", "do": "object-store-errors", "for": "1s"},
        ],
        lasts="17s",
    )  # fmt: skip


def test_what_lives_in_the_object_store_alone_is_not_lost(ran):
    assert ran.records["lost_acked"] == ran.records["removed"] == 0
    local = max(row["to_offset"] for row in ran.rows("local_log_starts"))
    assert local > 3_000, "most of the log is in the object store alone"
    assert len(list((ran.directory / "object-store" / "orders-0").glob("*.log"))) > 3


def test_a_late_consumer_reads_the_remote_log_and_then_the_local_one(ran):
    reads = ran.rows("reads", consumer="late")
    assert min(row["base_offset"] for row in reads) == 0
    assert ran.verdict["readers"]["undelivered"] == 0
    assert any(r["operation"] == "GET" for r in ran.rows("object_requests"))


def test_a_follower_below_the_local_log_takes_over_the_remote_logs_state(ran):
    rebuilt = ran.rows("local_log_starts", reason="rebuilt")
    assert rebuilt
    assert any(row["reason"] == "tiered" for row in ran.rows("truncations"))
    final = ran.rows("partition_changes", topic="orders")[-1]
    assert len(final["in_sync"].split(",")) == 3


def test_local_segments_wait_for_their_copies(ran):
    assert ran.checked("copied-before-deleted") > 3


def test_faults_of_the_store_take_effect(ran):
    slow, errors = ran.faults[1:]
    assert (slow["kind"], slow["took_effect"]) == ("slow-object-store", True)
    assert (errors["kind"], errors["took_effect"]) == ("object-store-errors", True)
    statuses = {row["status"] for row in ran.rows("object_requests")}
    assert statuses >= {200, 503}


def test_a_lost_object_is_a_loss_that_the_verdict_counts(tmp_path):
    ran = go(
        tmp_path,
        config=CONFIG,
        cluster=STORE,
        topic=TIERED | {"config": TIERED["config"] | {"local.retention.bytes": 1}},
        producer=SHOP | {"stop": "8s"},
        faults=[{"at": "10s", "do": "lost-object", "partition": "orders-0"}],
        lasts="12s",
    )
    assert ran.faults[0]["took_effect"]
    assert 900 < ran.records["lost_acked"] < 1_200, "the records of one segment"
