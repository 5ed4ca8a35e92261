"""The producer's process, with a channel that answers from a small log instead of a network."""

from types import SimpleNamespace

import numpy as np
import pytest

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition
from sim.kernel import Kernel
from sim.nodes.clients.producer import ProducerClient, ProducerNode
from sim.nodes.clients.workload import Rate, Steady, UniformKeys, WorkloadSpec
from sim.protocol.clients.producer.config import ProducerConfig
from sim.protocol.clients.producer.events import SendProduce
from sim.protocol.events import ResponseReceived
from sim.protocol.messages.data import ProduceRequest, ProduceResponse, ProduceResult
from sim.protocol.messages.metadata import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    MetadataResponse,
    PartitionMetadata,
)
from sim.rng import Streams
from sim.trace.schema import BY_NAME
from sim.units import MS, SECOND
from sim.wire.payload import decode_payloads, payload_of

COLUMNS = BY_NAME["client_batches"].column_names


class Table:
    def __init__(self, names=()):
        self.rows = []

    def add(self, row):
        self.rows.append(row)


class FakeTrace:
    def __init__(self):
        self.tables = {}

    def table(self, name):
        return self.tables.setdefault(name, Table())

    def write(self, t_us, row):
        self.table(row.table).add((t_us, *row.row))


class FakeChannel:
    """Answers every request after a millisecond, in order; forgets them when the process dies."""

    def __init__(self, node, peer, logs):
        self.node = node
        self.peer = peer
        self.logs = logs
        self.is_open = True
        self.connectable_at = 0
        self.silent = False
        self.unanswered = []

    def send(self, port, correlation, request, timeout_us):
        if isinstance(request, ProduceRequest):
            response = self.produce(request)
            if self.silent:
                return
        elif isinstance(request, InitProducerIdRequest):
            response = InitProducerIdResponse(ErrorCode.NONE, 1_000 + self.node.incarnation, 0)
        else:
            partitions = tuple(PartitionMetadata(p, 1, 0, (1,), (1,)) for p in range(2))
            response = MetadataResponse((1,), {"orders": partitions})
        event = ResponseReceived(self.peer, correlation, response)
        if isinstance(request, ProduceRequest) and request.acks == 0:
            return
        self.node.call_at(self.node.kernel.now() + MS, self.node.deliver, port, event)

    def no_answer_to(self, correlation):
        self.unanswered.append(correlation)

    def produce(self, request):
        results = []
        for partition, batch in request.batches:
            log = self.logs.setdefault(partition, [])
            if batch.size_bytes > self.node.limit:
                results.append(ProduceResult(partition, ErrorCode.MESSAGE_TOO_LARGE))
                self.node.refused.append(batch.size_bytes)
                continue
            results.append(ProduceResult(partition, ErrorCode.NONE, len(log)))
            log.append(batch)
        return ProduceResponse(tuple(results))


class TestedNode(ProducerNode):
    """A producer whose network is a :class:`FakeChannel`."""

    __test__ = False
    limit = 1 << 30

    def channel(self, peer, label=""):
        if peer not in self.fakes:
            self.fakes[peer] = FakeChannel(self, peer, self.logs)
        return self.fakes[peer]


def build(
    *, config=None, rate=1_000, end=SECOND, keys=None, value_bytes=100, limit=1 << 30, **style
):
    trace = FakeTrace()
    world = SimpleNamespace(
        kernel=Kernel(-SECOND), network=None, trace=trace, streams=Streams(1), server=None
    )
    host = SimpleNamespace(name="h", nodes=[], clock_offset_us=0, clock_ppm=0, wakeups=None)
    spec = WorkloadSpec(
        "orders", Steady(Rate(rate, SECOND)), value_bytes, keys=keys, end_us=end, **style
    )
    client = ProducerClient(3, config or ProducerConfig(), (1,))
    node = TestedNode("shop-1", host, world, client, spec)
    node.fakes = {}
    node.logs = {}
    node.refused = []
    node.limit = limit
    node.start()
    return node


def rows(node):
    return [dict(zip(COLUMNS, row, strict=True)) for row in node.trace.table("client_batches").rows]


