"""Page of a hunt: what was found, what was reached and how often, what never, and how sure that is.

Estimates rest on the executions without a parent: they are independent draws of one distribution,
that of the menu. Guided ones are not, and only add to what was found and reached.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sim.hunting.fingerprint import Finding
from sim.hunting.search.corpus import unseen
from sim.hunting.search.coverage import LANDMARKS
from sim.hunting.search.execution import Execution
from sim.hunting.search.hunt import Hunt
from sim.hunting.sought import Sought
from sim.suite.statistics import never_above, proportion_interval
from sim.units import SECOND

_KINDS = ("uniform", "guided")


def numbers(hunt: Hunt, capsules: Mapping[Finding, str]) -> dict[str, Any]:
    """All that the page says, for programs.

    Args:
        hunt: Which.
        capsules: File of each failure.
    """
    uniform = _of(hunt, "uniform")
    estimate = unseen(each.cells for each in uniform)
    effective = [kind for each in hunt.executions for kind in each.kinds]
    return {
        "scenario": hunt.plan.name,
        "looking_for": hunt.plan.looking_for,
        "faults": hunt.plan.faults,
        "seed": hunt.plan.seed,
        "executions": {
            "all": len(hunt.executions),
            **{origin: len(_of(hunt, origin)) for origin in _KINDS},
        },
        "simulated_us": sum(each.simulated_us for each in hunt.executions),
        "cells": hunt.states,
        "found": [
            {
                "fingerprint": finding.fingerprint,
                "kind": finding.kind,
                "chain": list(finding.chain),
                "words": finding.words,
                "first": first.number,
                "origin": first.origin,
                "faults": [dict(fault) for fault in first.schedule.faults],
                "capsule": capsules.get(finding, ""),
                **{
                    origin: sum(finding in each.findings for each in _of(hunt, origin))
                    for origin in _KINDS
                },
            }
            for finding, first in hunt.first_found.items()
        ],
        "sought": [_chance(each, uniform) for each in hunt.sought],
        "landmarks": {
            name: sum(name in each.landmarks for each in hunt.executions) for name in LANDMARKS
        },
        "kinds": {kind: effective.count(kind) for kind in hunt.kinds},
        "unseen": asdict(estimate),
    }


def markdown(found: Mapping[str, Any]) -> str:
    """The page of the numbers."""
    return "\n".join(_lines(found)) + "\n"


def _lines(found: Mapping[str, Any]) -> Iterator[str]:
    count = found["executions"]
    yield f"# Hunt of {found['scenario']}"
    yield ""
    yield (
        f"Looked for {found['looking_for']}, with at most {found['faults']} faults in a run; seed "
        f"{found['seed']}. {count['all']:,} executions ({count['uniform']:,} uniform draws, "
        f"{count['guided']:,} guided), {found['simulated_us'] / SECOND:,.0f} s of simulated time."
    )
    yield from ("", "## Found", "")
    if found["found"]:
        yield "| failure | first at execution | uniform | guided | faults | capsule |"
        yield "|---|---|---|---|---|---|"
    for each in found["found"]:
        faults = ", ".join(str(fault["do"]) for fault in each["faults"]) or "none"
        yield (
            f"| {each['fingerprint']} | {each['first']:,} ({each['origin']}) | "
            f"{each['uniform']:,} | {each['guided']:,} | {faults} | {each['capsule']} |"
        )
    if not found["found"]:
        yield "Nothing."
    yield from ("", "## How sure that is", "")
    for each in found["sought"]:
        yield f"* {_sentence(each)}"
    rest = found["unseen"]
    yield (
        f"* The uniform draws reached {rest['seen']:,} states, {rest['once']:,} of them once; "
        f"there are at least {rest['estimated']:,.0f} (Chao). The next draw reaches a new one with "
        f"a chance of about {rest['discovery']:.0%} (Good and Turing): as long as this is not "
        "small, nothing that was not found is excluded."
    )
    yield f"* All executions together reached {found['cells']:,} states."
    yield from ("", "## Reached", "", "| state | executions |", "|---|---|")
    reached = {name: times for name, times in found["landmarks"].items() if times}
    for name, times in sorted(reached.items(), key=lambda item: -item[1]):
        yield f"| {LANDMARKS[name]} | {times:,} |"
    yield from ("", "## Never reached", "")
    never = [LANDMARKS[name] for name, times in found["landmarks"].items() if not times]
    idle = [kind for kind, times in found["kinds"].items() if not times]
    yield from ([f"* {words}" for words in never] or ["Everything that has a name was reached."])
    if idle:
        yield f"* no fault of these kinds took effect: {', '.join(idle)}"
    yield from ("", "| fault | executions in which it took effect |", "|---|---|")
    for kind, times in found["kinds"].items():
        if times:
            yield f"| {kind} | {times:,} |"


def _chance(sought: Sought, uniform: Sequence[Execution]) -> dict[str, Any]:
    """Chance of a failure in a uniform draw, with 95 % confidence."""
    hits = sum(any(f.kind == sought.name for f in each.findings) for each in uniform)
    low, high = proportion_interval(hits, len(uniform)) if uniform else (0.0, 1.0)
    if not hits:
        high = never_above(len(uniform))
    return {"name": str(sought), "hits": hits, "draws": len(uniform), "low": low, "high": high}


def _sentence(chance: Mapping[str, Any]) -> str:
    if not chance["hits"]:
        return (
            f"{chance['name']}: in none of {chance['draws']:,} uniform draws; with 95 % confidence "
            f"a draw has it with a probability of less than {chance['high']:.2%}."
        )
    return (
        f"{chance['name']}: in {chance['hits']:,} of {chance['draws']:,} uniform draws, so with "
        f"95 % confidence with a probability of {chance['low']:.2%} to {chance['high']:.2%}."
    )


def _of(hunt: Hunt, origin: str) -> list[Execution]:
    return [each for each in hunt.executions if each.origin == origin]
