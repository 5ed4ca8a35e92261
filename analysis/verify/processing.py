"""Checks that tasks made every output of every input record once, from the bytes of the outputs.

An output has its input record's identity in its value; here that is read from the final leaders'
segment files. Counts are defined as in :mod:`sim.checking.outcomes.processing`, which uses the
tasks' trace rows instead.

Source: the value's layout: 24 bytes of payload, then ``LQI1``, int32 producer index, int32
partition, int64 number, int32 ordinal, all big-endian.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from analysis.verify.survivors import ReplicaFiles
from sim.wire.record_batch import RecordBatch

COUNTS: Final = ("unprocessed", "reprocessed", "orphaned")
"""The numbers of the verdict, in its order."""

ORIGINS: Final = t.StructType(
    [
        t.StructField("broker", t.IntegerType()),
        t.StructField("topic", t.StringType()),
        t.StructField("partition", t.IntegerType()),
        t.StructField("offset", t.LongType()),
        t.StructField("input_producer", t.IntegerType()),
        t.StructField("input_partition", t.IntegerType()),
        t.StructField("input_record", t.LongType()),
        t.StructField("ordinal", t.IntegerType()),
    ]
)
"""One row is one output on one replica, with its input record."""

_ORIGIN: Final = struct.Struct(">4siiqi")
_PAYLOAD_BYTES: Final = 24
_MAGIC: Final = b"LQI1"
_HEADER_BYTES: Final = 12
_COLUMNS: Final = pa.schema(
    [
        ("broker", pa.int32()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("input_producer", pa.int32()),
        ("input_partition", pa.int32()),
        ("input_record", pa.int64()),
        ("ordinal", pa.int32()),
    ]
)
_WORK: Final = "broker int, topic string, partition int, path string"
_INPUT: Final = ["input_producer", "input_partition", "input_record", "ordinal"]


def origins(spark: SparkSession, files: Sequence[ReplicaFiles], topics: Sequence[str]) -> DataFrame:
    """Input records of every output in the files of these topics: rows of :data:`ORIGINS`."""
    work = [
        (replica.broker, replica.topic, replica.partition, str(path.resolve()))
        for replica in files
        for path in replica.paths
        if replica.topic in topics and path.stat().st_size
    ]
    if not work:
        return spark.createDataFrame([], ORIGINS)
    dealt = spark.sparkContext.parallelize(work, len(work))
    return spark.createDataFrame(dealt, _WORK).mapInArrow(_decode, ORIGINS)


def counts(tasks: DataFrame, visible: DataFrame, named: DataFrame) -> dict[str, int]:
    """The numbers of all groups of tasks together.

    Args:
        tasks: Trace table.
        visible: Rows of :func:`analysis.verify.durability.leader_runs`.
        named: Rows of :data:`ORIGINS`.
    """
    groups = tasks.select("group", "inputs", "output", "each", "producer_index").distinct()
    inputs = groups.select(
        "group", "each", f.explode(f.split("inputs", ",")).alias("topic")
    ).distinct()
    last = f.col("first_record") + f.col("record_count") - 1
    due = (
        visible.join(f.broadcast(inputs), "topic")
        .select(
            "group",
            f.col("producer_index").alias("input_producer"),
            f.col("partition").alias("input_partition"),
            f.explode(f.sequence("first_record", last)).alias("input_record"),
            "each",
        )
        .withColumn("ordinal", f.explode(f.sequence(f.lit(0), f.col("each") - 1)))
        .groupBy("group", *_INPUT)
        .agg(f.count(f.lit(1)).alias("due"))
    )
    outputs = groups.select("group", f.col("output").alias("topic"), "producer_index")
    end = f.col("base_offset") + f.col("record_count") - 1
    made = (
        visible.join(f.broadcast(outputs), ["topic", "producer_index"])
        .select(
            "group",
            "broker",
            "topic",
            "partition",
            f.explode(f.sequence("base_offset", end)).alias("offset"),
        )
        .join(named, ["broker", "topic", "partition", "offset"], "left")
        .groupBy("group", *_INPUT)
        .agg(f.count(f.lit(1)).alias("made"))
    )
    both = due.join(made, ["group", *_INPUT], "full").select(
        f.coalesce("due", f.lit(0)).alias("due"), f.coalesce("made", f.lit(0)).alias("made")
    )
    missing = f.greatest(f.col("due") - f.col("made"), f.lit(0))
    again = f.when(f.col("due") > 0, f.greatest(f.col("made") - f.col("due"), f.lit(0)))
    row = both.agg(
        f.sum(missing).alias("unprocessed"),
        f.sum(again).alias("reprocessed"),
        f.sum(f.when(f.col("due") == 0, f.col("made"))).alias("orphaned"),
    ).first()
    assert row is not None, "an aggregate has a row"
    return {name: int(row[name] or 0) for name in COUNTS}


def _decode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for item in batch.to_pylist():
            rows = [
                (item["broker"], item["topic"], item["partition"], *found)
                for found in _named(Path(item["path"]).read_bytes())
            ]
            if rows:
                arrays = [
                    pa.array(column, field.type)
                    for column, field in zip(zip(*rows, strict=True), _COLUMNS, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(arrays, schema=_COLUMNS)


def _named(data: bytes) -> Iterator[tuple[int, int, int, int, int]]:
    """Offset, and input producer, partition, record and ordinal, of each output in a segment."""
    at = 0
    while at + _HEADER_BYTES <= len(data):
        size = _HEADER_BYTES + int.from_bytes(data[at + 8 : at + _HEADER_BYTES], "big")
        if at + size > len(data):
            return
        for record in RecordBatch.parse(data[at : at + size]).records():
            value = record.value
            if value is not None and len(value) >= _PAYLOAD_BYTES + _ORIGIN.size:
                magic, *found = _ORIGIN.unpack_from(value, _PAYLOAD_BYTES)
                if magic == _MAGIC:
                    producer, partition, number, ordinal = found
                    yield record.offset, producer, partition, number, ordinal
        at += size
