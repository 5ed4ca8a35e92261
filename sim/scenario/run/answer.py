"""The answer of a run: what was lost, how long it was down, how slow it got.

Computed once, from the verdict's numbers, and kept in it as ``answer``; whatever shows a run shows
these words. Colours, by rules that are the same for every run:

* *lost*: red if an acknowledged record is lost, amber if none was acknowledged.
* *down*: the longest time in which records of a partition waited and none was acknowledged, or
  delivered, and in which a partition had no leader that served. Amber from 1 s on, red from 30 s
  on (``request.timeout.ms``: clients have seen timeouts). A group that forms before any fault is no
  outage: the wait for its first record counts only if a fault began in it. A consumer that ended
  with an error reads no more until its process is started again: amber at least.
* *slow*: p99 of produce latency, from the instant at which a record was meant to be sent, in normal
  times and within the window of each fault. The same bounds for the slowest.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypedDict

from sim.levels import AMBER_FROM, Level, formed, level_of, rank
from sim.units import SECOND, Micros, show_duration

NAMES: Final = ("lost", "down", "slow")
"""The three numbers, in their order."""

_NOTHING: Final = "nothing was acknowledged"
_NONE: Final = "\N{EN DASH}"
"""In place of a number that no record gave."""

_NAMED: Final = 3
"""Consumers of a group that are named."""

_OUTAGES: Final = (("produce", "produce"), ("fetch", "consume"))
"""Keys of the verdict, and what a user does meanwhile."""


class Down(TypedDict):
    """The worst partition of one kind of outage."""

    what: str
    """``produce``, ``consume`` or ``no leader``."""
    max_us: Micros
    of: str
    from_us: Micros
    share: float
    """Of the run, in which that partition was down; outages of up to 1 s do not count."""


class FaultLine(TypedDict):
    """Effect and cost of one fault."""

    fault: int
    level: Level
    text: str


class Answer(TypedDict):
    """``answer`` of ``verdict.json``."""

    lost: dict[str, Any]
    """``level``, ``text`` and its ``parts``; ``number``: ``size`` in words; ``size``: records lost,
    of those ``acked`` and ``sent``; ``how``, of the first."""
    down: dict[str, Any]
    """``level``, ``text``, ``parts``, ``number``; ``size``: the longest time; ``worst``: a
    :class:`Down` of each kind."""
    slow: dict[str, Any]
    """``level``, ``text``, ``parts``, ``number``; ``size``: the largest p99; ``normal`` and
    ``worst``: percentiles, and the worst one's ``fault``."""
    faults: list[FaultLine]


def answer(verdict: Mapping[str, Any], how: str = "") -> Answer:
    """The answer of a run.

    Args:
        verdict: Content of ``verdict.json``: ``records``, ``availability``, ``consumer_errors``,
            ``windows``, ``faults`` and ``end_us`` are read, and the ``answer`` of each of its
            ``clusters``.
        how: How the first lost record was lost, if any was.
    """
    worst, ended = list(_outages(verdict)), list(_ended(verdict))
    found = Answer(
        lost=_lost(verdict["records"], how),
        down=_down(worst, ended),
        slow=_slow(verdict),
        faults=list(_faults(verdict)),
    )
    for alias, other in verdict.get("clusters", {}).items():
        _add_cluster(found, alias, other["answer"])
    return found


def _add_cluster(found: Answer, alias: str, other: Mapping[str, Any]) -> None:
    """Adds another cluster's numbers: the worse colour, its words, and what it lost as well."""
    lost = found["lost"]["size"] + other["lost"]["size"]
    named: Mapping[str, Any] = found
    # A cluster without producers has nothing to acknowledge.
    for name in NAMES if other["lost"]["sent"] else ("down",):
        own, more = named[name], other[name]
        own["level"] = max(own["level"], more["level"], key=lambda each: rank(str(each), 0))
        own["text"] = f"{own['text']}; in {alias}: {more['text']}"
        own["parts"] = [*own["parts"], *(f"in {alias}: {part}" for part in more["parts"])]
        own["size"] = max(own["size"], more["size"])
        own["number"] = _number(name, own["size"])
    found["lost"] |= {"size": lost, "number": _number("lost", lost, found["lost"]["acked"])}
    found["faults"] += [
        FaultLine(fault=line["fault"], level=line["level"], text=f"in {alias}: {line['text']}")
        for line in other["faults"]
    ]


def lines(found: Answer | Mapping[str, Any]) -> list[tuple[str, Level, str]]:
    """Name, colour and words of the three numbers, in their order."""
    named: Mapping[str, Any] = found
    return [(name, named[name]["level"], named[name]["text"]) for name in NAMES]


def _number(name: str, size: int, acked: int = 1) -> str:
    """One of the three numbers alone: what is read first."""
    if name == "down":
        return show_duration(size) if size >= AMBER_FROM else f"< {show_duration(AMBER_FROM)}"
    if name == "slow":
        return f"p99 {show_duration(size)}" if size else _NONE
    return f"{size:,}" if size or acked else _NONE


