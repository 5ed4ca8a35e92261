"""Rights that each request needs at a broker, and the responses without them.

A request for several topics is carried out for those that its client may use, and the response gets
the error of the others. The servers and the administrator are super users and pass unchecked.

Left out: requests of share groups, and rights of administrators.

Source: ``kafka.server.{KafkaApis,AuthHelper}`` (4.1); KIP-679 (IdempotentWrite), KAFKA-18813 (the
topics of a ConsumerGroupHeartbeat, since 4.0.1).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple, TypeAlias

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition
from sim.protocol.acls import CLUSTER, Authorizer
from sim.protocol.messages.base import Request, Response
from sim.protocol.messages.consumer_group import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from sim.protocol.messages.data import (
    ListOffsetsRequest,
    ListOffsetsResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceResult,
)
from sim.protocol.messages.group import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from sim.protocol.messages.leader_epochs import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from sim.protocol.messages.metadata import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    MetadataRequest,
    MetadataResponse,
)
from sim.protocol.messages.transaction import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnRequest,
    EndTxnResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)

_TOPIC = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_GROUP = ErrorCode.GROUP_AUTHORIZATION_FAILED
_CLUSTER = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
_TRANSACTION = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED

_ERRORS: dict[str, ErrorCode] = {
    "topic": _TOPIC,
    "group": _GROUP,
    "cluster": _CLUSTER,
    "transactional-id": _TRANSACTION,
}

Merge: TypeAlias = Callable[[Response], Response]
"""Adds the errors of what was left out."""


class ClientIdentity(NamedTuple):
    """Identity of a client on its connections."""

    principal: str
    host: str
    producer_index: int = -1
    """Number in its records; -1: it writes none."""


@dataclass(frozen=True, slots=True)
class AuthorizerConfig:
    """Settings of a broker's authorizer."""

    clients: Mapping[str, ClientIdentity]
    """By printed name; all others are super users."""
    super_users: tuple[str, ...] = ()
    """``super.users``."""
    allows_by_default: bool = False
    """``allow.everyone.if.no.acl.found``."""
    checks: bool = True
    """False: the planted defect of a broker that lets everything pass."""


class Denial(NamedTuple):
    """A right that a client did not have."""

    client: str
    principal: str
    request: str
    operation: str
    resource_type: str
    resource_name: str
    error: str


@dataclass(frozen=True, slots=True)
class Ruling:
    """Outcome of the check of a request."""

    request: Request | None = None
    """The part that is carried out; ``None``: nothing of it."""
    response: Response | None = None
    """Response where nothing is carried out."""
    merge: Merge | None = None
    """Applied to the response of the part; ``None``: it is the whole request."""
    closes: bool = False
    """True if the connection is closed at the response: an error with acks=0."""


class ApiAuthorizer:
    """Checks the requests that one broker receives.

    Args:
        config: Settings, and the clients' identities.
    """

    def __init__(self, config: AuthorizerConfig) -> None:
        self._config = config
        default = config.allows_by_default or not config.checks
        self.authorizer = Authorizer(config.super_users, allows_by_default=default)
        self.denials: list[Denial] = []
        """Denials that are not in the trace yet."""

    def may_read(self, client: str, topic: str) -> bool:
        """True if a consumer may fetch from a topic; checked when its fetch arrives."""
        identity = self._config.clients.get(client)
        if identity is None or not self._config.checks:
            return True
        return _Caller(self, client, identity, "Fetch").has("Read", "topic", topic)

    def rule(self, client: str, request: Request) -> Ruling:
        """Checks a request; a fetch is checked by partition, in its session."""
        identity = self._config.clients.get(client)
        check = _CHECKS.get(type(request))
        if identity is None or check is None or not self._config.checks:
            return Ruling(request)
        ruling = check(_Caller(self, client, identity, type(request).__name__[:-7]), request)
        return Ruling(request) if ruling is None else ruling


@dataclass(frozen=True, slots=True)
class _Caller:
    """Sender of a request, whose rights are checked one after the other."""

    owner: ApiAuthorizer
    client: str
    identity: ClientIdentity
    request: str
    topics: dict[tuple[str, str], bool] = field(default_factory=dict)
    """Answers about topics, so that a denial is noted once."""

    def has(self, operation: str, resource_type: str, name: str) -> bool:
        """True if it has the right; else notes the denial."""
        identity, authorizer = self.identity, self.owner.authorizer
        if authorizer.allows(identity.principal, identity.host, operation, resource_type, name):
            return True
        self.note(operation, resource_type, name)
        return False

    def note(self, operation: str, resource_type: str, name: str) -> None:
        """Notes a denial."""
        error = _ERRORS[resource_type].name
        self.owner.denials.append(
            Denial(
                self.client, self.identity.principal, self.request, operation, resource_type, name,
                error,
            )
        )  # fmt: skip

    def on_topic(self, operation: str, name: str) -> bool:
        """True if it has the right on a topic."""
        key = (operation, name)
        known = self.topics.get(key)
        if known is None:
            known = self.topics[key] = self.has(operation, "topic", name)
        return known

    def has_any(self, operation: str, resource_type: str) -> bool:
        """True if it has the right on some resource of the type."""
        identity = self.identity
        return self.owner.authorizer.allows_any(
            identity.principal, identity.host, operation, resource_type
        )


