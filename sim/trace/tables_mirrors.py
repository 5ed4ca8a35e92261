"""Tables of mirrors, in the trace of the target cluster."""

from typing import Final

from sim.trace.schema_types import PARTITION, PLACE, PRODUCER_INDEX, Column, Table, facts

_MIRROR: Final = Column("mirror", "string", "name of the mirror")
_OFFSETS: Final = (
    Column("upstream", "int64", "offset in the source cluster"),
    Column("downstream", "int64", "offset in the target cluster"),
)

MIRROR_TABLES: Final[tuple[Table, ...]] = (
    facts(
        "mirrored",
        "a mirror encoded copies of records in a row, for the first time or again",
        _MIRROR,
        PRODUCER_INDEX,
        *PLACE,
        Column("first_record", "int64", "number of the first copy in this partition"),
        Column("record_count", "int32", "copies in a row, of records in a row"),
        Column("source_topic", "string", "of the records"),
        Column("source_partition", "int32", "of the records"),
        Column("source_producer", "int32", "which producer of the source cluster made them"),
        Column("source_record", "int64", "number of the first of them"),
        Column("source_offset", "int64", "offset of the first of them"),
    ),
    facts(
        "offset_syncs",
        "a mirror synced offsets: which offset of the target copies which one of the source",
        _MIRROR,
        Column("source_topic", "string", "topic of the source cluster"),
        PARTITION,
        *_OFFSETS,
    ),
    facts(
        "checkpoints",
        "a mirror translated a group's committed offset",
        _MIRROR,
        Column("group", "string", "group id"),
        *PLACE,
        *_OFFSETS,
    ),
)
"""In the order of digests."""
