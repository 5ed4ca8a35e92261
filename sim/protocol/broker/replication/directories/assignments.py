"""A broker's AssignReplicasToDirs requests: directories of its replicas.

One request is in flight; the next is sent at once after a success, and after a growing pause when
the controller refused. One that is lost, or reaches a node that is not the controller, is sent
again after the reconnect back-off for a minute: the channel does that.

Source: ``org.apache.kafka.server.AssignmentsManager`` (KIP-858); ``NodeToControllerRequestThread``.
"""

from typing import Protocol

from sim.error_codes import ErrorCode
from sim.ids import NO_LEADER, BrokerEpoch, NodeId, TopicPartition
from sim.protocol import effects as fx
from sim.protocol.broker.controller_channel import RECONNECT_US, SOCKET_TIMEOUT_US
from sim.protocol.broker.replication.effects import Effects
from sim.protocol.messages.cluster import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    DirectoryAssignment,
)
from sim.units import MS, SECOND, Micros

ITEMS_MAX = 2_250
"""Assignments of one request; a constant in Kafka."""

RETRY_US: Micros = 100 * MS
"""First wait after an error; each further one doubles it."""

RETRY_MAX_US: Micros = 10 * SECOND
"""Longest wait after an error."""

TIMEOUT_US: Micros = SOCKET_TIMEOUT_US
"""Timeout of a response."""

RESENT_US: Micros = 60 * SECOND
"""Time from its creation in which the channel sends a request again; a constant in Kafka."""

TIMER = "assignments"
"""Timer of the next attempt."""


class Placement(Protocol):
    """Port to the log directories below a replica manager."""

    def directory_id_of(self, partition: TopicPartition) -> str:
        """``directory.id`` of the directory that holds the partition's log; it must be open."""

    def may_open(self, partition: TopicPartition, directory: str) -> bool:
        """True if the log may be opened or created, given the directory in the metadata.

        Not if that directory may be offline: an empty log created elsewhere would replace one that
        still holds records.
        """


class DirectoryAssignments:
    """Pending assignments, and the request in flight."""

    def __init__(self) -> None:
        self._waiting: dict[TopicPartition, DirectoryAssignment] = {}
        self._in_flight: dict[TopicPartition, DirectoryAssignment] = {}
        self._correlation = -1
        self._failures = 0
        self._created: Micros | None = None
        """Instant of the first sending of what the channel sends again."""
        self._not_before: Micros = 0

    def add(self, item: DirectoryAssignment) -> None:
        """Adds a replica whose directory differs from the metadata."""
        if self._in_flight.get(item.partition) == item:
            self._waiting.pop(item.partition, None)
        else:
            self._waiting[item.partition] = item

    def drop(self, partition: TopicPartition) -> None:
        """Drops a replica that is assigned already, or removed."""
        if self._waiting:
            self._waiting.pop(partition, None)

    def send(
        self,
        broker: NodeId,
        epoch: BrokerEpoch,
        controller: NodeId,
        correlation: int,
        now: Micros,
        out: Effects,
    ) -> None:
        """Sends pending assignments under the correlation; call :meth:`may_send` first."""
        if now < self._not_before:
            out.append(fx.SetTimer(TIMER, self._not_before))
            return
        items = tuple(self._waiting.values())[:ITEMS_MAX]
        for item in items:
            del self._waiting[item.partition]
        self._in_flight = {item.partition: item for item in items}
        self._correlation = correlation
        if self._created is None:
            self._created = now
        request = AssignReplicasToDirsRequest(broker, epoch, items)
        out.append(fx.Send(controller, correlation, request, TIMEOUT_US, "directories"))

    def may_send(self, controller: NodeId) -> bool:
        """True if assignments are pending, none is in flight, and a controller is known."""
        return bool(self._waiting) and self._correlation < 0 and controller != NO_LEADER

    def answered(
        self, correlation: int, response: AssignReplicasToDirsResponse, now: Micros
    ) -> tuple[DirectoryAssignment, ...]:
        """Handles a response; refused items are sent again. Returns the assigned ones."""
        if correlation != self._correlation:
            return ()
        if response.error is ErrorCode.NOT_CONTROLLER:
            self._lost(now)
            return ()
        if response.error is not ErrorCode.NONE:
            self._retry(tuple(self._in_flight.values()), now)
            return ()
        noted = tuple(
            self._in_flight[partition]
            for partition, error in response.results
            if error is ErrorCode.NONE
        )
        refused = tuple(
            self._in_flight[partition]
            for partition, error in response.results
            # A partition that has left this broker has no directory to assign.
            if error not in {ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER}
        )
        if refused:
            self._retry(refused, now)
            return noted
        self._in_flight = {}
        self._correlation = -1
        self._created = None
        self._failures = 0
        return noted

    def failed(self, correlation: int, now: Micros) -> bool:
        """No response came; true if the request was one of these."""
        if correlation != self._correlation or not self._in_flight:
            return False
        self._lost(now)
        return True

    def _lost(self, now: Micros) -> None:
        """Sends again soon what the channel has not given up yet."""
        items = tuple(self._in_flight.values())
        if self._created is not None and now - self._created < RESENT_US:
            self._put_back(items)
            self._not_before = now + RECONNECT_US
        else:
            self._retry(items, now)

    def _put_back(self, items: tuple[DirectoryAssignment, ...]) -> None:
        for item in items:
            self._waiting.setdefault(item.partition, item)
        self._in_flight = {}
        self._correlation = -1

    def _retry(self, items: tuple[DirectoryAssignment, ...], now: Micros) -> None:
        self._put_back(items)
        self._created = None
        self._not_before = now + min(RETRY_US << min(self._failures, 20), RETRY_MAX_US)
        self._failures += 1
