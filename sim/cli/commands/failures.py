"""Commands that search for failures, and that make them small."""

# ruff: noqa: PLC0415 - commands import what they need when they are called

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from sim.cli.commands.app import AsJson, Sets, app

Jobs: TypeAlias = Annotated[int, typer.Option(min=0, help="Processes; default: one for each core.")]


@app.command()
def hunt(
    scenario: Annotated[Path, typer.Argument(help="A scenario file.", metavar="SCENARIO")],
    for_: Annotated[str, typer.Option("--for", help="Real time it may take, as in 30m.")] = "10m",
    runs: Annotated[
        int | None, typer.Option(min=1, help="Executions in all, instead of a time.")
    ] = None,
    faults: Annotated[int, typer.Option(min=1, max=10, help="Most faults of a run.")] = 2,
    looking_for: Annotated[
        str, typer.Option(metavar="NAME,...", help="Failures, each with a bound if it needs one.")
    ] = "lost_acked,down>60s,stuck",
    seed: Annotated[int, typer.Option(min=0, help="The same seed hunts the same.")] = 1,
    kinds: Annotated[
        str,
        typer.Option(
            metavar="KIND,...", help="Kinds of faults; default: all that are no administrator's."
        ),
    ] = "",
    vary: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=A,B,C", help="A setting that is searched, too; repeatable."),
    ] = None,
    set_: Sets = None,
    shrink: Annotated[
        str, typer.Option(help="Real time for shrinking each failure; 0s: none.")
    ] = "5m",
    jobs: Jobs = 0,
    out: Annotated[
        Path | None,
        typer.Option(help="Where to write, and to resume; default runs/SCENARIO-hunt."),
    ] = None,
    *,
    uniform: Annotated[
        bool, typer.Option("--uniform", help="Draw every run without guidance, to compare.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Search for faults under which a cluster loses data, or is down for long, or gets stuck."""
    from sim.cli.hunting.hunt import HuntOptions, hunt_command

    hunt_command(
        scenario,
        HuntOptions(
            for_, runs, faults, looking_for, seed, kinds, tuple(vary or ()), tuple(set_ or ()),
            uniform, shrink, jobs, out, json,
        ),
    )  # fmt: skip


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


@app.command()
def fork(
    run: Annotated[Path, typer.Argument(help="What a run left.", metavar="RUN_DIR")],
    at: Annotated[
        str,
        typer.Option(
            help="The instant, as in 12.4s; some, as in 2s,4s; or a window, as in 2s..9s."
        ),
    ],
    points: Annotated[int, typer.Option(min=2, help="Instants of a window.")] = 10,
    seeds: Annotated[int, typer.Option(min=1, max=10_000, help="Futures of each instant.")] = 50,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A setting of a topic or of all brokers, from there on; repeatable.",
        ),
    ] = None,
    without: Annotated[
        list[int] | None,
        typer.Option(min=0, metavar="N", help="Without faults[N] from there on; repeatable."),
    ] = None,
    looking_for: Annotated[
        str, typer.Option(metavar="NAME,...", help="Failures, each with a bound if it needs one.")
    ] = "lost_acked,down>30s",
    jobs: Jobs = 0,
    out: Annotated[
        Path | None, typer.Option(help="Where to write; default runs/SCENARIO-sSEED-fork.")
    ] = None,
    *,
    json: AsJson = False,
) -> None:
    """Repeat a run up to an instant, continue it many times otherwise, and count what fails."""
    from sim.cli.hunting.fork import ForkOptions, fork_command

    options = ForkOptions(
        at, points, seeds, tuple(set_ or ()), tuple(without or ()), looking_for, jobs, out, json
    )
    fork_command(run, options)
