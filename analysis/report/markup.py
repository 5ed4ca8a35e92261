"""HTML without a template language: the document, its style, and tables of escaped cells."""

from collections.abc import Sequence
from html import escape
from typing import Final

from analysis.report import script

_STYLE: Final = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1f2937; background: #fff;
  max-width: 1120px; margin: 2rem auto; padding: 0 1.2rem; }
h1 { font-size: 1.15rem; color: #4b5563; font-weight: 600; margin-bottom: .3rem;
  overflow-wrap: anywhere; }
h2 { font-size: 1.35rem; margin: 2.4rem 0 .4rem; }
.verdict { font-size: 1.75rem; line-height: 1.3; font-weight: 650; padding: 1.1rem 1.3rem;
  border-left: 10px solid; border-radius: 6px; margin: .4rem 0 .8rem; overflow-wrap: anywhere; }
.good { border-color: #2f8f4e; background: #eef8f1; }
.bad { border-color: #c02626; background: #fdf0f0; }
.none { border-color: #6b7280; background: #f3f4f6; }
.warn { padding: .6rem 1rem; background: #fff6df; border-left: 6px solid #d9a514;
  border-radius: 4px; }
.claim { font-size: 1.1rem; font-style: italic; margin: .4rem 0 1rem; overflow-wrap: anywhere; }
p.note { color: #4b5563; margin: .1rem 0 .5rem; }
table { border-collapse: collapse; margin: .5rem 0 1rem; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .8rem; border-bottom: 1px solid #e5e7eb; text-align: left;
  vertical-align: top; overflow-wrap: anywhere; }
th { color: #4b5563; font-weight: 600; }
td.n, th.n { text-align: right; white-space: nowrap; overflow-wrap: normal; }
.w, td.yes, td.no { white-space: nowrap; overflow-wrap: normal; }
th { overflow-wrap: normal; }
.yes { color: #1d6b37; font-weight: 600; } .no { color: #b01e1e; font-weight: 600; }
.scroll { overflow-x: auto; }
img { width: 100%; height: auto; }
details { margin: .4rem 0; } summary { cursor: pointer; color: #1f6fb4; }
th.sorts { cursor: pointer; } th.sorts::after { content: " \\2195"; color: #9ca3af; }
th[aria-sort=ascending]::after { content: " \\2191"; color: #1f6fb4; }
th[aria-sort=descending]::after { content: " \\2193"; color: #1f6fb4; }
h3 { font-size: 1.1rem; margin: 1.4rem 0 .3rem; }
canvas { display: block; touch-action: pan-y; cursor: crosshair; }
#lq-space { cursor: grab; } .sheet { width: 100%; overflow: hidden; margin: .3rem 0; }
#lq-slider { width: 100%; margin: .4rem 0; }
.controls { display: flex; flex-wrap: wrap; gap: .4rem; align-items: center; margin: .4rem 0; }
button { font: inherit; font-size: .9rem; padding: .2rem .7rem; border: 1px solid #9ca3af;
  border-radius: 4px; background: #fff; color: #1f2937; cursor: pointer; }
button[aria-pressed=true] { background: #e5eff8; border-color: #1f6fb4; }
button.kind { border-left-width: 8px; } button.kind[aria-pressed=false] { opacity: .45; }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; margin: .2rem 0 .6rem;
  font-size: .85rem; color: #4b5563; }
.legend i { display: inline-block; width: 1em; height: .8em; margin-right: .35em;
  border-radius: 2px; }
#lq-state { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem;
  margin: .3rem 0; font-size: .95rem; min-height: 9rem; align-content: start; }
#lq-state dt { color: #4b5563; grid-column: 1; } #lq-state dd { margin: 0; grid-column: 2;
  overflow-wrap: anywhere; }
@media (max-width: 640px) { th.n { white-space: normal; }
  td:not(.n, .w, .yes, .no) { min-width: 6.5rem; } th, td { padding: .35rem .5rem; }
  td:last-child:not(.n, .w, .yes, .no) { min-width: 14rem; } }
footer { margin: 3rem 0 1rem; color: #6b7280; font-size: .9rem; overflow-wrap: anywhere; }
"""

_ARROW: Final = escape("<->")
_WHOLE_ARROW: Final = f'<span class="w">{_ARROW}</span>'
"""A line may end behind a hyphen, and this one is no hyphen."""

Cell = tuple[str, str]
"""HTML of a table's cell and its class."""


def document(title: str, body: str, parts: tuple[str, ...] = script.TABLES) -> str:
    """A page in the common style; title and body are HTML already, ``parts`` names its script."""
    code = script.text(parts)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        f"style-src 'unsafe-inline'; img-src data:; script-src '{script.digest(code)}'\">"
        f"<title>{title}</title><style>{_STYLE}</style></head>\n<body>\n{body}\n"
        f"<script>{code}</script></body></html>\n"
    )


def table(heads: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """A table; a head that ends with ``#`` is that of numbers."""
    top = "".join(
        f'<th class="n">{escape(head[:-1] or "#")}</th>'
        if head.endswith("#")
        else f"<th>{escape(head)}</th>"
        for head in heads
    )
    lines = "".join(
        "<tr>" + "".join(f'<td class="{kind}">{html}</td>' for html, kind in row) + "</tr>"
        for row in rows
    )
    inner = f"<thead><tr>{top}</tr></thead><tbody>{lines}</tbody>"
    return f'<div class="scroll"><table>{inner}</table></div>'


def text(value: object) -> Cell:
    """A cell with escaped text; nothing for ``None``."""
    return escape(str(value)).replace(_ARROW, _WHOLE_ARROW) if value is not None else "", ""


def measured(value: float, shown: str) -> Cell:
    """A cell that shows a quantity with its unit and sorts by the quantity."""
    return f'<data value="{value!r}">{escape(shown)}</data>', "n"


def number(value: int) -> Cell:
    """A cell with a whole number."""
    return f"{int(value):,}", "n"
