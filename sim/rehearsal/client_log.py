"""Rows that the clients of a rehearsal wrote down."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from sim.errors import SimulationError
from sim.trace.emit import Emit
from sim.trace.schema import BY_NAME
from sim.trace.schema_types import Table
from sim.units import Micros

_INSTANTS: Final = ("t_us", "created_us", "begun_us")
"""Columns that the clients fill by the machine's clock."""


def rows(file: Path, zero_us: Micros) -> Iterator[tuple[Micros, Emit]]:
    """Every row of a file, with its instant since the scenario's zero.

    Raises:
        SimulationError: If a line does not fit its table; the message names it.
    """
    with file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            name, *texts = line.rstrip("\n").split("\t")
            table = BY_NAME.get(name)
            if table is None or len(texts) != len(table.columns):
                raise SimulationError(f"{file}: line {number} is no row of a table of the trace")
            try:
                values = _values(table, texts, zero_us)
            except ValueError as error:
                raise SimulationError(f"{file}: line {number}: {error}") from None
            yield values[0], Emit(name, tuple(values[1:]))


def _values(table: Table, texts: list[str], zero_us: Micros) -> list[Any]:
    found = []
    for column, text in zip(table.columns, texts, strict=True):
        value = _READERS[column.type](text)
        if column.name in _INSTANTS and value >= 0:
            value -= zero_us
        found.append(value)
    return found


def _list(text: str) -> "np.typing.NDArray[np.int32]":
    return np.array([int(part) for part in text.split(",") if part], dtype=np.int32)


_READERS: Final[Mapping[str, Any]] = {
    "int8": int, "int32": int, "int64": int, "string": str,
    "bool": lambda text: text == "true", "list<int32>": _list,
}  # fmt: skip
