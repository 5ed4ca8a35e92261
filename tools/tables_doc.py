"""Writes the parts of the documents that are lists of what the code knows.

Trace tables, hardware, faults, expectations, behaviours, settings and commands are declared once
in the code, the claims of the failure catalogue in its files; the documents show them between
markers. The JSON Schema of scenario files is written beside them. Run ``make
docs`` after a change of any of them; a test fails until then.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from sim.faults.registry import KINDS
from sim.scenario.behaviours.registry import BEHAVIOURS
from sim.scenario.behaviours.versions import DEFAULT
from sim.scenario.expect.bounds import VOCABULARY
from sim.scenario.loader import load
from sim.scenario.model.presets import PRESETS
from sim.scenario.schema.faults import keys_of
from sim.scenario.schema.json_schema import SCHEMA_FILE, schema_text
from sim.scenario.settings.overlay import other_defaults
from sim.scenario.settings.registry import SETTINGS
from sim.scenario.settings.types import as_kafka_writes
from sim.trace.schema import TABLES, VERSION, Table
from tools.catalogue_entries import CATALOGUE, entries, files_of
from tools.site.commands import commands

DOCS = Path(__file__).parents[1] / "docs"
"""Where the documents are."""


class Part(NamedTuple):
    """One generated part: its document, the name in its markers, and who writes it."""

    document: str
    name: str
    write: Callable[[], str]

    @property
    def begin(self) -> str:
        """The marker before it."""
        return f"<!-- {self.name}: begin -->"

    @property
    def end(self) -> str:
        """The marker behind it."""
        return f"<!-- {self.name}: end -->"


def renewed(part: Part, document: str) -> str:
    """The document's text with the generated part made anew.

    Raises:
        ValueError: If a marker is missing.
    """
    before, begin, rest = document.partition(part.begin)
    _, end, after = rest.partition(part.end)
    if not begin or not end:
        raise ValueError(f"docs/{part.document} lacks {part.begin} or {part.end}")
    return f"{before}{part.begin}\n\n{part.write()}\n\n{part.end}{after}"


def trace_tables() -> str:
    """A list of all trace tables, then one section for each."""
    rows = [(f"[`{t.name}`](#{t.name})", t.level, t.row) for t in TABLES]
    overview = _grid(("table", "level", "one row is"), rows)
    head = f"Trace schema version {VERSION}: {len(TABLES)} tables."
    return "\n\n".join([head, overview, *(_section(table) for table in TABLES)])


def faults() -> str:
    """Every kind of fault, its keys, and what shows that it took effect."""
    rows = (
        (
            f"`{kind.kind}`",
            kind.meaning(),
            ", ".join(f"`{key}`" for key in keys_of(kind)),
            kind.proof,
            kind.may_break,
        )
        for kind in KINDS.values()
    )
    return _grid(("`do`", "what it does", "keys", "took effect if", "may break"), rows)


def expectations() -> str:
    """Every name that may stand under ``expect``."""
    rows = ((f"`{name}`", unit, meaning) for name, (unit, meaning) in VOCABULARY.items())
    return _grid(("name", "counts", "meaning"), rows)


def hardware() -> str:
    """Every preset of hardware, its figures, and where they are from."""
    rows = (
        (each.part, f"`{each.name}`", each.meaning, each.text, each.source, each.derived)
        for each in PRESETS
    )
    return _grid(("part", "preset", "is", "sets", "published", "derived"), rows)


def behaviours() -> str:
    """Every switch between what Kafka does and what it once did."""
    rows = (
        (
            f"`{item.name}`",
            f"`{item.default}`",
            ", ".join(f"`{choice}`" for choice in item.modelled),
            item.versions,
            item.side,
            item.source,
            f"{item.meaning} ({item.changes})",
            item.risks,
        )
        for item in BEHAVIOURS
    )
    head = (
        "name",
        f"Kafka {DEFAULT}",
        "can be",
        "in versions",
        "side",
        "source",
        "decides",
        "risk",
    )
    return _grid(head, rows)


def settings() -> str:
    """Every known Kafka setting by scope: first those that are modelled, then those refused."""
    parts = []
    for scope, known in SETTINGS.items():
        modelled = (
            (
                f"`{s.name}`",
                as_kafka_writes(s.default),
                other_defaults(scope, s.name),
                s.allowed,
                s.because,
            )
            for s in known.values()
            if s.is_modelled
        )
        refused = (
            (f"`{s.name}`", as_kafka_writes(s.default), s.absent)
            for s in known.values()
            if not s.is_modelled
        )
        parts.append(f"## {scope.capitalize()}")
        head = ("setting", "default", "other versions", "allowed", "narrower than Kafka")
        parts.append(_grid(head, modelled))
        parts.append("Known, and accepted at their default only:")
        parts.append(_grid(("setting", "default", "why it is not modelled"), refused))
    return "\n\n".join(parts)


def catalogue() -> str:
    """Every file of the failure catalogue with what it claims."""
    rows = (
        (path.stem[:3].upper(), f"[`{path.stem}`]({path.name})", load(path).claim)
        for path in sorted(CATALOGUE.glob("*.yaml"))
    )
    return _grid(("entry", "scenario", "claim"), rows)


NOTHING = "\N{EN DASH}"


def outcomes() -> str:
    """Every entry of the failure catalogue: asked, held by its files, and how near that comes."""
    rows = []
    for entry in entries():
        files = files_of(entry)
        held = "; ".join(_held(path) for path in files) or entry.study or NOTHING
        grade = entry.grade or "holds, not compared"
        why = entry.why if entry.grade else ""
        if held == NOTHING:
            grade, why = "not reproduced", entry.why
        shown = [f"[{entry.number}](gallery/{file.stem}.svg)" for file in files[:1]]
        number = "".join(shown) or entry.number
        rows.append((number, entry.name, entry.asked, held, grade, why or NOTHING))
    graded = [row[4] for row in rows]
    counts = ", ".join(f"{graded.count(grade)} {grade}" for grade in dict.fromkeys(graded))
    head = ("entry", "name", "outcome asked", "outcome held", "grade", "what differs")
    return f"{len(rows)} entries: {counts}.\n\n{_grid(head, rows)}"


def _held(path: Path) -> str:
    """What a file expects, and a test sees held."""
    lines = [f"`{line.name}` {line.given}" for line in load(path).expect]
    name = path.stem[4:]
    kind = next((k for k in _KINDS if name.endswith(f"-{k}")), name.rpartition("-")[2])
    return f"{kind}: {', '.join(lines)}"


_KINDS = ("historic", "fixed", "control", "one-rack", "inside-limit", "one-at-a-time")

PARTS = (
    Part("results.md", "trace tables", trace_tables),
    Part("scenario.md", "hardware", hardware),
    Part("scenario.md", "faults", faults),
    Part("scenario.md", "expectations", expectations),
    Part("scenario.md", "behaviours", behaviours),
    Part("settings.md", "settings", settings),
    Part("../scenarios/catalogue/README.md", "catalogue", catalogue),
    Part("catalogue.md", "outcomes", outcomes),
    Part("cli.md", "commands", commands),
)
"""Every generated part."""


def _section(table: Table) -> str:
    rows = ((f"`{c.name}`", c.type, c.meaning or "as named") for c in table.columns)
    grid = _grid(("column", "type", "meaning"), rows)
    return f"### {table.name}\n\nOne row: {table.row}. Level: {table.level}.\n\n{grid}"


def _grid(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(_cell(text) for text in line)} |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|") or " "


def main() -> None:
    """Write every part into its document, and the schema into its file."""
    SCHEMA_FILE.write_text(schema_text(), encoding="utf-8")
    for part in PARTS:
        path = DOCS / part.document
        path.write_text(renewed(part, path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
