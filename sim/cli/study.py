"""``logquake study``: answers that need no run."""

# ruff: noqa: PLC0415 - the machines are imported for measuring only

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.table import Table

from sim.cli.exits import exit_codes, say_json
from sim.cli.screen import console, say
from sim.cli.terminal import show_table
from sim.errors import SimulationError

_MIN, _MAX = 100, 4_000_000


@dataclass(frozen=True, slots=True)
class StudyOptions:
    """The options of ``logquake study``."""

    scenario: Path | None
    partitions: str
    samples: int
    sets: tuple[str, ...]
    as_json: bool


def study_command(subject: str, options: StudyOptions) -> None:
    """One study; an option of another one is refused."""
    with exit_codes():
        if subject in _OF_SIZES:
            if options.scenario is not None or options.sets:
                raise SimulationError(f"study {subject} takes no scenario; leave it out")
            _OF_SIZES[subject](options.partitions, as_json=options.as_json)
            return
        if options.scenario is None or options.partitions:
            raise SimulationError("study year takes a scenario file, and no --partitions")
        year_command(options.scenario, options)


def year_command(path: Path, options: StudyOptions) -> None:
    """Print how likely a year of failing components takes data or service."""
    from sim.scenario.loader import load
    from sim.studies.year import year

    answers = year(load(path, options.sets), samples=options.samples)
    if options.as_json:
        say_json([{**asdict(a), "low": a.chance.low, "high": a.chance.high} for a in answers])
        return
    for answer in answers:
        chance = answer.chance
        value = f"{chance.value:.3g} ({chance.low:.3g} to {chance.high:.3g})"
        cells = (answer.name, value, f"{chance.samples:,} samples", answer.meaning)
        say("\t".join(cells))


def failover_command(partitions: str, *, as_json: bool) -> None:
    """Print the table of fail-over times, a row as soon as it is known."""
    with exit_codes():
        from sim.studies.failover import PUBLISHED, SIZES, as_dict, table

        sizes = _sizes(partitions) if partitions else SIZES
        if as_json:
            rows = [as_dict(row) for row in table(sizes)]
            say_json({"costs": as_dict(PUBLISHED), "rows": rows})
            return
        head = ("partitions", "control plane", "event", "seconds", "detection", "load")
        _show(
            head,
            (
                (
                    f"{row.partitions:,}",
                    row.control_plane,
                    row.event,
                    f"{row.seconds:,.2f}",
                    f"{row.detection_seconds:,.2f}",
                    f"{row.load_seconds:,.2f}",
                )
                for row in table(sizes)
            ),
        )


def shutdown_command(partitions: str, *, as_json: bool) -> None:
    """Print the table of controlled shutdowns, a row as soon as it is known."""
    with exit_codes():
        from sim.studies.failover import PUBLISHED, as_dict
        from sim.studies.shutdown import SIZE, table

        sizes = _sizes(partitions) if partitions else (SIZE,)
        if as_json:
            rows = [asdict(row) for row in table(sizes)]
            say_json({"costs": as_dict(PUBLISHED), "rows": rows})
            return
        head = ("partitions", "replicas moved", "controller", "seconds", "published")
        _show(
            head,
            (
                (
                    f"{row.partitions:,}",
                    f"{row.replicas_moved:,}",
                    row.controller,
                    f"{row.seconds:,.2f}",
                    f"{row.published_seconds:g}" if row.published_seconds else "-",
                )
                for row in table(sizes)
            ),
        )


_OF_SIZES = {"failover": failover_command, "shutdown": shutdown_command}


def _show(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    """A table on a terminal; in a pipe a line is a row, for grep and cut."""
    out = console()
    shown = Table(*head)
    for cells in rows:
        if out.is_terminal:
            shown.add_row(*cells)
        else:
            say("\t".join(cells))
    if out.is_terminal:
        show_table(shown)


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
