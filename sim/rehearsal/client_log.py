"""Rows that the clients of a rehearsal wrote down."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from sim.errors import SimulationError
from sim.trace.emit import Emit
from sim.trace.rows.clients import (
    Assignments,
    Commits,
    CommittedReaders,
    Positions,
    Reads,
    Revocations,
    TransactionOutcomes,
    TransactionRecords,
)
from sim.trace.rows.log import ClientBatches
from sim.trace.schema import BY_NAME
from sim.trace.schema_types import Table
from sim.units import Micros

TABLES: Final[Mapping[str, Callable[..., Emit]]] = {
    "client_batches": ClientBatches.row,
    "reads": Reads.row,
    "positions": Positions.row,
    "commits": Commits.row,
    "assignments": Assignments.row,
    "revocations": Revocations.row,
    "committed_readers": CommittedReaders.row,
    "transaction_outcomes": TransactionOutcomes.row,
    "transaction_records": TransactionRecords.row,
}
"""Tables that clients write, and what makes a row of each."""

_INSTANT: Final = "t_us"
_INSTANTS: Final = (_INSTANT, "created_us", "begun_us")
"""Columns that the clients fill by the machine's clock."""


def rows(file: Path, zero_us: Micros) -> Iterator[tuple[Micros, Emit]]:
    """Every row of a file, with its instant since the scenario's zero.

    Raises:
        SimulationError: If a line does not fit its table; the message names it.
    """
    with file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            name, *texts = line.rstrip("\n").split("\t")
            table = BY_NAME[name] if name in TABLES else None
            if table is None or len(texts) != len(table.columns):
                raise SimulationError(f"{file}: line {number} is no row of a table of the trace")
            try:
                values = _values(table, texts, zero_us)
            except ValueError as error:
                raise SimulationError(f"{file}: line {number}: {error}") from None
            at = values.pop(_INSTANT)
            yield at, TABLES[name](**values)


def _values(table: Table, texts: list[str], zero_us: Micros) -> dict[str, Any]:
    found = {}
    for column, text in zip(table.columns, texts, strict=True):
        value = _READERS[column.type](text)
        if column.name in _INSTANTS and value >= 0:
            value -= zero_us
        found[column.name] = value
    return found


def _list(text: str) -> "np.typing.NDArray[np.int32]":
    return np.array([int(part) for part in text.split(",") if part], dtype=np.int32)


_READERS: Final[Mapping[str, Any]] = {
    "int8": int, "int32": int, "int64": int, "string": str,
    "bool": lambda text: text == "true", "list<int32>": _list,
}  # fmt: skip
