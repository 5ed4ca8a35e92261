"""Kafka 2.0: the leader's result has its epoch, and the follower looks up earlier ones.

Logs find their divergence, whatever epochs either side missed. But a response or a fetch is not
bound to a leader epoch: a follower that does not know of a new one continues fetching, and a leader
counts it as having the leader's own records (closed by KIP-320).

Source: ``AbstractFetcherThread.getOffsetTruncationState`` (2.0); KIP-279, KIP-320.
"""

from sim.protocol.broker.truncation.divergence import LookupFirst


class Kip279(LookupFirst):
    """``truncation: kip279``: truncation and result of Kafka 4.1, with unfenced lookups."""

    name = "kip279"
