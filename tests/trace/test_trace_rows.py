"""Rows of the trace by name: each table's columns and its row type are those of the schema."""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from sim.trace import rows
from sim.trace.schema import TABLES, Table
from tools import house
from tools.trace_rows import class_name

ROOT = Path(__file__).parents[2]

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


def writers() -> Iterator[tuple[str, ast.Call, str]]:
    """Where a table of the trace is asked for to be written, and the annotation of what gets it."""
    for folder in ("sim/nodes", "sim/faults", "sim/scenario/build"):
        for source in house.sources(ROOT, folder):
            annotated = {
                id(node.value): ast.unparse(node.annotation)
                for node in ast.walk(source.tree)
                if isinstance(node, ast.AnnAssign)
            }
            for node in ast.walk(source.tree):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                    named = node.args and isinstance(node.args[0], ast.Constant)
                    if node.func.attr == "table" and named:
                        yield source.path, node, annotated.get(id(node), "")


def test_who_writes_a_table_says_of_which_rows_so_that_the_type_checker_sees_a_wrong_one():
    found = list(writers())
    assert len(found) > len(TABLES) // 2
    for path, call, annotation in found:
        name = class_name(call.args[0].value)
        assert annotation == f"TableWriter[{name}Row]", f"{path}:{call.lineno}"
