"""Writes rows of a trace, in order, to Parquet, to a digest and to listeners.

Rows are buffered as tuples and turned into columns a row group at a time, so memory stays flat
however long a run is. The digest is taken from the values of the columns (never from Parquet's
bytes), each column with hashes of its own, so neither the size of a row group nor the tracing level
nor the version of pyarrow can move it.

Left out: reading (:mod:`sim.trace.difference` compares two traces).
``<directory>/<table>/part-*.parquet`` is open to any reader.
"""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.errors import DefectFound, SimulationError
from sim.trace.columns import pack
from sim.trace.difference import first_difference
from sim.trace.emit import Emit
from sim.trace.parquet import PartFiles
from sim.trace.schema import BY_NAME, TABLES, VERSION, Level, Table
from sim.units import Micros

__all__ = ["Listener", "Row", "TableWriter", "Trace", "first_difference"]

Row = tuple[object, ...]
"""One trace row: a value for each column of its table, in the schema's order."""

R = TypeVar("R", bound=Row)
"""The rows of one table, as :mod:`sim.trace.rows` has them."""

Listener = Callable[[Row], None]
"""Called with each row at the instant it is added."""

ROWS_PER_GROUP: Final = 32_768
"""Rows of a row group in the Parquet files."""

_ROWS_BUFFERED: Final = 4_096
"""Rows kept as Python objects; more of them would only leave the processor's caches."""

_LIST_SHARE: Final = 8
"""A table with a list column keeps so many times fewer rows: a list may hold a thousand numbers."""


