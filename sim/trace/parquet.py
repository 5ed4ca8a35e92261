"""Parquet files of one table, which stay readable whatever fails later.

A Parquet file without its footer is lost. So a row group reaches the real file only when all of it
is encoded, and if the real disk then rejects it, the file is rebuilt from its complete groups in
the space they already have. zstd level 1; dictionaries for strings only.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, Final

import pyarrow as pa
import pyarrow.parquet as pq

from sim.errors import named
from sim.trace.columns import arrow_schema
from sim.trace.schema import Table

GROUPS_PER_PART: Final = 50
"""Row groups of one file; the next one goes to a new file."""


class PartFiles:
    """``part-00000.parquet``, ``part-00001.parquet``, … of one table in its directory.

    A table without rows has one part without rows, so that every table can be read.

    Raises:
        OSError: If the directory cannot be made.
    """

    def __init__(
        self, table: Table, directory: Path, groups_per_part: int = GROUPS_PER_PART
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._schema = arrow_schema(table)
        self._strings = [column.name for column in table.columns if column.type == "string"]
        self._groups_per_part = groups_per_part
        self._parts = 0
        self._part: _Part | None = None
        self._closed = False

    def write(self, arrays: Sequence[pa.Array]) -> None:
        """Appends one row group.

        Raises:
            FileExistsError: If the directory already has the part to be started.
            OSError: If the real disk rejects it; the groups written before stay readable.
        """
        if self._closed:
            raise OSError(f"{self._directory}: no rows are taken after an error or after the end")
        part = self._part or self._open_part()
        try:
            part.write(pa.RecordBatch.from_arrays(list(arrays), schema=self._schema))
        except OSError:
            self._closed = True
            part.rescue()
            raise
        if part.groups >= self._groups_per_part:
            self._part = None
            part.close()

    def close(self) -> None:
        """Finishes the last part; calling it again does nothing.

        Raises:
            OSError: If the real disk rejects the footer.
        """
        if self._closed:
            return
        self._closed = True
        if self._part is None and self._parts == 0:
            self._open_part()
        if self._part is not None:
            self._part.close()

    def _open_part(self) -> "_Part":
        path = self._directory / f"part-{self._parts:05d}.parquet"
        self._part = _Part(path, self._schema, self._strings)
        self._parts += 1
        return self._part


class _Held:
    """A sink for an encoder: bytes wait here until a row group is complete."""

    def __init__(self) -> None:
        self.chunks: list[bytes] = []
        self.closed = False

    def write(self, data: memoryview | bytes) -> int:
        self.chunks.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Does nothing: the owner moves the bytes."""

    def close(self) -> None:
        self.closed = True


class _Part:
    """One Parquet file that is being written."""

    def __init__(self, path: Path, schema: pa.Schema, strings: list[str]) -> None:
        self.groups = 0
        self._path = path
        self._schema = schema
        self._strings = strings
        self._file: BinaryIO = path.open("xb", buffering=0)
        self._held = _Held()
        self._writer = self._encoder(self._held)

    def write(self, batch: pa.RecordBatch) -> None:
        """Encodes a row group, then moves it to the file."""
        self._writer.write_batch(batch, row_group_size=batch.num_rows)
        self._move()
        self.groups += 1

    def close(self) -> None:
        """Writes the footer."""
        try:
            self._writer.close()
            self._move()
        except OSError:
            self.rescue()
            raise
        self._file.close()

    def rescue(self) -> None:
        """Writes a footer over the groups that reached the file, or removes it if none did.

        Encoding is deterministic, so the same groups need the same space again; a footer that does
        not fit replaces the last group.
        """
        if not self._held.closed:
            self._writer.close()
        committed = self._file.tell()
        self._file.close()
        whole = self._path.read_bytes()[:committed] + b"".join(self._held.chunks)
        source = pq.ParquetFile(pa.BufferReader(whole))
        for groups in range(self.groups, 0, -1):
            try:
                with self._path.open("wb") as file, self._encoder(file) as writer:
                    for number in range(groups):
                        writer.write_table(source.read_row_group(number))
            except OSError:
                continue
            return
        self._path.unlink()

    def _move(self) -> None:
        data = b"".join(self._held.chunks)
        start = self._file.tell()
        view = memoryview(data)
        try:
            with named(self._path):
                while view:
                    written = self._file.write(view)
                    view = view[written:]
        except OSError:
            self._file.seek(start)
            raise
        self._held.chunks.clear()

    def _encoder(self, sink: object) -> pq.ParquetWriter:
        return pq.ParquetWriter(
            sink,
            self._schema,
            compression="zstd",
            compression_level=1,
            use_dictionary=self._strings or False,
            write_statistics=True,
        )
