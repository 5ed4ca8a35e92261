"""The page over several runs: one row per run, and the confidence interval of the rate of loss.

Source of the interval: Wilson (1927), "Probable Inference"; at 95 percent.
"""

import math
import os
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Final

from analysis.report.canvas import short
from analysis.report.markup import document, measured

Z: Final = 1.959964
"""Normal quantile of a 95 percent interval."""


def wilson(hits: int, runs: int) -> tuple[float, float]:
    """Interval of a rate of which ``hits`` of ``runs`` were seen; ``runs`` is at least 1."""
    share = hits / runs
    spread = Z * math.sqrt(share * (1 - share) / runs + Z * Z / (4 * runs * runs))
    middle = share + Z * Z / (2 * runs)
    scale = 1 + Z * Z / runs
    return max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)


def page(
    directories: Sequence[Path], summaries: Sequence[Mapping[str, object]], target: Path
) -> str:
    """The overview as HTML; links are relative to its directory."""
    lossy = [s for s in summaries if _count(s, "lost_acked")]
    low, high = wilson(len(lossy), len(summaries))
    seeds = ", ".join(escape(str(s.get("seed"))) for s in lossy)
    rows = "".join(
        _row(directory, summary, target)
        for directory, summary in zip(directories, summaries, strict=True)
    )
    names = (
        *("run", "seed", "acknowledged", "lost", "duplicated", "divergent"),
        *("produce p99", "longest produce gap", "judges"),
    )
    heads = "".join(f"<th>{name}</th>" for name in names)
    kind = "bad" if lossy else "good"
    body = (
        f"<h1>Logquake report: {len(summaries)} runs</h1>"
        f'<p class="verdict {kind}">{len(lossy)} of {len(summaries)} runs lost acknowledged '
        "records.</p>"
        f"<p>Rate of runs with loss: {low:.1%} to {high:.1%} (Wilson, 95%)"
        f"{'; seeds ' + seeds if lossy else ''}.</p>"
        f'<div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>'
        "</div>"
    )
    return document("Logquake: overview", body)


def _row(directory: Path, summary: Mapping[str, object], target: Path) -> str:
    link = Path(os.path.relpath(directory / "report" / "index.html", target)).as_posix()
    cells = [
        f'<td><a href="{escape(link)}">{escape(directory.name)}</a></td>',
        f"<td>{escape(str(summary.get('seed')))}</td>",
    ]
    cells += [
        f'<td class="n">{_count(summary, name):,}</td>'
        for name in ("acked", "lost_acked", "duplicated", "divergent")
    ]
    p99 = _deep(summary, "latency_us", "produce", "p99")
    gap = _deep(summary, "availability", "produce_max_us")
    cells += [
        f'<td class="n">{measured(value, short(value))[0]}</td>'
        if isinstance(value, int | float)
        else '<td class="n">no data</td>'
        for value in (p99, gap)
    ]
    agree = summary.get("agrees_with_checker") is True
    cells.append('<td class="yes">agree</td>' if agree else '<td class="no">differ</td>')
    return f"<tr>{''.join(cells)}</tr>"


def _count(summary: Mapping[str, object], name: str) -> int:
    value = _deep(summary, "durability", "records", name)
    return value if isinstance(value, int) else 0


def _deep(value: object, *keys: str) -> object:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
