"""The other direction: our dump and our doctor read what a real broker wrote."""

import shutil
import subprocess
import time
import warnings

import pytest

from sim.inspect.doctor import examine
from sim.inspect.dump import dump

with warnings.catch_warnings():  # its import uses deprecated functions of the standard library
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaProducer
    from kafka.admin import KafkaAdminClient, NewTopic

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

SETTINGS = """
offsets.topic.replication.factor=1
offsets.topic.num.partitions=3
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=3
log.cleaner.backoff.ms=500
metadata.log.max.record.bytes.between.snapshots=4096
"""
CODECS = ("gzip", "snappy", "lz4", "zstd")
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.bytes": "1048576",
    "min.cleanable.dirty.ratio": "0.01",
}


def topics():
    yield NewTopic("plain", 2, 1)
    yield NewTopic("transfers", 1, 1)
    yield NewTopic("accounts", 1, 1, topic_configs=COMPACTED)
    for codec in CODECS:
        yield NewTopic(codec, 1, 1)


def send_plain(servers):
    """Keys and null keys, headers, no producer state."""
    producer = KafkaProducer(bootstrap_servers=servers, enable_idempotence=False)
    for i in range(500):
        headers = [("h", b"x")] if i % 5 == 0 else []
        key = b"k%d" % i if i % 3 else None
        producer.send("plain", key=key, value=b"v%d" % i * 10, headers=headers)
    producer.close()


def send_compacted(servers):
    """Fifty keys over several segments, one of them deleted again and again."""
    producer = KafkaProducer(bootstrap_servers=servers, enable_idempotence=True, acks="all")
    for i in range(20_000):
        value = (b"value%d" % i) * 20 if i % 50 else None
        producer.send("accounts", key=b"key%d" % (i % 50), value=value)
    producer.close()


def send_transactions(servers):
    """Every second one aborted."""
    producer = KafkaProducer(bootstrap_servers=servers, transactional_id="till", acks="all")
    producer.init_transactions()
    for number in range(6):
        producer.begin_transaction()
        for i in range(10):
            producer.send("transfers", b"%d-%d" % (number, i))
        producer.flush()
        if number % 2:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    producer.close()


def send_transactions_of_version_2(kafka, server):
    """Kafka's own producer: each transaction ends with a new epoch (KIP-890)."""
    command = kafka.java(
        "org.apache.kafka.tools.ProducerPerformance", "--bootstrap-server", server,
        "--topic", "transfers", "--num-records", "300", "--record-size", "40",
        "--throughput", "1000", "--transactional-id", "desk", "--transaction-duration-ms", "50",
    )  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)


def send_compressed(kafka, server):
    """Kafka's own producer, as the independent one lacks codecs."""
    for codec in CODECS:
        command = kafka.java(
            "org.apache.kafka.tools.ConsoleProducer", "--bootstrap-server", server,
            "--topic", codec, "--compression-codec", codec, "--command-property", "linger.ms=200",
        )  # fmt: skip
        lines = "".join(f"{codec} {i} {'abcdefghij' * 30}\n" for i in range(300))
        subprocess.run(command, input=lines, text=True, check=True, capture_output=True)


def read_as_group(cluster, kafka):
    consumer = cluster.consumer("readers")
    consumer.subscribe(["plain", "transfers"])
    end, count = time.monotonic() + 60, 0
    while count < 500:
        assert time.monotonic() < end, f"{count} records read in a minute"
        count += sum(map(len, consumer.poll(500).values()))
    consumer.commit()
    consumer.close()


def await_background_work(directory):
    """Until the cleaner has cleaned and the metadata log has a snapshot."""
    end = time.monotonic() + 60
    checkpoint = directory / "cleaner-offset-checkpoint"
    while time.monotonic() < end:
        cleaned = checkpoint.is_file() and "accounts 0 " in checkpoint.read_text()
        if cleaned and any(directory.glob("__cluster_metadata-0/*.checkpoint")):
            return
        time.sleep(0.5)