Check: TypeAlias = Callable[[_Caller, Request], Ruling | None]
"""``None``: the client has all rights."""


# -- data -----------------------------------------------------------------------------------------


def _produce(caller: _Caller, request: Request) -> Ruling | None:
    assert isinstance(request, ProduceRequest)
    transactional_id = request.transactional_id
    if transactional_id and not caller.has("Write", "transactional-id", transactional_id):
        return _nothing_written(request, _TRANSACTION)
    allowed = tuple(each for each in request.batches if caller.on_topic("Write", each[0].topic))
    if len(allowed) == len(request.batches):
        return None
    if not allowed:
        return _nothing_written(request, _TOPIC)
    refused = tuple(
        ProduceResult(partition, _TOPIC)
        for partition, _ in request.batches
        if not caller.on_topic("Write", partition.topic)
    )
    rest = ProduceRequest(request.acks, request.timeout_us, allowed, transactional_id)
    return Ruling(rest, None, partial(_with_results, refused), closes=request.acks == 0)


def _nothing_written(request: ProduceRequest, error: ErrorCode) -> Ruling:
    if request.acks == 0:
        return Ruling(closes=True)
    results = tuple(ProduceResult(partition, error) for partition, _ in request.batches)
    return Ruling(response=ProduceResponse(results))


def _with_results(refused: tuple[ProduceResult, ...], response: Response) -> Response:
    assert isinstance(response, ProduceResponse)
    return ProduceResponse(response.results + refused)


def _list_offsets(caller: _Caller, request: Request) -> Ruling | None:
    assert isinstance(request, ListOffsetsRequest)
    partition = request.partition
    if caller.on_topic("Describe", partition.topic):
        return None
    return Ruling(response=ListOffsetsResponse(partition, _TOPIC))


def _leader_epoch(caller: _Caller, request: Request) -> Ruling | None:
    assert isinstance(request, OffsetForLeaderEpochRequest)
    partition = request.partition
    if caller.on_topic("Describe", partition.topic):
        return None
    return Ruling(response=OffsetForLeaderEpochResponse(partition, _TOPIC))


def _metadata(caller: _Caller, request: Request) -> Ruling | None:
    assert isinstance(request, MetadataRequest)
    allowed = tuple(topic for topic in request.topics if caller.on_topic("Describe", topic))
    if len(allowed) == len(request.topics):
        return None
    hidden = tuple(topic for topic in request.topics if topic not in allowed)
    return Ruling(MetadataRequest(allowed), None, partial(_with_hidden, hidden))


def _with_hidden(hidden: tuple[str, ...], response: Response) -> Response:
    assert isinstance(response, MetadataResponse)
    return replace(response, unauthorized=hidden)


# -- groups ---------------------------------------------------------------------------------------


def _find_coordinator(caller: _Caller, request: Request) -> Ruling | None:
    assert isinstance(request, FindCoordinatorRequest)
    of_group = request.kind == "group"
    if caller.has("Describe", "group" if of_group else "transactional-id", request.key):
        return None
    return Ruling(response=FindCoordinatorResponse(_GROUP if of_group else _TRANSACTION))


def _join(caller: _Caller, request: Request) -> Ruling | None:
    assert isinstance(request, JoinGroupRequest)
    return _of_group(caller, request.group, JoinGroupResponse(_GROUP))


def _sync(caller: _Caller, request: Request) -> Ruling | None:
    assert isinstance(request, SyncGroupRequest)
    return _of_group(caller, request.group, SyncGroupResponse(_GROUP))


def _heartbeat(caller: _Caller, request: Request) -> Ruling | None:
    assert isinstance(request, HeartbeatRequest)
    return _of_group(caller, request.group, HeartbeatResponse(_GROUP))


def _leave(caller: _Caller, request: Request) -> Ruling | None:
    assert isinstance(request, LeaveGroupRequest)
    return _of_group(caller, request.group, LeaveGroupResponse(_GROUP))


def _of_group(caller: _Caller, group: str, refused: Response) -> Ruling | None:
    return None if caller.has("Read", "group", group) else Ruling(response=refused)


def _consumer_heartbeat(caller: _Caller, request: Request) -> Ruling | None:
    assert isinstance(request, ConsumerGroupHeartbeatRequest)
    if not caller.has("Read", "group", request.group):
        return Ruling(response=ConsumerGroupHeartbeatResponse(_GROUP))
    if all(caller.on_topic("Describe", topic) for topic in request.topics or ()):
        return None
    return Ruling(response=ConsumerGroupHeartbeatResponse(_TOPIC))


