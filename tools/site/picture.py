"""Pictures of catalogue runs: a timeline as a small SVG file, with its own light and dark colours.

Coordinates are whole pixels: what moves by less than one leaves the picture as it is. Every name
comes from a scenario file and is escaped.
"""

import re
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

from sim.units import SECOND, Micros
from tools.site.facts import ROOT, Facts
from tools.site.lanes import DOWN, LEVELS, Lane, Span, Track, instant, tracks

PICTURES: Final = ROOT / "docs" / "gallery"
"""Where the pictures are, one for each scenario file, under its name."""

WIDTH: Final = 560
_LEFT: Final = 104
_RIGHT: Final = WIDTH - 8
_ROW: Final = 14
_GAP: Final = 4
_STRIP: Final = 26
_CHARACTER: Final = 5.3
"""Pixels that a letter takes, about."""

_CLASSES: Final = {
    **dict(zip(LEVELS, ("l0", "l1", "l2", "l3"), strict=True)),
    "up": "l0",
    "starting": "l1",
    "paused": "l1",
    DOWN: "l3",
    "fault": "f",
    "term": "l0",
    "settled": "l0",
    "rebalancing": "b",
    "outage": "o",
}
_LEGEND: Final = (
    (LEVELS[0], "in sync"),
    (LEVELS[1], "some out of sync"),
    ("paused", "paused"),
    (LEVELS[2], "below min.insync.replicas"),
    (LEVELS[3], "no leader"),
    (DOWN, "down"),
    ("rebalancing", "rebalancing"),
    ("outage", "no acknowledgement"),
)
_STYLE: Final = """
text{font:10px system-ui,sans-serif;fill:#1f2937}
.n{text-anchor:end}.q{fill:#4b5563}.g{stroke:#d1d5db}.p{fill:none}
.l0{fill:#b7dfc3}.l1{fill:#f3c56f}.l2{fill:#ee8a80}.l3{fill:#1f2937}.f{fill:#d8d4f2}.b{fill:#b9d2f6}
.o{fill:#b91c1c}.a{fill:#2563eb}.r{fill:#0f766e}.w{fill:#fff}
@media(prefers-color-scheme:dark){
text{fill:#e5e7eb}.q{fill:#a8b0bd}.g{stroke:#4b5563}
.l0{fill:#22593a}.l1{fill:#855a12}.l2{fill:#a83b34}.l3{fill:#e5e7eb}.f{fill:#4a4378}.b{fill:#2b4f86}
.o{fill:#f87171}.a{fill:#7ba7f7}.r{fill:#4cc0b2}.w{fill:#111827}}
"""


class _Drawing:
    """A picture while it is drawn, from top to bottom."""

    def __init__(self, facts: Facts) -> None:
        self.end_us: Micros = max(1, facts["end_us"])
        self.parts: list[str] = []
        self.y = 4
        self.states: dict[str, None] = {}

    def x(self, at_us: Micros) -> int:
        """Place of an instant."""
        return _LEFT + round((_RIGHT - _LEFT) * min(at_us, self.end_us) / self.end_us)

    def bar(self, span: Span, y: int, height: int) -> None:
        """One span; one that is shorter than a pixel has a pixel."""
        left = self.x(span.from_us)
        width = max(3 if span.state == "fault" else 1, self.x(span.to_us) - left)
        times = f"{instant(span.from_us, self.end_us)} to {instant(span.to_us, self.end_us)}"
        self.states[span.state] = None
        self.parts.append(
            f'<rect class="{_CLASSES[span.state]}" x="{left}" y="{y}" width="{width}" '
            f'height="{height}"><title>{escape(span.words)}; {times}</title></rect>'
        )

    def text(self, x: int, words: str, kind: str = "", shift: int = 10) -> None:
        """Words that begin at ``x``, on the present row; the class ``n`` lets them end there."""
        given = f' class="{kind}"' if kind else ""
        self.parts.append(f'<text{given} x="{x}" y="{self.y + shift}">{escape(words)}</text>')

    def named(self, name: str, shift: int = 10) -> None:
        """The name of a row, at its left."""
        self.text(_LEFT - 6, _short(name, (_LEFT - 8) / _CHARACTER), "n", shift)


