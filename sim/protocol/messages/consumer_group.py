"""Group coordination: the consumer protocol (KIP-848).

Partitions go by topic names here; Kafka's go by topic ids, which clients look up in their metadata.

Source: ``ConsumerGroupHeartbeatRequest.json``, ``ConsumerGroupHeartbeatResponse.json``.
"""

from dataclasses import dataclass

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition
from sim.protocol.messages.base import Request, Response
from sim.protocol.messages.sizes import consumer_group as sizes
from sim.protocol.messages.sizes.encoding import by_topic
from sim.units import Bytes, Micros

JOIN_EPOCH = 0
"""The epoch with which a member joins."""

LEAVE_EPOCH = -1
"""The epoch with which a member says that it leaves."""

STATIC_LEAVE_EPOCH = -2
"""The epoch with which a static member leaves its place for the next one of its instance id."""


@dataclass(frozen=True, slots=True)
class ConsumerGroupHeartbeatRequest(Request):
    """A member's heartbeat; ``None``: as in its last one.

    ``owned`` is what the member reads, which acknowledges what it has given up.
    """

    group: str
    member_id: str
    member_epoch: int
    rebalance_timeout_us: Micros | None = None
    topics: tuple[str, ...] | None = None
    server_assignor: str = ""
    owned: tuple[TopicPartition, ...] | None = None
    rack_id: str = ""
    instance_id: str = ""
    """Of a static member, in each of its heartbeats."""

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return sizes.consumer_group_heartbeat_request(
            group_id=self.group,
            member_id=self.member_id,
            instance_id=self.instance_id,
            rack_id=self.rack_id,
            subscribed_topic_names=self.topics or (),
            server_assignor=self.server_assignor,
            topic_partitions=by_topic(self.owned or ()).values(),
        )


@dataclass(frozen=True, slots=True)
class ConsumerGroupHeartbeatResponse(Response):
    """``assignment`` is ``None`` where the member already has it."""

    error: ErrorCode
    member_id: str = ""
    member_epoch: int = 0
    heartbeat_interval_us: Micros = 0
    assignment: tuple[TopicPartition, ...] | None = None

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        assignment = 0
        if self.assignment is not None:
            topics = by_topic(self.assignment).values()
            assignment = sizes.consumer_group_heartbeat_response_assignment(topic_partitions=topics)
        return sizes.consumer_group_heartbeat_response(
            member_id=self.member_id, assignment=assignment
        )
