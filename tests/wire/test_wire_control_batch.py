"""Markers of transactions: Kafka's bytes, an independent reader, and what is no marker."""

import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.wire.control_batch import MARKER_BYTES, Marker, end_transaction_marker, read_marker
from sim.wire.primitives import MalformedBytes
from sim.wire.record_batch import NewRecord, RecordBatch, build_batch
from sim.wire.schemas import control_key, encode

with warnings.catch_warnings():
    # The library reads its resources in a way that Python 3.11 calls deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record.memory_records import MemoryRecords

T = 1_700_000_000_000
COMMIT = Marker(commit=True, producer_id=4000, producer_epoch=2, coordinator_epoch=3)
MARKERS = st.builds(
    Marker, st.booleans(), st.integers(0, 2**63 - 1), st.integers(0, 2**15 - 1),
    st.integers(-1, 2**31 - 1),
)  # fmt: skip


def test_commit_marker_is_the_worked_example_byte_for_byte() -> None:
    batch = end_transaction_marker(COMMIT, T + 9, base_offset=2, leader_epoch=0)
    assert batch.data.hex() == (
        "000000000000000200000042000000000269c199240030000000000000018bcf"
        "e568090000018bcfe568090000000000000fa00002ffffffff00000001200000"
        "0008000000010c00000000000300"
    )
    assert batch.size_bytes == MARKER_BYTES


def test_abort_marker_differs_from_commit_in_one_byte_and_the_checksum() -> None:
    commit = end_transaction_marker(COMMIT, T).data
    abort = end_transaction_marker(COMMIT._replace(commit=False), T).data
    assert [i for i in range(78) if commit[i] != abort[i] and not 17 <= i < 21] == [69]
    assert (commit[69], abort[69]) == (1, 0)
    assert RecordBatch.parse(abort).valid()


@given(MARKERS, st.integers(0, 2**45))
def test_marker_is_what_the_general_builder_makes_and_reads_back(marker: Marker, t: int) -> None:
    record = NewRecord(
        t,
        control_key("EndTxnMarker", commit=marker.commit),
        encode("EndTxnMarker", 0, {"coordinatorEpoch": marker.coordinator_epoch}),
    )
    general = build_batch(
        [record], producer_id=marker.producer_id, producer_epoch=marker.producer_epoch,
        transactional=True, control=True,
    )  # fmt: skip
    batch = end_transaction_marker(marker, t)
    assert batch.data == general.data
    assert read_marker(RecordBatch.parse(batch.data)) == marker
    assert batch.producer_index == RecordBatch.parse(batch.data).producer_index == -1


@pytest.mark.parametrize("commit", [True, False])
def test_kafka_python_sees_a_control_record_of_the_right_kind(commit: bool) -> None:
    data = end_transaction_marker(COMMIT._replace(commit=commit), T).stamped(7, 1).data
    batch = MemoryRecords(data).next_batch()
    assert batch.validate_crc()
    assert batch.is_control_batch
    assert batch.is_transactional
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (4000, 2, -1)
    (record,) = batch
    assert (record.offset, record.commit, record.abort) == (7, commit, not commit)


def test_batches_of_data_and_of_kraft_are_no_markers() -> None:
    data = build_batch([NewRecord(T, control_key("EndTxnMarker"), b"")], transactional=True)
    leader = build_batch([NewRecord(T, control_key("LeaderChangeMessage"), b"")], control=True)
    other = build_batch(
        [NewRecord(T, control_key("LeaderChangeMessage"), b"")], control=True, transactional=True
    )
    short = build_batch([NewRecord(T, b"\x00", b"")], control=True, transactional=True)
    assert [read_marker(batch) for batch in (data, leader, other, short)] == [None] * 4


def test_marker_without_its_coordinator_epoch_is_malformed() -> None:
    record = NewRecord(T, control_key("EndTxnMarker"), b"\x00\x00")
    with pytest.raises(MalformedBytes, match="coordinator epoch"):
        read_marker(build_batch([record], control=True, transactional=True))


def test_only_the_marker_of_an_abort_is_told_apart_as_one() -> None:
    markers = [
        end_transaction_marker(COMMIT._replace(commit=commit), T) for commit in (True, False)
    ]
    assert [marker.is_abort_marker for marker in markers] == [False, True]
    key = control_key("EndTxnMarker", commit=False)
    data = build_batch([NewRecord(T, key, b"")], transactional=True)
    leader = build_batch([NewRecord(T, key, b"")], control=True)
    assert not data.is_abort_marker
    assert not leader.is_abort_marker
