"""Batches of output records; each value names the input record that it was made from."""

from typing import Final

from sim.protocol.clients.producer.config import ProducerConfig
from sim.protocol.clients.producer.events import ProducerBatchDraft
from sim.protocol.streams.outputs import Origins
from sim.units import Bytes
from sim.wire.compression import codec_named
from sim.wire.origins import ORIGIN_BYTES, origin_rows
from sim.wire.payload import build_producer_batch
from sim.wire.record_batch import RecordBatch
from sim.wire.rows import Style

_STYLE: Final = Style(noise_bytes=ORIGIN_BYTES)


def output_batch(
    producer_index: int,
    value_bytes: Bytes,
    config: ProducerConfig,
    draft: ProducerBatchDraft,
    origins: Origins,
) -> RecordBatch:
    """Encodes a batch of outputs.

    Args:
        producer_index: Its producer.
        value_bytes: Size of each value, at least ``OUTPUT_BYTES_MIN``.
        config: The producer's settings.
        draft: The batch.
        origins: Input record of each output.
    """
    return build_producer_batch(
        producer_index=producer_index,
        first_record=draft.first_record,
        intended_us=draft.intended_us,
        value_size=value_bytes,
        timestamps_ms=draft.timestamps_ms,
        producer_id=draft.producer_id,
        producer_epoch=draft.producer_epoch,
        base_sequence=draft.base_sequence,
        codec=codec_named(config.compression_type),
        level=config.compression_level,
        style=_STYLE,
        noise=origin_rows(origins.producers, origins.partitions, origins.records, origins.ordinals),
        transactional=bool(config.transactional_id),
    )
