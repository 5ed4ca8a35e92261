"""The sender of a request, whose rights are checked, and the outcome of the check.

Source: ``kafka.server.AuthHelper``.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, TypeAlias

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition
from sim.protocol.acls import CLUSTER, Authorizer
from sim.protocol.messages.base import Request, Response
from sim.protocol.messages.group import OffsetCommitResponse
from sim.protocol.messages.transaction import TxnOffsetCommitResponse

TOPIC_DENIED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
GROUP_DENIED: Final = ErrorCode.GROUP_AUTHORIZATION_FAILED
CLUSTER_DENIED: Final = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
ID_DENIED: Final = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED

_ERRORS: dict[str, ErrorCode] = {
    "topic": TOPIC_DENIED,
    "group": GROUP_DENIED,
    "cluster": CLUSTER_DENIED,
    "transactional-id": ID_DENIED,
}

HEARTBEATS: Final = ("ConsumerGroupHeartbeat", "ShareGroupHeartbeat")
"""Requests of members that name the topics they subscribe to."""

Merge: TypeAlias = Callable[[Response], Response]
"""Adds the errors of what was left out."""


class ClientIdentity(NamedTuple):
    """Identity of a client on its connections."""

    principal: str
    host: str
    producer_index: int = -1
    """Number in its records; -1: it writes none."""


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


@dataclass(frozen=True, slots=True)
class Caller:
    """Sender of a request, whose rights are checked one after the other."""

    authorizer: Authorizer
    denials: list[Denial]
    """Noted here."""
    client: str
    identity: ClientIdentity
    request: str
    topics_checked: tuple[str, ...] = HEARTBEATS
    """Of these, those in which Describe on the topics is needed."""
    topics: dict[tuple[str, str], bool] = field(default_factory=dict)
    """Answers about topics, so that a denial is noted once."""

    def has(self, operation: str, resource_type: str, name: str) -> bool:
        """True if it has the right; else notes the denial."""
        who, host = self.identity.principal, self.identity.host
        if self.authorizer.allows(who, host, operation, resource_type, name):
            return True
        self.note(operation, resource_type, name)
        return False

    def note(self, operation: str, resource_type: str, name: str) -> None:
        """Notes a denial."""
        error = _ERRORS[resource_type].name
        self.denials.append(
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

    def may_name(self, topics: tuple[str, ...] | None) -> bool:
        """True if a member may subscribe to the topics in this heartbeat."""
        if self.request not in self.topics_checked:
            return True
        return all(self.on_topic("Describe", topic) for topic in topics or ())

    def has_any(self, operation: str, resource_type: str) -> bool:
        """True if it has the right on some resource of the type."""
        identity = self.identity
        return self.authorizer.allows_any(
            identity.principal, identity.host, operation, resource_type
        )


Check: TypeAlias = Callable[[Caller, Request], Ruling | None]
"""``None``: the client has all rights."""


def of_servers(caller: Caller, request: Request) -> Ruling | None:  # noqa: ARG001 - a check's
    """A request that servers send, or one that is served on another listener."""
    if caller.has("ClusterAction", "cluster", CLUSTER):
        return None
    return Ruling(closes=True)


def of_group(caller: Caller, group: str, refused: Response) -> Ruling | None:
    """A request of a group's member."""
    return None if caller.has("Read", "group", group) else Ruling(response=refused)


def all_topics(caller: Caller, operation: str, partitions: tuple[TopicPartition, ...]) -> bool:
    """True if it has the right on the topic of each partition."""
    return all(caller.on_topic(operation, partition.topic) for partition in partitions)


def commit_in_part(response: Response) -> Response:
    """The error of the rest, or else that of the topics: a client reports them in this order."""
    assert isinstance(response, OffsetCommitResponse | TxnOffsetCommitResponse)
    if response.error is not ErrorCode.NONE:
        return response
    return replace(response, error=TOPIC_DENIED)
