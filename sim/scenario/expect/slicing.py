"""Listeners for the parts of a run that a scenario's expectations are about."""

from collections.abc import Iterable

from sim.checking.outcomes.slices import Slice
from sim.checking.scope import Scope
from sim.scenario.expect.bounds import needs_slice
from sim.scenario.model.run import Expectation
from sim.trace.writer import Trace


def slices(expect: Iterable[Expectation], trace: Trace) -> dict[Scope, Slice]:
    """A listener for each scope whose numbers a verdict has not anyway."""
    needed: dict[Scope, bool] = {}
    for line in expect:
        if needs_slice(line):
            is_read = line.name.startswith("end_to_end.")
            needed[line.scope] = needed.get(line.scope, False) or is_read
    return {scope: Slice(trace, scope, keep_latencies=keep) for scope, keep in needed.items()}