def test_every_record_is_told_with_its_latency():
    node = build()
    node.kernel.run(3 * SECOND)
    told = rows(node)
    assert sum(row["record_count"] for row in told) == 1_000
    assert {row["outcome"] for row in told} == {"ok"}
    for row in told:
        assert len(row["latency_us"]) == row["record_count"]
        intended = row["t_us"] - row["latency_us"].astype(np.int64)
        assert intended.min() >= 0
        assert row["created_us"] <= row["first_sent_us"] <= row["t_us"]


def test_told_ranges_of_a_partition_follow_each_other():
    node = build()
    node.kernel.run(3 * SECOND)
    for partition in range(2):
        expected = 0
        for row in rows(node):
            if row["partition"] == partition:
                assert row["first_record"] == expected
                expected += row["record_count"]


def test_batches_carry_what_the_trace_says():
    node = build()
    node.kernel.run(3 * SECOND)
    sizes = {}
    for partition, log in node.logs.items():
        for batch in log:
            payloads = decode_payloads(batch.data)
            assert payloads.producer_index == 3
            assert payloads.numbers[0] == batch.first_record
            sizes[partition.partition, batch.first_record] = batch.size_bytes
    for row in rows(node):
        assert sizes[row["partition"], row["first_record"]] == row["size_bytes"]


def test_a_crash_tells_the_open_batches_and_the_next_process_numbers_on():
    node = build()
    node.kernel.run(500 * MS)
    node.fakes[1].silent = True
    node.kernel.run(520 * MS)
    node.finish()
    node.running = False
    node._forget()
    before = rows(node)
    assert "unknown" in {row["outcome"] for row in before}
    node.kernel.run(600 * MS)
    node.fakes.clear()
    node.start()
    node.kernel.run(3 * SECOND)
    node.finish()
    numbers = [
        (row["partition"], number)
        for row in rows(node)
        for number in range(row["first_record"], row["first_record"] + row["record_count"])
    ]
    assert len(numbers) == len(set(numbers))
    after = rows(node)[len(before) :]
    first = min((row["t_us"] - row["latency_us"].astype(np.int64)).min() for row in after)
    assert first >= 600 * MS
    assert {log[-1].producer_id for log in node.logs.values()} == {1_002}


def test_the_end_is_told_once():
    node = build()
    node.kernel.run(500 * MS)
    node.finish()
    count = len(rows(node))
    node.finish()
    assert len(rows(node)) == count


@pytest.mark.parametrize("is_open", [True, False])
def test_acks_0_is_ok_once_written_and_fails_without_a_connection(is_open):
    node = build(config=ProducerConfig(acks=0, retries=0), end=10 * MS)
    node.kernel.run(-500 * MS)
    node.kernel.run(4 * MS)
    mind_open = node.fakes[1]
    if not is_open:
        send = node._send_produce

        def close_first(port, effect):
            mind_open.is_open = False
            send(port, effect)

        node.performers[SendProduce] = close_first
    node.kernel.run(SECOND)
    outcomes = {row["outcome"] for row in rows(node)}
    if is_open:
        assert outcomes == {"ok"}
        assert mind_open.unanswered
    else:
        assert "unknown" in outcomes or "failed" in outcomes
        assert "ok" not in outcomes


def test_a_retry_sends_the_same_bytes():
    node = build(end=5 * MS)
    node.kernel.run(-500 * MS)
    channel = node.fakes[1]
    produce = channel.produce
    seen = []

    def refuse_once(request):
        seen.append([batch for _, batch in request.batches])
        if len(seen) == 1:
            return ProduceResponse(
                tuple(ProduceResult(p, ErrorCode.NOT_ENOUGH_REPLICAS) for p, _ in request.batches)
            )
        return produce(request)

    channel.produce = refuse_once
    node.kernel.run(SECOND)
    assert seen[0][0] is seen[1][0]
    assert {row["attempts"] for row in rows(node)} == {2}


# -- codecs ----------------------------------------------------------------------------------------


