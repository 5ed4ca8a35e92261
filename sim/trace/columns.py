"""Converts buffered rows to the columns of a table, strictly typed.

A value that does not fit its column is a defect of the simulator: it is reported with table, row
and column, and nothing is rounded, wrapped or made null.
"""

import struct
from array import array
from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.errors import DefectFound
from sim.trace.schema import VERSION, Column, ColumnType, Table

ARROW_TYPES: Final[dict[ColumnType, pa.DataType]] = {
    "int8": pa.int8(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "string": pa.string(),
    "bool": pa.bool_(),
    "list<int32>": pa.list_(pa.int32()),
}
"""Arrow type of each column type of the schema."""

_INTEGERS: Final[dict[str, str]] = {"int8": "b", "int32": "i", "int64": "q"}
"""Type codes of :mod:`struct` for the integer columns."""

_INT32: Final = np.iinfo(np.int32)
_REFUSED: Final = (pa.ArrowException, TypeError, ValueError, OverflowError, struct.error)


def arrow_schema(table: Table) -> pa.Schema:
    """The Arrow schema of a table; its metadata carries the trace schema's version."""
    fields = [pa.field(c.name, ARROW_TYPES[c.type], nullable=False) for c in table.columns]
    return pa.schema(fields, metadata={"logquake.trace.version": str(VERSION)})


def pack(table: Table, rows: Sequence[tuple[object, ...]]) -> list[pa.Array]:
    """Columns of the rows, in schema order; at least one row is given.

    Raises:
        DefectFound: If a row has too many or too few values, or one of the wrong type.
    """
    width = len(table.columns)
    lengths = list(map(len, rows))
    if lengths.count(width) != len(rows):
        _refuse(table, rows)
    try:
        return [
            _column(column, values)
            for column, values in zip(table.columns, zip(*rows, strict=True), strict=True)
        ]
    except _REFUSED:
        _refuse(table, rows)
        raise


def _column(column: Column, values: Sequence[object]) -> pa.Array:
    if column.type == "list<int32>":
        return _lists(values)
    integer = _INTEGERS.get(column.type)
    if integer is not None:
        # Arrow would silently round a float to fit; struct rejects it, and is faster.
        packed = struct.pack(f"={len(values)}{integer}", *values)
        return _numbers(ARROW_TYPES[column.type], packed, len(values))
    return _strings(values) if column.type == "string" else _booleans(values)


def _strings(values: Sequence[object]) -> pa.Array:
    texts: Sequence[str] = values  # type: ignore[assignment]  # join and len look at each of them
    content = "".join(texts).encode()
    lengths = list(map(len, texts))
    if sum(lengths) != len(content):
        lengths = [len(text.encode()) for text in texts]
    offsets = _offsets(lengths)
    return pa.StringArray.from_buffers(len(texts), pa.py_buffer(offsets), pa.py_buffer(content))


def _booleans(values: Sequence[object]) -> pa.Array:
    for value in values:
        if not isinstance(value, bool):
            raise TypeError(f"{value!r} is neither True nor False")
    bits = np.packbits(np.fromiter(map(bool, values), np.uint8, len(values)), bitorder="little")
    return _numbers(pa.bool_(), bits, len(values))


def _offsets(lengths: Sequence[int]) -> NDArray[np.int32]:
    offsets = np.zeros(len(lengths) + 1, dtype=np.int32)
    np.cumsum(np.fromiter(lengths, np.int32, len(lengths)), out=offsets[1:])
    return offsets


def _lists(values: Sequence[object]) -> pa.Array:
    parts = [_integers(value) for value in values]
    offsets = _offsets([len(part) for part in parts])
    joined = np.concatenate(parts)
    if joined.dtype != np.int32:
        if joined.size and (joined.min() < _INT32.min or joined.max() > _INT32.max):
            raise OverflowError("a number of a list does not fit 32 bits")
        joined = joined.astype(np.int32)
    return pa.ListArray.from_arrays(
        _numbers(pa.int32(), offsets, len(offsets)), _numbers(pa.int32(), joined, len(joined))
    )


def _numbers(kind: pa.DataType, values: object, count: int) -> pa.Array:
    # pa.array would check for a column of a frame, and import pandas for that.
    return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(values)])


def _integers(value: object) -> NDArray[np.signedinteger[np.typing.NBitBase]]:
    if isinstance(value, np.ndarray):
        if value.ndim != 1 or value.dtype.kind != "i":
            raise TypeError(f"an array of {value.dtype} with {value.ndim} dimensions")
        return value
    if not isinstance(value, list | tuple | array):
        raise TypeError(f"{value!r} is no list of numbers")
    return np.frombuffer(array("q", value), dtype=np.int64)


def _refuse(table: Table, rows: Sequence[tuple[object, ...]]) -> None:
    for number, row in enumerate(rows):
        if len(row) != len(table.columns):
            raise DefectFound(
                f"trace table {table.name}: a row of {len(row)} values, the table has "
                f"{len(table.columns)} columns ({', '.join(table.column_names)}); "
                f"row {number} of its group: {row!r}"
            )
        for column, value in zip(table.columns, row, strict=True):
            try:
                _column(column, (value,))
            except _REFUSED as error:
                raise DefectFound(
                    f"trace table {table.name}: column {column.name} is {column.type}, "
                    f"given {value!r} ({error}); row {number} of its group: {row!r}"
                ) from error
