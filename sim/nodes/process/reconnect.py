"""Reconnection after a failure, by the kind of connection.

Source: ``CommonClientConfigs``; ``BrokerBlockingSender``, ``ControllerChannelManager``,
``InterBrokerSendThread``, ``RaftManager``.
"""

from dataclasses import dataclass

from sim.units import MS, SECOND, Micros


@dataclass(frozen=True, slots=True)
class ReconnectPolicy:
    """Reconnection of one kind of connections."""

    backoff_us: Micros
    """``reconnect.backoff.ms``."""
    backoff_us_max: Micros
    """``reconnect.backoff.max.ms``; if equal to ``backoff_us``: neither growth nor jitter."""
    forgets: bool = False
    """True if each failure drops the client's state of the server."""


CLIENTS = ReconnectPolicy(50 * MS, 1 * SECOND)
"""Producers, consumers, administrators."""

BLOCKING = ReconnectPolicy(0, 0, forgets=True)
"""Threads that send a request and wait for its response; they back off on their own."""

SEND_THREADS = ReconnectPolicy(50 * MS, 50 * MS)
"""A broker's requests to controllers and coordinators, and transaction markers."""

RAFT = ReconnectPolicy(50 * MS, 500 * MS)
"""Voters and observers of the metadata quorum."""

_POLICIES = {
    "": CLIENTS,
    "coordinator": CLIENTS,
    "controller": BLOCKING,
    "quorum": RAFT,
}


def policy_of(label: str) -> ReconnectPolicy:
    """Policy for channels of a label."""
    if label.startswith("fetcher-"):
        return BLOCKING
    return _POLICIES.get(label, SEND_THREADS)
