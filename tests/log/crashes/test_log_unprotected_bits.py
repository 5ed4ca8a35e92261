"""Flipped bits that no checksum covers: base offset, leader epoch and magic of a batch's header.

What recovery does with each of them, and what the doctor says of those that it lets pass.
"""

import pytest

from sim.inspect.doctor import examine
from sim.log.config import LogConfig
from sim.log.partition.recovery import load_log
from sim.log.store import checkpoints
from sim.log.store.checkpoints import Identity
from sim.log.store.files import FileStore
from tests.log.log_kit import CLUSTER_ID, DIRECTORY_IDS, NOW, TOPIC_ID, TP, batch, contents, new_log

PLAIN = LogConfig(segment_bytes=700, index_interval_bytes=100)
COMPACTED = LogConfig(segment_bytes=700, index_interval_bytes=100, compact=True)
DIRECTORY = str(TP)
BASE_OFFSET = range(64)
LEADER_EPOCH = range(96, 128)
MAGIC = range(128, 136)
"""Bits of a batch's header, from its first byte's highest on."""


class Damaged:
    """Eight batches of two records in four segments; bits flip in one of them, and flip back."""

    def __init__(self, root, config):
        log = new_log(root, config)
        for i in range(8):
            log.append_as_leader(batch(2 * i, 2, at_ms=i, pid=4, size=100), i // 3, NOW)
        log.close()
        log.store.write_back_all()
        log.store.close()
        self.root, self.config = root, config
        self.whole = contents(log)
        self.bases = [segment.base_offset for segment in log.segments]
        (root / checkpoints.META_PROPERTIES).write_bytes(
            checkpoints.encode_identity(Identity(CLUSTER_ID, 1, DIRECTORY_IDS[0]))
        )
        (root / DIRECTORY / checkpoints.PARTITION_METADATA).write_bytes(
            checkpoints.encode_partition_metadata(TOPIC_ID)
        )
        self.files = {path: path.read_bytes() for path in (root / DIRECTORY).iterdir()}

    def flip(self, number, bit):
        """A bit of the header of one batch; everything else as it was written."""
        for path in (self.root / DIRECTORY).iterdir():
            path.unlink()
        for path, data in self.files.items():
            path.write_bytes(data)
        base = max(base for base in self.bases if base <= 2 * number)
        first = base // 2
        at = sum(map(len, self.whole[first:number])) + bit // 8
        path = self.root / DIRECTORY / f"{base:020d}.log"
        data = bytearray(path.read_bytes())
        data[at] ^= 0x80 >> bit % 8
        path.write_bytes(data)
        damaged = bytearray(self.whole[number])
        damaged[bit // 8] ^= 0x80 >> bit % 8
        return bytes(damaged)

    def recovered(self):
        store = FileStore(self.root)
        log, _ = load_log(store, DIRECTORY, TP, self.config, clean=False, recovery_point=0)
        found = contents(log)
        store.close()
        return found

    def findings(self):
        return [str(one) for one in examine(self.root) if one.severity == "error"]


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return Damaged(tmp_path_factory.mktemp("plain"), PLAIN)


@pytest.fixture(scope="module")
def compacted(tmp_path_factory):
    return Damaged(tmp_path_factory.mktemp("compacted"), COMPACTED)


def test_without_damage_everything_is_kept_and_the_doctor_is_content(plain, compacted):
    for log in (plain, compacted):
        assert len(log.bases) == 4
        assert log.recovered() == log.whole
        assert not log.findings()


@pytest.mark.parametrize("number", [0, 7])
def test_a_flipped_bit_of_a_base_offset_or_a_magic_byte_cuts_a_log_there(plain, number):
    for bit in (*BASE_OFFSET, *MAGIC):
        plain.flip(number, bit)
        assert plain.findings(), bit
        assert plain.recovered() == plain.whole[:number], bit


@pytest.mark.parametrize("number", [0, 4])
def test_in_a_compacted_log_a_batch_whose_offset_overlaps_goes_and_so_may_the_one_before_it(
    compacted, number
):
    """Nobody knows which of two is wrong; what is behind them goes, too."""
    for bit in BASE_OFFSET:
        damaged = compacted.flip(number, bit)
        assert compacted.findings(), bit
        found = compacted.recovered()
        assert damaged not in found, bit
        assert found == compacted.whole[: len(found)], bit
        assert number - 1 <= len(found) <= number, bit


def test_at_the_end_of_a_compacted_log_a_higher_offset_passes_for_a_gap(compacted):
    """The limit of the above: where a cleaner may have been, nothing tells that it has not."""
    damaged = compacted.flip(7, 59)
    assert compacted.recovered() == [*compacted.whole[:7], damaged]
    assert compacted.findings(), "the cleaner's checkpoint says how far it came"


@pytest.mark.parametrize("number", [1, 7])
def test_a_flipped_bit_of_a_leader_epoch_changes_no_record_and_the_doctor_sees_it(plain, number):
    """Recovery keeps it, as Kafka's does."""
    for bit in LEADER_EPOCH:
        damaged = plain.flip(number, bit)
        found = plain.recovered()
        wanted = [*plain.whole[:number], damaged, *plain.whole[number + 1 :]]
        assert found == wanted, bit
        plain.flip(number, bit)
        assert plain.findings(), bit
