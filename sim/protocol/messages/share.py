"""Share groups (KIP-932): heartbeats, fetches, acknowledgements, and the states that leaders keep.

Partitions go by topic names between clients and leaders; Kafka's go by topic ids. An answer to a
share fetch says the leader's high watermark, which Kafka's does not: no decision depends on it, the
trace has it.

Source: ``ShareGroupHeartbeatRequest.json``, ``ShareFetchRequest.json``,
``ShareAcknowledgeRequest.json``, ``InitializeShareGroupStateRequest.json``,
``ReadShareGroupStateRequest.json``,
``WriteShareGroupStateRequest.json`` and their answers.
"""

from dataclasses import dataclass

from sim.error_codes import ErrorCode
from sim.ids import LeaderEpoch, Offset, TopicPartition
from sim.protocol.messages.base import Request, Response
from sim.protocol.messages.data import LeaderHint, hinted_hosts
from sim.protocol.messages.share_records import Acknowledgement, Acquired, ShareKey, StateBatch
from sim.protocol.messages.sizes import share as sizes
from sim.protocol.messages.sizes.encoding import by_topic, grouped
from sim.protocol.ports import Batch
from sim.units import Bytes, Micros

INITIAL_EPOCH = 0
"""The epoch with which a share session begins."""

FINAL_EPOCH = -1
"""The epoch with which a member closes its share session."""


@dataclass(frozen=True, slots=True)
class ShareGroupHeartbeatRequest(Request):
    """A member's heartbeat; ``None``: as in its last one."""

    group: str
    member_id: str
    member_epoch: int
    topics: tuple[str, ...] | None = None
    rack_id: str = ""

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return sizes.share_group_heartbeat_request(
            group_id=self.group,
            member_id=self.member_id,
            rack_id=self.rack_id,
            subscribed_topic_names=self.topics or (),
        )


@dataclass(frozen=True, slots=True)
class ShareGroupHeartbeatResponse(Response):
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
            assignment = sizes.share_group_heartbeat_response_assignment(topic_partitions=topics)
        return sizes.share_group_heartbeat_response(member_id=self.member_id, assignment=assignment)


@dataclass(frozen=True, slots=True)
class PartitionAcknowledgements:
    """Acknowledgements of a member's records of one partition, in the order of the log."""

    partition: TopicPartition
    said: tuple[Acknowledgement, ...]


def _types(
    acknowledgements: tuple[PartitionAcknowledgements, ...],
) -> dict[TopicPartition, tuple[int, ...]]:
    """Number of types in each batch of each partition."""
    return {
        each.partition: tuple([len(one.types) for one in each.said]) for each in acknowledgements
    }


@dataclass(frozen=True, slots=True)
class ShareFetchRequest(Request):
    """A fetch in a member's share session: only partitions that are new to it are listed.

    ``acknowledgements`` are of records that earlier fetches of the session brought.
    """

    group: str
    member_id: str
    session_epoch: int
    max_wait_us: Micros
    max_bytes: Bytes
    max_records: int
    partitions: tuple[TopicPartition, ...] = ()
    forgotten: tuple[TopicPartition, ...] = ()
    acknowledgements: tuple[PartitionAcknowledgements, ...] = ()
    record_limit: bool = False
    """True if ``max_records`` is no approximate number (KIP-1206)."""
    renews: bool = False
    """``IsRenewAck``: it renews locks, and fetches nothing (KIP-1222)."""

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        said = dict.fromkeys(self.partitions, ()) | _types(self.acknowledgements)
        return sizes.share_fetch_request(
            group_id=self.group,
            member_id=self.member_id,
            topics=grouped(said.items()).values(),
            forgotten_topics_data=by_topic(self.forgotten).values(),
        )


