"""Rows of the trace by name: each table's columns and its row type are those of the schema."""

import ast
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path

import mypy.api
import pytest

from sim.trace import rows
from sim.trace.emit import Emit
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


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_row_is_made_of_every_column_but_its_instant_in_the_order_of_the_schema(table: Table):
    make = defined()[class_name(table.name)].row
    names = list(table.column_names[1:])
    parameters = inspect.signature(make).parameters.values()
    assert [parameter.name for parameter in parameters] == names
    assert all(parameter.default is parameter.empty for parameter in parameters)
    kinds = [str(parameter.kind) for parameter in parameters]
    assert kinds == sorted(kinds, reverse=True), "those given by place lead"
    assert make(**{name: name for name in names}) == Emit(table.name, tuple(names))


MADE = 'Markers.row(1, "orders", 0, offset=3, producer_id=7, producer_epoch=0, {rest})'
SAMPLES = {
    "committed=True, coordinator_epoch=2": "",
    "committed=True": 'Missing named argument "coordinator_epoch" for "row" of "Markers"',
    'committed="COMMIT", coordinator_epoch=2': 'Argument "committed" to "row" of "Markers" has',
    "committed=True, coordinator_epoch=2, epoch=2": 'Unexpected keyword argument "epoch"',
}


def test_the_type_checker_finds_a_column_that_is_left_out_mistyped_or_of_another_table(tmp_path):
    lines = ["from sim.trace.rows.clients import Markers"]
    lines += [MADE.format(rest=rest) for rest in SAMPLES]
    lines += ['Markers.row("orders", 1, 0, offset=3, producer_id=7)']
    sample = tmp_path / "sample.py"
    sample.write_text("\n".join(lines))
    files = [str(ROOT / "sim" / "trace" / name) for name in ("rows/clients.py", "emit.py")]
    options = ["--follow-imports=skip", "--cache-dir", str(tmp_path / "cache")]
    said, errors, _ = mypy.api.run([str(sample), *files, *options])
    assert errors == ""
    for number, expected in enumerate([*SAMPLES.values(), 'Argument 1 to "row" of "Markers"'], 2):
        found = [line for line in said.splitlines() if f"sample.py:{number}: error" in line]
        assert bool(found) == bool(expected), said
        assert not expected or any(expected in line for line in found), said


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
    for path, call, annotation in writers():
        name = class_name(call.args[0].value)
        assert annotation == f"TableWriter[{name}Row]", f"{path}:{call.lineno}"


def test_every_table_has_rows_from_its_constructor_or_from_a_writer_of_its_rows():
    made = {
        ast.unparse(node.func.value).rpartition(".")[2]
        for source in house.sources(ROOT, "sim")
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "row"
    }
    typed = {class_name(call.args[0].value) for _, call, _ in writers()}
    assert {class_name(table.name) for table in TABLES} == made | typed
