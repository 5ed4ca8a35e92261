"""The ISR changes a broker's leaders wish for, batched to the controller.

One request is in flight; the next goes at once after a success and 50 ms after a top-level error.
Before 2.7 the broker wrote them to ZooKeeper itself, with one batch under way as here.

Source: ``kafka.server.AlterPartitionManager`` (KIP-497).
"""

from functools import partial

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition
from sim.protocol import effects as fx
from sim.protocol.broker.replica import Replica
from sim.protocol.broker.replication.effects import Effects
from sim.protocol.broker.replication.events import IsrWritesWanted
from sim.protocol.broker.replication.hosted import HostedPartitions
from sim.protocol.broker.replication.leader.delayed_fetches import DelayedFetches
from sim.protocol.broker.replication.leader.high_watermarks import HighWatermarks
from sim.protocol.broker.replication.log_locks import LogLocks
from sim.protocol.messages.cluster import (
    AlterPartitionItem,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResult,
)
from sim.units import MS, SECOND, Micros

RETRY_US: Micros = 50 * MS
"""Wait after a top-level error."""

TIMEOUT_US: Micros = 30 * SECOND
"""``controller.socket.timeout.ms``."""

_STAY_PENDING = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.INVALID_UPDATE_VERSION,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.NEW_LEADER_ELECTED,
)
_REVERT = (ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA)


class IsrChanges:
    """Wishes that wait, and the request in flight.

    Args:
        hosted: The broker's partitions.
        locks: The locks of their logs.
        watermarks: May move when an ISR has changed.
        fetches: Of followers that are left out of an ISR.
    """

    def __init__(
        self,
        hosted: HostedPartitions,
        locks: LogLocks,
        watermarks: HighWatermarks,
        fetches: DelayedFetches,
    ) -> None:
        self._hosted = hosted
        self._locks = locks
        self._watermarks = watermarks
        self._fetches = fetches
        self._wanted: dict[TopicPartition, AlterPartitionItem] = {}
        self._in_flight: dict[TopicPartition, AlterPartitionItem] = {}
        self._correlation = -1
        self._not_before: Micros = 0
        self._looks = False

    def add(self, item: AlterPartitionItem) -> None:
        """Wish for a change."""
        self._wanted[item.partition] = item

    def send(self, now: Micros, out: Effects) -> None:
        """Send what waits, unless a request is in flight or nobody knows the controller."""
        hosted = self._hosted
        by_itself, controller = hosted.config.writes_isr, hosted.controller
        if not self._wanted or self._correlation >= 0 or (controller < 0 and not by_itself):
            return
        if now < self._not_before:
            out.append(fx.SetTimer("isr-retry", self._not_before))
            return
        items = tuple(i for i in self._wanted.values() if self._still_wanted(i))
        self._wanted = {}
        if not items:
            return
        self._correlation = hosted.next_correlation()
        self._in_flight = {item.partition: item for item in items}
        request = AlterPartitionRequest(hosted.broker, hosted.broker_epoch, items)
        if by_itself:
            out.append(IsrWritesWanted(self._correlation, request))
        else:
            out.append(fx.Send(controller, self._correlation, request, TIMEOUT_US, "isr"))

    def shrink(self, now: Micros, out: Effects) -> None:
        """Look for followers that fell behind, and wish them out of their ISRs.

        One thread looks, partition by partition: where a flush holds the log's lock it waits.
        """
        if not self._looks:
            self._looks = True
            self._look(list(self._hosted.replicas.values()), now, out)

    def _look(self, replicas: list[Replica], now: Micros, out: Effects) -> None:
        locks = self._locks
        for index, replica in enumerate(replicas):
            if locks.is_held(replica.partition) and replica.lags(now):
                rest = partial(self._look, replicas[index:])
                locks.wait(replica.partition, rest)
                self.send(now, out)
                return
            item = replica.shrink_isr(self._hosted.image, now)
            if item is not None:
                self.add(item)
        self._looks = False
        self.send(now, out)

    def answered(
        self, correlation: int, response: AlterPartitionResponse, now: Micros, out: Effects
    ) -> None:
        """The controller answered."""
        if correlation != self._correlation:
            return
        items, self._in_flight = self._in_flight, {}
        self._correlation = -1
        if response.error is not ErrorCode.NONE:
            self._retry(items, now, out)
            return
        for result in response.results:
            item = items.get(result.partition)
            if item is not None:
                self._settle(item, result, now, out)
        self.send(now, out)

    def failed(self, correlation: int, error: ErrorCode, now: Micros, out: Effects) -> bool:
        """No answer came; returns whether the request was one of these."""
        del error
        if correlation != self._correlation or not self._in_flight:
            return False
        items, self._in_flight = self._in_flight, {}
        self._correlation = -1
        self._retry(items, now, out)
        return True

    def _settle(
        self, item: AlterPartitionItem, result: AlterPartitionResult, now: Micros, out: Effects
    ) -> None:
        replica = self._hosted.replicas.get(item.partition)
        if replica is None:
            return  # its log directory has failed meanwhile
        if result.error is ErrorCode.NONE:
            if replica.isr_changed(item, result):
                # Any fetch of who is left out may bring it back, before metadata say the same.
                self._fetches.in_sync_changed(replica)
                self._watermarks.advance(replica, now, out)
        elif result.error in _REVERT:
            replica.isr_change_refused(item)
        elif result.error not in _STAY_PENDING and self._still_wanted(item):
            self._wanted.setdefault(item.partition, item)

    def _retry(
        self, items: dict[TopicPartition, AlterPartitionItem], now: Micros, out: Effects
    ) -> None:
        for partition, item in items.items():
            self._wanted.setdefault(partition, item)
        self._not_before = now + RETRY_US
        out.append(fx.SetTimer("isr-retry", self._not_before))

    def _still_wanted(self, item: AlterPartitionItem) -> bool:
        replica = self._hosted.replicas.get(item.partition)
        return replica is not None and replica.pending is item
