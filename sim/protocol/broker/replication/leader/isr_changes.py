"""ISR changes of a broker's leaders, batched to the controller (AlterPartition).

One request is in flight; the next is sent at once after a success and 50 ms after a top-level
error. Before 2.7 the broker wrote them to ZooKeeper, with one batch in flight as here.

Source: ``kafka.server.AlterPartitionManager`` (KIP-497).
"""

from functools import partial

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition
from sim.protocol import effects as fx
from sim.protocol.broker.controller_channel import SOCKET_TIMEOUT_US
from sim.protocol.broker.replica import Replica
from sim.protocol.broker.replication.effects import Effects
from sim.protocol.broker.replication.events import IsrWritesRequested
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
from sim.units import MS, Micros

RETRY_US: Micros = 50 * MS
"""Wait after a top-level error."""

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
    """Pending ISR changes, and the request in flight.

    Args:
        hosted: The broker's partitions.
        locks: The locks of their logs.
        watermarks: High watermarks, which an ISR change may advance.
        fetches: Fetches of followers outside an ISR.
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
        self._pending: dict[TopicPartition, AlterPartitionItem] = {}
        self._in_flight: dict[TopicPartition, AlterPartitionItem] = {}
        self._correlation = -1
        self._not_before: Micros = 0
        self._checks = False

    def add(self, item: AlterPartitionItem) -> None:
        """Adds a change."""
        self._pending[item.partition] = item

    def send(self, now: Micros, out: Effects) -> None:
        """Sends pending changes, unless a request is in flight or the controller is unknown."""
        hosted = self._hosted
        writes_isr, controller = hosted.config.writes_isr, hosted.controller
        if not self._pending or self._correlation >= 0 or (controller < 0 and not writes_isr):
            return
        if now < self._not_before:
            out.append(fx.SetTimer("isr-retry", self._not_before))
            return
        items = tuple(i for i in self._pending.values() if self._is_pending(i))
        self._pending = {}
        if not items:
            return
        self._correlation = hosted.next_correlation()
        self._in_flight = {item.partition: item for item in items}
        request = AlterPartitionRequest(hosted.broker, hosted.broker_epoch, items)
        if writes_isr:
            out.append(IsrWritesRequested(self._correlation, request))
        else:
            out.append(fx.Send(controller, self._correlation, request, SOCKET_TIMEOUT_US, "isr"))

    def shrink(self, now: Micros, out: Effects) -> None:
        """Removes lagging followers from their ISRs.

        One thread checks partition by partition: where a flush holds the log's lock it waits.
        """
        if not self._checks:
            self._checks = True
            self._check(list(self._hosted.replicas.values()), now, out)

    def _check(self, replicas: list[Replica], now: Micros, out: Effects) -> None:
        locks = self._locks
        for index, replica in enumerate(replicas):
            if locks.is_held(replica.partition) and replica.lags(now):
                rest = partial(self._check, replicas[index:])
                locks.wait(replica.partition, rest)
                self.send(now, out)
                return
            item = replica.shrink_isr(self._hosted.image, now)
            if item is not None:
                self.add(item)
        self._checks = False
        self.send(now, out)

    def answered(
        self, correlation: int, response: AlterPartitionResponse, now: Micros, out: Effects
    ) -> None:
        """Handles the controller's response."""
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
        """No response came; true if the request was one of these."""
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
                # Any fetch of a removed follower may bring it back, before metadata do.
                self._fetches.in_sync_changed(replica)
                self._watermarks.advance(replica, now, out)
        elif result.error in _REVERT:
            replica.isr_change_refused(item)
        elif result.error not in _STAY_PENDING and self._is_pending(item):
            self._pending.setdefault(item.partition, item)

    def _retry(
        self, items: dict[TopicPartition, AlterPartitionItem], now: Micros, out: Effects
    ) -> None:
        for partition, item in items.items():
            self._pending.setdefault(partition, item)
        self._not_before = now + RETRY_US
        out.append(fx.SetTimer("isr-retry", self._not_before))

    def _is_pending(self, item: AlterPartitionItem) -> bool:
        replica = self._hosted.replicas.get(item.partition)
        return replica is not None and replica.pending is item
