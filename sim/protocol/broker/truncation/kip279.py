"""Kafka 2.0: the leader's answer names the epoch that it is about, and the follower asks again.

Logs find their fork, whatever epochs either side missed. But nothing says *when* an answer or a
fetch was made: a follower that has not heard of a new leader epoch goes on fetching, and a leader
counts it as having the leader's own records (closed by KIP-320).

Source: ``AbstractFetcherThread.getOffsetTruncationState`` (2.0); KIP-279, KIP-320.
"""

from sim.protocol.broker.truncation.divergence import AskFirst


class Kip279(AskFirst):
    """``truncation: kip279``: the cut and the answer of Kafka 4.1, behind unfenced questions."""

    name = "kip279"
