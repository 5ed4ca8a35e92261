"""CPU costs of compression and decompression, by codec and level.

Batches are really compressed; the simulated time that it takes is not measured but follows from
these figures, so that a run does not depend on the machine it runs on.

Source: the tables of zstd's and lzbench's READMEs, one core, rounded; a modelling choice.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping
from typing import Final

from sim.ids import TopicPartition
from sim.log.config import RecordRules
from sim.log.partition.validator import must_recompress
from sim.protocol.messages.data import ProduceRequest
from sim.units import SECOND, Bytes, Micros
from sim.wire.compression import CODECS, DEFAULT_LEVELS, Codec
from sim.wire.record_batch import RecordBatch

_MB: Final = 1_000_000

_LZ4_FAST: Final = 700 * _MB
"""Kafka's default level for lz4 is its fast compressor, despite the number."""

COMPRESS: Final[Mapping[Codec, tuple[tuple[int, ...], tuple[int, ...]]]] = {
    "gzip": ((1, 6, 9), (100 * _MB, 35 * _MB, 14 * _MB)),
    "snappy": ((0,), (500 * _MB,)),
    "lz4": ((1, 4, 10), (100 * _MB, 50 * _MB, 15 * _MB)),
    "zstd": (
        (-131_072, 1, 3, 6, 9, 12, 16, 19),
        (800 * _MB, 500 * _MB, 300 * _MB, 120 * _MB, 70 * _MB, 35 * _MB, 10 * _MB, 4 * _MB),
    ),
}
"""Levels from which a speed applies, and the speeds: uncompressed bytes a second."""

DECOMPRESS: Final[Mapping[Codec, int]] = {
    "gzip": 400 * _MB, "snappy": 1_500 * _MB, "lz4": 4_000 * _MB, "zstd": 1_400 * _MB,
}  # fmt: skip
"""Uncompressed bytes a second."""


def compress_us(codec: Codec, level: int | None, raw_bytes: Bytes) -> Micros:
    """Time to compress so many bytes, rounded up; nothing for ``none``."""
    if codec == "none":
        return 0
    if level is None:
        level = DEFAULT_LEVELS.get(codec, 0)
    if codec == "lz4" and level == DEFAULT_LEVELS["lz4"]:
        return -(-raw_bytes * SECOND // _LZ4_FAST)
    if codec == "gzip" and level < 0:
        level = 6
    levels, speeds = COMPRESS[codec]
    speed = speeds[max(0, bisect_right(levels, level) - 1)]
    return -(-raw_bytes * SECOND // speed)


def decompress_us(codec: Codec, raw_bytes: Bytes) -> Micros:
    """Time to decompress to so many bytes, rounded up; nothing for ``none``."""
    return 0 if codec == "none" else -(-raw_bytes * SECOND // DECOMPRESS[codec])


class ProduceCosts:
    """Codec costs of a leader's request handler for produced batches.

    It decompresses every compressed batch to check its records; if the topic's ``compression.type``
    is another codec, it compresses them again.

    Source: ``LogValidator.validateMessagesAndAssignOffsetsCompressed``.
    """

    def __init__(self, rules_of: Callable[[TopicPartition], RecordRules | None]) -> None:
        self._rules_of = rules_of

    def of(self, request: ProduceRequest) -> Micros:
        """Costs of all batches of the request, one after the other."""
        cost: Micros = 0
        for partition, batch in request.batches:
            assert isinstance(batch, RecordBatch), "a real broker takes real batches"
            source = CODECS[batch.attributes & 7]
            rules = self._rules_of(partition)
            if source != "none":
                cost += decompress_us(source, batch.raw_bytes)
            if (
                rules is not None
                and rules.codec is not None
                and must_recompress(batch, rules.codec)
            ):
                cost += compress_us(rules.codec, rules.level, batch.raw_bytes)
        return cost