def _offset_commit(caller: _Caller, request: Request) -> Ruling | None:
    assert isinstance(request, OffsetCommitRequest)
    if not caller.has("Read", "group", request.group):
        return Ruling(response=OffsetCommitResponse(_GROUP))
    allowed = tuple(each for each in request.offsets if caller.on_topic("Read", each[0].topic))
    if len(allowed) == len(request.offsets):
        return None
    if not allowed:
        return Ruling(response=OffsetCommitResponse(_TOPIC))
    return Ruling(replace(request, offsets=allowed), None, _commit_in_part)


def _commit_in_part(response: Response) -> Response:
    """The error of the rest, or else that of the topics: a client reports them in this order."""
    assert isinstance(response, OffsetCommitResponse | TxnOffsetCommitResponse)
    if response.error is not ErrorCode.NONE:
        return response
    return replace(response, error=_TOPIC)


def _offset_fetch(caller: _Caller, request: Request) -> Ruling | None:
    assert isinstance(request, OffsetFetchRequest)
    if not caller.has("Describe", "group", request.group):
        return Ruling(response=OffsetFetchResponse(_GROUP))
    # A client reports unauthorised topics and nothing else, even if it got offsets of others.
    if _all_topics(caller, "Describe", request.partitions):
        return None
    return Ruling(response=OffsetFetchResponse(_TOPIC))


def _all_topics(caller: _Caller, operation: str, partitions: tuple[TopicPartition, ...]) -> bool:
    return all(caller.on_topic(operation, partition.topic) for partition in partitions)


# -- producer ids and transactions ----------------------------------------------------------------


def _init_producer_id(caller: _Caller, request: Request) -> Ruling | None:
    assert isinstance(request, InitProducerIdRequest)
    if request.transactional_id:
        if caller.has("Write", "transactional-id", request.transactional_id):
            return None
        return Ruling(response=InitProducerIdResponse(_TRANSACTION))
    if caller.has_any("Write", "topic") or caller.has("IdempotentWrite", "cluster", CLUSTER):
        return None
    return Ruling(response=InitProducerIdResponse(_CLUSTER))


def _add_partitions(caller: _Caller, request: Request) -> Ruling | None:
    assert isinstance(request, AddPartitionsToTxnRequest)
    if not caller.has("Write", "transactional-id", request.transactional_id):
        return Ruling(response=AddPartitionsToTxnResponse(_TRANSACTION))
    # Partitions of other topics are not attempted then.
    if _all_topics(caller, "Write", request.partitions):
        return None
    return Ruling(response=AddPartitionsToTxnResponse(_TOPIC))


def _add_offsets(caller: _Caller, request: Request) -> Ruling | None:
    assert isinstance(request, AddOffsetsToTxnRequest)
    if not caller.has("Write", "transactional-id", request.transactional_id):
        return Ruling(response=AddOffsetsToTxnResponse(_TRANSACTION))
    return _of_group(caller, request.group, AddOffsetsToTxnResponse(_GROUP))


def _commit_in_transaction(caller: _Caller, request: Request) -> Ruling | None:
    assert isinstance(request, TxnOffsetCommitRequest)
    if not caller.has("Write", "transactional-id", request.transactional_id):
        return Ruling(response=TxnOffsetCommitResponse(_TRANSACTION))
    if not caller.has("Read", "group", request.group):
        return Ruling(response=TxnOffsetCommitResponse(_GROUP))
    allowed = tuple(each for each in request.offsets if caller.on_topic("Read", each[0].topic))
    if len(allowed) == len(request.offsets):
        return None
    if not allowed:
        return Ruling(response=TxnOffsetCommitResponse(_TOPIC))
    return Ruling(replace(request, offsets=allowed), None, _commit_in_part)


def _end(caller: _Caller, request: Request) -> Ruling | None:
    assert isinstance(request, EndTxnRequest)
    if caller.has("Write", "transactional-id", request.transactional_id):
        return None
    return Ruling(response=EndTxnResponse(_TRANSACTION))


_CHECKS: dict[type[Request], Check] = {
    ProduceRequest: _produce,
    ListOffsetsRequest: _list_offsets,
    OffsetForLeaderEpochRequest: _leader_epoch,
    MetadataRequest: _metadata,
    FindCoordinatorRequest: _find_coordinator,
    JoinGroupRequest: _join,
    SyncGroupRequest: _sync,
    HeartbeatRequest: _heartbeat,
    LeaveGroupRequest: _leave,
    ConsumerGroupHeartbeatRequest: _consumer_heartbeat,
    OffsetCommitRequest: _offset_commit,
    OffsetFetchRequest: _offset_fetch,
    InitProducerIdRequest: _init_producer_id,
    AddPartitionsToTxnRequest: _add_partitions,
    AddOffsetsToTxnRequest: _add_offsets,
    TxnOffsetCommitRequest: _commit_in_transaction,
    EndTxnRequest: _end,
}
"""By the type of request; fetches are checked in their sessions."""
