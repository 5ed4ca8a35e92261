"""Loads a scenario from a YAML file, or says what is wrong, a line for each mistake.

Every mistake is found before a clock starts, and reported as ``FILE:LINE: key.path: what was found;
what is allowed; a remedy``. Mistakes that do not hide each other are reported together: first those
of single keys; where there are none, those of settings, then of topics, of clients, of faults, of
expectations.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from sim.errors import ScenarioError
from sim.scenario.assemble import assemble
from sim.scenario.overrides import apply as changes
from sim.scenario.scenario import Scenario
from sim.scenario.schema.file import ScenarioModel
from sim.scenario.text.capsules import unpacked
from sim.scenario.text.hardware_files import included
from sim.scenario.text.problems import KeyPath, Problem, nearest, scenario_error
from sim.scenario.text.yaml import Document, ReadError, read

FILE_BYTES_MAX: Final = 4 << 20
"""A larger file is no scenario."""

PROBLEMS_MAX: Final = 20
"""Mistakes of a file that are listed."""


def load(path: Path | str, overrides: Sequence[str] = ()) -> Scenario:
    """The scenario in a file.

    Args:
        path: A YAML file: a scenario, or a capsule that has one.
        overrides: ``KEY=VALUE`` each, as given to ``--set``.

    Raises:
        ScenarioError: If it cannot be run; a line for each mistake.
    """
    file = Path(path)
    name = str(path)
    try:
        raw = file.read_bytes() if file.stat().st_size <= FILE_BYTES_MAX else None
    except FileNotFoundError:
        raise _unreadable(name, "no such file", "a scenario file") from None
    except OSError as error:
        raise _unreadable(name, f"cannot be read: {error.strerror}", "a readable file") from None
    if raw is None:
        raise _unreadable(name, f"more than {FILE_BYTES_MAX} bytes", "a scenario file")
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        problem = Problem((), "not YAML: not UTF-8 text", "one YAML document in UTF-8")
        raise scenario_error(f"{name}:{line}", problem) from None
    return load_text(text, name, overrides, directory=file.parent)


def load_text(
    text: str,
    name: str = "scenario.yaml",
    overrides: Sequence[str] = (),
    *,
    directory: Path | None = None,
) -> Scenario:
    """The scenario in a text.

    Args:
        text: YAML.
        name: That of its file, for messages.
        overrides: As in :func:`load`.
        directory: Where files that it names are; ``None``: it may name none.

    Raises:
        ScenarioError: If it cannot be run; a line for each mistake.
    """
    try:
        document = unpacked(read(text, name))
        changes.apply(document, overrides)
        included(document, directory)
    except ReadError as error:
        raise scenario_error(error.origin, error.problem) from None
    try:
        return assemble(_validated(document), Path(name).stem, directory)
    except Problem as problem:
        raise _error(document, problem) from None


def load_data(data: object, name: str = "scenario.yaml") -> Scenario:
    """The scenario in plain data, as a file would have it; it may name no other file.

    Raises:
        ScenarioError: If it cannot be run; a line for each mistake.
    """
    document = Document(data)
    try:
        included(document, None)
    except ReadError as error:
        raise scenario_error(error.origin, error.problem) from None
    try:
        return assemble(_validated(document), Path(name).stem)
    except Problem as problem:
        raise _error(document, problem) from None


def first_problem(text: str) -> Problem | None:
    """The first problem that :func:`load_text` would raise, as data; ``None``: it would load."""
    try:
        assemble(_validated(read(text, "scenario.yaml")), "scenario")
    except ReadError as error:
        return error.problem
    except Problem as problem:
        return problem
    return None


def _error(document: Document, problem: Problem) -> ScenarioError:
    """A line for each mistake, of many the first ones."""
    every = sorted((problem, *problem.others), key=lambda each: _line(document.origin(each.path)))
    lines = [str(scenario_error(document.origin(each.path), each)) for each in every[:PROBLEMS_MAX]]
    left = len(every) - len(lines)
    if left:
        lines.append(f"and {left} more")
    return ScenarioError("\n".join(lines))


def _unreadable(name: str, found: str, allowed: str) -> ScenarioError:
    return scenario_error(f"{name}:1", Problem((), found, allowed))


def _validated(document: Document) -> ScenarioModel:
    if not isinstance(document.data, dict):
        raise Problem((), "not a mapping of keys", "keys such as claim, cluster and run")
    try:
        return ScenarioModel.model_validate(document.data)
    except ValidationError as error:
        problems = [_problem(dict(details), document.data) for details in error.errors()]
    first, *others = sorted(problems, key=lambda each: _line(document.origin(each.path)))
    first.others = tuple(others)
    raise first


def _line(origin: str) -> int:
    last = origin.rpartition(":")[2]
    return int(last) if last.isdecimal() else 0


def _problem(details: dict[str, Any], data: object) -> Problem:
    """One of pydantic's errors in our words."""
    path = _path(details["loc"], data)
    context: dict[str, Any] = details.get("ctx", {})
    match details["type"]:
        case "logquake":
            problem = Problem(path, context["found"], context["allowed"])
        case "unknown_key":
            key = str(context["key"])
            problem = _unknown((*path, key), f"unknown key {key}", key, str(context["allowed"]))
        case "missing":
            problem = Problem(path, "the key is missing", "", f"add {path[-1]}")
        case "union_tag_not_found":
            problem = Problem(path, "a fault without do", "do: KIND", "see logquake list faults")
        case "union_tag_invalid":
            tag = str(context["tag"])
            found = f"unknown fault {tag!r}"
            problem = _unknown((*path, "do"), found, tag, context["expected_tags"])
        case "literal_error":
            found = str(details["input"])
            problem = _unknown(path, repr(found), found, context["expected"])
        case _:
            allowed = details["msg"].replace("Input should be ", "")
            problem = Problem(path, _short(details["input"]), allowed)
    return problem


def _unknown(path: KeyPath, found: str, word: str, known: str) -> Problem:
    words = known.replace("'", "").replace(" or ", ", ").split(", ")
    return Problem(path, found, ", ".join(words), nearest(word, words))


def _short(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a mapping"
    return "a list" if isinstance(value, list) else repr(value)


def _path(location: tuple[str | int, ...], data: object) -> KeyPath:
    """Pydantic's location without the names of union members, which are no keys."""
    path: list[str | int] = []
    for at, step in enumerate(location):
        if isinstance(data, dict):
            is_key = step in data or at == len(location) - 1
            union_member = not is_key or (step == data.get("do") and step not in data)
            if union_member:
                continue
            path.append(step)
            data = data.get(step)
        elif isinstance(data, list) and isinstance(step, int):
            path.append(step)
            data = data[step] if step < len(data) else None
    return tuple(path)
