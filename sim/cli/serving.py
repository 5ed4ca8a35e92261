"""``logquake mcp``: the tools for a client of the Model Context Protocol."""

# ruff: noqa: PLC0415 - imported when the program starts; only this command needs the rest

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from sim.mcp.limits import Limits


def mcp(
    root: Annotated[
        Path, typer.Option(help="Everything is written below it, and read.", metavar="DIR")
    ] = Path("runs"),
    read: Annotated[
        list[Path] | None,
        typer.Option(help="A directory that may be read, too; repeatable.", metavar="DIR"),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Simulations at one time.")] = 1,
    max_simulated: Annotated[
        str, typer.Option(help="Simulated time that one run may have.")
    ] = "30m",
    max_records: Annotated[
        int, typer.Option(min=1, help="Records that one run may mean to send.")
    ] = 5_000_000,
    max_time: Annotated[str, typer.Option(help="Real time that one call may take.")] = "10m",
    max_disk: Annotated[str, typer.Option(help="Space that all files may take.")] = "8GiB",
    max_runs: Annotated[
        int, typer.Option(min=1, help="Runs that one sweep may make, and seeds of a verdict.")
    ] = 200,
) -> None:
    """Serve tools to a client of the Model Context Protocol, over standard input and output."""
    from sim.cli.exits import exit_codes
    from sim.errors import SimulationError

    with exit_codes():
        missing = [path for path in read or () if not path.is_dir()]
        if missing:
            raise SimulationError(f"--read {missing[0]}: no such directory")
        limits = _limits(max_simulated, max_records, max_time, max_disk, max_runs)
        _serve(root, read or [], limits, jobs)


def _serve(root: Path, read: list[Path], limits: "Limits", jobs: int) -> None:
    from sim.cli.exits import ExitCode
    from sim.errors import SimulationError

    try:
        from sim.mcp.server import ServerOptions, serve
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in {"mcp", "mcp_types"}:
            raise
        raise SimulationError(
            "the server needs the protocol's SDK: pip install 'logquake[mcp]'"
        ) from None
    if sys.stdin.isatty():
        typer.echo("waiting for a client on standard input; see docs/mcp.md", err=True)
    try:
        serve(ServerOptions(root, read, limits, jobs))
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        # Every command has ended; a thread still reads standard input, until its other side closes.
        os._exit(ExitCode.INTERRUPTED)


def _limits(simulated: str, records: int, time: str, disk: str, runs: int) -> "Limits":
    from sim.errors import SimulationError
    from sim.mcp.limits import Limits
    from sim.scenario.text.quantities import parse_size
    from sim.suite.fault_outcomes import parse_budget

    def parsed(option: str, parse: Callable[[str], int], text: str) -> int:
        try:
            return parse(text)
        except ValueError as error:
            allowed = "a time such as 90s, 5m or 1h" if parse is parse_budget else error.args[1]
            raise SimulationError(f"{option}: {error.args[0]}; allowed: {allowed}") from None

    return Limits(
        simulated_us=parsed("--max-simulated", parse_budget, simulated),
        records=records,
        time_us=parsed("--max-time", parse_budget, time),
        disk_bytes=parsed("--max-disk", parse_size, disk),
        runs=runs,
    )
