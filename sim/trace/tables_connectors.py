"""Tables of connectors' tasks and of the external systems that they read and write."""

from typing import Final

from sim.trace.schema_types import FIRST_RECORD, PLACE, PRODUCER_INDEX, Column, Table, facts

_CONNECTOR: Final = Column("connector", "string", "name of the connector")
_TASK: Final = Column("task", "string", "name of the task")
_NUMBER: Final = Column("source_partition", "int32", "partition of the external log")

CONNECTOR_TABLES: Final[tuple[Table, ...]] = (
    facts(
        "connector_tasks",
        "a connector's task began",
        _CONNECTOR,
        Column("kind", "string", "source or sink"),
        _TASK,
        Column("number", "int32", "its number among the connector's, from 0"),
        Column("producer_index", "int32", "as written into record values; -1 for a sink"),
        Column("topics", "string", "what it writes or reads, joined by commas"),
    ),
    facts(
        "external_logs",
        "the external log of a source has all the records that it will have in this run",
        _CONNECTOR,
        _NUMBER,
        Column("records", "int64", "how many they are"),
    ),
    facts(
        "sourced",
        "a source task encoded external records in a row, for the first time or again",
        _TASK,
        PRODUCER_INDEX,
        *PLACE,
        FIRST_RECORD,
        Column("record_count", "int32", "records in a row"),
        _NUMBER,
        Column("position", "int64", "of the first of them in the external log"),
    ),
    facts(
        "source_offsets",
        "a source task got its start position, or the confirmation of a stored one",
        _CONNECTOR,
        _NUMBER,
        Column("position", "int64", "of the next record of the external log"),
        Column("what", "string", "begun, stored"),
    ),
    facts(
        "external_writes",
        "a sink task wrote records in a row to its external system",
        _CONNECTOR,
        _TASK,
        *PLACE,
        Column("base_offset", "int64", "of the first record"),
        Column("producer_index", "int32", "which producer made the records"),
        Column("first_record", "int64", "number of the first record"),
        Column("record_count", "int32", "records in a row"),
    ),
)
"""In the order of digests."""
