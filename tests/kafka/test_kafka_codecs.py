"""What producers put into batches, before Apache Kafka: its consumer reads it, its leader decides
and rewrites as ours does.
"""

import warnings

import pytest

from sim.error_codes import ErrorCode
from sim.inspect.dump import dump
from sim.log.partition.reading import file_batches
from sim.log.partition.validator import validated
from sim.nodes.storage.log_settings import record_rules
from sim.scenario.loader import load_text
from sim.scenario.run.runner import run
from sim.wire.record_batch import LOG_APPEND_TIME, NewRecord, build_batch
from sim.wire.rewrite import recompressed, with_append_time

with warnings.catch_warnings():  # its import uses deprecated functions of the standard library
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaProducer
    from kafka.admin import KafkaAdminClient, NewTopic
    from kafka.codec import has_lz4, has_snappy, has_zstd
    from kafka.errors import KafkaError

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.skipif(
        not (has_snappy() and has_lz4() and has_zstd()),
        reason="kafka-python finds no libraries for the codecs; make setup brings them",
    ),
]

T = 1_700_000_000_000

LOAD = "rate: 300/s, record.size: 300B, record.compressibility: 0.6"
ALONE = """
claim: One broker holds every codec.
cluster: {brokers: 1, controllers: 1}
topics:
  kept: {partitions: 1, replication.factor: 1}
  packed: {partitions: 1, replication.factor: 1, config: {compression.type: lz4}}
  opened:
    partitions: 1
    replication.factor: 1
    config: {compression.type: uncompressed, message.timestamp.type: LogAppendTime}
producers:
  - {name: a, topic: kept, LOAD,
     keys: uniform, tombstones: 10%, record.headers: {count: 3, size: 20B},
     config: {compression.type: gzip, linger.ms: 50}}
  - {name: b, topic: kept, LOAD, config: {compression.type: snappy, linger.ms: 50}}
  - {name: c, topic: kept, LOAD, config: {compression.type: lz4, linger.ms: 50}}
  - {name: d, topic: kept, LOAD, config: {compression.type: zstd, linger.ms: 50}}
  - {name: e, topic: kept, LOAD, keys: uniform, tombstones: 50%, config: {linger.ms: 50}}
  - {name: f, topic: packed, LOAD, config: {compression.type: zstd, linger.ms: 50}}
  - {name: g, topic: opened, LOAD, config: {compression.type: gzip, linger.ms: 50}}
run: {for: 3s}
"""


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    out = tmp_path_factory.mktemp("alone") / "run"
    run(load_text(ALONE.replace("LOAD", LOAD), "codecs.yaml"), out=out)
    return out / "disks" / "broker-1" / "data-0"


SETTINGS = "log.cleaner.enable=false\n"
TOPICS = {
    "opened-by-kafka": {"compression.type": "uncompressed"},
    "stamped": {"message.timestamp.type": "LogAppendTime"},
    "opened-and-stamped": {
        "compression.type": "uncompressed", "message.timestamp.type": "LogAppendTime",
    },
    "compacted": {"cleanup.policy": "compact"},
    "bounded": {"message.timestamp.before.max.ms": "60000"},
}  # fmt: skip


@pytest.fixture(scope="module")
def broker(kafka, alone, tmp_path_factory):
    """A real broker on the simulated disk, with topics of its own beside."""
    work = tmp_path_factory.mktemp("codecs")
    with kafka.Cluster({1: [alone]}, work, SETTINGS) as cluster:
        admin = KafkaAdminClient(bootstrap_servers=cluster.servers)
        admin.create_topics(
            [NewTopic(name, 1, 1, topic_configs=configs) for name, configs in TOPICS.items()]
        )
        admin.close()
        yield cluster


def batches(directory, topic):
    return [
        batch
        for log in sorted(directory.glob(f"{topic}-0/*.log"))
        for _, batch in file_batches(log)
    ]


@pytest.mark.parametrize("topic", ["kept", "packed", "opened"])
def test_a_consumer_reads_every_record_that_we_packed(kafka, broker, alone, topic):
    ours = [record for batch in batches(alone, topic) for record in batch.records()]
    assert len(ours) == {"kept": 4_500, "packed": 900, "opened": 900}[topic]
    partition = kafka.TopicPartition(topic, 0)
    read = list(broker.records(partition))
    assert read == [(record.offset, record.value) for record in ours]
    if topic == "kept":
        assert {batch.codec for batch in batches(alone, topic)} == {
            "none", "gzip", "snappy", "lz4", "zstd",
        }  # fmt: skip
        assert sum(value is None for _, value in read) == pytest.approx(90 + 450, abs=90)


