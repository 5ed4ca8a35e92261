"""Commands about scenarios and clusters."""

# ruff: noqa: PLC0415 - commands import what they need when they are called

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from sim.cli.commands import run_options as running
from sim.cli.commands.app import AsJson, Sets, app


class ListSubject(StrEnum):
    """Subjects of ``list``."""

    FAULTS = "faults"
    SETTINGS = "settings"
    CHECKS = "checks"
    BEHAVIOURS = "behaviours"
    HARDWARE = "hardware"
    SCENARIOS = "scenarios"


@app.command()
def verdict(
    scenario: Annotated[Path, typer.Argument(help="A scenario file.", metavar="SCENARIO")],
    seeds: Annotated[str, typer.Option(help="Such as 1..3 or 3,7.")] = "1..3",
    budget: Annotated[str, typer.Option(help="Real time it may take, as in 90s or 1h.")] = "5m",
    jobs: Annotated[int, typer.Option(min=0, help="Processes; default: one for each core.")] = 0,
    set_: Sets = None,
    out: Annotated[
        Path | None, typer.Option(help="Where to write; default runs/SCENARIO-verdict.")
    ] = None,
    *,
    keep: running.KeptOfMany = None,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Run everything again, and remember nothing.")
    ] = False,
    faults: Annotated[
        int, typer.Option(min=1, max=3, help="Most faults at one time; above 1 ways to lose data.")
    ] = 1,
    mtbf: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND=MTBF/MTTR", help="Rate of a kind, to rank coincidences; repeatable."
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Try every single fault on a cluster and say in sentences what it loses, and for how long."""
    from sim.cli.verdict import VerdictOptions, verdict_command

    options = VerdictOptions(
        seeds, budget, jobs, tuple(set_ or ()), out, None if keep is None else keep.value,
        not no_cache, faults, tuple(mtbf or ()), json,
    )  # fmt: skip
    verdict_command(scenario, options)


@app.command(name="import")
def import_(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            help="server.properties, a producer's properties, what kafka-topics --describe and "
            "kafka-configs --describe printed.",
            metavar="[FILE ...]",
        ),
    ] = None,
    bootstrap: Annotated[
        str | None,
        typer.Option(help="Ask a running cluster; it is only read.", metavar="HOST:PORT,..."),
    ] = None,
    command_config: Annotated[
        Path | None, typer.Option(help="A client's properties, for TLS and SASL there.")
    ] = None,
    for_: Annotated[
        str | None, typer.Option("--for", help="How long its load is measured (60s).")
    ] = None,
    rate: Annotated[
        str | None, typer.Option(help="Load of topics of which it is not known; 100/s with files.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Where to write; default: standard output.")
    ] = None,
    *,
    force: Annotated[bool, typer.Option("--force", help="Replace the file there.")] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit 2 if anything cannot be simulated.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Build a scenario from a running cluster, or from its files; what is left out is listed."""
    from sim.cli.importing import ImportOptions, import_command

    options = ImportOptions(rate, out, force, strict, json, bootstrap, command_config, for_)
    import_command(files or [], options)


@app.command()
def diff(
    first: Annotated[Path, typer.Argument(metavar="RUN_DIR")],
    second: Annotated[Path, typer.Argument(metavar="RUN_DIR")],
    *,
    as_json: AsJson = False,
) -> None:
    """Compare two runs: settings, lost, down and slow, and the first row in which they part."""
    from sim.cli.sides.diff import diff_command

    diff_command(first, second, as_data=as_json)


@app.command()
def validate(
    paths: Annotated[
        list[Path],
        typer.Argument(help="Scenario files or directories of them.", metavar="PATH ..."),
    ],
    set_: Sets = None,
    *,
    show: Annotated[bool, typer.Option("--show", help="Print each with all its values.")] = False,
    json: AsJson = False,
) -> None:
    """Check scenario files without running them."""
    from sim.cli.validate import validate_command

    validate_command(paths, tuple(set_ or ()), shows=show, as_json=json)


@app.command()
def schema() -> None:
    """Print the JSON Schema of scenario files, for editors."""
    from sim.cli.validate import schema_command

    schema_command()


@app.command(name="list")
def list_(subject: ListSubject, *, json: AsJson = False) -> None:
    """List what is known: faults, Kafka settings, checks, behaviours, hardware, scenarios."""
    from sim.cli.lists import list_command

    list_command(subject.value, as_json=json)
