"""``logquake list``: what is known, in words or in JSON."""

# ruff: noqa: PLC0415 - each list imports only what it shows

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from rich.table import Table

from sim.cli.exits import exit_codes, say_json
from sim.cli.screen import console, escaped
from sim.cli.terminal import show_table

Row = Mapping[str, object]
"""One line of a list."""


def list_command(subject: str, *, as_json: bool) -> None:
    """Print one list."""
    with exit_codes():
        rows = LISTS[subject]()
        if as_json:
            say_json(rows)
        else:
            _print(rows)


def faults() -> list[Row]:
    """Kinds of fault, their keys, what proves that they took effect, and what they may break."""
    from sim.faults.registry import KINDS
    from sim.scenario.schema.faults import keys_of

    return [
        {
            "fault": kind.kind,
            "meaning": kind.meaning(),
            "keys": ", ".join(("at", *keys_of(kind))),
            "takes effect when": kind.proof,
            "may break": kind.may_break,
        }
        for kind in KINDS.values()
    ]


def settings() -> list[Row]:
    """Kafka's settings by scope."""
    from sim.scenario.settings.overlay import other_defaults
    from sim.scenario.settings.registry import SETTINGS

    return [
        {
            "scope": scope,
            "setting": setting.name,
            "default": setting.default,
            "allowed": setting.allowed,
            "other versions": other_defaults(scope, setting.name),
            "narrower than Kafka": setting.because,
            "modelled": setting.is_modelled,
            "why not": setting.absent,
        }
        for scope, table in SETTINGS.items()
        for setting in table.values()
    ]


def checks() -> list[Row]:
    """Invariants held after every event, then what can be expected of a verdict."""
    from sim.checking.invariants.raft import RAFT_INVARIANTS
    from sim.checking.invariants.registry import INVARIANTS
    from sim.scenario.expect.bounds import VOCABULARY

    invariants: list[Row] = [
        {
            "check": kind.name,
            "meaning": kind.sentence,
            "holds": kind.conditions,
            "source": kind.source,
        }
        for kind in (*INVARIANTS, *RAFT_INVARIANTS)
    ]
    ends: list[Row] = [
        {"check": name, "meaning": meaning, "holds": "as a scenario expects", "source": unit}
        for name, (unit, meaning) in VOCABULARY.items()
    ]
    return invariants + ends


def behaviours() -> list[Row]:
    """Every position of each historic behaviour: since when, by which issue, and at which risk."""
    from sim.scenario.behaviours.registry import BEHAVIOURS
    from sim.scenario.behaviours.versions import DEFAULT

    return [
        {
            "behaviour": item.name,
            "position": choice.name,
            "since": choice.released,
            f"Kafka {DEFAULT}": choice.name == item.default,
            "side": item.side,
            "source": item.source,
            "decides": f"{item.meaning}: {choice.changes}",
            "risk": choice.risk if choice.modelled else f"not modelled; {choice.risk}",
        }
        for item in BEHAVIOURS
        for choice in item.positions
    ]


def hardware() -> list[Row]:
    """Presets of ``cluster.hardware``, their figures, and where those are from."""
    from sim.scenario.model.presets import PRESETS

    return [
        {
            "part": preset.part,
            "preset": preset.name,
            "meaning": preset.meaning,
            "figures": preset.text,
            "published": preset.source,
            "derived": preset.derived,
        }
        for preset in PRESETS
    ]


def scenarios() -> list[Row]:
    """Scenarios below ``scenarios`` of this directory, and those that come with the program.

    The former have their path, the latter the name that ``logquake init --from`` takes.

    Raises:
        SimulationError: If one cannot be read.
    """
    from sim.scenario.loader import load
    from sim.scenario.shipped import shipped

    here = sorted(Path("scenarios").rglob("*.yaml"))
    seen = [path.resolve() for path in here]
    brought = {name: path for name, path in shipped().items() if path.resolve() not in seen}
    named = {path.as_posix(): path for path in here} | brought
    return [{"scenario": name, "claim": load(path).claim} for name, path in named.items()]


LISTS: Final[Mapping[str, Callable[[], list[Row]]]] = {
    "faults": faults,
    "settings": settings,
    "checks": checks,
    "behaviours": behaviours,
    "hardware": hardware,
    "scenarios": scenarios,
}
"""Every list by its name."""


def _print(rows: Sequence[Row]) -> None:
    out = console()
    if not out.is_terminal:
        # In a pipe a line is a row, however long, so that grep and cut work.
        for row in rows:
            out.print(escaped("\t".join(_text(value) for value in row.values())))
        return
    table = Table(*rows[0], show_lines=False)
    for row in rows:
        table.add_row(*(escaped(_text(value)) for value in row.values()))
    show_table(table)


def _text(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