def test_sizes_and_headers_of_every_record_are_printed_alike(kafka, alone):
    paths = [
        path for name in ("kept", "packed", "opened") for path in alone.glob(f"{name}-0/*.log")
    ]
    dumped = kafka.Dumped(paths, "--deep-iteration")
    assert dumped.complaints == []
    assert dumped.lines == [line for path in paths for line in dump(path, deep=True)]
    assert any("valueSize: -1" in line and "[lq,h00,h01,h02]" in line for line in dumped.lines)


def produce(servers, topic, records, **config):
    """One batch of records, and what became of them."""
    producer = KafkaProducer(
        bootstrap_servers=servers, enable_idempotence=False, linger_ms=500, **config
    )
    sent = [
        producer.send(topic, key=record.key, value=record.value, timestamp_ms=record.timestamp_ms)
        for record in records
    ]
    producer.flush()
    told = []
    for future in sent:
        try:
            told.append(future.get(10).offset)
        except KafkaError as error:
            told.append(type(error).__name__)
    producer.close()
    return told


RECORDS = [NewRecord(T + n, b"k%d" % n, b"value %d " % n * 9) for n in range(40)]


@pytest.mark.parametrize("topic", ["opened-by-kafka", "stamped", "opened-and-stamped"])
@pytest.mark.parametrize("codec", ["none", "gzip", "zstd"])
def test_a_real_leader_rewrites_a_batch_to_the_bytes_that_ours_writes(broker, alone, topic, codec):
    before = len(batches(alone, topic))
    told = produce(
        broker.servers, topic, RECORDS, compression_type=None if codec == "none" else codec
    )
    assert all(isinstance(offset, int) for offset in told)
    rules = record_rules(TOPICS[topic])
    written = batches(alone, topic)[before:]
    assert sum(batch.record_count for batch in written) == len(RECORDS)
    first = 0
    for theirs in written:
        mine = build_batch(RECORDS[first : first + theirs.record_count], codec=codec)
        first += theirs.record_count
        if rules.append_time:
            assert theirs.attributes & LOG_APPEND_TIME
        ours = validated(mine, rules, theirs.max_timestamp_ms)
        ours = ours.stamped(theirs.base_offset, theirs.leader_epoch)
        if rules.codec == "none":
            assert ours.data == theirs.data
        else:  # still packed, by two libraries
            assert ours.data[:8] + ours.data[12:17] == theirs.data[:8] + theirs.data[12:17]
            assert ours.data[21:61] == theirs.data[21:61]
            assert list(ours.records()) == list(theirs.records())


def test_the_comparison_notices_a_base_timestamp_that_was_moved():
    mine = build_batch(RECORDS)
    moved = build_batch(
        [record._replace(timestamp_ms=record.timestamp_ms + 1) for record in RECORDS]
    )
    assert with_append_time(mine, T).data != with_append_time(moved, T).data
    assert recompressed(build_batch(RECORDS, codec="gzip"), "none").data == mine.data


@pytest.mark.parametrize(
    ("topic", "spoil", "error"),
    [
        ("compacted", {"key": None}, ErrorCode.INVALID_RECORD),
        ("bounded", {"key": None}, ErrorCode.INVALID_TIMESTAMP),
    ],
)
def test_a_real_leader_refuses_what_ours_refuses(broker, caplog, topic, spoil, error):
    spoiled = [RECORDS[0], RECORDS[1]._replace(**spoil), RECORDS[2]]
    told = produce(broker.servers, topic, spoiled)
    assert not any(isinstance(offset, int) for offset in told)
    # What it raises is of its own making; what it heard from the broker it logs.
    assert f"[Error {error.value}]" in caplog.text
    now = 1_900_000_000_000
    assert validated(build_batch(spoiled), record_rules(TOPICS[topic]), now) is error


def test_a_real_leader_takes_tombstones_with_keys_as_ours_does(broker):
    records = [record._replace(value=None) for record in RECORDS[:3]]
    told = produce(broker.servers, "compacted", records)
    assert all(isinstance(offset, int) for offset in told)
    assert not isinstance(
        validated(build_batch(records), record_rules(TOPICS["compacted"]), T), ErrorCode
    )
