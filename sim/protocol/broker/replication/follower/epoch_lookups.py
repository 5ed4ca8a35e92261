"""Followers that ask their leader where an epoch ends before they fetch.

Only the historic truncation rules ask. One question for one partition is in flight; a partition
whose question is not answered yet is not fetched.

Differs from Kafka: there one request asks for all partitions of a fetcher, and the fetcher waits.

Source: ``AbstractFetcherThread.maybeTruncate`` (0.11 to 2.0); KIP-101.
"""

from typing import NamedTuple

from sim.error_codes import ErrorCode
from sim.ids import Offset, TopicPartition
from sim.protocol import effects as fx
from sim.protocol.broker.replica import Replica
from sim.protocol.broker.replication.effects import Effects
from sim.protocol.broker.replication.fetcher import Fetcher
from sim.protocol.broker.replication.hosted import HostedPartitions
from sim.protocol.messages.leader_epochs import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from sim.protocol.ports import EpochEnd
from sim.units import NEVER, Micros

TIMER = "epochs"
"""Name of the timer after which unanswered questions are asked again."""


class EpochEndFound(NamedTuple):
    """Where a log has to be cut, as its leader said."""

    fetcher: Fetcher
    replica: Replica
    offset: Offset
    settled: bool
    """Whether nothing is left to ask about."""


class EpochLookups:
    """The questions of one broker's followers."""

    def __init__(self, hosted: HostedPartitions) -> None:
        self._hosted = hosted
        self._asked: dict[int, tuple[Fetcher, TopicPartition]] = {}
        self._again: dict[TopicPartition, Fetcher] = {}

    def ask(self, fetcher: Fetcher, replica: Replica, out: Effects) -> None:
        """Ask for the end of the last epoch of this log; nothing is fetched until the answer."""
        partition = replica.partition
        fetcher.partitions[partition].truncating = True
        fetcher.delay(partition, NEVER)
        if (fetcher, partition) in self._asked.values():
            return  # the fetcher still waits for its former question, and takes the answer for this
        correlation = self._hosted.next_correlation()
        self._asked[correlation] = (fetcher, partition)
        request = OffsetForLeaderEpochRequest(
            partition, replica.log.latest_epoch, replica_id=self._hosted.broker
        )
        timeout = self._hosted.config.fetcher.socket_timeout_us
        out.append(fx.Send(fetcher.leader, correlation, request, timeout, fetcher.channel))

    def answered(
        self,
        correlation: int,
        response: OffsetForLeaderEpochResponse,
        now: Micros,
        out: Effects,
    ) -> EpochEndFound | None:
        """The leader answered: where to cut; ``None`` if nobody waits for it, or it is refused."""
        asked = self._asked.pop(correlation, None)
        if asked is None:
            return None
        fetcher, partition = asked
        replica = self._truncating(fetcher, partition)
        if replica is None:
            return None
        if response.error is not ErrorCode.NONE:
            self._later(fetcher, partition, now, out)
            return None
        end = EpochEnd(response.leader_epoch, response.end_offset)
        offset, settled = self._hosted.config.truncation.cut_for(replica, end)
        return EpochEndFound(fetcher, replica, offset, settled)

    def failed(self, correlation: int, now: Micros, out: Effects) -> bool:
        """No answer came; returns whether the request was one of these."""
        asked = self._asked.pop(correlation, None)
        if asked is None:
            return False
        if self._truncating(*asked) is not None:
            self._later(*asked, now, out)
        return True

    def forget(self, fetcher: Fetcher) -> None:
        """The fetcher is at its end, with all that it has asked."""
        for asked in [c for c, (by, _) in self._asked.items() if by is fetcher]:
            del self._asked[asked]
        for partition in [p for p, by in self._again.items() if by is fetcher]:
            del self._again[partition]

    def wake(self, out: Effects) -> None:
        """The back-off is over: ask again wherever the question still stands."""
        again, self._again = self._again, {}
        for partition, fetcher in again.items():
            replica = self._truncating(fetcher, partition)
            if replica is not None:
                self.ask(fetcher, replica, out)

    def _truncating(self, fetcher: Fetcher, partition: TopicPartition) -> Replica | None:
        """The replica, if this fetcher has it and waits for an answer; of which epoch is not asked.

        Before KIP-320 nothing told an answer made in a former leader epoch from one of this epoch.
        """
        state = fetcher.partitions.get(partition)
        replica = self._hosted.replicas.get(partition)
        if state is None or not state.truncating or replica is None or replica.is_leader:
            return None
        return replica

    def _later(
        self, fetcher: Fetcher, partition: TopicPartition, now: Micros, out: Effects
    ) -> None:
        self._again[partition] = fetcher
        out.append(fx.SetTimer(TIMER, now + self._hosted.config.fetcher.backoff_us))
