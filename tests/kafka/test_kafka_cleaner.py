"""A real broker's cleaner and ours, given the same log: the same segments, byte for byte.

Three rounds: in the second, tombstones whose horizon has passed go, and markers get theirs; in the
third these go, too.
"""

import shutil
import time
import warnings
from pathlib import Path

import pytest

from sim.ids import TopicPartition
from sim.log.cleaning.batch_filter import delete_horizon_ms
from sim.log.cleaning.cleanable import cleanable
from sim.log.cleaning.cleaner import Cleaning
from sim.log.cleaning.offset_map import capacity_of
from sim.log.config import LogConfig
from sim.log.partition.deletion import unlink
from sim.log.partition.log import PartitionLog
from sim.log.partition.reading import file_batches
from sim.log.partition.recovery import load_log
from sim.log.producers.transaction_index import ABORTED_ENTRY, AbortedTxn, decode_aborted
from sim.log.store import checkpoints
from sim.log.store.files import FileStore
from sim.wire.control_batch import Marker, end_transaction_marker
from sim.wire.record_batch import Header, NewRecord, build_batch

with warnings.catch_warnings():  # its import uses deprecated functions of the standard library
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.admin import KafkaAdminClient, NewTopic

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

TOPIC = TopicPartition("accounts", 0)
SETTINGS = """
offsets.topic.replication.factor=1
log.cleaner.backoff.ms=200
"""
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.bytes": "1048576",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "1500",
}
CONFIG = LogConfig(
    segment_bytes=1_048_576, delete=False, compact=True, delete_retention_ms=1_500,
    min_cleanable_dirty_ratio=0.01,
)  # fmt: skip
PATIENCE_S = 90


def wall_ms() -> int:
    return int(time.time() * 1_000)


class Writer:
    """Fills a partition's directory, as a leader would have: keys, tombstones, transactions."""

    def __init__(self, directory: Path) -> None:
        self.log = load_log(
            FileStore(directory), str(TOPIC), TOPIC, CONFIG, clean=True, recovery_point=0
        )[0]
        self.number = self.log.log_end_offset
        self.sequences: dict[int, int] = {}

    def send(self, *pairs, pid=-1, transactional=False, codec="none", headers=()) -> int:
        now = wall_ms()
        records = [NewRecord(now + i, k, v, tuple(headers)) for i, (k, v) in enumerate(pairs)]
        sequence = self.sequences.get(pid, 0)
        batch = build_batch(
            records, codec=codec, producer_id=pid, producer_epoch=0 if pid >= 0 else -1,
            base_sequence=sequence if pid >= 0 else -1, transactional=transactional,
        )  # fmt: skip
        base = self.log.log_end_offset
        if transactional:
            # As a follower takes it: no coordinator is here that could verify it.
            self.log.append_as_follower([batch.stamped(base, 0)])
        else:
            answer = self.log.append_as_leader(batch, 0, now)
            assert answer.error.name == "NONE", answer
        self.sequences[pid] = sequence + len(pairs)
        self.number += 1
        return base

    def end(self, pid: int, first: int, *, commit: bool) -> None:
        """A marker; an aborted transaction is in the index of the segment that holds it."""
        marker = end_transaction_marker(Marker(commit, pid, 0, 0), wall_ms())
        at = self.log.append_as_leader(marker, 0, wall_ms()).base_offset
        if commit:
            return
        base = self.log.segments[-1].base_offset
        name = f"{TOPIC}/{base:020d}.txnindex"
        store = self.log.store
        present = decode_aborted(store.read_whole(name) or b"")
        if any(entry.last_offset == at for entry in present):
            return  # the log keeps the index itself
        file = store.open(name) or store.create(name)
        file.append(ABORTED_ENTRY.pack(0, *AbortedTxn(pid, first, at, at + 1)))

    def fill(self, seed: int) -> None:
        """About four segments."""
        self.sequences.clear()
        for i in range(640):
            key = b"key-%d" % ((i * 7 + seed) % 90)
            value = b"%d-%d " % (seed, i) * 120
            self.send((key, value), (b"often", value), (b"only-%d-%d" % (seed, i), b"x" * 300))
            if i % 40 == 3:
                self.send((b"key-%d" % (i % 90), None), (b"gone-%d-%d" % (seed, i), None))
            if i % 40 == 9:
                self.send((b"often", value), pid=1_000 * seed + i, headers=[Header("h", b"x")])
            if i % 40 == 17:
                self.transaction(seed, i)
            if i % 80 == 29:
                self.send((None, b"without a key"), (b"often", b"with one"))
        self.log.close()
        self.log.store.write_back_all()
        self.log.store.close()

    def transaction(self, seed: int, i: int) -> None:
        pid = 50_000 + seed
        first = self.send((b"txn", b"t" * 100), (b"in-%d-%d" % (seed, i), b"1"), pid=pid,
                          transactional=True)  # fmt: skip
        self.end(pid, first, commit=i % 80 == 17)


