"""What coordinators make of a partition of their topic whose bytes are damaged on the platter.

Source: ``CoordinatorLoaderImpl``, ``CoordinatorRuntime``, ``GroupMetadataManager``,
``TransactionStateManager.loadTransactionMetadata``.
"""

from collections import Counter
from types import SimpleNamespace

import pytest

from sim.error_codes import ErrorCode as E
from sim.errors import CorruptRecord
from sim.ids import OFFSETS_TOPIC, TopicPartition, uuid_text
from sim.log.store.files import DiskFailed
from sim.nodes.broker.coordinators import Codec, CoordinatorStorage
from sim.nodes.broker.node import BrokerNode
from sim.nodes.process.cpu import CpuSpec
from sim.protocol.assignors.registry import partition_for_group
from sim.protocol.broker.replication.events import LeadershipApplied
from sim.protocol.coordinator.group.context import GroupConfig
from sim.protocol.coordinator.group.coordinator import GroupCoordinator
from sim.protocol.coordinator.group.records import GroupTombstone, OffsetCommitRecord
from sim.protocol.coordinator.log import PartitionElected, PartitionLoading
from sim.protocol.coordinator.share.coordinator import ShareCoordinator, ShareCoordinatorConfig
from sim.protocol.coordinator.share.records import ShareSnapshotRecord
from sim.protocol.coordinator.transaction.config import TransactionConfig
from sim.protocol.coordinator.transaction.coordinator import TransactionCoordinator
from sim.protocol.coordinator.transaction.records import TransactionRecord, TransactionState
from sim.protocol.effects import Reply
from sim.protocol.events import RequestReceived
from sim.protocol.messages.group import OffsetFetchRequest
from sim.protocol.messages.share import ReadShareGroupStateRequest
from sim.protocol.messages.share_records import RecordState, ShareKey, StateBatch
from sim.protocol.metadata.image import MetadataImage
from sim.records import consumer_offsets, share_group_state, transaction_state
from sim.units import SECOND
from sim.wire.primitives import MalformedBytes
from sim.wire.record_batch import RecordBatch
from tests.log.log_kit import NOW, new_log

ORDERS = TopicPartition("orders", 0)
COMMITTED = OffsetCommitRecord("g", ORDERS, 20, 0, NOW)
HOME = partition_for_group("g")
KEY = ShareKey("g", uuid_text("orders"), 0)
SHARE_HOME = partition_for_group(KEY.text)
SNAPSHOT = ShareSnapshotRecord(
    KEY, 0, 0, 0, 3, (StateBatch(3, 9, RecordState.ACKNOWLEDGED, 1),), NOW
)
ONGOING = TransactionRecord(
    "desk", 7, 1, 60 * SECOND, TransactionState.ONGOING, (ORDERS,), NOW, NOW
)


def loads(tmp_path, bad):
    """What the coordinator hears of a log of three batches, of which one has a byte damaged."""
    log = new_log(tmp_path)
    place = TopicPartition(OFFSETS_TOPIC, HOME)
    for number in range(3):
        records = [OffsetCommitRecord("g", ORDERS, number, 0, NOW)]
        log.append_as_leader(consumer_offsets.batch_for(records, NOW), 0, NOW)
    log.flush()
    (segment,) = log.segments
    at = [position for position, _ in segment.batches(0)][1]
    log.store.overwrite(segment.log.name, at + bad, b"\xff")
    heard = []
    process = SimpleNamespace(
        kernel=SimpleNamespace(time=0),
        call_at=lambda _, fn, *args: fn(*args),
        deliver=lambda _, event: heard.append(event),
    )
    storage = SimpleNamespace(manager=SimpleNamespace(get=lambda _: log), read_all=lambda _: 0)
    codec = Codec(consumer_offsets.batch_for, consumer_offsets.records_in)
    shell = CoordinatorStorage(process, storage, CpuSpec(), None, None, OFFSETS_TOPIC, codec)
    shell.leadership_applied(LeadershipApplied(place, is_leader=True, leader_epoch=4))
    loading, read = heard
    assert isinstance(loading, PartitionLoading)
    return read


@pytest.mark.parametrize("bad", [8, 61])
def test_a_coordinator_hears_what_lies_before_the_damage_and_that_there_is_some(tmp_path, bad):
    """Of a header, and of a record."""
    first = OffsetCommitRecord("g", ORDERS, 0, 0, NOW)
    assert loads(tmp_path, bad) == PartitionElected(HOME, 4, (first,), is_whole=False)


