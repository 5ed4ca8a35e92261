"""Records of transactional ids as bytes: Kafka's own bytes, read back whole."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.ids import TopicPartition
from sim.protocol.coordinator.transaction.records import (
    STATUS,
    TransactionRecord,
    TransactionState,
    TransactionTombstone,
)
from sim.records.transaction_state import batch_for, records_in
from sim.units import MS, SECOND
from sim.wire.primitives import MalformedBytes
from sim.wire.record_batch import NewRecord, RecordBatch, build_batch

NOW = 1_767_225_600_000
STAMP = 0x1A1FB113FFC
KEY = bytes.fromhex("0000000474782d31")
REAL = bytes.fromhex(
    "000100000000000000000000" "0000ea60" "01" "020474786e020000000000"
    "000001a1fb113ffc" "000001a1fb113ffc" "01" "00080000000000000000"
)  # fmt: skip
"""What a real coordinator wrote for an ongoing transaction of a client without epoch bumps."""

ONGOING = TransactionRecord(
    "tx-1", 0, 0, 60 * SECOND, TransactionState.ONGOING, (TopicPartition("txn", 0),),
    STAMP, STAMP, previous_producer_id=0, version=0,
)  # fmt: skip

names = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8)
written_states = [s for s in TransactionState if STATUS[s] <= 5]
records = st.one_of(
    st.builds(TransactionTombstone, names),
    st.builds(
        TransactionRecord,
        names,
        st.integers(0, 1 << 50),
        st.integers(0, (1 << 15) - 1),
        st.integers(1, 900_000).map(lambda ms: ms * MS),
        st.sampled_from(written_states[1:]),
        st.lists(st.builds(TopicPartition, names, st.integers(0, 99)), max_size=5, unique=True).map(
            lambda found: tuple(sorted(found))
        ),
        st.integers(0, 1 << 45),
        st.integers(-1, 1 << 45),
        st.integers(-1, 1 << 50),
        st.integers(-1, 1 << 50),
        st.just(2),
    ),
)


@given(st.lists(records, min_size=1, max_size=4))
def test_records_are_read_back_from_their_bytes(written):
    batch = batch_for(written, NOW)
    assert records_in([RecordBatch.parse(batch.data)]) == tuple(written)


def test_what_a_real_coordinator_wrote_is_read():
    assert records_in([build_batch([NewRecord(NOW, KEY, REAL)])]) == (ONGOING,)


def test_keys_and_values_are_kafkas_bytes():
    bumping = TransactionRecord(*[getattr(ONGOING, f) for f in ONGOING.__slots__[:9]], version=2)
    (record,) = batch_for([bumping], NOW).records()
    # The same, and the client's transaction version as a tag behind it.
    assert record.key == KEY
    assert record.value == REAL[:-11] + b"\x02" + REAL[-10:] + bytes.fromhex("02020002")


def test_before_epoch_bumps_a_value_has_version_zero_and_an_empty_id_no_partitions():
    empty = TransactionRecord("t", 5, 3, SECOND, TransactionState.EMPTY, (), 7, -1, version=0)
    (record,) = batch_for([empty], NOW).records()
    assert record.value.hex() == (
        "0000" "0000000000000005" "0003" "000003e8" "00" "ffffffff" "0000000000000007" + "f" * 16
    )  # fmt: skip


def test_a_batch_belongs_to_no_producer():
    batch = batch_for([TransactionTombstone("t")], NOW)
    assert (batch.producer_id, batch.base_sequence, batch.is_transactional) == (-1, -1, False)
    assert next(batch.records()).value is None


def test_broken_bytes_are_not_passed_over():
    with pytest.raises(MalformedBytes):
        records_in([build_batch([NewRecord(NOW, KEY, REAL[:-1])])])
