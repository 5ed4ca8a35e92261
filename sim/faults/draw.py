"""Draws the random lines of a calendar: faults with an instant each, by the seed of a run.

Three things can be random: the instant of a fault (uniform in a window), which of several faults it
is, and the failures and repairs of a component. The last is an alternating renewal process for each
component: times to failure and times to repair are exponential, with the means ``mtbf`` and
``mttr``; without a repair time it fails once and stays so, and a fault without a duration happens
again and again.

Every line, and every component of it, has a random stream of its own, so that one more component or
one more line does not change the others. Pure: the streams in, faults out.

Source: K. Trivedi, "Probability and Statistics with Reliability, Queuing and Computer Science
Applications", chapter 8, for the alternating renewal process.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import log

from sim.faults.after import in_order
from sim.faults.fault import Fault
from sim.faults.target import Target
from sim.rng import Stream, Streams
from sim.units import Micros


def draw(faults: Sequence[Fault], streams: Streams, end_us: Micros) -> tuple[Fault, ...]:
    """Draws the faults of one run.

    Args:
        faults: The calendar; lines without randomness stay as they are.
        streams: Of the run.
        end_us: Components fail before this instant.

    Returns:
        The lines in their order, then the failures of components in order of time, which are
        numbered on from the last line. A line with a mean time between failures is not among them.
    """
    fixed = _lines([fault for fault in faults if not fault.mtbf_us], streams)
    failures = [
        failure
        for fault in faults
        if fault.mtbf_us
        for part in fault.components
        for failure in _failures(fault, part, streams, end_us)
    ]
    failures.sort(key=lambda fault: (fault.at_us, fault.index))
    numbered = (replace(fault, index=n) for n, fault in enumerate(failures, start=len(faults)))
    return (*fixed, *numbered)


def exponential(stream: Stream, mean_us: Micros) -> Micros:
    """Draws an exponential time with that mean, at least a microsecond."""
    return max(1, round(-mean_us * log(1.0 - stream.unit())))


def _lines(faults: Sequence[Fault], streams: Streams) -> list[Fault]:
    """Draws instants and kinds of lines; one that follows another line keeps its distance."""
    names = {fault.name: place for place, fault in enumerate(faults) if fault.name}
    follows = {
        place: names[fault.after.name] if fault.after else None
        for place, fault in enumerate(faults)
    }
    settled: dict[int, Fault] = {}
    for place in in_order(follows):
        fault, other = faults[place], follows[place]
        if fault.after is not None and other is not None:
            base = settled[other]
            low, high = fault.after.window_us(base.for_us)
            fault = replace(fault, at_us=base.at_us + low, spread_us=high - low, after=None)
        settled[place] = _settled(fault, streams)
    return [settled[place] for place in range(len(faults))]


def _settled(fault: Fault, streams: Streams) -> Fault:
    """Draws a line's instant and kind."""
    if not fault.spread_us and not fault.choices:
        return fault
    stream = streams.named(f"faults/{fault.index}/line")
    at = fault.at_us + stream.between(0, fault.spread_us)
    chosen = _chosen(fault, stream)
    return replace(chosen, at_us=at, spread_us=0)


def _failures(
    fault: Fault, part: Target | None, streams: Streams, end_us: Micros
) -> Iterator[Fault]:
    """Draws the failures of one component, one after the other."""
    name = "any" if part is None else part.text
    stream = streams.named(f"faults/{fault.index}/{name}")
    at = exponential(stream, fault.mtbf_us)
    while at < end_us:
        chosen = _chosen(fault, stream)
        if part is not None:
            chosen = chosen.of(part)
        down = None if fault.for_us is None else exponential(stream, fault.for_us)
        until = None if down is None else at + down
        lasts = down if until is not None and until < end_us else None
        is_instant = chosen.is_instant()
        yield replace(chosen, at_us=at, for_us=None if is_instant else lasts, mtbf_us=0)
        if until is None and not is_instant:
            return
        at = (at if until is None else until) + exponential(stream, fault.mtbf_us)


def _chosen(fault: Fault, stream: Stream) -> Fault:
    """The fault itself, or one of its choices in its place."""
    if not fault.choices:
        return fault
    return replace(fault.choices[stream.below(len(fault.choices))], index=fault.index)
