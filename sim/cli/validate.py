"""``logquake validate`` and ``logquake schema``."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import typer

from sim.cli.exits import ExitCode, exit_codes, say_json
from sim.cli.screen import say
from sim.errors import ScenarioError, SimulationError
from sim.scenario.loader import load
from sim.scenario.scenario import document


def validate_command(
    paths: Sequence[Path], sets: tuple[str, ...], *, shows: bool, as_json: bool
) -> None:
    """Check every file; one line for each that is wrong. Exits with 2 if one is.

    ``shows``: print each one with its defaults, presets and instants, as a run would write it.
    """
    with exit_codes():
        answers: list[dict[str, object]] = []
        for path in _files(paths):
            try:
                scenario = load(path, sets)
            except ScenarioError as error:
                answers.append({"path": str(path), "ok": False, "error": str(error)})
                say(str(error), err=True)
            else:
                whole = {"scenario": document(scenario)} if shows else {}
                answers.append({"path": str(path), "ok": True, "digest": scenario.digest, **whole})
                if not as_json:
                    say(scenario.as_yaml() if shows else f"{path}: ok")
        if as_json:
            say_json(answers)
        if not all(answer["ok"] for answer in answers):
            raise typer.Exit(ExitCode.BAD_INPUT)


def schema_command() -> None:
    """Print the JSON Schema."""
    from sim.scenario.schema.json_schema import json_schema  # noqa: PLC0415 - beside its only use

    with exit_codes():
        say_json(json_schema())


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        found = sorted([*path.glob("*.yaml"), *path.glob("*.yml")])
        if not found:
            raise SimulationError(f"{path}: no scenario in this directory; they end in .yaml")
        yield from found
