"""Pages of the site that are made when it is built, as Markdown.

Texts and names from scenario files are escaped: what looks like Markdown or HTML in them is shown
as it is.
"""

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from html import escape
from pathlib import Path
from typing import Final

import yaml

from sim.scenario.loader import load
from sim.scenario.scenario import Scenario
from tools.catalogue_entries import Entry, entries, files_of
from tools.site.api import first_sentence, public_modules
from tools.site.links import ROOT, fitted
from tools.site.picture import found_in, picture_of

FIELDS: Final = {
    "a": "Acknowledgements and the ISR",
    "b": "Truncation and recovery",
    "c": "Controllers and metadata",
    "d": "Placement, disks, retention",
    "e": "Consumers and mirroring",
    "f": "Ordering and transactions",
    "g": "Tiered storage",
}
"""Fields of the catalogue by the letter of their entries."""

_GRADES: Final = {
    "exact": "As published, in numbers or in yes and no",
    "same direction": "The effect is there; its size is not the source's, or a part is not run",
}
_GALLERY: Final = """\
Which failures of Apache Kafka have been published, and what do they look like? Each card is one of
them. It leads to the history, the timelines of the failure and of what mends it, the source, and
the command that runs it.

A timeline shows, from top to bottom: the faults; the servers that were down or paused; the active
controller, if it changed; the partitions that fared worst, with the broker that leads them; and how
many records were acknowledged and read. The legend is below each."""
_FIELD: Final = """\
What went wrong in {count} published failures, and what mends each? Of every entry: what its source
reports, the failure as it was (historic), the same history with what mends it (fixed), and
variants. All pictures are of the runs that the commands make."""
_EXAMPLES: Final = """\
Which scenarios come with Logquake? Each of these runs as it is. `logquake init my.yaml --from NAME`
writes a copy of one to change."""
_NOTEBOOKS: Final = """\
What can be asked of runs in Python? One question in each of seven notebooks. They are in the folder
`notebooks`; here is their text and code, without outputs."""
_API: Final = """\
Which modules are meant for use from outside? Those that the package `sim` offers by name, those
that documents and notebooks import, and those that [the architecture](../architecture.md) names as
places to read or to extend. All others may change without notice."""
_MARKDOWN: Final = re.compile(r"([\\`*_{}\[\]#|!~^])")


def plain(text: str) -> str:
    """Text that Markdown and HTML leave as it is."""
    return _MARKDOWN.sub(r"\\\1", escape(text, quote=False))


@cache
def generated() -> Mapping[str, str]:
    """Every page that is made: its place in the site, and its text."""
    api = {f"api/{m}.md": f"::: {m}\n" for ms in public_modules().values() for m in ms}
    fields = {f"gallery/{letter}.md": gallery_field(letter) for letter in FIELDS}
    return {
        "gallery/index.md": gallery_index(),
        **fields,
        "examples.md": examples(),
        "notebooks.md": notebooks(),
        "api/index.md": api_index(),
        **api,
        "project/license.md": f"# Licence\n\n```text\n{_read(ROOT / 'LICENSE')}\n```\n",
    }


def gallery_index() -> str:
    """The gallery's first page: every entry with its outcome and the picture of its failure."""
    parts = [
        "# The failure gallery",
        _GALLERY,
        f"[How near each one comes to its source](../catalogue.md): {_grades()}.",
    ]
    for letter, title in FIELDS.items():
        cards = "\n".join(_card(entry) for entry in _entries_of(letter))
        parts += [f"## {title}", f'<div class="lq-cards">\n{cards}\n</div>']
    return "\n\n".join(parts) + "\n"


def gallery_field(letter: str) -> str:
    """One field's page: its entries, with every scenario and its timeline."""
    found = _entries_of(letter)
    parts = [
        f"# {FIELDS[letter]}",
        _FIELD.format(count=len(found)),
    ]
    for entry in found:
        parts.append(f"## {entry.number}: {plain(entry.name)} {{#{entry.number.lower()}}}")
        parts.append(f"**Published:** {plain(_sentence(entry.asked))}")
        grade = _GRADES.get(entry.grade, entry.grade or "Not compared with its source")
        parts.append(f"**Reproduced:** {grade}{_in_brackets(entry.why)}.")
        if entry.study:
            parts.append(f"**Study:** {plain(entry.study)}.")
        for file in files_of(entry):
            parts += _scenario(file, entry)
    return "\n\n".join(parts) + "\n"


def examples() -> str:
    """The scenarios beside the catalogue, whole."""
    parts = [
        "# Example scenarios",
        _EXAMPLES,
    ]
    for file in sorted((ROOT / "scenarios").glob("*.yaml")):
        parts += [
            f"## {file.stem}",
            plain(load(file).claim),
            f"```sh\nlogquake run scenarios/{file.name}\n```",
            f"```yaml\n{_read(file)}\n```",
        ]
    return "\n\n".join(parts) + "\n"