def _lost(records: Mapping[str, int], how: str) -> dict[str, Any]:
    lost, acked = records["lost_acked"], records["acked"]
    level: Level = "red" if lost else "green" if acked else "amber"
    parts = [f"{lost:,} of {acked:,} acknowledged records" if acked else _NOTHING]
    if lost and how:
        parts.append(f"the first: {how}")
    return {
        "level": level, "text": "; ".join(parts), "parts": parts,
        "number": _number("lost", lost, acked), "size": lost, "acked": acked, "how": how,
        "sent": records.get("sent", acked),
    }  # fmt: skip


def _outages(verdict: Mapping[str, Any]) -> Iterator[Down]:
    availability, end = verdict["availability"], max(verdict["end_us"], 1)
    started = formed(verdict)
    for key, what in _OUTAGES:
        found = []
        for name, numbers in availability["partitions"].items():
            if f"{key}_us" not in numbers:
                continue
            own, at = (
                (started[name], "later") if key == "fetch" and name in started else (numbers, key)
            )
            found.append(
                Down(
                    what=what,
                    max_us=own[f"{at}_us"],
                    of=name,
                    from_us=own[f"{at}_from_us"],
                    share=own[f"{at}_down_us"] / end,
                )
            )
        if found:
            yield max(found, key=lambda one: one["max_us"])
    offline = [
        Down(
            what="no leader",
            max_us=numbers["max_us"],
            of=name,
            from_us=numbers["from_us"],
            share=numbers["total_us"] / end,
        )
        for name, numbers in availability.get("offline", {}).items()
    ]
    if offline:
        yield max(offline, key=lambda one: one["max_us"])


def _ended(verdict: Mapping[str, Any]) -> Iterator[str]:
    """Consumers that ended with an error, in words."""
    for each in verdict.get("consumer_errors", {}).get("ended", ()):
        names, at = each["consumers"], f"{each['from_us'] / SECOND:.4g} s"
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        who = f"{', '.join(names[:_NAMED])}{more}"
        if each["group"]:
            who += f" of group {each['group']}"
        one = len(names) == 1
        ended = f"consumer {who} ended at {at}" if one else f"consumers {who} ended from {at} on"
        yield f"{ended}: poll() raised {each['error']}"


def _down(worst: Sequence[Down], ended: Sequence[str]) -> dict[str, Any]:
    long = [each for each in worst if each["max_us"] >= AMBER_FROM]
    size = max((each["max_us"] for each in worst), default=0)
    parts = [
        f"{each['what']} {show_duration(each['max_us'])} ({each['of']}, from "
        f"{max(each['from_us'], 0) / SECOND:.4g} s; {each['share']:.0%} of the run)"
        for each in long
    ]
    parts = parts or [f"never for {show_duration(AMBER_FROM)} or longer"]
    parts += ended
    level = level_of(size)
    return {
        "level": "amber" if ended and level == "green" else level,
        "text": ", ".join(parts), "parts": parts,
        "number": _number("down", size), "size": size,
        "worst": [dict(each) for each in worst],
    }  # fmt: skip


def _slow(verdict: Mapping[str, Any]) -> dict[str, Any]:
    windows = verdict["windows"]
    normal = windows["normal"]
    hit = [each for each in windows["faults"] if each["produce"]]
    worst = max(hit, key=lambda each: int(each["produce"]["p99"]), default=None)
    p99s = [int(each["p99"]) for each in (normal, worst["produce"] if worst else {}) if each]
    parts = [f"{_percentiles(normal)} in normal times"] if normal else []
    if worst is not None:
        kinds = {each["fault"]: each["kind"] for each in verdict["faults"]}
        kind = kinds.get(worst["fault"], "fault")
        parts.append(f"{_percentiles(worst['produce'])} within the worst fault ({kind})")
    return {
        "level": level_of(max(p99s)) if p99s else "amber",
        "text": ", ".join(parts or [_NOTHING]),
        "parts": parts or [_NOTHING],
        "number": _number("slow", max(p99s, default=0)),
        "size": max(p99s, default=0),
        "normal": normal,
        "worst": {} if worst is None else {"fault": worst["fault"], **worst["produce"]},
    }


def _faults(verdict: Mapping[str, Any]) -> Iterator[FaultLine]:
    windows = {each["fault"]: each for each in verdict["windows"]["faults"]}
    for fault in verdict["faults"]:
        window = windows.get(fault["fault"])
        began = fault["began_us"]
        at = "never" if began is None else show_duration(began)
        words = f"{at} {fault['kind']} {fault['target']}: {fault['effect']}"
        level: Level = "green" if fault["took_effect"] else "red"
        if window is not None and fault["took_effect"]:
            level = level_of(max(window["down_us"], window["produce"].get("p99", 0)))
            words += f"; until {show_duration(window['to_us'])} {_cost(window)}"
        yield FaultLine(fault=fault["fault"], level=level, text=words)


def _cost(window: Mapping[str, Any]) -> str:
    parts = [f"down {show_duration(window['down_us'])}"] if window["down_us"] else []
    if window["produce"]:
        parts.append(_percentiles(window["produce"]))
    return ", ".join(parts) or _NOTHING


def _percentiles(numbers: Mapping[str, int]) -> str:
    return f"p50 {show_duration(numbers['p50'])}, p99 {show_duration(numbers['p99'])}"
