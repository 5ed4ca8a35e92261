"""``logquake export``: a run in a format that other tools read."""

# ruff: noqa: PLC0415 - the analysis is imported when it is needed, not before

from pathlib import Path

from sim.cli.exits import exit_codes, say_json
from sim.cli.screen import say, step_bar
from sim.errors import SimulationError


def export_command(run: Path, perfetto: Path, *, force: bool, as_json: bool) -> None:
    """Write the trace file; prints where it is and how much it holds."""
    with exit_codes():
        if not (run / "run.json").is_file():
            raise SimulationError(
                f"{run}: not a run directory (no run.json); give what logquake run wrote"
            )
        if perfetto.is_dir() or not perfetto.parent.is_dir():
            raise SimulationError(f"{perfetto}: not a place for a file; give PATH/NAME.json")
        if perfetto.exists() and not force:
            raise SimulationError(f"{perfetto}: exists already; --force replaces it")
        try:
            from analysis.perfetto import export
        except ImportError as error:
            raise SimulationError(
                f"the export needs the analysis libraries ({error.name} is missing): "
                "install logquake[analysis]"
            ) from None
        with step_bar("export") as on_progress:
            events = export(run, perfetto, on_progress=on_progress)
        if as_json:
            say_json({"perfetto": str(perfetto), "events": events})
        else:
            say(f"{perfetto}: {events:,} events; open it at ui.perfetto.dev")