def draw(facts: Facts) -> str:
    """A run's timeline as SVG."""
    drawing = _Drawing(facts)
    for track in tracks(facts):
        _track(drawing, track)
    most = _scale([*facts["acked"], *facts["read"]])
    for name, words, kind in (("acked", "acked", "a"), ("read", "read", "r")):
        if facts[name]:
            _strip(drawing, facts[name], words, kind, most)
    _axis(drawing)
    _legend(drawing)
    label = escape(f"Timeline of {facts['scenario']}, seed {facts['seed']}")
    note = escape("\n".join(found_lines(facts)))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {drawing.y}" '
        f'width="{WIDTH}" height="{drawing.y}" role="img" aria-label="{label}">\n'
        f"<desc>{note}</desc><style>{_STYLE}</style>\n" + "\n".join(drawing.parts) + "\n</svg>\n"
    )


def found_lines(facts: Facts) -> Iterator[str]:
    """Findings of a run for its picture's description: a word, a colon and a value in each line."""
    yield f"scenario: {facts['digest'][:12]}"
    yield f"lost: {facts['answer']['lost'].partition(';')[0]}"
    longest = re.findall(r"(\w[\w ]*?) ([\d.]+) s \(", facts["answer"]["down"])
    down = ", ".join(f"{what} {float(seconds):.1f} s" for what, seconds in longest)
    yield f"down: {down or 'never for a second or longer'}"
    for name, _, shown in facts["expectations"]:
        yield f"{name}: {shown}"


def found_in(picture: Path) -> list[tuple[str, str]]:
    """Findings of a picture's run, as :func:`found_lines` has it; expectations come last."""
    text = ET.parse(picture).findtext("{http://www.w3.org/2000/svg}desc") or ""  # noqa: S314 - ours
    lines = (line.partition(": ") for line in text.splitlines())
    return [(word, value) for word, _, value in lines]


def _track(drawing: _Drawing, track: Track) -> None:
    for lane in track.lanes:
        drawing.named(lane.name or track.name)
        for span in lane.spans:
            drawing.bar(span, drawing.y, _ROW)
        for x, words, kind in _labels(drawing, lane):
            drawing.text(x, words, kind)
        if lane.outage:
            drawing.bar(lane.outage, drawing.y + _ROW, 3)
        for at, words in lane.marks[:40]:
            _mark(drawing, at, words)
        drawing.y += _ROW + _GAP + (2 if lane.outage else 0)
    if track.omitted:
        drawing.text(_LEFT, f"and {track.omitted} more {track.name}", "q", 8)
        drawing.y += _ROW
    drawing.y += _GAP


def _labels(drawing: _Drawing, lane: Lane) -> Iterator[tuple[int, str, str]]:
    """Words on a lane: where, words, class.

    A fault's words may be longer than its bar; other words that have no room are left out.
    """
    for span in lane.spans:
        left, right = drawing.x(span.from_us) + 3, drawing.x(span.to_us)
        wide = len(span.label) * _CHARACTER
        kind = "w" if _CLASSES[span.state] == "l3" else ""
        if span.state == "fault":
            label = _short(span.label, (_RIGHT - _LEFT) / _CHARACTER)
            room = left + len(label) * _CHARACTER <= _RIGHT
            yield (left, label, "") if room else (_RIGHT - 2, label, "n")
        elif span.label and wide <= right - left:
            yield left, span.label, kind


def _mark(drawing: _Drawing, at_us: Micros, words: str) -> None:
    """A triangle where a replica dropped the end of its log."""
    x, y = drawing.x(at_us), drawing.y
    drawing.states["truncation"] = None
    drawing.parts.append(
        f'<path class="o" d="M{x - 4} {y}h8l-4 7z"><title>{escape(words)}, '
        f"{instant(at_us, drawing.end_us)}</title></path>"
    )


