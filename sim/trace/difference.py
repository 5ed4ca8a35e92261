"""The first row in which two recorded traces differ, for reports of non-determinism.

Reads blocks of rows, so neither the size of the traces nor the cut of their row groups matters.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from sim.errors import SimulationError
from sim.trace.schema import TABLES, Table
from sim.units import Micros

Row: TypeAlias = dict[str, Any]
"""Values by column."""

_BLOCK_ROWS: Final = 65_536


def first_difference(first: Path, second: Path) -> str | None:
    """First difference of two trace directories: table, row and both rows; ``None`` if equal.

    Tables are compared in schema order, then by row. A table of level ``detail`` that only one side
    has is no difference: the sides were recorded at different levels.

    Raises:
        SimulationError: If one of the directories holds no table of a trace.
    """
    for directory in (first, second):
        if not any((directory / table.name).is_dir() for table in TABLES):
            raise SimulationError(
                f"{directory}: no trace here; expected directories such as appends/"
            )
    for table in TABLES:
        sides = ((first / table.name).is_dir(), (second / table.name).is_dir())
        if all(sides):
            found = _in_table(table, first / table.name, second / table.name)
            if found is not None:
                return str(found)
        elif any(sides) and table.level == "facts":
            return f"table {table.name} is only in {first if sides[0] else second}"
    return None


def earliest_difference(first: Path, second: Path) -> "Divergence | None":
    """The difference of two trace directories that comes first in simulated time.

    Tables that only one side has are left out. Of differences at one instant that of the first
    table in the schema's order counts.
    """
    found = [
        _in_table(table, first / table.name, second / table.name)
        for table in TABLES
        if (first / table.name).is_dir() and (second / table.name).is_dir()
    ]
    return min((each for each in found if each is not None), key=lambda d: d.t_us, default=None)


def lonely_tables(first: Path, second: Path) -> tuple[list[str], list[str]]:
    """Tables that only the first of two trace directories has, and those only the second has."""
    here, there = (
        [table.name for table in TABLES if (directory / table.name).is_dir()]
        for directory in (first, second)
    )
    return [n for n in here if n not in there], [n for n in there if n not in here]


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first row of a table that two runs do not have in common."""

    table: str
    number: int
    """Place of the row in the table, from 0."""
    first: Row | None
    """``None`` where that side has no such row."""
    second: Row | None

    @property
    def t_us(self) -> Micros:
        """Earlier instant of both rows."""
        rows = (self.first, self.second)
        return min(t for row in rows if row is not None and isinstance(t := row["t_us"], int))

    def __str__(self) -> str:
        a, b = (_show(row) for row in (self.first, self.second))
        return f"table {self.table}, row {self.number}:\n  first:  {a}\n  second: {b}"


def _in_table(table: Table, first: Path, second: Path) -> Divergence | None:
    number = 0
    theirs = _blocks(second)
    for mine in _blocks(first):
        other = next(theirs, None)
        if other is None or not mine.equals(other):
            return _in_block(table, number, mine, other)
        number += mine.num_rows
    extra = next(theirs, None)
    return None if extra is None else _in_block(table, number, None, extra)


def _in_block(
    table: Table, number: int, first: pa.Table | None, second: pa.Table | None
) -> Divergence:
    mine = first.to_pylist() if first is not None else []
    theirs = second.to_pylist() if second is not None else []
    place = 0
    while place < min(len(mine), len(theirs)) and mine[place] == theirs[place]:
        place += 1
    a = mine[place] if place < len(mine) else None
    b = theirs[place] if place < len(theirs) else None
    return Divergence(table.name, number + place, a, b)


def _show(row: Row | None) -> str:
    if row is None:
        return "no such row"
    return ", ".join(f"{name}={value!r}" for name, value in row.items())


def _blocks(directory: Path) -> Iterator[pa.Table]:
    """Tables of exactly ``_BLOCK_ROWS`` rows, the last one shorter; none is empty."""
    held: pa.Table | None = None
    for part in sorted(directory.glob("part-*.parquet")):
        for batch in pq.ParquetFile(part).iter_batches(batch_size=_BLOCK_ROWS):
            new = pa.Table.from_batches([batch])
            held = new if held is None else pa.concat_tables([held, new])
            while held.num_rows >= _BLOCK_ROWS:
                yield held.slice(0, _BLOCK_ROWS)
                held = held.slice(_BLOCK_ROWS)
    if held is not None and held.num_rows:
        yield held
