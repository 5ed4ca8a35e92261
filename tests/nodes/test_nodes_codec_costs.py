"""What codecs cost: by codec, level and bytes, and who pays."""

import numpy as np
import pytest

from sim.ids import TopicPartition
from sim.log.config import RecordRules
from sim.nodes.process.codec_costs import COMPRESS, ProduceCosts, compress_us, decompress_us
from sim.nodes.process.cpu import CpuSpec
from sim.protocol.messages.data import ProduceRequest
from sim.units import timestamp_ms
from sim.wire.compression import CODECS, DEFAULT_LEVELS
from sim.wire.payload import build_producer_batch

MIB = 1 << 20
ORDERS = TopicPartition("orders", 0)


def batch(codec, count=200):
    return build_producer_batch(
        producer_index=0, first_record=0, intended_us=np.arange(count), value_size=100,
        timestamps_ms=np.full(count, timestamp_ms(0)), codec=codec,
    )  # fmt: skip


@pytest.mark.parametrize("codec", [codec for codec in CODECS if codec != "none"])
def test_a_higher_level_is_never_faster_and_unpacking_is_faster_than_packing(codec):
    for levels, speeds in COMPRESS.values():
        assert len(levels) == len(speeds)
        assert list(levels) == sorted(levels)
        assert list(speeds) == sorted(speeds, reverse=True)
    assert decompress_us(codec, MIB) < compress_us(codec, None, MIB)


def test_nothing_costs_nothing_and_the_default_level_is_the_codecs():
    assert compress_us("none", None, MIB) == decompress_us("none", MIB) == 0
    assert compress_us("gzip", -1, MIB) == compress_us("gzip", 6, MIB)
    for codec, level in DEFAULT_LEVELS.items():
        assert compress_us(codec, None, MIB) == compress_us(codec, level, MIB)
    assert compress_us("lz4", 9, MIB) < compress_us("lz4", 8, MIB) < compress_us("lz4", 12, MIB)
    assert compress_us("zstd", -5, MIB) < compress_us("zstd", 3, MIB) < compress_us("zstd", 22, MIB)


def test_costs_are_rounded_up_and_grow_with_the_bytes():
    assert compress_us("gzip", 6, 1) == 1
    assert compress_us("gzip", 6, 35_000_000) == 1_000_000
    assert decompress_us("gzip", 400) == 1


def service(codec, rules):
    made = batch(codec)
    request = ProduceRequest(-1, 1_000, ((ORDERS, made),))
    costs = None if rules == "off" else ProduceCosts(lambda _: rules)
    return CpuSpec().service_us(request, 0, costs), made.raw_bytes


def test_recompression_is_paid_by_the_request_handler():
    plain, raw = service("none", "off")
    assert service("none", None)[0] == plain
    assert service("gzip", None)[0] == plain + decompress_us("gzip", raw)
    unpacked = service("gzip", RecordRules(codec="none"))[0]
    assert unpacked == plain + decompress_us("gzip", raw)
    repacked = service("lz4", RecordRules(codec="zstd", level=19))[0]
    assert repacked == plain + decompress_us("lz4", raw) + compress_us("zstd", 19, raw)
    packed = service("none", RecordRules(codec="gzip"))[0]
    assert packed == plain + compress_us("gzip", None, raw)


def test_the_same_codec_is_not_paid_for_again():
    plain, raw = service("none", "off")
    assert service("zstd", RecordRules(codec="zstd"))[0] == plain + decompress_us("zstd", raw)
