"""The states of a cluster over time: partitions, offline time, load, lag and the timeline."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pandas as pd
from pyspark.sql import DataFrame, SparkSession

from analysis.report import load, replication, timeline
from analysis.spark import tables
from analysis.spark.session import FEW_ROWS, for_few_rows
from analysis.verify import offline
from sim.units import Micros

_TABLES: Final = (
    *("partition_changes", "high_watermarks", "topic_deletions", "broker_states", "node_states"),
    *("quorum", "controllers", "groups", "load", "lag"),
)
_PLACE: Final = ("topic", "partition")


def frames(
    spark: SparkSession,
    directory: Path,
    card: Mapping[str, object],
    end_us: Micros,
    width_us: Micros,
) -> dict[str, pd.DataFrame]:
    """Tables of the report by name. Their sources are small in a long run, too, mostly.

    Args:
        spark: The session.
        directory: The run's.
        card: Its ``run.json``.
        end_us: End of simulated time.
        width_us: Width of a bin.
    """
    if tables.rows(directory, _TABLES) < FEW_ROWS:
        spark = for_few_rows(spark)

    def read(name: str) -> DataFrame:
        return tables.read(spark, directory, name)

    spans = replication.spans(read("partition_changes"), read("high_watermarks"), end_us).persist()
    tracks = timeline.spans(read, spans, end_us).orderBy("track", "lane", "from_us")
    found = {
        "offline": offline.frame(read, card, end_us),
        "partition_states": spans.orderBy(*_PLACE, "from_us").toPandas(),
        "replication": replication.totals(spans).orderBy(*_PLACE).toPandas(),
        "load": load.servers(read("load"), width_us).orderBy("node", "bin").toPandas(),
        "lag": load.consumers(read("lag"), width_us).orderBy("group", "bin").toPandas(),
        "timeline": tracks.toPandas(),
    }
    spans.unpersist()
    return found
