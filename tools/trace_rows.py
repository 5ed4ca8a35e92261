"""Writes ``sim/trace/rows/``: rows of the trace as typed tuples, and the numbers of columns.

Run ``make docs`` after a change of the schema; a test fails until then.
"""

import textwrap
from collections.abc import Iterator
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

ROWS: Final = Path(__file__).parents[1] / "sim" / "trace" / "rows"

GROUPS: Final = {
    "clients": CLIENT_TABLES, "cluster": CLUSTER_TABLES, "connectors": CONNECTOR_TABLES,
    "log": LOG_TABLES, "mirrors": MIRROR_TABLES, "run": RUN_TABLES, "share": SHARE_TABLES,
}  # fmt: skip
"""The schema by generated module: ``clients`` is made from ``tables_clients``."""

_TYPES: Final = {
    "string": "str", "bool": "bool", "int8": "int", "int32": "int", "int64": "int",
    "list<int32>": "NDArray[np.int32]",
}  # fmt: skip
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
    body = "".join(f"\n\n{_columns(table)}\n\n{_row(table)}" for table in tables)
    arrays = "\nimport numpy as np\nfrom numpy.typing import NDArray\n" if "NDArray" in body else ""
    return (
        f'"""Rows of the tables in :mod:`sim.trace.tables_{group}`, as typed tuples.\n\n'
        "``row[Table.COLUMN]`` is checked by name and compiled to a constant index. Written by\n"
        '``python -m tools.trace_rows`` from the schema.\n"""\n\n'
        f"from typing import Final, TypeAlias\n{arrays}{body}"
    )


def _columns(table: Table) -> str:
    numbers = "\n".join(
        f"    {column.name.upper()}: Final = {number}"
        for number, column in enumerate(table.columns)
    )
    return f'class {class_name(table.name)}:\n    """Columns of ``{table.name}``."""\n\n{numbers}\n'


def _row(table: Table) -> str:
    name = f"{class_name(table.name)}Row"
    types = ", ".join(_TYPES[column.type] for column in table.columns)
    line = f"{name}: TypeAlias = tuple[{types}]"
    if len(line) <= _LINE:
        return f"{line}\n"
    inside = textwrap.fill(types, _LINE, initial_indent="    ", subsequent_indent="    ")
    return f"{name}: TypeAlias = tuple[\n{inside}\n]  # fmt: skip\n"


def main() -> None:
    """Write the files."""
    for path, text in files():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