def fetched(coordinator):
    """A group's committed offset and the error, as its coordinator answers."""
    request = OffsetFetchRequest("g", (ORDERS,))
    effects = coordinator.handle(RequestReceived(1, "c", request), 0)
    (response,) = [each.response for each in effects if isinstance(each, Reply)]
    return response.error, [offset for _, offset, *_ in response.offsets]


def groups(*, new):
    coordinator = GroupCoordinator(1, 1, GroupConfig(follows_watermark=new))
    coordinator.handle(PartitionLoading(HOME, 4), 0)
    assert fetched(coordinator)[0] is E.COORDINATOR_LOAD_IN_PROGRESS
    coordinator.handle(PartitionElected(HOME, 4, (COMMITTED,), is_whole=False), 0)
    return coordinator


def test_a_damaged_partition_has_no_coordinator_until_its_next_leader_epoch():
    coordinator = groups(new=True)
    assert fetched(coordinator)[0] is E.NOT_COORDINATOR
    coordinator.handle(PartitionLoading(HOME, 5), 0)
    coordinator.handle(PartitionElected(HOME, 5, (COMMITTED,)), 0)
    assert fetched(coordinator) == (E.NONE, [20])


def test_the_classic_coordinator_serves_a_damaged_partition_as_if_nothing_was_ever_committed():
    assert fetched(groups(new=False)) == (E.NONE, [-1])


def test_a_coordinator_that_serves_the_partition_already_keeps_its_memory():
    coordinator = GroupCoordinator(1, 1, GroupConfig())
    coordinator.handle(PartitionElected(HOME, 4, (COMMITTED,)), 0)
    coordinator.handle(PartitionLoading(HOME, 5), 0)
    coordinator.handle(PartitionElected(HOME, 5, (), is_whole=False), 0)
    assert fetched(coordinator) == (E.NONE, [20])


def test_a_damaged_partition_of_share_state_has_no_coordinator():
    coordinator = ShareCoordinator(1, ShareCoordinatorConfig(), MetadataImage)
    coordinator.handle(PartitionLoading(SHARE_HOME, 4), 0)
    coordinator.handle(PartitionElected(SHARE_HOME, 4, (SNAPSHOT,), is_whole=False), 0)
    assert coordinator.state(KEY) is None
    request = ReadShareGroupStateRequest(KEY, 0)
    (reply,) = coordinator.handle(RequestReceived(1, "b", request), 0)
    assert reply.response.error is E.NOT_COORDINATOR


def test_a_transaction_coordinator_serves_what_it_has_read_before_the_damage():
    coordinator = TransactionCoordinator(1, 0, TransactionConfig())
    place = partition_for_group("desk")
    coordinator.handle(PartitionLoading(place, 4), 0)
    coordinator.handle(PartitionElected(place, 4, (ONGOING,), is_whole=False), 0)
    assert coordinator.transaction("desk").state is TransactionState.ONGOING


@pytest.mark.parametrize("offline", [{}, {1: "input/output error"}])
def test_a_damaged_record_that_nobody_else_takes_care_of_ends_the_broker(offline):
    """Of the metadata log, a fatal fault; a directory that has failed before hides none."""
    halted = []
    storage = SimpleNamespace(failing=lambda _: None, manager=SimpleNamespace(offline=offline))
    node = SimpleNamespace(storage=storage, halt=halted.append)
    BrokerNode.storage_failed(node, CorruptRecord("__cluster_metadata-0: the batch at 0"))
    assert len(halted) == 1
    halted.clear()
    BrokerNode.storage_failed(node, DiskFailed("late news of a failed disk"))
    assert bool(halted) is not bool(offline)


@pytest.mark.parametrize(
    ("codec", "written"),
    [
        (consumer_offsets, (COMMITTED, GroupTombstone("g"))),
        (share_group_state, (SNAPSHOT,)),
        (transaction_state, (ONGOING,)),
    ],
)
def test_a_flipped_bit_of_a_coordinators_record_is_read_as_another_value_or_malformed(
    codec, written
):
    data = codec.batch_for(list(written), NOW).data
    seen = Counter()
    for at in range(61 * 8, len(data) * 8):
        flipped = bytearray(data)
        flipped[at // 8] ^= 1 << (at % 8)
        try:
            seen[bool(codec.records_in([RecordBatch(bytes(flipped))]))] += 1
        except MalformedBytes:
            seen["malformed"] += 1
    assert seen["malformed"]
    assert seen[True]
