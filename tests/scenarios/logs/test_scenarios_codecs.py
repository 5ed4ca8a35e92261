"""What producers put into batches, in whole runs: what leaders refuse, change and pay for."""

import pytest

from sim.log.partition import validator
from sim.log.partition.reading import file_batches
from sim.wire.record_batch import LOG_APPEND_TIME, RecordBatch
from tests.scenarios.run_kit import JOIN_US, S, go

QUICK = {"linger.ms": 10}


def topic(**config):
    return {"partitions": 1, "config": {"min.insync.replicas": 2, **config}}


def leaders_batches(ran, name="orders-0", broker=1):
    directory = ran.directory / f"disks/broker-{broker}/data-0/{name}"
    return [batch for log in sorted(directory.glob("*.log")) for _, batch in file_batches(log)]


def outcomes(ran):
    """Records by outcome and error."""
    found = {}
    for row in ran.rows("client_batches"):
        key = row["outcome"], row["error"]
        found[key] = found.get(key, 0) + row["record_count"]
    return found


# -- what is refused -------------------------------------------------------------------------------


def test_a_compacted_topic_takes_no_record_without_a_key(tmp_path):
    ran = go(tmp_path, topic=topic(**{"cleanup.policy": "compact"}), lasts="2s")
    assert outcomes(ran) == {("failed", "INVALID_RECORD"): 1_000}
    assert ran.records["survived"] == 0
    keyed = go(
        tmp_path,
        topic=topic(**{"cleanup.policy": "compact"}),
        producer={"keys": "uniform", "tombstones": "20%"},
        lasts="2s",
    )
    assert outcomes(keyed) == {("ok", "NONE"): 1_000}


CRASH = {"at": "1s", "do": "crash", "target": "leader of orders-0"}


@pytest.mark.parametrize("kind", ["CreateTime", "LogAppendTime"])
def test_what_waited_too_long_for_a_leader_is_refused_unless_the_leader_sets_the_time(
    tmp_path, kind
):
    """Nine seconds without a leader; five may lie between creation and append.

    What was in flight to the leader as it was killed may be in its log, whatever a later attempt
    hears: nobody knows. That is five requests at most.
    """
    config = {"message.timestamp.before.max.ms": 5_000, "message.timestamp.type": kind}
    ran = go(tmp_path, topic=topic(**config), faults=[CRASH], lasts="14s")
    found = outcomes(ran)
    in_flight = ran.rows("client_batches", outcome="unknown")
    unknown = {("unknown", "INVALID_TIMESTAMP")} if kind == "CreateTime" else set()
    assert set(found) <= {("ok", "NONE"), ("failed", "INVALID_TIMESTAMP")} | unknown
    assert len(in_flight) <= 5
    for batch in in_flight:
        assert batch["attempts"] > 1
        assert batch["first_sent_us"] < 1 * S + JOIN_US, "before its connection was closed"
    assert found["ok", "NONE"] > 1_000
    refused = found.get(("failed", "INVALID_TIMESTAMP"), 0)
    assert refused > 1_000 if kind == "CreateTime" else refused == 0
    assert ran.records["lost_acked"] == 0


def test_a_producer_whose_clock_runs_ahead_is_refused_beyond_after_max(tmp_path):
    jump = {"at": "1s", "do": "clock-jump", "target": "shop", "by": "10s"}
    ran = go(
        tmp_path,
        topic=topic(**{"message.timestamp.after.max.ms": 2_000}),
        faults=[jump],
        lasts="3s",
    )
    found = outcomes(ran)
    assert found["failed", "INVALID_TIMESTAMP"] == pytest.approx(1_000, abs=50)
    assert found["ok", "NONE"] == pytest.approx(500, abs=50)


def test_batches_that_a_topic_unpacks_beyond_its_limit_come_again_in_parts(tmp_path):
    """KIP-126: small on the wire, too large in the log."""
    limit = {"compression.type": "uncompressed", "max.message.bytes": 20_000}
    ran = go(
        tmp_path,
        topic=topic(**limit),
        producer={"rate": "8000/s", "config": {"compression.type": "gzip", "linger.ms": 100}},
        lasts="3s",
    )
    assert outcomes(ran) == {("ok", "NONE"): 24_000}
    refused = ran.rows("acknowledgements", error="MESSAGE_TOO_LARGE")
    assert len(refused) > 3
    assert max(batch.size_bytes for batch in leaders_batches(ran)) <= 20_000
    assert ran.records["duplicated"] == ran.records["reordered"] == 0