def _strip(drawing: _Drawing, bins: Sequence[int], words: str, kind: str, most: int) -> None:
    """Records over time, as a filled line; strips of one picture have one scale."""
    base = drawing.y + _STRIP
    wide = (_RIGHT - _LEFT) / len(bins)
    steps = [f"M{_LEFT} {base}"]
    for place, count in enumerate(bins):
        height = min(_STRIP, round(_STRIP * count / most))
        steps.append(f"V{base - height}H{round(_LEFT + (place + 1) * wide)}")
    drawing.named(f"{words}/s", 13)
    peak = most * SECOND * len(bins) // drawing.end_us
    drawing.parts.append(
        f'<path class="{kind}" d="{"".join(steps)}V{base}z"><title>records {words} per second; '
        f"full height: {_round(peak):,} or more</title></path>"
    )
    drawing.text(_LEFT - 6, f"to {_round(peak):,}", "n q", 24)
    drawing.y = base + 2 * _GAP


def _scale(counts: Sequence[int]) -> int:
    """Records at full height: thrice the median, so that a burst does not flatten all else."""
    known = sorted(count for count in counts if count)
    return max(1, min(known[-1], 3 * known[len(known) // 2])) if known else 1


def _axis(drawing: _Drawing) -> None:
    """Seconds, at round distances."""
    seconds = drawing.end_us / SECOND
    step = next(
        size * 10**power
        for power in range(6)
        for size in (1, 2, 5)
        if seconds / (size * 10**power) <= 8
    )
    drawing.parts.append(f'<path class="g" d="M{_LEFT} {drawing.y}H{_RIGHT}"/>')
    for at in range(0, int(seconds) + 1, step):
        x = drawing.x(at * SECOND)
        drawing.parts.append(f'<path class="g" d="M{x} {drawing.y}v4"/>')
        drawing.text(x, f"{at} s", "n q" if x > _RIGHT - 12 else "q", 15)
    drawing.y += 20


def _legend(drawing: _Drawing) -> None:
    """The colours that occur among the partitions, and the triangle."""
    entries = [(state, words) for state, words in _LEGEND if state in drawing.states]
    for first, second in ((LEVELS[1], "paused"), (LEVELS[3], DOWN)):
        if {first, second} <= set(drawing.states):
            both = f"{second}, {dict(_LEGEND)[first]}"
            entries = [(s, both if s == second else w) for s, w in entries if s != first]
    if "truncation" in drawing.states:
        entries.append(("truncation", "log truncated"))
    x = _LEFT
    for state, words in entries:
        wide = 28 + round(len(words) * (_CHARACTER + 0.2))
        if x + wide > WIDTH:
            x, drawing.y = _LEFT, drawing.y + 14
        y = drawing.y
        if state == "truncation":
            drawing.parts.append(f'<path class="o" d="M{x} {y + 3}h8l-4 7z"/>')
        else:
            high, low = (3, 6) if state == "outage" else (9, 2)
            drawing.parts.append(
                f'<rect class="{_CLASSES[state]}" x="{x}" y="{y + low}" width="10" '
                f'height="{high}"/>'
            )
        drawing.text(x + 14, words, "q")
        x += wide
    drawing.y += 16 if entries else 4


def _round(number: int) -> int:
    """Two digits, so that a picture does not change with a few records."""
    power = int(f"1{'0' * max(0, len(str(number)) - 2)}")
    return number // power * power


def _short(words: str, most: float) -> str:
    """Words cut to a number of characters, with an ellipsis; a number at the end stays."""
    if len(words) <= most:
        return words
    end = f"-{words.rpartition('-')[2]}" if re.search(r"-\d+$", words) else ""
    return words[: int(most) - 1 - len(end)] + "\N{HORIZONTAL ELLIPSIS}" + end


def picture_of(path: Path) -> Path:
    """Where the picture of a scenario file is."""
    return PICTURES / f"{path.stem}.svg"
