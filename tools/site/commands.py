"""The reference of commands, from what typer itself knows of them."""

import inspect
import re
from typing import Any, Final

import typer.main

from sim.cli import app

_VALUE: Final = re.compile(r" <([^>]*)>")
_VALUES: Final = {"path": "PATH", "str": "TEXT", "int": "N", "int range": "N"}
"""Names of values whose type alone is known."""

_DOUBLED: Final = re.compile(r"\[\[(.*?)\]\]")
_BRACES: Final = str.maketrans("", "", "{}")


def commands() -> str:
    """Every command: usage, what it does, arguments, options."""
    known: Any = typer.main.get_command(app)
    return "\n\n".join(_command(name, each) for name, each in known.commands.items())


def _command(name: str, command: Any) -> str:  # noqa: ANN401 - the type is of typer's own click
    context = typer.Context(command, info_name=f"logquake {name}")
    pieces = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    usage = _DOUBLED.sub(r"[\1]", pieces).translate(_BRACES).replace("......", "...")
    rows = [
        f"| `{_cell(_names(each, record[0]))}` | {_cell(record[1]).replace('<', '&lt;')} |"
        for each in command.params
        if (record := each.get_help_record(context))
    ]
    grid = ["| argument or option | meaning |", "| --- | --- |", *rows] if rows else []
    words = " ".join(inspect.cleandoc(command.help or "").split())
    parts = [f"## logquake {name}", words, f"```text\n{usage}\n```", "\n".join(grid)]
    return "\n\n".join(part for part in parts if part)


def _names(parameter: Any, names: str) -> str:  # noqa: ANN401
    """Names of an option and of its value; an argument's choices."""

    def named(found: re.Match[str]) -> str:
        if "|" in found[1]:
            return f" {found[1]}"
        is_argument = parameter.param_type_name == "argument"
        return "" if is_argument else f" {_VALUES.get(found[1], found[1].upper())}"

    return _VALUE.sub(named, names)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|") or " "
