"""``logquake diff``: two runs side by side."""

from pathlib import Path

import typer

from sim.cli.exits import ExitCode, exit_codes, say_json
from sim.cli.screen import say
from sim.suite.two_runs import as_json, compare, words


def diff_command(first: Path, second: Path, *, as_data: bool) -> None:
    """Say in what two runs differ; exits 1 if in anything, as diff(1) does."""
    with exit_codes():
        found = compare(first, second)
        if as_data:
            say_json(as_json(found))
        else:
            for line in words(found, (first.name, second.name)):
                say(line)
        raise typer.Exit(ExitCode.HELD if found.is_equal else ExitCode.EXPECTATION_FAILED)
