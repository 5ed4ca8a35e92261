"""Metadata records of 2.8, by the definitions that its released jars have."""

import pytest

from sim.errors import SimulationError
from sim.inspect.dump_records import contents
from sim.wire.definitions import NEVER_FLEXIBLE, keys, preview, preview_keys
from sim.wire.primitives import MalformedBytes
from sim.wire.record_batch import NewRecord, build_batch
from sim.wire.schemas import decode, encode, encode_preview, is_preview

ID = "AAAAAAAAAAAAAAAAAAAAAg"
FENCED = {"id": 3, "epoch": 7}
MOVED = {"partitionId": 2, "topicId": ID, "isr": [1], "leader": -1}


def test_2_8_has_fourteen_records_of_which_two_are_flexible():
    found = preview_keys()
    assert len(found) == 14
    flexible = [name for name in found if preview(name).flexible_since != NEVER_FLEXIBLE]
    assert flexible == ["AccessControlRecord", "PartitionChangeRecord"]
    assert {tuple(preview(name).versions) for name in found} == {(0,)}
    assert found["QuotaRecord"] == keys("metadata")["ClientQuotaRecord"] == 14
    assert preview("ProducerIdsRecord") is None


@pytest.mark.parametrize(
    ("name", "values", "data"),
    [
        ("FenceBrokerRecord", FENCED, "00 07 00 00000003 0000000000000007"),
        ("UnfenceBrokerRecord", FENCED, "00 08 00 00000003 0000000000000007"),
        (
            "PartitionChangeRecord",
            MOVED,
            "00 05 00 00000002 0000000000000000000000000000000202 00 05 02 00000001 01 04 ffffffff",
        ),
        (
            "ConfigRecord",
            {"resourceType": 2, "resourceName": "t", "name": "a", "value": "b"},
            "00 04 00 02 0001 74 0001 61 0001 62",
        ),
    ],
)
def test_a_record_of_2_8_has_these_bytes(name, values, data):
    """Worked out by hand from the message definitions of 2.8.2."""
    written = encode_preview(name, values)
    assert written == bytes.fromhex(data)
    assert is_preview(written)
    assert decode(written) == (name, 0, values)


def test_later_releases_write_another_frame():
    written = encode("FenceBrokerRecord", 0, FENCED)
    assert not is_preview(written)
    assert written == bytes.fromhex("01 07 00 00000003 0000000000000007 00")
    assert decode(written) == ("FenceBrokerRecord", 0, FENCED)


def test_what_2_8_has_not_is_refused_by_name():
    with pytest.raises(SimulationError, match=r"2\.8 has no NoOpRecord in its metadata; it has"):
        encode_preview("NoOpRecord", {})
    values = {"resourceType": 2, "resourceName": "t", "name": "a", "value": None}
    with pytest.raises(SimulationError, match=r"ConfigRecord\.value cannot be null"):
        encode_preview("ConfigRecord", values)
    with pytest.raises(MalformedBytes, match=r"2\.8 has no metadata record of type 15"):
        decode(bytes((0, 15, 0)))


def test_it_is_printed_as_kafka_s_own_tool_does():
    data = encode_preview("PartitionChangeRecord", MOVED | {"leader": -2})
    batch = build_batch([NewRecord(0, None, data)], base_offset=0, leader_epoch=1)
    [record] = batch.records()
    texts = [pair.text for pair in contents(record, "cluster-metadata")]
    printed = f'"data":{{"partitionId":2,"topicId":"{ID}","isr":[1]}}'
    assert any('"type":"PARTITION_CHANGE_RECORD"' in t and printed in t for t in texts)