@pytest.fixture(scope="module")
def written(kafka, tmp_path_factory):
    """A log directory that a real broker filled and closed."""
    work = tmp_path_factory.mktemp("written")
    directory = work / "data"
    directory.mkdir()
    cluster = kafka.Cluster({1: [directory]}, work, SETTINGS)
    cluster.format(1)
    with cluster:
        servers = cluster.servers
        admin = KafkaAdminClient(bootstrap_servers=servers)
        admin.create_topics(list(topics()))
        admin.close()
        send_plain(servers)
        send_compacted(servers)
        send_transactions(servers)
        send_transactions_of_version_2(kafka, servers[0])
        send_compressed(kafka, servers[0])
        read_as_group(cluster, kafka)
        await_background_work(directory)
    return directory


def files(directory, *suffixes, topic="", empty=True):
    return [
        file
        for file in sorted(directory.rglob("*"))
        if file.suffix in suffixes
        and file.parent.name.startswith(topic)
        and (empty or file.stat().st_size)
    ]


def ours(paths, **options):
    return [line for path in paths for line in dump(path, **options)]


def test_every_kind_of_file_is_there(written):
    kinds = {".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".checkpoint"}
    assert {file.suffix for file in files(written, *kinds)} == kinds
    snapshots = [f for f in files(written, ".checkpoint") if f.name != "bootstrap.checkpoint"]
    assert snapshots, "no snapshot of the metadata log"
    assert "accounts 0 " in (written / "cleaner-offset-checkpoint").read_text()


@pytest.mark.parametrize(
    "suffix", [".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".checkpoint"]
)
def test_our_dump_prints_what_kafkas_prints(kafka, written, suffix):
    paths = files(written, suffix)
    assert ours(paths) == kafka.Dumped(paths).lines


@pytest.mark.parametrize(
    ("topic", "suffix", "decoder"),
    [
        ("__cluster_metadata", ".log", "cluster-metadata"),
        ("", ".checkpoint", "cluster-metadata"),
        ("__consumer_offsets", ".log", "offsets"),
        ("__transaction_state", ".log", "transaction-log"),
    ],
)
def test_our_decoders_print_what_kafkas_print(kafka, written, topic, suffix, decoder):
    paths = files(written, suffix, topic=topic, empty=False)
    assert paths
    assert ours(paths, decoder=decoder) == kafka.Dumped(paths, f"--{decoder}-decoder").lines


@pytest.mark.parametrize("topic", ["plain", "transfers", "accounts", *CODECS])
def test_our_dump_prints_the_records_that_kafkas_prints(kafka, written, topic):
    paths = files(written, ".log", topic=topic, empty=False)
    assert ours(paths, print_data=True) == kafka.Dumped(paths, "--print-data-log").lines
    assert ours(paths, deep=True) == kafka.Dumped(paths, "--deep-iteration").lines


def test_transactions_of_both_versions_were_decoded(written):
    paths = files(written, ".log", topic="__transaction_state", empty=False)
    lines = ours(paths, decoder="transaction-log")
    assert any('"clientTransactionVersion":2' in line for line in lines)
    assert any('"clientTransactionVersion"' not in line and "payload" in line for line in lines)


def examined(directory):
    """Findings, but for segments that a compaction has replaced: a stop leaves them to a start."""
    return [each for each in examine(directory) if each.path.suffix != ".deleted"]


def test_our_doctor_finds_nothing_wrong(written):
    assert examined(written) == []


def test_planted_an_abort_that_the_index_does_not_know_is_found(written, tmp_path):
    copy = shutil.copytree(written, tmp_path / "copy")
    [index] = copy.glob("transfers-0/*.txnindex")
    index.write_bytes(index.read_bytes()[34:])
    [finding] = examined(copy)
    assert finding.path == index
    assert "has no entry" in finding.message


def test_planted_an_entry_without_an_abort_is_found(written, tmp_path):
    copy = shutil.copytree(written, tmp_path / "copy")
    [index] = copy.glob("transfers-0/*.txnindex")
    data = bytearray(index.read_bytes())
    data[25] ^= 1
    index.write_bytes(data)
    assert any("no marker at" in finding.message for finding in examine(copy))


def test_planted_gaps_that_no_compaction_explains_are_found(written, tmp_path):
    copy = shutil.copytree(written, tmp_path / "copy")
    (copy / "cleaner-offset-checkpoint").unlink()
    assert {finding.path.parent.name for finding in examined(copy)} == {"accounts-0"}
