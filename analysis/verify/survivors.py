"""Survivors: the contents of the replicas' segment files after a run.

Few bytes are decoded by this process, in less time than Spark needs to start its Python workers;
many on the executors. The unit of distribution is a segment file; a file is read in windows, so
memory does not grow with its size. Workers open the files by path: in a cluster the run directory
must be reachable there.
Controllers' disks and the metadata log are left out, and so are directories of partitions that
were deleted, strayed or are being moved (``-delete``, ``-stray``, ``-future``).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from analysis.verify import segments
from sim.units import GIB, Bytes

SCHEMA: Final = t.StructType(
    [
        t.StructField("broker", t.IntegerType()),
        t.StructField("topic", t.StringType()),
        t.StructField("partition", t.IntegerType()),
        t.StructField("path", t.StringType()),
        t.StructField("position", t.LongType()),
        t.StructField("size_bytes", t.LongType()),
        t.StructField("base_offset", t.LongType()),
        t.StructField("last_offset", t.LongType()),
        t.StructField("leader_epoch", t.IntegerType()),
        t.StructField("crc", t.LongType()),
        t.StructField("producer_index", t.IntegerType()),
        t.StructField("first_record", t.LongType()),
        t.StructField("record_count", t.IntegerType()),
        t.StructField("status", t.StringType()),
        t.StructField("producer_id", t.LongType()),
        t.StructField("kind", t.ByteType()),
    ]
)
"""One row is a run of records of one batch, see :class:`analysis.verify.segments.Run`."""

HERE_BYTES: Final = 2 * GIB
"""Segment bytes up to which this process decodes them: 150 MB take a second."""

_OWNER: Final = (
    ("broker", pa.int32()),
    ("topic", pa.string()),
    ("partition", pa.int32()),
    ("path", pa.string()),
)
_WORK: Final = "broker int, topic string, partition int, path string"
_BROKER = re.compile(r"broker-(?P<id>\d+)")
_PARTITION = re.compile(r"(?P<topic>[A-Za-z0-9._-]+)-(?P<number>\d+)")
_METADATA: Final = "__cluster_metadata"
_TASKS_PER_CORE: Final = 3


@dataclass(frozen=True, slots=True, order=True)
class ReplicaFiles:
    """A replica of a partition and its segments in order of base offset."""

    broker: int
    topic: str
    partition: int
    paths: tuple[Path, ...]
    size_bytes: Bytes
    directory: Path
    """Directory of the partition, on its disk."""


def replicas(run: Path) -> tuple[ReplicaFiles, ...]:
    """Every replica that has a directory on a broker's simulated disks."""
    found: list[ReplicaFiles] = []
    for directory in sorted((run / "disks").glob("*/*/*-*")):
        broker = _BROKER.fullmatch(directory.parent.parent.name)
        partition = _PARTITION.fullmatch(directory.name)
        if broker is None or partition is None or partition["topic"] == _METADATA:
            continue
        paths = tuple(sorted(directory.glob("*.log")))
        size = sum(path.stat().st_size for path in paths)
        where = int(broker["id"]), partition["topic"], int(partition["number"])
        found.append(ReplicaFiles(*where, paths, size, directory))
    return tuple(found)


def table(spark: SparkSession, files: Sequence[ReplicaFiles], place: Path) -> DataFrame:
    """Decodes all segments into a table on the disk, checking the CRC-32C of every batch.

    Args:
        spark: The session.
        files: Replicas of a run.
        place: Directory of the table's Parquet files, which is made.

    Returns:
        The table: rows of :data:`SCHEMA`.
    """
    if sum(replica.size_bytes for replica in files) <= HERE_BYTES:
        _decode_here(files, place)
    else:
        read(spark, files).write.mode("overwrite").parquet(str(place.resolve()))
    return spark.read.schema(SCHEMA).parquet(str(place.resolve()))


def _decode_here(files: Sequence[ReplicaFiles], place: Path) -> None:
    place.mkdir(parents=True)
    fields = [*_OWNER, *((field.name, field.type) for field in segments.COLUMNS)]
    with pq.ParquetWriter(place / "part-0.parquet", pa.schema(fields)) as writer:
        for item in _work(files):
            for found in _runs(*item):
                writer.write_batch(found)


def _work(files: Sequence[ReplicaFiles]) -> list[tuple[int, str, int, str]]:
    return [
        (replica.broker, replica.topic, replica.partition, str(path.resolve()))
        for replica in files
        for path in replica.paths
        if path.stat().st_size
    ]


def read(spark: SparkSession, files: Sequence[ReplicaFiles]) -> DataFrame:
    """Decodes all segments on the executors: rows of :data:`SCHEMA`."""
    work = _work(files)
    if not work:
        return spark.createDataFrame([], SCHEMA)
    context = spark.sparkContext
    tasks = _dealt(work, context.defaultParallelism * _TASKS_PER_CORE)
    dealt = context.parallelize(tasks, len(tasks)).flatMap(list)
    return spark.createDataFrame(dealt, _WORK).mapInArrow(_decode, SCHEMA)


def _dealt(
    work: Sequence[tuple[int, str, int, str]], most: int
) -> list[list[tuple[int, str, int, str]]]:
    """The files in about equal heaps: the largest first, each onto the smallest heap."""
    sized = sorted(((Path(item[3]).stat().st_size, item) for item in work), reverse=True)
    heaps: list[list[tuple[int, str, int, str]]] = [[] for _ in range(min(most, len(work)))]
    sizes = [0] * len(heaps)
    for size, item in sized:
        smallest = sizes.index(min(sizes))
        heaps[smallest].append(item)
        sizes[smallest] += size
    return [heap for heap in heaps if heap]


def _decode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for item in batch.to_pylist():
            yield from _runs(*(item[name] for name, _ in _OWNER))


def _runs(*owner: object) -> Iterator[pa.RecordBatch]:
    """Runs of one segment; its owner is its broker, topic, partition and path."""
    for found in segments.runs(Path(str(owner[-1]))):
        known = [
            pa.repeat(pa.scalar(value, kind), found.num_rows)
            for value, (_, kind) in zip(owner, _OWNER, strict=True)
        ]
        names = [name for name, _ in _OWNER] + segments.COLUMNS.names
        yield pa.RecordBatch.from_arrays([*known, *found.columns], names=names)
