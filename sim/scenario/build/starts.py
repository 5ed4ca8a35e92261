"""Starts of a cluster's servers: seconds apart, as JVMs that an orchestrator starts do.

The boot before zero represents a long history. Whatever a process does at an interval has its phase
from its start, so each start is drawn from a stream of its own: an instant of the scenario meets
phases that have nothing to do with each other, and that are others under another seed. Who keeps
the metadata starts first, so that brokers register when they are up, not when there is a leader.
"""

from sim.ids import FIRST_CONTROLLER_ID, NodeId
from sim.rng import Streams
from sim.units import SECOND, Micros

BOOT_AT: Micros = -20 * SECOND
"""Earliest start of a server."""

QUORUM_SPREAD_US: Micros = 2 * SECOND
"""Controllers, or servers of ZooKeeper, start within so long; a modelling choice."""

BROKERS_SPREAD_US: Micros = 5 * SECOND
"""Brokers, combined ones too, start within so long after that; a modelling choice."""

TOPICS_AT: Micros = -10 * SECOND
"""Instant at which the administrator creates the topics."""

TOKENS_AT: Micros = -1 * SECOND
"""Instant at which the first delegation tokens are made: their lives begin shortly before zero."""


def start_of(node: NodeId, name: str, streams: Streams) -> Micros:
    """Start of a server, by its ``node.id`` and its printed name; uniform over its spread."""
    unit = streams.named(f"start/{name}").unit()
    if node >= FIRST_CONTROLLER_ID:
        return BOOT_AT + int(unit * QUORUM_SPREAD_US)
    return BOOT_AT + QUORUM_SPREAD_US + int(unit * BROKERS_SPREAD_US)
