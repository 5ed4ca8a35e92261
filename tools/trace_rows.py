"""Writes ``sim/trace/rows/``: rows as typed tuples, the numbers of columns, and constructors.

Run ``make docs`` after a change of the schema; a test fails until then.
"""

import textwrap
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Final

from sim.trace.schema_types import Table
from sim.trace.tables_clients import CLIENT_TABLES
from sim.trace.tables_cluster import CLUSTER_TABLES
from sim.trace.tables_connectors import CONNECTOR_TABLES
from sim.trace.tables_log import LOG_TABLES
from sim.trace.tables_mirrors import MIRROR_TABLES
from sim.trace.tables_run import RUN_TABLES
from sim.trace.tables_share import SHARE_TABLES
from sim.trace.tables_tiered import TIERED_TABLES

ROWS: Final = Path(__file__).parents[1] / "sim" / "trace" / "rows"

GROUPS: Final = {
    "clients": CLIENT_TABLES, "cluster": CLUSTER_TABLES, "connectors": CONNECTOR_TABLES,
    "log": LOG_TABLES, "mirrors": MIRROR_TABLES, "run": RUN_TABLES, "share": SHARE_TABLES,
    "tiered": TIERED_TABLES,
}  # fmt: skip
"""The schema by generated module: ``clients`` is made from ``tables_clients``."""

_TYPES: Final = {
    "string": "str", "bool": "bool", "int8": "int", "int32": "int", "int64": "int",
    "list<int32>": "NDArray[np.int32]",
}  # fmt: skip
_GIVEN: Final = _TYPES | {"list<int32>": "NDArray[np.int32] | Sequence[int]"}
"""Types that a constructor takes: Arrow makes a list of any sequence of integers."""

_BY_PLACE: Final = ("broker", "controller", "node", "consumer", "group", "topic", "partition")
"""What a row is about; a constructor takes those that lead by place, all others by name alone."""

_LINE: Final = 100


def files() -> Iterator[tuple[Path, str]]:
    """Each generated module, and its text as it should be."""
    for group, tables in GROUPS.items():
        yield ROWS / f"{group}.py", module(group, tables)


def class_name(table: str) -> str:
    """The name of a table's columns: ``partition_changes`` is ``PartitionChanges``."""
    return "".join(word.capitalize() for word in table.split("_"))


def module(group: str, tables: tuple[Table, ...]) -> str:
    """The text of one generated module."""
    parts = (f"\n\n{_columns(table)}\n{_constructor(table)}\n\n{_row(table)}" for table in tables)
    body = "".join(parts)
    sequence = "from collections.abc import Sequence\n" if "Sequence[" in body else ""
    arrays = "import numpy as np\nfrom numpy.typing import NDArray\n\n" if sequence else ""
    return (
        f'"""Rows of the tables in :mod:`sim.trace.tables_{group}`, as typed tuples.\n\n'
        "``row[Table.COLUMN]`` is checked by name and compiled to a constant index;\n"
        "``Table.row(...)`` makes a row without its instant. Written from the schema by\n"
        "``python -m tools.trace_rows``.\n"
        f'"""\n\n# fmt: off\n{sequence}from typing import Final, TypeAlias\n\n'
        f"{arrays}from sim.trace.emit import Emit\n{body}"
    )


def _columns(table: Table) -> str:
    numbers = "\n".join(
        f"    {column.name.upper()}: Final = {number}"
        for number, column in enumerate(table.columns)
    )
    return f'class {class_name(table.name)}:\n    """Columns of ``{table.name}``."""\n\n{numbers}\n'


def _constructor(table: Table) -> str:
    """The static method that takes every column but the instant, once."""
    columns = table.columns[1:]
    given = [f"{column.name}:\0{_GIVEN[column.type]}".replace(" ", "\0") for column in columns]
    by_place = list(takewhile(lambda column: column.name in _BY_PLACE, columns))
    if len(by_place) < len(given):
        given.insert(len(by_place), "*")
    names = "".join(f"{column.name}, " for column in columns)
    parameters = _wrapped(", ".join(given), 8).replace("\0", " ")
    values = _wrapped(names.strip(), 12)
    return (
        f"    @staticmethod\n    def row(\n{parameters},\n    ) -> Emit:\n"
        f'        """Make a row of ``{table.name}``."""\n'
        f'        return Emit("{table.name}", (\n{values}\n        ))\n'
    )


def _row(table: Table) -> str:
    name = f"{class_name(table.name)}Row"
    types = ", ".join(_TYPES[column.type] for column in table.columns)
    line = f"{name}: TypeAlias = tuple[{types}]"
    if len(line) <= _LINE:
        return f"{line}\n"
    return f"{name}: TypeAlias = tuple[\n{_wrapped(types, 4)}\n]\n"


def _wrapped(words: str, indent: int) -> str:
    margin = " " * indent
    return textwrap.fill(words, _LINE - 1, initial_indent=margin, subsequent_indent=margin)


def main() -> None:
    """Write the files."""
    for path, text in files():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
