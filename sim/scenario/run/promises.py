"""Promises that a run is held against."""

from sim.checking.invariants.registry import Watch
from sim.scenario.behaviours import registry as behaviours
from sim.scenario.build import replication as replication_runs
from sim.scenario.build import zookeeper as zookeeper_runs
from sim.scenario.rules import replication, zookeeper
from sim.scenario.scenario import Scenario
from sim.trace.writer import Trace


def watch(scenario: Scenario, trace: Trace) -> Watch:
    """The promises that are held against a trace: those that the scenario's cluster makes."""
    kind = scenario.cluster.replication
    governed = scenario.cluster.zookeeper is not None
    waived = behaviours.waived(scenario.behaviours)
    waived |= replication.waived(kind) | zookeeper.waived(zookeeper=governed)
    more = replication_runs.invariants(kind) + zookeeper_runs.invariants(zookeeper=governed)
    return Watch(trace, waived=waived, more=more)
