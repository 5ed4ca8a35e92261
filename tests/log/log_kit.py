"""Batches and logs for the tests of this folder."""

from pathlib import Path

import numpy as np

from sim.ids import TopicPartition
from sim.log.config import LogConfig
from sim.log.directory.manager import LogManager
from sim.log.partition.log import PartitionLog
from sim.log.partition.recovery import create_log
from sim.log.store.files import FileStore
from sim.units import timestamp_ms
from sim.wire.payload import build_producer_batch
from sim.wire.record_batch import RecordBatch

TP = TopicPartition("orders", 0)
NOW = timestamp_ms(0)
TOPIC_ID = "AAECAwQFBgcICQoLDA0ODw"
CLUSTER_ID = "EBESExQVFhcYGRobHB0eHw"
DIRECTORY_IDS = ("ICEiIyQlJicoKSorLC0uLw", "MDEyMzQ1Njc4OTo7PD0-Pw")


def batch(
    first: int = 0,
    count: int = 1,
    *,
    size: int = 100,
    at_ms: int = 0,
    pid: int = -1,
    epoch: int = 0,
    sequence: int | None = None,
) -> RecordBatch:
    """A client's batch of ``count`` records; its sequence is its first record's number."""
    known = pid >= 0
    return build_producer_batch(
        producer_index=1, first_record=first, intended_us=np.arange(count), value_size=size,
        timestamps_ms=np.full(count, NOW + at_ms), producer_id=pid,
        producer_epoch=epoch if known else -1,
        base_sequence=(first if sequence is None else sequence) if known else -1,
    )  # fmt: skip


def new_log(root: Path, config: LogConfig | None = None) -> PartitionLog:
    return create_log(FileStore(root), str(TP), TP, config or LogConfig())


def manager(*stores: FileStore, config: LogConfig | None = None) -> LogManager:
    settings = config or LogConfig()
    ids = DIRECTORY_IDS[: len(stores)]
    return LogManager(stores, 1, CLUSTER_ID, ids, lambda _: settings)


def contents(log: PartitionLog) -> list[bytes]:
    """The bytes of every batch, from the files."""
    return [found.data for found in log.batches(log.log_start_offset)]