def ours_cleans(directory: Path, checkpoint: int | None, now_ms: int) -> PartitionLog:
    log = load_log(FileStore(directory), str(TOPIC), TOPIC, CONFIG, clean=True, recovery_point=0)[0]
    target = cleanable(log, checkpoint, log.log_end_offset, now_ms)
    assert target.is_due
    cleaning = Cleaning(target, capacity_of(8_388_608, 0.9), now_ms, lambda: None)
    while cleaning.write_group() is not None:
        unlink(log.store, cleaning.swap() or ())
    log.store.write_back_all()
    log.store.close()
    return log


def theirs_cleans(kafka, directory: Path, work: Path, end: int) -> int:
    """Start the real broker until its cleaner has come so far; returns how far it came."""
    work.mkdir()
    patience = time.monotonic() + PATIENCE_S
    with kafka.Cluster({1: [directory]}, work, SETTINGS):
        while (cleaned := checkpointed(directory)) is None or cleaned < end:
            assert time.monotonic() < patience, f"cleaned to {cleaned}, not to {end}"
            time.sleep(0.2)
    return cleaned


def checkpointed(directory: Path) -> int | None:
    path = directory / checkpoints.CLEANER_OFFSETS
    return checkpoints.decode_offsets(path.read_bytes(), "x").get(TOPIC) if path.is_file() else None


def logs(directory: Path) -> dict[str, bytes]:
    kinds = {".log", ".index", ".timeindex", ".txnindex"}
    found = sorted((directory / str(TOPIC)).iterdir())
    return {path.name: path.read_bytes() for path in found if path.suffix in kinds}


def batches(directory: Path):
    for path in sorted((directory / str(TOPIC)).glob("*.log")):
        for _, batch in file_batches(path):
            yield batch


def newest_horizon(directory: Path) -> int:
    return max(delete_horizon_ms(batch) for batch in batches(directory))


@pytest.fixture(scope="module")
def rounds(kafka, tmp_path_factory):
    """(theirs, ours) after each round; both began each round with the same bytes."""
    work = tmp_path_factory.mktemp("cleaner")
    directory = work / "theirs"
    directory.mkdir()
    cluster = kafka.Cluster({1: [directory]}, work, SETTINGS)
    cluster.format(1)
    with cluster:
        admin = KafkaAdminClient(bootstrap_servers=cluster.servers)
        admin.create_topics([NewTopic("accounts", 1, 1, topic_configs=COMPACTED)])
        admin.close()
    done = []
    for number in range(3):
        checkpoint = checkpointed(directory)
        writer = Writer(directory)
        writer.fill(number)
        ours = work / f"ours-{number}"
        shutil.copytree(directory, ours)
        time.sleep(2)  # the horizons of the round before have passed
        theirs_cleans(kafka, directory, work / str(number), writer.log.segments[-1].base_offset)
        # A horizon is the cleaner's clock and the retention: so it tells when the broker cleaned.
        ours_cleans(ours, checkpoint, newest_horizon(directory) - CONFIG.delete_retention_ms)
        kept = work / f"theirs-{number}"
        shutil.copytree(directory, kept)
        done.append((kept, ours))
    return done


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_real_cleaner_leaves_the_files_that_ours_leaves(rounds, number):
    theirs, ours = map(logs, rounds[number])
    assert list(ours) == list(theirs)
    assert [name for name in ours if ours[name] != theirs[name]] == []
    assert any(name.endswith(".txnindex") for name in ours)


def test_there_was_something_of_every_kind_to_decide(rounds):
    first, second, third = [list(batches(theirs)) for theirs, _ in rounds]
    assert any(batch.record_count == 0 and batch.producer_id >= 0 for batch in first)
    assert any(batch.is_control for batch in first)
    assert sum(delete_horizon_ms(batch) > 0 for batch in first) > 10
    gone = {(r.offset, r.key) for b in first for r in b.records() if r.value is None}
    left = {(r.offset, r.key) for b in second for r in b.records() if r.value is None}
    assert gone - left, "tombstones went in the second round"
    before = {batch.base_offset for batch in first if batch.is_control}
    assert before - {batch.base_offset for batch in third}, "and markers in the third"
    assert any(batch.is_control and delete_horizon_ms(batch) > 0 for batch in second)
    assert any(batch.last_offset_delta >= batch.record_count > 0 for batch in second)
