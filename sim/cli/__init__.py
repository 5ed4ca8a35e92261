"""The command ``logquake``.

Each command imports what it needs when it is called, so that ``--help`` and short answers come at
once, and ``run`` never waits for Spark. Each command's words are in :mod:`sim.cli.commands`, its
work is in its own module.
"""

# ruff: noqa: PLC0415 - commands import what they need when they are called

import gc
import os
from typing import Annotated

import typer

from sim.cli.commands import failures, runs, scenarios, tools
from sim.cli.commands.app import app
from sim.cli.serving import mcp

__all__ = ["app", "main"]


def _say_version(is_requested: bool) -> None:  # noqa: FBT001 - typer gives the option's value
    from importlib.metadata import version

    from sim.scenario.behaviours.versions import VERSIONS

    if is_requested:
        typer.echo(
            f"logquake {version('logquake')}, simulates Kafka {VERSIONS[0]} to {VERSIONS[-1]}"
        )
        raise typer.Exit


@app.callback()
def _options(
    *,
    version: Annotated[  # noqa: ARG001 - its callback answers
        bool,
        typer.Option(
            "--version", help="Print the version and exit.", callback=_say_version, is_eager=True
        ),
    ] = False,
) -> None:
    from sim.cli.screen import let_streams_degrade

    let_streams_degrade()


COMMANDS = (runs, scenarios, failures, tools)
"""Modules whose commands are the program's, in the order of its help."""

app.command()(mcp)


def start_quickly() -> None:
    """Leave out what libraries and the interpreter do at a start and no command needs."""
    # What is imported stays, so that looking for garbage in it finds none.
    gc.set_threshold(200_000, 50, 100)
    # pydantic looks through all installed packages for plugins.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # numpy's algebra starts a thread for each core, which waits busily; nothing here uses it.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def main() -> None:
    """Entry point of ``logquake`` and ``python -m sim``."""
    from sim.lifetime import interrupt_by_signals, was_interrupted

    interrupt_by_signals()
    start_quickly()
    try:
        app(prog_name="logquake")
    except KeyboardInterrupt:
        # It came before a command could take it, or after: nothing but the code is owed.
        raise SystemExit(130) from None
    except Exception:
        # Up to Python 3.11 a class body that it meets while it is imported wraps it in an error.
        if was_interrupted():
            raise SystemExit(130) from None
        raise
    finally:
        # The interpreter looks twice for garbage before it ends, and what is frozen is left out.
        gc.freeze()
