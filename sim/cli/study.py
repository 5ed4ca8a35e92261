"""``logquake study``: answers that need the control plane only."""

# ruff: noqa: PLC0415 - the machines are imported for measuring only

import typer
from rich.table import Table

from sim.cli.answers import exit_codes, say_json
from sim.cli.terminal import console
from sim.errors import SimulationError

_MIN, _MAX = 100, 4_000_000


def failover_command(partitions: str, *, as_json: bool) -> None:
    """Print the table of fail-over times, a row as soon as it is known."""
    with exit_codes():
        from sim.studies.failover import PUBLISHED, SIZES, as_dict, table

        sizes = _sizes(partitions) if partitions else SIZES
        if as_json:
            rows = [as_dict(row) for row in table(sizes)]
            say_json({"costs": as_dict(PUBLISHED), "rows": rows})
            return
        out = console()
        shown = Table("partitions", "control plane", "event", "seconds", "detection", "load")
        for row in table(sizes):
            cells = (
                f"{row.partitions:,}",
                row.control_plane,
                row.event,
                f"{row.seconds:,.2f}",
                f"{row.detection_seconds:,.2f}",
                f"{row.load_seconds:,.2f}",
            )
            if out.is_terminal:
                shown.add_row(*cells)
            else:
                typer.echo("\t".join(cells))  # in a pipe a line is a row, for grep and cut
        if out.is_terminal:
            out.print(shown)


def _sizes(text: str) -> tuple[int, ...]:
    """Numbers of partitions, separated by commas.

    Raises:
        SimulationError: If one is not a number of partitions that a study can have.
    """
    sizes: list[int] = []
    for word in text.split(","):
        digits = word.strip().replace("_", "")
        if not digits.isdigit() or not _MIN <= int(digits) <= _MAX:
            raise SimulationError(
                f"--partitions: found {word.strip()!r}; give whole numbers from {_MIN:,} to "
                f"{_MAX:,}, separated by commas, such as 10000,200000"
            )
        sizes.append(int(digits))
    return tuple(sizes)
