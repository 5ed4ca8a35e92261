"""Types of the trace's schema: plain data, standard library only."""

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

VERSION: Final = 1
"""Version of this schema. A reader rejects a trace of another version."""

ColumnType = Literal["int8", "int32", "int64", "string", "bool", "list<int32>"]
Level = Literal["facts", "detail"]


class Column(NamedTuple):
    """One column: its name carries its unit; ``meaning`` describes it."""

    name: str
    type: ColumnType
    meaning: str


@dataclass(frozen=True, slots=True)
class Table:
    """One table; ``row`` describes one row."""

    name: str
    level: Level
    row: str
    columns: tuple[Column, ...]

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names in order."""
        return tuple(column.name for column in self.columns)


def facts(name: str, row: str, *columns: Column) -> Table:
    """A table of what happened: an instant, and these columns."""
    return Table(name, "facts", row, (T, *columns))


def detail(name: str, row: str, *columns: Column) -> Table:
    """A table that is written at level ``detail`` only: an instant, and these columns."""
    return Table(name, "detail", row, (T, *columns))


T: Final = Column("t_us", "int64", "instant of the event")
TOPIC = Column("topic", "string", "topic name")
PARTITION = Column("partition", "int32", "partition number")
BROKER = Column("broker", "int32", "broker id")
CONTROLLER = Column("controller", "int32", "controller id")
NODE = Column("node", "string", "printed name")
CONSUMER = Column("consumer", "string", "name of the consumer")
PRODUCER_INDEX = Column("producer_index", "int32", "its number, as written into record values")
FIRST_RECORD = Column("first_record", "int64", "number of the first record in this partition")
PLACE = (TOPIC, PARTITION)
REPLICA = (BROKER, *PLACE)
RECORDS = (
    Column("producer_index", "int32", "which producer made the records; -1 for internal records"),
    Column("first_record", "int64", "that producer's number of the first record in this partition"),
    Column("record_count", "int32", "records in the batch"),
)
BATCH = (
    Column("base_offset", "int64", "offset of the first record"),
    Column("last_offset", "int64", "offset of the last record, inclusive"),
    Column("leader_epoch", "int32", "leader epoch stamped on the batch"),
)
