"""Reads a run's files: its card, its verdict, and the parts of its trace, as untrusted input.

A file that is truncated, empty, nested without end, in another encoding or of another shape is
rejected with its name; callers may rely on the types of its contents.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from sim.errors import SimulationError
from sim.trace.columns import arrow_schema
from sim.trace.schema import Table

Shape: TypeAlias = Any
"""A type, a list with the shape of its items, or a mapping with the shapes of its keys.

The key ``*`` is for all keys, and one that begins with ``?`` may be missing."""

_COUNTS: Final[Shape] = {"*": int}
_EXAMPLE: Final[Shape] = {
    "?topic": str,
    "partition": int,
    "?offset": int,
    "?producer": str,
    "?record": int,
    "?producer_index": int,
    "?group": str,
}

CARD: Final[Shape] = {
    "?scenario": str,
    "seed": int,
    "complete": bool,
    "?kept": str,
    "?real": bool,
    "?simulated_us": int,
    "?wall_us": int,
    "?rows": _COUNTS,
    "?producers": [str],
    "?scenario_digest": str,
    "?trace_digest": str,
    "?table_digests": {"*": str},
}
"""``run.json``; an interrupted run has not written all keys."""

ENDED_CARD: Final[Shape] = {
    **CARD,
    "scenario": str,
    "simulated_us": int,
    "producers": [str],
}
"""``run.json`` of a run that came to its end."""

_NUMBER: Final[Shape] = {"level": str, "text": str}

VERDICT: Final[Shape] = {
    "?held": bool,
    "?answer": {
        "lost": _NUMBER,
        "down": _NUMBER,
        "slow": _NUMBER,
        "faults": [{"fault": int, "level": str, "text": str}],
    },
    "records": _COUNTS,
    "?topics": {"*": _COUNTS},
    "?partitions": {"*": _COUNTS},
    "?expectations": [{"name": str, "?shown": str, "held": bool}],
    "?checks": [{"name": str, "outcome": str}],
    "?faults": [{"fault": int, "kind": str, "target": str, "took_effect": bool, "effect": str}],
    "?examples": {"*": [_EXAMPLE]},
    "?processing": {"?examples": {"*": [_EXAMPLE]}},
    "?availability": {
        "?produce_max_us": int,
        "?partitions": {"*": {"?produce_us": int, "?produce_from_us": int}},
    },
}
"""``verdict.json``."""

ENDED_VERDICT: Final[Shape] = {
    **VERDICT,
    "held": bool,
    "faults": VERDICT["?faults"],
    "examples": VERDICT["?examples"],
    "availability": {
        "?produce_max_us": int,
        "partitions": VERDICT["?availability"]["?partitions"],
    },
}
"""``verdict.json`` of an ended run, which explanations need."""

_JSON: Final[tuple[tuple[type, str], ...]] = (
    (bool, "true or false"),
    (int, "a whole number"),
    (float, "a number"),
    (str, "a text"),
)
_REFUSED: Final = (pa.ArrowException, OSError, ValueError, TypeError)


def read_mapping(path: Path, shape: Shape) -> dict[str, Any]:
    """The JSON object in a file, of a shape.

    Raises:
        FileNotFoundError: If there is none.
        SimulationError: If it is something else; the message names the file.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise
    except UnicodeDecodeError:
        raise SimulationError(f"{path}: damaged: not UTF-8 text") from None
    except RecursionError:
        raise SimulationError(f"{path}: damaged: nested without end") from None
    except OSError as error:
        raise SimulationError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise SimulationError(f"{path}: damaged: not JSON: {error}") from None
    if not isinstance(found, dict):
        raise SimulationError(f"{path}: damaged: a JSON object expected")
    wrong = misfit(found, shape)
    if wrong:
        raise SimulationError(f"{path}: damaged: {wrong}")
    return found


def misfit(value: object, shape: Shape, where: str = "") -> str:
    """The first mismatch, in words; empty without one."""
    place = where or "the whole"
    if isinstance(shape, Mapping):
        return _misfit_of_keys(value, shape, where)
    if isinstance(shape, Sequence):
        if not isinstance(value, list | tuple):
            return f"{place}: a list expected"
        return next(
            (w for at, item in enumerate(value) if (w := misfit(item, shape[0], f"{where}[{at}]"))),
            "",
        )
    kinds = (int, float) if shape is float else shape
    is_it = isinstance(value, kinds) and (shape is bool or not isinstance(value, bool))
    words = next(text for kind, text in _JSON if kind is shape)
    return "" if is_it else f"{place}: {words} expected"


def _misfit_of_keys(value: object, shape: Mapping[str, Shape], where: str) -> str:
    if not isinstance(value, dict):
        return f"{where or 'the whole'}: an object expected"
    for key, inner in shape.items():
        names = list(value) if key == "*" else [key.removeprefix("?")]
        for name in names:
            path = f"{where}.{name}" if where else str(name)
            if name not in value:
                if key.startswith("?"):
                    continue
                return f"{path}: missing"
            if wrong := misfit(value[name], inner, path):
                return wrong
    return ""


def read_part(table: Table, part: Path, filters: Sequence[tuple[str, str, Any]]) -> pa.Table:
    """One Parquet file of a table, all of it or the rows that pass.

    Raises:
        SimulationError: If it cannot be read or has other columns; the message names the file.
    """
    try:
        found = pq.ParquetFile(part).schema_arrow
        due = arrow_schema(table)
        here = [(field.name, field.type) for field in found]
        if here != [(field.name, field.type) for field in due]:
            raise SimulationError(f"{part}: damaged: other columns than table {table.name} has")
        rows = pq.read_table(part, filters=list(filters) or None, partitioning=None)
        rows.validate(full=True)
    except _REFUSED as error:
        words = " ".join(str(error).split())[:200]
        raise SimulationError(f"{part}: damaged: not a readable Parquet file: {words}") from None
    return rows
