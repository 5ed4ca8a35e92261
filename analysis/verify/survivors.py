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
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
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
FIELDS: Final = pa.schema([*_OWNER, *segments.COLUMNS])
"""The same columns, of the table's files."""

_ROWS: Final = 1 << 17
"""Least rows that are written at once: many small files are one row group."""

_WORK: Final = "broker int, topic string, partition int, path string, low long, high long"
_ANYWHERE: Final = (-(1 << 62), 1 << 62)
Item: TypeAlias = tuple[int, str, int, str, int, int]
"""A file to decode: its owner, and the bounds of first offsets that count."""

_BROKER = re.compile(r"broker-(?P<id>\d+)")
_PARTITION = re.compile(r"(?P<topic>[A-Za-z0-9._-]+)-(?P<number>\d+)")
_METADATA: Final = "__cluster_metadata"
_TASKS_PER_CORE: Final = 3


@dataclass(frozen=True, slots=True, order=True)
class RemoteFile:
    """The batches of a remote segment with first offsets in [low, high) belong to a replica."""

    low: int
    high: int
    path: Path


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
    remote: tuple["RemoteFile", ...] = ()
    """Of a tiered partition: what is below its local log, in order of offset."""


def replicas(run: Path) -> tuple[ReplicaFiles, ...]:
    """Every replica that has a directory on a broker's simulated disks."""
    found: list[ReplicaFiles] = []
    copies = _finished(run)
    for directory in sorted((run / "disks").glob("*/*/*-*")):
        broker = _BROKER.fullmatch(directory.parent.parent.name)
        partition = _PARTITION.fullmatch(directory.name)
        if broker is None or partition is None or partition["topic"] == _METADATA:
            continue
        paths = tuple(sorted(directory.glob("*.log")))
        size = sum(path.stat().st_size for path in paths)
        remote = _below(copies.get(directory.name, []), paths)
        size += sum(file.path.stat().st_size for file in remote)
        where = int(broker["id"]), partition["topic"], int(partition["number"])
        found.append(ReplicaFiles(*where, paths, size, directory, remote))
    return tuple(found)


def _finished(run: Path) -> dict[str, list[RemoteFile]]:
    """Finished copies of each partition whose batches are in the object store, by their start."""
    found: dict[str, list[RemoteFile]] = {}
    if not (run / "object-store").is_dir():
        return found
    ends: dict[str, int] = {}
    for row in pq.read_table(run / "trace" / "remote_segments").to_pylist():
        if row["state"] == "COPY_SEGMENT_FINISHED":
            ends[row["segment"]] = row["end_offset"] + 1
        else:
            ends.pop(row["segment"], None)
    for path in sorted((run / "object-store").glob("*/*.log")):
        start, _, segment = path.stem.partition("-")
        if segment in ends:
            file = RemoteFile(int(start), ends[segment], path)
            found.setdefault(path.parent.name, []).append(file)
    return found


def _below(copies: Sequence[RemoteFile], local: Sequence[Path]) -> tuple[RemoteFile, ...]:
    """Parts of the copies that lie below a replica's local log, no offset twice."""
    below = int(local[0].stem) if local else 1 << 62
    found: list[RemoteFile] = []
    position = 0
    for copy in sorted(copies):
        low, high = max(copy.low, position), min(copy.high, below)
        if low < high:
            found.append(RemoteFile(low, high, copy.path))
            position = high
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
        decode_here(files, place)
    else:
        read(spark, files).write.mode("overwrite").parquet(str(place.resolve()))
    return spark.read.schema(SCHEMA).parquet(str(place.resolve()))


def decode_here(files: Sequence[ReplicaFiles], place: Path) -> None:
    """Decodes all segments by this process.

    Args:
        files: Replicas of a run.
        place: Directory of the table's Parquet file, which is made.
    """
    place.mkdir(parents=True)
    with pq.ParquetWriter(place / "part-0.parquet", FIELDS) as writer:
        held: list[pa.RecordBatch] = []
        rows = 0
        for found in (each for item in _work(files) for each in _runs(*item)):
            held.append(found)
            rows += found.num_rows
            if rows >= _ROWS:
                writer.write_table(pa.Table.from_batches(held))
                held, rows = [], 0
        writer.write_table(pa.Table.from_batches(held, FIELDS))


def _work(files: Sequence[ReplicaFiles]) -> list[Item]:
    return [
        (replica.broker, replica.topic, replica.partition, str(path.resolve()), low, high)
        for replica in files
        for path, low, high in (
            *((path, *_ANYWHERE) for path in replica.paths),
            *((file.path, file.low, file.high) for file in replica.remote),
        )
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


def _dealt(work: Sequence[Item], most: int) -> list[list[Item]]:
    """The files in about equal heaps: the largest first, each onto the smallest heap."""
    sized = sorted(((Path(item[3]).stat().st_size, item) for item in work), reverse=True)
    heaps: list[list[Item]] = [[] for _ in range(min(most, len(work)))]
    sizes = [0] * len(heaps)
    for size, item in sized:
        smallest = sizes.index(min(sizes))
        heaps[smallest].append(item)
        sizes[smallest] += size
    return [heap for heap in heaps if heap]


def _decode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for item in batch.to_pylist():
            owner = (item[name] for name, _ in _OWNER)
            yield from _runs(*owner, item["low"], item["high"])


def _runs(*item: object) -> Iterator[pa.RecordBatch]:
    """Runs of one segment with first offsets in its bounds; before them is its owner."""
    *owner, low, high = item
    for runs in segments.runs(Path(str(owner[-1]))):
        found = runs
        if (low, high) != _ANYWHERE:
            base = found.column("base_offset")
            inside = pc.and_(pc.greater_equal(base, low), pc.less(base, high))
            found = found.filter(inside)
        known = [
            pa.repeat(pa.scalar(value, kind), found.num_rows)
            for value, (_, kind) in zip(owner, _OWNER, strict=True)
        ]
        names = [name for name, _ in _OWNER] + segments.COLUMNS.names
        yield pa.RecordBatch.from_arrays([*known, *found.columns], names=names)