# -- what is changed -------------------------------------------------------------------------------


def test_the_log_has_the_leaders_time_and_followers_the_same_bytes(tmp_path):
    ran = go(
        tmp_path,
        topic=topic(**{"message.timestamp.type": "LogAppendTime"}),
        producer={"config": QUICK},
        lasts="2s",
    )
    batches = leaders_batches(ran)
    assert len(batches) > 50
    assert all(batch.attributes & LOG_APPEND_TIME for batch in batches)
    for batch in batches:
        assert batch.base_timestamp_ms <= batch.max_timestamp_ms
        assert batch.valid()
    stamps = [batch.max_timestamp_ms for batch in batches]
    assert stamps == sorted(stamps)
    for broker in (2, 3):
        assert [b.data for b in leaders_batches(ran, broker=broker)] == [b.data for b in batches]


def test_a_changed_topic_setting_changes_the_codec_from_then_on(tmp_path):
    change = {
        "at": "1s",
        "do": "alter-config",
        "topic": "orders",
        "config": {"compression.type": "zstd"},
    }
    ran = go(
        tmp_path,
        topic=topic(),
        producer={"config": {"compression.type": "lz4", **QUICK}},
        faults=[change],
        lasts="2s",
    )
    codecs = [batch.codec for batch in leaders_batches(ran)]
    assert set(codecs) == {"lz4", "zstd"}
    assert codecs == sorted(codecs), "lz4 first, then zstd"


# -- what is paid ----------------------------------------------------------------------------------


def handler_us(ran):
    """Mean time of produce requests in the hands of a request handler."""
    rows = [row for row in ran.rows("requests", kind="Produce") if row["t_us"] > S]
    return sum(row["decided_us"] - row["started_us"] for row in rows) / len(rows)


def test_recompression_costs_the_handler_and_latency(tmp_path):
    producer = {
        "rate": "20000/s",
        "record.size": "1000B",
        "config": {"batch.size": 200_000, "linger.ms": 20, "compression.type": "lz4"},
    }
    plain = go(tmp_path, topic=topic(), producer=producer, lasts="2s")
    dear = {"compression.type": "zstd", "compression.zstd.level": 19}
    packed = go(tmp_path, topic=topic(**dear), producer=producer, lasts="2s")
    assert handler_us(packed) > 10 * handler_us(plain)
    assert (
        packed.verdict["latency_us"]["produce"]["p50"]
        > 2 * (plain.verdict["latency_us"]["produce"]["p50"])
    )


def test_compression_spares_disk_and_network(tmp_path):
    sizes = {}
    for codec in ("none", "zstd"):
        producer = {"record.size": "500B", "rate": "4000/s"}
        ran = go(
            tmp_path,
            topic=topic(),
            producer=producer | {"config": {"compression.type": codec, **QUICK}},
            lasts="2s",
        )
        assert ran.records["survived"] == 8_000
        sizes[codec] = sum(batch.size_bytes for batch in leaders_batches(ran))
        told = sum(row["size_bytes"] for row in ran.rows("client_batches"))
        assert told == sizes[codec]
    assert sizes["zstd"] * 5 < sizes["none"]


# -- planted ---------------------------------------------------------------------------------------


def test_a_leader_that_keeps_the_old_checksum_is_found_out(tmp_path, monkeypatch):
    """Planted: append time is set under the client's checksum; followers refuse such batches."""

    def careless(batch, now_ms):
        data = bytearray(batch.data)
        data[22] |= LOG_APPEND_TIME
        data[35:43] = now_ms.to_bytes(8, "big")
        return RecordBatch(
            bytes(data), producer_index=batch.producer_index, first_record=batch.first_record
        )

    with monkeypatch.context() as planting:
        planting.setattr(validator, "with_append_time", careless)
        ran = go(
            tmp_path, topic=topic(**{"message.timestamp.type": "LogAppendTime"}), lasts="2s",
        )  # fmt: skip
    assert ran.records["acked"] == 0, "no follower took them, so acks=all never came"
    assert not any(batch.valid() for batch in leaders_batches(ran))
