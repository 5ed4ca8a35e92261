"""Rules of the house for commands that documents show: the real program takes each of them."""

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import typer.main

from sim.cli import app
from sim.errors import SimulationError
from sim.scenario.loader import load
from tools.house import Finding

_FENCE: Final = re.compile(r"^[ \t]*```(\w*)[^\n]*\n(.*?)^[ \t]*```", re.MULTILINE | re.DOTALL)
_LANGUAGES: Final = ("", "sh", "yaml")
_COMMAND: Final = re.compile(r"^\s*(?:- run: |- )?(?:\.venv/bin/)?logquake\s+(.*)$")
_MENTIONED: Final = re.compile(r"(?<!`)`logquake ([a-z]+)[^`]*`(?!`)")
_TARGETS: Final = re.compile(r"^([a-z-]+):", re.MULTILINE)
_MADE: Final = re.compile(r"`make ([a-z-]+)[^`]*`|^make ([a-z-]+)", re.MULTILINE)
_SHIPPED: Final = ("scenarios/", "docs/")


class Shown(NamedTuple):
    """A command that a document shows."""

    line: int
    words: tuple[str, ...]
    """Words after ``logquake``, without redirections."""


def shown_commands(text: str) -> Iterator[Shown]:
    """Commands of the fenced blocks of a document, continued lines joined."""
    for fence in _FENCE.finditer(text):
        if fence.group(1) not in _LANGUAGES:
            continue
        first = text.count("\n", 0, fence.start(2)) + 1
        block = fence.group(2).replace("\\\n", "  ")
        for number, line in enumerate(block.splitlines(), first):
            found = _COMMAND.match(line)
            if found:
                words = shlex.split(found.group(1), comments=True)
                end = next((place for place, word in enumerate(words) if word in "|>&&"), None)
                yield Shown(number, tuple(words[:end]))


def wrong_commands(root: Path, path: Path) -> Iterator[Finding]:
    """The program takes every command that is shown; its files exist, and take its ``--set``."""
    name = path.relative_to(root).as_posix()
    text = path.read_text(encoding="utf-8")
    for line, words in shown_commands(text):
        for complaint in complaints(root, words):
            yield Finding(name, line, f"logquake {' '.join(words)}: {complaint}")
    for found in _MENTIONED.finditer(text):
        if found.group(1) not in _program().commands:
            line = text.count("\n", 0, found.start()) + 1
            yield Finding(name, line, f"logquake {found.group(1)}: no such command")


@cache
def _program() -> Any:  # noqa: ANN401 - the type is of typer's own click
    return typer.main.get_command(app)


def complaints(root: Path, words: tuple[str, ...]) -> Iterator[str]:
    """Complaints of the program's own parser, and of its loader about a scenario that is named."""
    group = _program()
    try:
        outer = group.make_context("logquake", list(words))
        name, command, rest = group.resolve_command(outer, list(words))
        given = command.make_context(name, list(rest), parent=outer).params
    except Exception as error:  # noqa: BLE001 - typer does not export its usage errors
        yield str(error) or type(error).__name__
        return
    missing = [word for word in words if word.startswith(_SHIPPED) and not (root / word).exists()]
    yield from (f"{word}: no such file" for word in missing)
    file, sets = given.get("scenario"), given.get("set_")
    if file and sets and not missing and str(file).startswith(_SHIPPED):
        try:
            load(root / file, tuple(sets))
        except SimulationError as error:
            yield str(error)


def unknown_targets(root: Path, path: Path) -> Iterator[Finding]:
    """Every target of ``make`` that a document names is in the Makefile."""
    text = path.read_text(encoding="utf-8")
    targets = set(_TARGETS.findall((root / "Makefile").read_text(encoding="utf-8")))
    for found in _MADE.finditer(text):
        target = found.group(1) or found.group(2)
        if target not in targets:
            line = text.count("\n", 0, found.start()) + 1
            yield Finding(path.relative_to(root).as_posix(), line, f"make {target}: no such target")
