"""Commands that search for failures, and that make them small."""

# ruff: noqa: PLC0415 - commands import what they need when they are called

from pathlib import Path
from typing import Annotated

import typer

from sim.cli.commands.app import AsJson, app

Jobs = Annotated[int, typer.Option(min=0, help="Processes; default: one for each core.")]


@app.command()
def shrink(
    source: Annotated[
        Path, typer.Argument(help="What a run left, or a capsule.", metavar="RUN|CAPSULE")
    ],
    looking_for: Annotated[
        str,
        typer.Option(
            metavar="NAME,...",
            help="Which failure of a run, such as lost_acked or down>60s; default: the first.",
        ),
    ] = "",
    runs: Annotated[int, typer.Option(min=1, help="Runs that it may make.")] = 500,
    budget: Annotated[str, typer.Option(help="Real time it may take, as in 90s or 1h.")] = "15m",
    jobs: Jobs = 0,
    out: Annotated[
        Path | None,
        typer.Option(help="The scenario to write; default runs/SCENARIO-shrunk.yaml."),
    ] = None,
    *,
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
    json: AsJson = False,
) -> None:
    """Make the failure of a run as small as it can be: a scenario, its capsule, its explanation."""
    from sim.cli.hunting.shrink import ShrinkOptions, shrink_command

    shrink_command(source, ShrinkOptions(looking_for, runs, budget, jobs, out, force, json))