def numbers(node, partition):
    return [
        payload_of(record).number
        for batch in node.logs.get(partition, [])
        for record in batch.records()
    ]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_each_record_arrives_once_and_in_order_whatever_the_codec(codec):
    config = ProducerConfig(compression_type=codec, compression_level=3, linger_us=20 * MS)
    node = build(
        config=config, keys=UniformKeys(9), header_count=2, header_bytes=9, noise_bytes=30,
        tombstone_ppm=200_000,
    )  # fmt: skip
    node.kernel.run(3 * SECOND)
    total = 0
    for partition, log in node.logs.items():
        found = numbers(node, partition)
        assert found == list(range(len(found)))
        assert {batch.codec for batch in log} == {codec}
        total += len(found)
    assert total == 1_000
    told = {(row["partition"], row["first_record"]): row["size_bytes"] for row in rows(node)}
    for partition, log in node.logs.items():
        for batch in log:
            assert told[partition.partition, batch.first_record] == batch.size_bytes


def filled(codec, **style):
    """Records of the last full batches, and their sizes."""
    config = ProducerConfig(
        compression_type=codec, compression_level=6, batch_size=4_000, linger_us=SECOND
    )
    node = build(config=config, rate=100_000, end=SECOND // 2, **style)
    node.kernel.run(3 * SECOND)
    return [batch for log in node.logs.values() for batch in log[-60:-10]]


def test_a_producer_learns_how_well_its_records_pack_and_fills_batches_by_it():
    plain = filled("none")
    packed = filled("gzip")
    assert max(batch.record_count for batch in plain) < 40
    assert np.median([batch.record_count for batch in packed]) > 50
    assert max(batch.size_bytes for batch in packed) <= 4_000


def test_records_that_do_not_pack_do_not_fill_batches_beyond_their_size():
    packed = filled("lz4", noise_bytes=76)
    assert max(batch.record_count for batch in packed) < 40


def test_the_first_batches_expect_nothing_of_compression():
    node = build(
        config=ProducerConfig(compression_type="gzip", batch_size=4_000, linger_us=SECOND),
        rate=20_000, end=100 * MS,
    )  # fmt: skip
    node.kernel.run(3 * SECOND)
    first = node.logs[TopicPartition("orders", 0)][0]
    assert first.raw_bytes + 61 <= 4_000 / 1.05 + 130


def test_packing_takes_time_before_the_batch_leaves():
    latency = {}
    for codec in ("none", "zstd"):
        config = ProducerConfig(compression_type=codec, compression_level=19, batch_size=100_000)
        node = build(config=config, rate=10_000, value_bytes=1_000, end=100 * MS)
        node.kernel.run(10 * SECOND)
        latency[codec] = max(row["latency_us"].max() for row in rows(node))
        assert sum(row["record_count"] for row in rows(node)) == 1_000
    assert latency["zstd"] > latency["none"] + 100 * MS  # 1 MB at 4 MB/s


@pytest.mark.parametrize("codec", ["none", "lz4", "gzip"])
def test_a_packed_batch_that_the_broker_finds_too_large_goes_in_parts(codec):
    """KIP-126: at first down to batch.size, then in halves; nothing is lost or doubled."""
    config = ProducerConfig(
        compression_type=codec, compression_level=9, batch_size=6_000, linger_us=50 * MS
    )
    node = build(
        config=config, rate=2_000, keys=UniformKeys(5), tombstone_ppm=100_000, noise_bytes=70,
        limit=1_500,
    )  # fmt: skip
    node.kernel.run(10 * SECOND)
    assert node.refused
    assert {row["outcome"] for row in rows(node)} == {"ok"}
    total = 0
    for partition, log in node.logs.items():
        found = numbers(node, partition)
        assert found == list(range(len(found)))
        assert max(batch.size_bytes for batch in log) <= 1_500
        total += len(found)
    assert total == 2_000


def test_a_crash_while_batches_are_packed_leaves_them_unknown_and_sends_nothing():
    config = ProducerConfig(compression_type="zstd", compression_level=19, batch_size=500_000)
    node = build(config=config, rate=10_000, value_bytes=1_000, end=200 * MS)
    node.kernel.run(150 * MS)
    before = sum(len(log) for log in node.logs.values())
    node.crash()
    node.kernel.run(5 * SECOND)
    assert sum(len(log) for log in node.logs.values()) == before
    assert sum(row["record_count"] for row in rows(node) if row["outcome"] == "unknown") > 0
