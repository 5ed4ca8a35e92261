"""The tables of a trace: plain data, standard library only.

One row is one event. ``t_us`` is its instant in microseconds since the scenario's zero;
the cluster boots before zero. A table of level ``facts`` is written at every tracing level and
makes up the trace digest; a table of level ``detail`` is written at level ``detail`` (the default)
only.

Records are known by (producer index, topic, partition, record number): a producer numbers the
records it sends to each partition from 0, so every batch is a contiguous range of numbers.
"""

from typing import Final

from sim.trace.schema_types import VERSION, Column, ColumnType, Level, Table
from sim.trace.tables_clients import CLIENT_TABLES
from sim.trace.tables_cluster import CLUSTER_TABLES
from sim.trace.tables_connectors import CONNECTOR_TABLES
from sim.trace.tables_log import LOG_TABLES
from sim.trace.tables_mirrors import MIRROR_TABLES
from sim.trace.tables_run import RUN_TABLES
from sim.trace.tables_share import SHARE_TABLES
from sim.trace.tables_tiered import TIERED_TABLES

__all__ = ["BY_NAME", "TABLES", "VERSION", "Column", "ColumnType", "Level", "Table"]

TABLES: Final[tuple[Table, ...]] = (
    *LOG_TABLES,
    *CLUSTER_TABLES,
    *CLIENT_TABLES,
    *RUN_TABLES,
    *MIRROR_TABLES,
    *SHARE_TABLES,
    *CONNECTOR_TABLES,
    *TIERED_TABLES,
)
"""Every table, in the order of digests."""

BY_NAME: Final[dict[str, Table]] = {table.name: table for table in TABLES}
"""Tables by name."""
