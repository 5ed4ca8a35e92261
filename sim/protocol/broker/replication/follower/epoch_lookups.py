"""OffsetForLeaderEpoch requests of followers before they fetch.

Only the historic truncation rules need them. One lookup per partition is in flight; a partition
with an open lookup is not fetched.

Differs from Kafka: there one request has all partitions of a fetcher, and the fetcher waits.

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
"""Timer after which failed lookups are sent again."""


class EpochEndFound(NamedTuple):
    """Truncation offset by a leader's response."""

    fetcher: Fetcher
    replica: Replica
    offset: Offset
    settled: bool
    """True if no further lookup is needed."""


class EpochLookups:
    """Lookups of one broker's followers."""

    def __init__(self, hosted: HostedPartitions) -> None:
        self._hosted = hosted
        self._open: dict[int, tuple[Fetcher, TopicPartition]] = {}
        self._again: dict[TopicPartition, Fetcher] = {}

    def look_up(self, fetcher: Fetcher, replica: Replica, out: Effects) -> None:
        """Looks up the end of this log's last epoch; nothing is fetched before the response."""
        partition = replica.partition
        fetcher.partitions[partition].truncating = True
        fetcher.delay(partition, NEVER)
        if (fetcher, partition) in self._open.values():
            return  # the fetcher has an open lookup, and takes its response for this one
        correlation = self._hosted.next_correlation()
        self._open[correlation] = (fetcher, partition)
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
        """Handles a response; ``None`` if no fetcher waits for it, or it has an error."""
        lookup = self._open.pop(correlation, None)
        if lookup is None:
            return None
        fetcher, partition = lookup
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
        """No response came; true if the request was one of these."""
        lookup = self._open.pop(correlation, None)
        if lookup is None:
            return False
        if self._truncating(*lookup) is not None:
            self._later(*lookup, now, out)
        return True

    def forget(self, fetcher: Fetcher) -> None:
        """The fetcher ends, with all its lookups."""
        for lookup in [c for c, (by, _) in self._open.items() if by is fetcher]:
            del self._open[lookup]
        for partition in [p for p, by in self._again.items() if by is fetcher]:
            del self._again[partition]

    def wake(self, out: Effects) -> None:
        """The back-off has passed: sends open lookups again."""
        again, self._again = self._again, {}
        for partition, fetcher in again.items():
            replica = self._truncating(fetcher, partition)
            if replica is not None:
                self.look_up(fetcher, replica, out)

    def _truncating(self, fetcher: Fetcher, partition: TopicPartition) -> Replica | None:
        """Replica, if this fetcher has it and waits for a response, of whatever epoch.

        Before KIP-320 a response made in a former leader epoch could not be distinguished from one
        of this epoch.
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
