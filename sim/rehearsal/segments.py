"""Rows of the batches that a real cluster left in its log directories.

Nobody saw when a replica wrote a batch. A row has the largest timestamp of the records up to there,
which the producers' clocks set, and none before the one in front of it. A batch whose records are
not numbered without gaps has a row for each run of numbers.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from sim.ids import METADATA_PARTITION, NodeId, Offset, TopicPartition
from sim.log.directory.names import partition_of
from sim.log.partition.reading import file_batches, segments
from sim.rehearsal.metadata import Cluster
from sim.trace.emit import Emit
from sim.trace.rows.clients import Markers
from sim.trace.rows.log import Appends
from sim.units import MS, Micros
from sim.wire.payload import payload_of
from sim.wire.record_batch import RecordBatch


class Run(NamedTuple):
    """Records of a batch whose numbers and offsets both grow by one."""

    base_offset: Offset
    last_offset: Offset
    producer_index: int
    first_record: int


@dataclass(slots=True)
class Segments:
    """Rows of all replicas.

    Args:
        cluster: The state that the controllers committed.
        zero_us: The scenario's zero, in microseconds since 1970.
        end_us: The last instant that a row may have.
    """

    cluster: Cluster
    zero_us: Micros
    end_us: Micros
    damaged: list[str] = field(default_factory=list)
    """Batches with a wrong checksum, by file and offset."""
    _runs: dict[tuple[Offset, int], list[Run]] = field(default_factory=dict)

    def rows(self, brokers: Mapping[NodeId, tuple[Path, ...]]) -> Iterator[tuple[Micros, Emit]]:
        """Rows of each replica in the order of its log; brokers by ``node.id``."""
        for broker, directories in brokers.items():
            for directory in directories:
                for path in sorted(directory.glob("*-*")):
                    place = partition_of(path.name)
                    if place is not None and place != METADATA_PARTITION:
                        yield from self._replica(broker, place, path)

    def _replica(
        self, broker: NodeId, place: TopicPartition, directory: Path
    ) -> Iterator[tuple[Micros, Emit]]:
        at: Micros = -(1 << 62)
        for path in segments(directory)[0]:
            for _, batch in file_batches(path):
                if not batch.valid():
                    name = f"{directory.parent.parent.name}/{directory.name}"
                    self.damaged.append(f"{name}@{batch.base_offset}")
                    continue
                at = min(max(at, batch.max_timestamp_ms * MS - self.zero_us), self.end_us)
                for row in self._batch(broker, place, batch):
                    yield at, row

    def _batch(self, broker: NodeId, place: TopicPartition, batch: RecordBatch) -> Iterator[Emit]:
        leads = self.cluster.leaders.get((place, batch.leader_epoch)) == broker
        for run in self._runs_of(batch):
            yield Appends.row(
                broker,
                *place,
                base_offset=run.base_offset,
                last_offset=run.last_offset,
                leader_epoch=batch.leader_epoch,
                as_leader=leads,
                size_bytes=batch.size_bytes,
                crc=batch.crc,
                producer_index=run.producer_index,
                first_record=run.first_record,
                record_count=run.last_offset - run.base_offset + 1,
                producer_id=batch.producer_id,
                producer_epoch=batch.producer_epoch,
                base_sequence=batch.base_sequence,
            )
        if batch.is_control and batch.is_transactional and leads:
            yield Markers.row(
                broker,
                *place,
                offset=batch.base_offset,
                producer_id=batch.producer_id,
                producer_epoch=batch.producer_epoch,
                committed=not batch.is_abort_marker,
                coordinator_epoch=-1,
            )

    def _runs_of(self, batch: RecordBatch) -> list[Run]:
        """Runs of a batch; replicas have the same bytes, which are read once."""
        key = batch.base_offset, batch.crc
        known = self._runs.get(key)
        if known is None:
            known = self._runs[key] = list(_runs(batch))
        return known


def _runs(batch: RecordBatch) -> Iterator[Run]:
    if batch.is_control:
        yield Run(batch.base_offset, batch.last_offset, -1, -1)
        return
    run: Run | None = None
    for record in batch.records():
        named = payload_of(record)
        producer, number = (-1, -1) if named is None else (named.producer_index, named.number)
        if run is not None and _continues(run, record.offset, producer, number):
            run = run._replace(last_offset=record.offset)
            continue
        if run is not None:
            yield run
        run = Run(record.offset, record.offset, producer, number)
    if run is not None:
        yield run


def _continues(run: Run, offset: Offset, producer: int, number: int) -> bool:
    if offset != run.last_offset + 1 or producer != run.producer_index:
        return False
    return producer < 0 or number == run.first_record + offset - run.base_offset
