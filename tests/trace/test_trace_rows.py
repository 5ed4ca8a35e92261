"""Rows of the trace by name: each table's columns and its row type are those of the schema."""

import importlib
from pathlib import Path

import pytest

from sim.trace import rows
from sim.trace.schema import TABLES, Table

KINDS = {"string": str, "bool": bool, "int8": int, "int32": int, "int64": int}


def defined() -> dict[str, object]:
    found: dict[str, object] = {}
    for path in sorted(Path(rows.__path__[0]).glob("*.py")):
        if path.stem != "__init__":
            found |= vars(importlib.import_module(f"sim.trace.rows.{path.stem}"))
    return found


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_table_is_read_by_the_names_and_types_of_its_columns(table: Table):
    name = table.name.title().replace("_", "")
    columns = {n: v for n, v in vars(defined()[name]).items() if n.isupper()}
    assert columns == {c.name.upper(): n for n, c in enumerate(table.columns)}
    kinds = defined()[f"{name}Row"].__args__
    assert len(kinds) == len(table.columns)
    for kind, column in zip(kinds, table.columns, strict=True):
        is_list = column.type == "list<int32>" and "int32" in str(kind)
        assert is_list or kind is KINDS[column.type], column.name
