"""Faults that are left to chance: a window, one of several, or a component's own failures.

What is drawn from it in a run: :mod:`sim.faults.draw`.
"""

from dataclasses import replace

from sim.faults.after import After
from sim.faults.fault import Fault
from sim.scenario.schema import faults as schema
from sim.scenario.text.problems import Problem
from sim.units import Micros


def timed(
    fault: Fault,
    model: schema.FaultModel,
    window: tuple[Micros, Micros] | None,
    after: After | None,
) -> Fault:
    """The fault with its instant, its window, or its mean times.

    Args:
        fault: Without them.
        model: Its entry.
        window: Where its instant lies; ``None``: it has none.
        after: What it follows, if that is left to the seed.

    Raises:
        Problem: If it has none of them, or two; its path starts below the fault.
    """
    mtbf = getattr(model, "mtbf", None)
    mttr = getattr(model, "mttr", None)
    if window is not None and mtbf is not None:
        raise Problem(("mtbf",), "at beside mtbf", "one of the two", "remove at")
    if mtbf is None:
        if window is None:
            happens_once = fault.span in {"operation", "procedure"}
            remedy = "add at" if happens_once else "add at, or mtbf"
            raise Problem(("at",), "the key is missing", "", remedy)
        if mttr is not None:
            raise Problem(("mttr",), "mttr without mtbf", "mtbf beside it", "write for instead")
        low, high = window
        return replace(fault, at_us=low, spread_us=high - low, after=after)
    if getattr(model, "for_", None) is not None:
        raise Problem(("for",), "for beside mtbf", "mttr, the mean time to repair")
    if mtbf == 0 or mttr == 0:
        key = "mtbf" if mtbf == 0 else "mttr"
        raise Problem((key,), "0us", "more than zero")
    return replace(fault, mtbf_us=mtbf, for_us=mttr)


def check_choice(model: schema.FaultModel, *, recurs: bool) -> None:
    """One of the faults in ``of``: it has no time of its own that the whole line has already.

    Raises:
        Problem: With a path below the choice.
    """
    taken = ("at", "mtbf", "mttr", "every", "times", "name", *(("for",) if recurs else ()))
    for key in taken:
        if getattr(model, "for_" if key == "for" else key, None) is not None:
            raise Problem((key,), f"{key} in a choice", f"{key} of the whole line", "move it up")


def check_components(fault: Fault) -> None:
    """Check that ``each …`` is where it can be: as the target of what fails at random.

    Raises:
        Problem: With a path below the fault.
    """
    each = [t for t in (*fault.targets, *fault.peers) if t.kind == "each"]
    if not each:
        return
    if not fault.mtbf_us:
        raise Problem(("target",), f"{each[0].text!r} without mtbf", "mtbf beside it")
    if fault.targets != (each[0],):
        raise Problem(("between",), f"{each[0].text!r} beside others", f"{each[0].text} alone")


def forms(fault: Fault) -> tuple[Fault, ...]:
    """Forms that the line may take: itself, or each of its choices at its time."""
    if not fault.choices:
        return (fault,)
    return tuple(
        replace(
            choice, index=fault.index, at_us=fault.at_us, spread_us=fault.spread_us,
            mtbf_us=fault.mtbf_us, name=fault.name, after=fault.after,
        )
        for choice in fault.choices
    )  # fmt: skip
