"""Numbers of the parts of a run that a scenario's expectations are about."""

from collections.abc import Iterable, Mapping

from sim.checking.durability import Judge
from sim.checking.outcomes.scoped.key_states import key_states
from sim.checking.outcomes.slices import Slice
from sim.checking.scope import Scope
from sim.scenario.expect.bounds import KEY_STATES, needs_slice
from sim.scenario.model.run import Expectation
from sim.trace.writer import Trace
from sim.units import NEVER, Micros


def slices(
    expect: Iterable[Expectation], trace: Trace, load_us: Micros = NEVER
) -> dict[Scope, Slice]:
    """A listener for each scope whose numbers a verdict has not anyway.

    Args:
        expect: Lines of the scenario.
        trace: Before its first row.
        load_us: End of the workload.
    """
    needed: dict[Scope, bool] = {}
    for line in expect:
        if needs_slice(line):
            is_read = line.name.startswith("end_to_end.")
            needed[line.scope] = needed.get(line.scope, False) or is_read
    return {
        scope: Slice(trace, scope, keep_latencies=keep, load_us=load_us)
        for scope, keep in needed.items()
    }


def measured(
    expect: Iterable[Expectation], parts: Mapping[Scope, Slice], judge: Judge, end_us: Micros
) -> dict[Scope, dict[str, object]]:
    """Reports of the parts, at the end of the run, after the verdict."""
    found = {scope: part.report(judge.lost, end_us) for scope, part in parts.items()}
    for scope in [line.scope for line in expect if line.name in KEY_STATES]:
        histories = judge.histories(scope.topic)
        if scope.partition >= 0:
            histories = [each for each in histories if each.number == scope.partition]
        found[scope]["keys"] = key_states(histories, judge.lost)
    return found
