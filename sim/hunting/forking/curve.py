"""Curve of a fork: the probability of a failure over the instant of forking, with intervals."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from sim.hunting.forking.future import Future
from sim.suite.statistics import proportion_interval
from sim.units import SECOND, Micros

_WIDTH: Final = 720
_HEIGHT: Final = 260
_LEFT: Final = 52
_TOP: Final = 16
_BOTTOM: Final = 40
_LABEL: Final = 64
"""Width of an instant's label on the axis, with a gap."""
_INK: Final = "#3355bb"


@dataclass(frozen=True, slots=True)
class PointOfCurve:
    """Futures of one instant."""

    at_us: Micros
    hits: int
    futures: int
    low: float
    high: float
    """Of the probability, with 95 % confidence (Clopper and Pearson)."""

    @property
    def share(self) -> float:
        """Of the futures that failed."""
        return self.hits / self.futures


def curve(futures: Sequence[Future], name: str) -> list[PointOfCurve]:
    """The points of one failure, in order of time.

    Args:
        futures: Of all instants.
        name: Of the failure.
    """
    found = []
    for at in sorted(dict.fromkeys(future.at_us for future in futures)):
        some = [future for future in futures if future.at_us == at]
        hits = sum(name in future.hits for future in some)
        found.append(PointOfCurve(at, hits, len(some), *proportion_interval(hits, len(some))))
    return found


def sentence(points: Sequence[PointOfCurve], name: str) -> str:
    """The moment from which it could no longer be saved, as far as the points show it."""
    sure = [point for point in points if point.low > 0.5]
    first = next((p for n, p in enumerate(points) if all(q.low > 0.5 for q in points[n:])), None)
    if first is None:
        worst = max(points, key=lambda point: point.share)
        if not sure:
            return (
                f"{name}: at no instant more likely than not (95 % confidence); at most "
                f"{worst.share:.0%} of the futures, from {_at(worst)} on"
            )
        return f"{name}: more likely than not from {_at(sure[0])} on, but not at every later one"
    before = [point for point in points if point.at_us < first.at_us]
    if not before:
        return f"{name}: more likely than not from the first instant on, {_at(first)}"
    last = before[-1]
    return (
        f"{name}: could no longer be saved from {_at(first)} on ({first.share:.0%} of the futures; "
        f"at {_at(last)} still {last.share:.0%})"
    )


def table(points: Sequence[PointOfCurve]) -> Iterator[str]:
    """The points in Markdown."""
    yield "| forked at | futures | failed | probability, 95 % |"
    yield "|---|---|---|---|"
    for point in points:
        yield (
            f"| {_at(point)} | {point.futures} | {point.hits} | {point.share:.1%} "
            f"({point.low:.1%} to {point.high:.1%}) |"
        )


def drawn(points: Sequence[PointOfCurve], name: str, marks: Sequence[tuple[Micros, str]]) -> str:
    """The curve as SVG.

    Args:
        points: In order of time.
        name: Of the failure, for the title.
        marks: Instants of faults, and their kinds.
    """
    low, high = points[0].at_us, points[-1].at_us
    span = max(high - low, 1)

    def x(at: Micros) -> float:
        return _LEFT + (_WIDTH - _LEFT - 16) * (at - low) / span

    def y(share: float) -> float:
        return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (1 - share)

    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
    lines = [
        f'{head}font-family="sans-serif" font-size="12">',
        f"<title>Probability of {name} over the instant of forking</title>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        *(_grid(y(share), share) for share in (0.0, 0.5, 1.0)),
    ]
    for at, kind in marks:
        if low <= at <= high:
            lines.append(
                f'<line x1="{x(at):.1f}" x2="{x(at):.1f}" y1="{_TOP}" y2="{_HEIGHT - _BOTTOM}" '
                f'stroke="#c33" stroke-dasharray="3 3"/><text x="{x(at) + 3:.1f}" y="{_TOP + 10}" '
                f'fill="#c33">{kind}</text>'
            )
    upper = [f"{x(p.at_us):.1f},{y(p.high):.1f}" for p in points]
    lower = [f"{x(p.at_us):.1f},{y(p.low):.1f}" for p in reversed(points)]
    middle = " ".join(f"{x(p.at_us):.1f},{y(p.share):.1f}" for p in points)
    lines.append(f'<polygon points="{" ".join([*upper, *lower])}" fill="{_INK}" opacity="0.2"/>')
    lines.append(f'<polyline points="{middle}" fill="none" stroke="{_INK}" stroke-width="2"/>')
    lines += [
        f'<circle cx="{x(p.at_us):.1f}" cy="{y(p.share):.1f}" r="3" fill="{_INK}"/>' for p in points
    ]
    for place, label, anchor in _labels([(x(point.at_us), _at(point)) for point in points]):
        lines.append(
            f'<text x="{place:.1f}" y="{_HEIGHT - 18}" text-anchor="{anchor}">{label}</text>'
        )
    lines.append(
        f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 4}" text-anchor="middle">instant of forking; band: '
        "95 % confidence</text></svg>"
    )
    return "\n".join(lines) + "\n"


def _labels(places: Sequence[tuple[float, str]]) -> Iterator[tuple[float, str, str]]:
    """Labels of the axis with their anchors: the first, the last, and those between that fit."""
    free = places[0][0] - _LABEL
    for number, (place, label) in enumerate(places):
        if number == len(places) - 1:
            yield place, label, "end" if number else "start"
        elif place - free >= _LABEL and (not number or places[-1][0] - place >= 1.5 * _LABEL):
            yield place, label, "middle" if number else "start"
            free = place if number else place + _LABEL / 2


def _grid(height: float, share: float) -> str:
    return (
        f'<line x1="{_LEFT}" x2="{_WIDTH - 16}" y1="{height:.1f}" y2="{height:.1f}" '
        f'stroke="#ddd"/><text x="{_LEFT - 8}" y="{height + 4:.1f}" '
        f'text-anchor="end">{share:.0%}</text>'
    )


def _at(point: PointOfCurve) -> str:
    return f"{point.at_us / SECOND:.6g} s"