class TableWriter(Generic[R]):
    """One table of the trace: add rows, or listen to them.

    Writers declare the type of its rows, ``TableWriter[AppendsRow]``, so that the type checker sees
    a missing or mistyped value; at run time that costs nothing.
    """

    __slots__ = (
        "_chunks", "_chunks_rows", "_columns", "_files", "_flushed", "_group_rows", "_limit",
        "_rows", "listeners", "table",
    )  # fmt: skip

    def __init__(self, table: Table, files: PartFiles | None, rows_per_group: int) -> None:
        has_list = any(column.type == "list<int32>" for column in table.columns)
        self.table = table
        self.listeners: list[Listener] = []
        """Called in order with each row, after it is buffered. One that raises ends the run."""
        self._group_rows = max(1, rows_per_group // _LIST_SHARE) if has_list else rows_per_group
        self._limit = min(self._group_rows, _ROWS_BUFFERED)
        self._rows: list[Row] = []
        self._chunks: list[list[pa.Array]] = []
        self._chunks_rows = 0
        self._flushed = 0
        self._files = files
        self._columns = [_ColumnDigest() for _ in table.columns]

    def add(self, row: R) -> None:
        """Takes one row: ``t_us`` first, then the table's other columns in schema order.

        Arity and types are checked only when the row group is full.

        Raises:
            DefectFound: At the end of a row group, if one of its rows does not fit the table.
            OSError: At the end of a row group, if the real disk rejects it.
        """
        rows = self._rows
        rows.append(row)
        if len(rows) >= self._limit:
            self.flush()
        for listener in self.listeners:
            listener(row)

    def leaves_out(self) -> bool:
        """Counts the next row and returns True if nobody keeps or hears it: it need not be made."""
        return False

    @property
    def count(self) -> int:
        """Rows added so far."""
        return self._flushed + len(self._rows)

    @property
    def digest(self) -> str:
        """Hex; of all rows added so far, their order, and the table's name and columns."""
        self.flush()
        total = hashlib.sha256(f"{VERSION}/{self.table.name}/{self._flushed}".encode())
        for column, column_digest in zip(self.table.columns, self._columns, strict=True):
            total.update(f"/{column.name}/{column.type}/".encode())
            total.update(column_digest.value())
        return total.hexdigest()

    def flush(self) -> None:
        """Turns buffered rows into columns and digests them; writes a row group once one is full.

        Raises:
            DefectFound: If a row does not fit the table; the buffered rows are dropped.
            OSError: If the real disk fails; earlier row groups stay readable.
        """
        rows = self._rows
        if not rows:
            return
        self._rows = []
        self._flushed += len(rows)
        arrays = pack(self.table, rows)
        for array, digest in zip(arrays, self._columns, strict=True):
            digest.update(array)
        if self._files is not None:
            self._chunks.append(list(arrays))
            self._chunks_rows += len(rows)
            if self._chunks_rows >= self._group_rows:
                self._write_group()

    def _write_group(self) -> None:
        chunks, self._chunks, self._chunks_rows = self._chunks, [], 0
        if self._files is not None and chunks:
            columns = zip(*chunks, strict=True)
            self._files.write([pa.concat_arrays(list(column)) for column in columns])

    def close(self) -> None:
        """Flushes, and finishes the files, even if the flush fails.

        Raises:
            DefectFound: As :meth:`flush`.
            OSError: As :meth:`flush`.
        """
        try:
            try:
                self.flush()
            finally:
                self._write_group()
        finally:
            if self._files is not None:
                self._files.close()


class _Unwritten(TableWriter[R]):
    """A detail table at level ``facts``: counted, passed to its listeners, and dropped."""

    __slots__ = ()

    def leaves_out(self) -> bool:
        if self.listeners:
            return False
        self._flushed += 1
        return True

    def add(self, row: R) -> None:
        self._flushed += 1
        for listener in self.listeners:
            listener(row)


class Trace:
    """All tables of a run.

    Args:
        directory: Of the trace itself; each table becomes a directory in it. ``None``: nothing is
            written, digests and listeners work all the same.
        level: ``facts`` leaves the tables of level ``detail`` unwritten and without a digest.
        rows_per_group: Rows of a Parquet row group; a table with a list column has fewer.

    Raises:
        OSError: If the directory cannot be made.
    """

    def __init__(
        self,
        directory: Path | None,
        *,
        level: Level = "detail",
        rows_per_group: int = ROWS_PER_GROUP,
    ) -> None:
        self.directory = directory
        self.level: Level = level
        self._tables: dict[str, TableWriter[Any]] = {}
        for table in TABLES:
            if table.level == "detail" and level == "facts":
                self._tables[table.name] = _Unwritten(table, None, rows_per_group)
                continue
            files = PartFiles(table, directory / table.name) if directory is not None else None
            self._tables[table.name] = TableWriter(table, files, rows_per_group)

    def table(self, name: str) -> TableWriter[Any]:
        """The writer of a table; the same object each time.

        Raises:
            SimulationError: If the schema has no such table; the message names those it has.
        """
        writer = self._tables.get(name)
        if writer is None:
            raise SimulationError(f"no trace table {name!r}; tables are {', '.join(BY_NAME)}")
        return writer

    def write(self, t_us: Micros, emit: Emit) -> None:
        """Add a row, as its table's constructor has made it, with its instant.

        Raises:
            DefectFound: As :meth:`TableWriter.add`.
            OSError: As :meth:`TableWriter.add`.
        """
        table, row = emit
        self._tables[table].add((t_us, *row))

    @property
    def counts(self) -> dict[str, int]:
        """Rows added to each table, written or not, in schema order."""
        return {name: writer.count for name, writer in self._tables.items()}

    @property
    def digests(self) -> dict[str, str]:
        """Hex digest of each table that is recorded at this level, in schema order."""
        return {
            name: writer.digest
            for name, writer in self._tables.items()
            if not isinstance(writer, _Unwritten)
        }

    def table_digests(self) -> dict[str, str]:
        """The beginning of the digest of each table of level ``facts`` that has rows."""
        return {
            name: writer.digest[:16]
            for name, writer in self._tables.items()
            if writer.table.level == "facts" and writer.count
        }

    def digest(self) -> str:
        """Hex digest of all tables of level ``facts`` that have rows, whatever the trace's level.

        Tables without rows are left out, so that a new table moves no older run's digest.
        """
        total = hashlib.sha256(f"trace/{VERSION}".encode())
        for writer in self._tables.values():
            if writer.table.level == "facts" and writer.count:
                total.update(bytes.fromhex(writer.digest))
        return total.hexdigest()

    def close(self) -> None:
        """Flushes every table and finishes its files; calling it again does nothing more.

        Every table is closed even if another one fails, and the first failure is raised at the end.

        Raises:
            DefectFound: If a row did not fit its table.
            OSError: If the real disk failed; what was written before is readable.
        """
        failure: DefectFound | OSError | None = None
        for writer in self._tables.values():
            try:
                writer.close()
            except (DefectFound, OSError) as error:
                failure = failure or error
        if failure is not None:
            raise failure


class _ColumnDigest:
    """Digest of one column, independent of how its rows are cut into groups.

    Lengths of strings and lists are hashed apart from their content: appended to one hash, the
    place of a cut would be part of it.
    """

    __slots__ = ("_content", "_lengths")

    def __init__(self) -> None:
        self._content = hashlib.sha256()
        self._lengths = hashlib.sha256()

    def update(self, array: pa.Array) -> None:
        """Takes the next values: integers little-endian in their own width, strings as UTF-8."""
        for content in _content(array):
            self._content.update(content)
        if pa.types.is_string(array.type) or pa.types.is_list(array.type):
            offsets = _view(array.buffers()[1], len(array) + 1, np.dtype("<i4"))
            self._lengths.update(np.diff(offsets).tobytes())

    def value(self) -> bytes:
        """Digest of the values so far."""
        return self._lengths.digest() + self._content.digest()


def _content(array: pa.Array) -> Iterator[memoryview | bytes]:
    kind = array.type
    if pa.types.is_boolean(kind):  # Arrow packs eight to a byte: a cut would show
        # By hand: to cast would import pyarrow.compute, a fifth of a second.
        packed = np.frombuffer(array.buffers()[1], dtype=np.uint8)
        yield np.unpackbits(packed, bitorder="little", count=len(array)).tobytes()
    elif pa.types.is_list(kind):
        yield _little(array.values)
    elif pa.types.is_string(kind):
        data = array.buffers()[2]
        if data is not None:
            used = int(_view(array.buffers()[1], len(array) + 1, np.dtype("<i4"))[-1])
            yield memoryview(data)[:used]
    else:
        yield _little(array)


def _little(array: pa.Array) -> bytes:
    # Not array.to_numpy(), which imports pandas.
    native = np.dtype(f"i{array.type.bit_width // 8}")
    values = np.frombuffer(array.buffers()[1], native, len(array))
    return values.astype(native.newbyteorder("<"), copy=False).tobytes()


def _view(buffer: pa.Buffer, count: int, dtype: np.dtype[np.int32]) -> NDArray[np.int32]:
    return np.frombuffer(buffer, dtype=dtype, count=count)