@dataclass(frozen=True, slots=True)
class ShareFetchResult:
    """One partition's part of a :class:`ShareFetchResponse`."""

    partition: TopicPartition
    error: ErrorCode = ErrorCode.NONE
    acknowledge_error: ErrorCode = ErrorCode.NONE
    batches: tuple[Batch, ...] = ()
    acquired: tuple[Acquired, ...] = ()
    """Offsets of the batches that the member has acquired."""
    high_watermark: Offset = -1
    hint: LeaderHint | None = None


@dataclass(frozen=True, slots=True)
class ShareFetchResponse(Response):
    """With an ``error`` of the session it has no partitions."""

    error: ErrorCode
    results: tuple[ShareFetchResult, ...] = ()
    lock_us: Micros = 0

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        read = [
            (each.partition, (sum([one.size_bytes for one in each.batches]), len(each.acquired)))
            for each in self.results
        ]
        return sizes.share_fetch_response(
            responses=grouped(read).values(),
            node_endpoints=hinted_hosts(
                [each.hint for each in self.results if each.hint is not None]
            ),
        )


@dataclass(frozen=True, slots=True)
class ShareAcknowledgeRequest(Request):
    """Acknowledgements without a fetch; the final epoch closes the session and gives back all."""

    group: str
    member_id: str
    session_epoch: int
    acknowledgements: tuple[PartitionAcknowledgements, ...] = ()

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        topics = grouped(_types(self.acknowledgements).items())
        return sizes.share_acknowledge_request(
            group_id=self.group, member_id=self.member_id, topics=topics.values()
        )


@dataclass(frozen=True, slots=True)
class ShareAcknowledgeResponse(Response):
    """Error of each partition's acknowledgements."""

    error: ErrorCode
    results: tuple[tuple[TopicPartition, ErrorCode], ...] = ()

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        topics = by_topic(partition for partition, _ in self.results)
        return sizes.share_acknowledge_response(responses=topics.values(), node_endpoints=())


@dataclass(frozen=True, slots=True)
class InitializeShareGroupStateRequest(Request):
    """The group's coordinator makes the state of a share partition, before members get it."""

    key: ShareKey
    state_epoch: int
    """The group's epoch."""
    start_offset: Offset = -1
    """-1: the first leader that reads it begins by ``share.auto.offset.reset``."""

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return sizes.initialize_share_group_state_request(group_id=self.key.group, topics=(1,))


@dataclass(frozen=True, slots=True)
class InitializeShareGroupStateResponse(Response):
    """The state is made, or why it is not."""

    error: ErrorCode

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return sizes.initialize_share_group_state_response(results=(1,))


@dataclass(frozen=True, slots=True)
class ReadShareGroupStateRequest(Request):
    """A leader takes a share partition up."""

    key: ShareKey
    leader_epoch: LeaderEpoch

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return sizes.read_share_group_state_request(group_id=self.key.group, topics=(1,))


@dataclass(frozen=True, slots=True)
class ReadShareGroupStateResponse(Response):
    """``start_offset`` is -1 if nobody has fetched from the share partition yet."""

    error: ErrorCode
    state_epoch: int = 0
    start_offset: Offset = -1
    batches: tuple[StateBatch, ...] = ()

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return sizes.read_share_group_state_response(results=((len(self.batches),),))


@dataclass(frozen=True, slots=True)
class WriteShareGroupStateRequest(Request):
    """A leader's share partition has changed."""

    key: ShareKey
    state_epoch: int
    leader_epoch: LeaderEpoch
    start_offset: Offset
    batches: tuple[StateBatch, ...]
    complete_count: int = -1
    """Number of completed records from the start offset on; -1: not counted, as before 4.2."""

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        topics = ((len(self.batches),),)
        return sizes.write_share_group_state_request(group_id=self.key.group, topics=topics)


@dataclass(frozen=True, slots=True)
class WriteShareGroupStateResponse(Response):
    """The change is committed, or why it is not."""

    error: ErrorCode

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return sizes.write_share_group_state_response(results=(1,))