def notebooks() -> str:
    """The notebooks' text and code; outputs come when they are run."""
    parts = [
        "# Notebooks",
        _NOTEBOOKS,
    ]
    for file in sorted((ROOT / "notebooks").glob("*.ipynb")):
        for place, cell in enumerate(json.loads(_read(file))["cells"]):
            text = "".join(cell["source"])
            if cell["cell_type"] == "code":
                parts.append(f"```python\n{text}\n```")
            else:
                text = fitted(text, f"notebooks/{file.name}", "notebooks.md")
                text = re.sub(r"^#", "##", text, flags=re.MULTILINE)
                head, _, rest = text.partition("\n")
                parts.append(f"{head} {{#{file.stem}}}\n{rest}" if not place else text)
    return "\n\n".join(parts) + "\n"


def api_index() -> str:
    """The public modules, each with what it says of itself."""
    parts = [
        "# Python reference",
        _API,
    ]
    for title, modules in public_modules().items():
        rows = [f"| [`{name}`]({name}.md) | {first_sentence(name)} |" for name in modules]
        parts += [f"## {title}", "\n".join(["| module | what it is |", "| --- | --- |", *rows])]
    return "\n\n".join(parts) + "\n"


def history_of(file: Path) -> tuple[str, str]:
    """The comment at the head of a catalogue file: what happened, and the sources."""
    lines = []
    for line in _read(file).splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.removeprefix("#").strip())
    history, _, source = "\n".join(lines).partition("\nSource:")
    history = re.sub(r"^Failure catalogue \w+[.,:]?\s*", "", " ".join(history.split()))
    return f"{history[:1].upper()}{history[1:]}", " ".join(source.split())


def _scenario(file: Path, entry: Entry) -> Iterator[str]:
    """One scenario file: claim, history, picture, command, the file itself."""
    scenario = load(file)
    kind = file.stem.removeprefix(f"{entry.number[0].lower()}{int(entry.number[1:]):02}-")
    kind = kind.removeprefix(entry.name).strip("-").replace("-", " ") or "control"
    history, source = history_of(file)
    yield f"### {entry.number}, {kind} {{#{file.stem}}}"
    yield f"**{plain(scenario.claim)}**"
    if history:
        yield plain(history)
    yield _picture(file, scenario)
    yield f"```sh\nlogquake run scenarios/catalogue/{file.name}\n```"
    yield f"Kafka {scenario.cluster.kafka}{_chosen(file, scenario)}."
    yield _found(file, scenario)
    if source:
        yield f"Source: {plain(source)}"
    text = "\n".join(f"    {line}".rstrip() for line in _read(file).splitlines())
    yield f'??? note "{file.name}"\n\n    ```yaml\n{text}\n    ```'


def _found(file: Path, scenario: Scenario) -> str:
    """Findings of the run as a table: losses, outages, and each expectation with its bound."""
    _, *ends = found_in(picture_of(file))
    asked = ["", "", *(line.given for line in scenario.expect)]
    rows = [
        f"| {word if place < 2 else f'`{word}`'} | {plain(bound)} | {plain(shown)} |"
        for place, ((word, shown), bound) in enumerate(zip(ends, asked, strict=True))
    ]
    return "\n".join(["| | expected | found |", "| --- | --- | --- |", *rows])


def _picture(file: Path, scenario: Scenario) -> str:
    words = escape(f"Timeline of {file.stem}: {scenario.claim}")
    alone = "\n\nThe timeline is of this cluster, without those beside it."
    return (
        f'<div class="lq-picture" markdown="0"><a href="{file.stem}.svg">'
        f'<img src="{file.stem}.svg" alt="{words}" width="560" loading="lazy"></a></div>'
        f"{alone if scenario.clusters else ''}"
    )


def _chosen(file: Path, scenario: Scenario) -> str:
    """Behaviours that are not those of the newest version, as the file chooses them."""
    given = yaml.safe_load(file.read_text(encoding="utf-8")).get("behaviours", {})
    chosen = ", ".join(f"`{name}: {scenario.behaviours[name]}`" for name in given)
    return f" with {chosen}" if chosen else ""


def _card(entry: Entry) -> str:
    shown = "".join(
        f'<img src="{file.stem}.svg" alt="" width="560" loading="lazy">'
        for file in files_of(entry)[:1]
    )
    return (
        f'<a class="lq-card" href="{entry.number[0].lower()}.html#{entry.number.lower()}">'
        f"<b>{entry.number} {escape(entry.name)}</b><span>{escape(_sentence(entry.asked))}</span>"
        f"{shown}</a>"
    )


def _entries_of(letter: str) -> list[Entry]:
    return [entry for entry in entries() if entry.number[0].lower() == letter]


def _grades() -> str:
    grades = [entry.grade or "not compared" for entry in entries()]
    return ", ".join(f"{grades.count(grade)} {grade}" for grade in dict.fromkeys(grades))


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _in_brackets(text: str) -> str:
    return f" ({plain(text)})" if text else ""


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8").strip("\n")
