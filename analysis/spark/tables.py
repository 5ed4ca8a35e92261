"""Trace tables as DataFrames, with the types of :mod:`sim.trace.schema` and no others.

Spark fills columns it does not find with nulls; so the footers of all parts are compared with the
schema first, and a trace of another version, or with other columns, is rejected.
"""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from sim.errors import SimulationError
from sim.trace.schema import BY_NAME, VERSION, ColumnType, Table

if TYPE_CHECKING:
    import pandas as pd  # A second of import, which is to pass while Java starts.

VERSION_KEY: Final = b"logquake.trace.version"
"""Key of the schema's version in the metadata of every part."""

PARTS: Final = "part-*.parquet"
"""Names of a table's files."""

_SPARK: Final[dict[ColumnType, t.DataType]] = {
    "int8": t.ByteType(),
    "int32": t.IntegerType(),
    "int64": t.LongType(),
    "string": t.StringType(),
    "bool": t.BooleanType(),
    "list<int32>": t.ArrayType(t.IntegerType(), containsNull=True),
}
_ARROW: Final[dict[ColumnType, pa.DataType]] = {
    "int8": pa.int8(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "string": pa.string(),
    "bool": pa.bool_(),
    "list<int32>": pa.list_(pa.int32()),
}


def spark_schema(table: Table) -> t.StructType:
    """The table's columns as Spark types, in order."""
    return t.StructType([t.StructField(c.name, _SPARK[c.type]) for c in table.columns])


def _arrow_schema(table: Table) -> pa.Schema:
    return pa.schema([(column.name, _ARROW[column.type]) for column in table.columns])


def is_written(run: Path, name: str) -> bool:
    """True if the trace has the table; a run may lack those of level ``detail``."""
    return any((run / "trace" / name).glob(PARTS))


def rows(run: Path, names: Collection[str] = ("*",)) -> int:
    """Rows of some tables of a run, all if none are named; a part that cannot be read has none."""
    total = 0
    for part in sorted(part for name in names for part in (run / "trace").glob(f"{name}/{PARTS}")):
        try:
            total += pq.read_metadata(part).num_rows
        except (pa.ArrowInvalid, OSError):
            continue
    return total


def is_empty(run: Path, name: str) -> bool:
    """True if a table of a run has no rows, or was not traced."""
    return not any(pq.read_metadata(part).num_rows for part in _parts(run, name))


def latest(run: Path, name: str) -> int | None:
    """The latest ``t_us`` of a table of a run; ``None`` without rows. Footers have it mostly."""
    found: list[int] = []
    for part in _parts(run, name):
        footer = pq.read_metadata(part)
        place = footer.schema.names.index("t_us")
        for group in range(footer.num_row_groups):
            column = footer.row_group(group).column(place)
            if column.is_stats_set and column.statistics.has_min_max:
                found.append(column.statistics.max)
            else:
                instants = pq.ParquetFile(part).read_row_group(group, columns=["t_us"])["t_us"]
                found += [pc.max(instants).as_py()] if len(instants) else []
    return max(found, default=None)


def small(run: Path, name: str) -> "pd.DataFrame":
    """One table of a run in memory, without Spark: for tables that the length of a run bounds.

    Args:
        run: Run directory.
        name: Table name of :data:`sim.trace.schema.TABLES`.

    Raises:
        SimulationError: As :func:`read`.
    """
    table = BY_NAME[name]
    parts = _parts(run, name)
    empty = _arrow_schema(table)
    read_parts = [pq.read_table(part).cast(empty) for part in parts]
    whole = pa.concat_tables([empty.empty_table(), *read_parts])
    frame: pd.DataFrame = whole.to_pandas()
    return frame


def most(run: Path, name: str, by: Sequence[str], value: str) -> "pd.DataFrame":
    """The largest value of each group of a table's rows, without Spark, a row group at a time.

    Args:
        run: Run directory.
        name: Table name of :data:`sim.trace.schema.TABLES`.
        by: Columns to group by.
        value: Column of the value.

    Returns:
        ``[*by, value]``.
    """
    kinds = {column.name: _ARROW[column.type] for column in BY_NAME[name].columns}
    found = pa.schema([(each, kinds[each]) for each in (*by, value)]).empty_table()
    for part in _parts(run, name):
        file = pq.ParquetFile(part)
        for group in range(file.num_row_groups):
            read_rows = file.read_row_group(group, columns=found.column_names)
            whole = pa.concat_tables([found, read_rows.cast(found.schema)])
            counted = whole.group_by(list(by)).aggregate([(value, "max")])
            found = counted.rename_columns({f"{value}_max": value}).cast(found.schema)
    frame: pd.DataFrame = found.to_pandas()
    return frame


def row_groups(run: Path, name: str, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Some columns of a table of any size, without Spark, a row group at a time.

    Args:
        run: Run directory.
        name: Table name of :data:`sim.trace.schema.TABLES`.
        columns: Their names.

    Returns:
        At least one Arrow table, without rows if there are none; strings are encoded by
        dictionaries.

    Raises:
        SimulationError: As :func:`read`.
    """
    kinds = {column.name: _ARROW[column.type] for column in BY_NAME[name].columns}
    texts = [each for each in columns if pa.types.is_string(kinds[each])]
    yield pa.schema([(each, kinds[each]) for each in columns]).empty_table()
    for part in _parts(run, name):
        try:
            file = pq.ParquetFile(part, read_dictionary=texts)
            for group in range(file.num_row_groups):
                yield file.read_row_group(group, columns=list(columns))
        except (pa.ArrowInvalid, OSError) as error:
            raise SimulationError(f"{part}: not a readable Parquet file: {error}") from error


def codes(column: pa.ChunkedArray, known: dict[str, int]) -> npt.NDArray[np.int64]:
    """A number for each string of a column: its place in ``known``, which gets new strings."""
    encoded = column.dictionary_encode().unify_dictionaries().combine_chunks()
    places = [known.setdefault(text, len(known)) for text in encoded.dictionary.to_pylist()]
    found: npt.NDArray[np.int64] = np.array(places, np.int64)[encoded.indices.to_numpy()]
    return found


def read(spark: SparkSession, run: Path, name: str) -> DataFrame:
    """One table of a run; a detail table that was not traced has no rows.

    Args:
        spark: The session.
        run: Run directory.
        name: Table name of :data:`sim.trace.schema.TABLES`.

    Raises:
        SimulationError: If there is no such table, the trace is of another version, has other
            columns, or lacks a table of level ``facts``.
    """
    parts = _parts(run, name)
    schema = spark_schema(BY_NAME[name])
    if not any(pq.read_metadata(part).num_rows for part in parts):
        # No rows, and Spark knows so when it plans: it leaves out what is made of them alone.
        return spark.createDataFrame(_arrow_schema(BY_NAME[name]).empty_table(), schema)
    return spark.read.schema(schema).parquet(*(str(part.resolve()) for part in parts))


def held(spark: SparkSession, frame: DataFrame) -> DataFrame:
    """The rows of a small frame, computed once and kept in the plans that use them.

    Unlike a persisted frame it needs no job of its own in each of them.
    """
    return spark.createDataFrame(frame.toArrow(), frame.schema)


def _parts(run: Path, name: str) -> list[Path]:
    """Files of a table, each checked."""
    if name not in BY_NAME:
        raise SimulationError(f"no table {name!r}; tables are {', '.join(BY_NAME)}")
    table = BY_NAME[name]
    directory = run / "trace" / name
    if table.level == "facts" and not directory.is_dir():
        raise SimulationError(f"{run}: no trace of table {name!r}; is it a run directory?")
    parts = sorted(directory.glob(PARTS))
    for part in parts:
        _check(table, part)
    return parts


def _check(table: Table, part: Path) -> None:
    try:
        found = pq.read_schema(part)
    except (pa.ArrowInvalid, OSError) as error:
        raise SimulationError(f"{part}: not a readable Parquet file: {error}") from error
    version = (found.metadata or {}).get(VERSION_KEY, b"none").decode(errors="replace")
    if version != str(VERSION):
        raise SimulationError(
            f"{part}: trace schema version {version}, but this version of logquake reads version "
            f"{VERSION}; use the version that made the run (run.json names it)"
        )
    here = [f"{field.name} {field.type}" for field in found]
    due = [f"{column.name} {_ARROW[column.type]}" for column in table.columns]
    if [_plain(text) for text in here] != [_plain(text) for text in due]:
        raise SimulationError(
            f"{part}: columns of table {table.name!r} differ from schema version {VERSION}\n"
            f"  found:    {', '.join(here)}\n  expected: {', '.join(due)}"
        )


def _plain(text: str) -> str:
    """A type's text without the name of a list's items, which depends on the file's writer."""
    return text.replace("element: ", "").replace("item: ", "").replace(" not null", "")
