"""Rows of a sweep on the disk: one for each run, keyed by the content of the run.

A row's key is a hash of all that decides it: the scenario as run with every default filled in, the
seed, and the simulator's own sources. So a sweep that was stopped, or gets more seeds or other
values, runs only what no row has yet. Rows are kept in ``results/``; each file appears whole or not
at all, and a file that cannot be read costs its runs again, nothing more.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

Row = dict[str, Any]
"""A row by column; ``None`` for values that a failed run does not have."""

DONE: Final = "done"
FAILED: Final = "failed"
DIED: Final = "died"
"""Status of a run whose process died with it; only such runs are tried again."""

NUMBERS: Final = (
    "sent", "acked", "failed", "unknown", "survived", "lost_acked", "removed", "unacked_present",
    "duplicated", "reordered", "divergent",
    "run_us", "cross_rack_bytes", "disk_bytes", "replicas", "promised",
)  # fmt: skip
"""Whole numbers that every finished run has."""

TIMES: Final = (
    *(f"produce_{rank}_us" for rank in ("p50", "p90", "p99", "p999", "max")),
    *(f"end_to_end_{rank}_us" for rank in ("p50", "p90", "p99", "p999", "max")),
    "unavailable_produce_us",
    "unavailable_fetch_us",
    "down_us",
    "slow_normal_us",
    "slow_fault_us",
)
"""Times in microseconds; null where nothing was measured."""

SCHEMA: Final = pa.schema(
    [
        ("key", pa.string()),
        ("configuration", pa.int32()),
        ("seed", pa.int64()),
        ("status", pa.string()),
        ("message", pa.string()),
        ("held", pa.bool_()),
        *((name, pa.int64()) for name in (*NUMBERS, *TIMES)),
        ("latency_us", pa.list_(pa.int64())),
        ("latency_records", pa.list_(pa.int64())),
        ("faults", pa.list_(pa.string())),
        ("trace_digest", pa.string()),
    ]
)
"""Columns of ``runs.parquet``."""


def sources_digest(package: Path) -> str:
    """A hash of a package's sources: rows of another version do not count for this one."""
    total = hashlib.blake2b(digest_size=16)
    for file in sorted(package.rglob("*.py")):
        total.update(file.relative_to(package).as_posix().encode() + b"\0")
        total.update(file.read_bytes() + b"\0")
    return total.hexdigest()


def key_of(sources: str, scenario_digest: str, seed: int) -> str:
    """The key of one run."""
    return _hash(f"{sources}/{scenario_digest}/{seed}")


def _hash(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _is_whole(row: Row) -> bool:
    """True if a row has all columns of its status."""
    if not isinstance(row["key"], str) or row["status"] not in {DONE, FAILED, DIED}:
        return False
    return row["status"] != DONE or all(row[name] is not None for name in ("held", *NUMBERS))


class Store:
    """The rows of one directory.

    Args:
        directory: ``results/`` of a sweep; made if it is not there.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._rows: dict[str, Row] = {}
        for file in sorted(directory.glob("*.parquet")):
            try:
                table = pq.read_table(file, partitioning=None)
                table.validate(full=True)
                rows = table.to_pylist() if table.schema.equals(SCHEMA) else []
            except (pa.ArrowException, OSError, ValueError, TypeError):
                continue
            self._rows.update((row["key"], row) for row in rows if _is_whole(row))

    def __len__(self) -> int:
        return len(self._rows)

    def has(self, key: str) -> bool:
        """True if the run has a row and is not tried again."""
        return key in self._rows and self._rows[key]["status"] != DIED

    def row(self, key: str) -> Row | None:
        """The row of a run, if there is one."""
        return self._rows.get(key)

    def add(self, rows: Sequence[Row]) -> None:
        """Keeps rows, in a file of their own."""
        name = _hash("".join(row["key"] for row in rows))
        write(rows, self.directory / f"{name}.parquet")
        self._rows.update((row["key"], row) for row in rows)

    def compact(self) -> None:
        """Writes all rows to one file."""
        before = sorted(self.directory.glob("*.parquet"))
        if len(before) < 2:
            return
        self.add([self._rows[key] for key in sorted(self._rows)])
        kept = f"{_hash(''.join(sorted(self._rows)))}.parquet"
        for file in before:
            if file.name != kept:
                file.unlink()


def write(rows: Iterable[Mapping[str, object]], path: Path) -> None:
    """Rows of :data:`SCHEMA` as a Parquet file, at once or not at all."""
    unfinished = path.with_name(f"{path.name}.tmp")
    pq.write_table(pa.Table.from_pylist(list(rows), schema=SCHEMA), unfinished, compression="zstd")
    unfinished.replace(path)
