"""``logquake bench``."""

# ruff: noqa: PLC0415 - the whole simulator is imported for measuring only

from sim.cli.exits import exit_codes, say_json
from sim.cli.screen import escaped
from sim.cli.terminal import console
from sim.compiled import WHY_SOURCES


def bench_command(*, as_json: bool) -> None:
    """Measure, and print the figures."""
    with exit_codes():
        from sim.bench import measure

        figures = measure()
        if as_json:
            say_json(figures)
            return
        out = console()
        for name, value in figures.items():
            shown = f"{value:,.2f}" if isinstance(value, float) else str(value)
            out.print(f"[bold]{name:20}[/bold] {escaped(shown)}")
        if WHY_SOURCES:
            out.print(
                f"run from the sources ({escaped(WHY_SOURCES)}): make compile doubles the speed"
            )
