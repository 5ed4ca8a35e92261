"""Requests of an administrator to the running cluster, as entries of the calendar.

Source: ``kafka-topics``, ``kafka-configs``, ``kafka-reassign-partitions``,
``kafka-leader-election``, ``kafka-delete-records``, ``kafka-features``,
``kafka-delegation-tokens``,
``AdminClient.alterReplicaLogDirs``.
"""

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, Final, Literal, NamedTuple

from sim.faults.action import Action, Evidence, Instant
from sim.faults.fault import Fault, Release, Span, key
from sim.faults.resolve import Site
from sim.faults.surface import Administrator, Broker, Operation, World
from sim.ids import NodeId, TopicPartition, server_name
from sim.log.directory.names import directory_name
from sim.protocol.acls import Acl
from sim.protocol.clients.admin.client import API_TIMEOUT_US
from sim.protocol.messages.admin import (
    AlterClientQuotasRequest,
    AlterPartitionReassignmentsRequest,
    CreatePartitionsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
    QuotaAlteration,
    UpdateFeaturesRequest,
    quota_entity_text,
)
from sim.protocol.messages.base import Request
from sim.protocol.messages.cluster import CreateTopicsRequest, NewTopic
from sim.protocol.messages.delete_records import UP_TO_HIGH_WATERMARK, DeleteRecordsRequest
from sim.protocol.messages.log_dirs import AlterReplicaLogDirsRequest
from sim.protocol.messages.security import (
    NO_TIME,
    CreateAclsRequest,
    CreateDelegationTokenRequest,
    DeleteAclsRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
    TokenRequester,
)
from sim.protocol.security.tokens import NamedToken
from sim.units import MS, Micros

AS_MEANT: Final = "what was intended: an administrator's request breaks no promise"
_COMMITTED: Final = "the controller has committed it"


def evidence_of(operation: Operation | None) -> Evidence:
    """Evidence of an operation: the server's outcome."""
    if operation is None:
        return Evidence(took_effect=False, effect="it never began")
    return Evidence(operation.accepted, operation.outcome)


class Administer(Instant):
    """Sends a request in an instant; there is nothing to heal.

    Kafka answers without an error when the request changes nothing; that has no effect then.
    """

    def __init__(self, world: World, administrator: Administrator, request: Request) -> None:
        self._world = world
        self._administrator = administrator
        self._request = request
        self._operation: Operation | None = None
        self._was_so = False

    def begin(self) -> None:
        """Sends the request."""
        self._was_so = self._world.is_no_op(self._request)
        self._operation = self._send()

    def _send(self) -> Operation:
        return self._administrator.operate(self._request)

    def evidence(self) -> Evidence:
        """True if the server has carried it out, and it changed something."""
        found = evidence_of(self._operation)
        if found.took_effect and self._was_so:
            return Evidence(took_effect=False, effect=f"{found.effect}, and it was so before")
        return found


class MoveReplica(Administer):
    """Moves a replica to another log directory: done when it has arrived, not at the response.

    Args:
        fault: The replica and its new directory.
        world: The cluster.
        broker: The replica's broker.
    """

    def __init__(self, fault: "AlterReplicaLogDirs", world: World, broker: Broker) -> None:
        super().__init__(world, world.administrator, fault.request())
        self._fault = fault
        self._broker = broker
        self._before = 0

    def begin(self) -> None:
        """Sends the request."""
        self._before = self._arrivals()
        super().begin()

    def evidence(self) -> Evidence:
        """True if the replica has arrived since."""
        found = super().evidence()
        if not found.took_effect:
            return found
        if self._arrivals() > self._before:
            return Evidence(took_effect=True, effect="the replica has arrived")
        return Evidence(took_effect=False, effect="on its way, or nothing to move")

    def _send(self) -> Operation:
        return self._administrator.operate(self._request, self._broker.node_id)

    def _arrivals(self) -> int:
        return self._broker.arrivals(self._fault.partition, self._fault.directory)


class Administration(Fault):
    """An administrator's request to the controller, to a leader or to one broker."""

    proof = _COMMITTED
    may_break = AS_MEANT
    span: ClassVar[Span] = "operation"

    @abstractmethod
    def request(self) -> Request:
        """The administrator's request."""

    def action(self, site: Site) -> tuple[Action | None, str]:
        """Action that sends the request, and the target."""
        return Administer(site.world, site.world.administrator, self.request()), self.target_text


@dataclass(frozen=True, kw_only=True)
class _OfTopic(Administration):
    """An operation on a topic of the scenario."""

    topic: NewTopic = field(metadata=key("topic", "topic"))

    @property
    def target_text(self) -> str:
        """The topic."""
        return self.topic.name


@dataclass(frozen=True, kw_only=True)
class _OfPartition(Administration):
    """An operation on a partition."""

    partition: TopicPartition = field(metadata=key("partition", "partition"))

    @property
    def target_text(self) -> str:
        """The partition."""
        return str(self.partition)


class CreateTopic(_OfTopic):
    """The administrator creates a topic of the scenario again, after it was deleted."""

    kind = "create-topic"

    def request(self) -> CreateTopicsRequest:
        """With partitions, settings and replicas as in the scenario."""
        return CreateTopicsRequest((self.topic,))


class DeleteTopic(_OfTopic):
    """The administrator deletes a topic."""

    kind = "delete-topic"

    def request(self) -> DeleteTopicsRequest:
        """By its name."""
        return DeleteTopicsRequest((self.topic.name,))


@dataclass(frozen=True, kw_only=True)
class CreatePartitions(_OfTopic):
    """The administrator gives a topic more partitions, `count` in all."""

    kind = "create-partitions"
    may_break = "that a key stays in its partition, and with it the order of its records"
    count: int = field(
        metadata=key("count", "more partitions", "partitions in all", low=2, high=10_000)
    )

    def request(self) -> CreatePartitionsRequest:
        """With the total number of partitions."""
        return CreatePartitionsRequest(self.topic.name, self.count)


class ConfigChange(NamedTuple):
    """A setting and its new value."""

    name: str
    value: object
    text: str
    """In Kafka's notation."""


@dataclass(frozen=True, kw_only=True)
class AlterConfig(_OfTopic):
    """The administrator changes settings of a topic."""

    kind = "alter-config"
    proof = f"{_COMMITTED}, and they were others before"
    config: tuple[ConfigChange, ...] = field(metadata=key("config", "config"))

    def request(self) -> IncrementalAlterConfigsRequest:
        """The changes."""
        changes = tuple((change.name, change.text) for change in self.config)
        return IncrementalAlterConfigsRequest(self.topic.name, changes)


@dataclass(frozen=True, kw_only=True)
class Reassign(_OfPartition):
    """The administrator moves a partition to other replicas, the preferred leader first."""

    kind = "reassign"
    proof = "the controller has committed its beginning, and it was elsewhere"
    replicas: tuple[NodeId, ...] = field(metadata=key("replicas", "brokers"))

    def request(self) -> AlterPartitionReassignmentsRequest:
        """The new replicas."""
        return AlterPartitionReassignmentsRequest(((self.partition, self.replicas),))


class CancelReassignment(_OfPartition):
    """The administrator cancels a reassignment that is in progress."""

    kind = "cancel-reassignment"

    def request(self) -> AlterPartitionReassignmentsRequest:
        """No replicas: as before."""
        return AlterPartitionReassignmentsRequest(((self.partition, None),))


@dataclass(frozen=True, kw_only=True)
class ElectLeader(_OfPartition):
    """The administrator requests a preferred election, or an unclean one without a leader."""

    kind = "elect-leader"
    proof = "the controller has elected another leader"
    may_break = "with an unclean election acknowledged records; else nothing"
    absent_with: ClassVar[tuple[str, ...]] = ("raft",)
    election: Literal["preferred", "unclean"] = field(
        metadata=key("election", "word", words=("preferred", "unclean"))
    )

    def request(self) -> ElectLeadersRequest:
        """Of this partition."""
        return ElectLeadersRequest(self.election, (self.partition,))


@dataclass(frozen=True, kw_only=True)
class DeleteRecords(_OfPartition):
    """The administrator deletes a partition's records before an offset, or all committed ones."""

    kind = "delete-records"
    proof = "its leader has deleted some, and every live follower has followed"
    before: int | Literal["high-watermark"] = field(metadata=key("before", "offset"))

    def request(self) -> DeleteRecordsRequest:
        """To the leader, which waits for its followers."""
        before = UP_TO_HIGH_WATERMARK if self.before == "high-watermark" else self.before
        return DeleteRecordsRequest(((self.partition, before),), API_TIMEOUT_US)


@dataclass(frozen=True, kw_only=True)
class AlterReplicaLogDirs(_OfPartition):
    """The administrator moves a broker's replica to another of its log directories."""

    kind = "alter-replica-log-dirs"
    proof = "the replica has arrived there"
    absent_with: ClassVar[tuple[str, ...]] = ("raft",)
    broker: NodeId = field(metadata=key("broker", "broker"))
    directory: int = field(
        metadata=key("to", "other directory", "number of the log directory, from 0")
    )

    @property
    def target_text(self) -> str:
        """The replica."""
        return f"{self.partition} on {server_name(self.broker)}"

    def request(self) -> AlterReplicaLogDirsRequest:
        """To its broker."""
        return AlterReplicaLogDirsRequest(((self.partition, directory_name(self.directory)),))

    def action(self, site: Site) -> tuple[Action | None, str]:
        """Action that sends the request, and the replica."""
        broker = site.world.broker(server_name(self.broker))
        assert broker is not None, "the scenario has checked it"
        return MoveReplica(self, site.world, broker), self.target_text


@dataclass(frozen=True, kw_only=True)
class AlterClientQuotas(Administration):
    """The administrator sets or removes quotas of a client-id, of a user, of both or of an ip."""

    kind = "alter-client-quotas"
    proof = f"{_COMMITTED}, and they were others before"
    quota: QuotaAlteration = field(metadata=key("", "quota"))

    @property
    def target_text(self) -> str:
        """The entity of the quotas."""
        return quota_entity_text(self.quota.entity)

    def request(self) -> AlterClientQuotasRequest:
        """Of one entity."""
        return AlterClientQuotasRequest((self.quota,))


@dataclass(frozen=True, kw_only=True)
class _OfAcls(Administration):
    """An operation on ACLs that differ in their operations alone."""

    absent_with: ClassVar[tuple[str, ...]] = ("raft", "zookeeper")
    acls: tuple[Acl, ...] = field(metadata=key("", "acl"))

    @property
    def target_text(self) -> str:
        """The ACLs."""
        return ", ".join(str(acl) for acl in self.acls)


class AddAcl(_OfAcls):
    """The administrator creates ACLs; each broker applies them when it has replayed the record."""

    kind = "add-acl"
    proof = f"{_COMMITTED}, and they were not there before"

    def request(self) -> CreateAclsRequest:
        """One entry for each operation."""
        return CreateAclsRequest(self.acls)


class RemoveAcl(_OfAcls):
    """The administrator deletes ACLs; until a broker has replayed the record it applies them."""

    kind = "remove-acl"
    proof = f"{_COMMITTED}, and they were there before"

    def request(self) -> DeleteAclsRequest:
        """One entry for each operation."""
        return DeleteAclsRequest(self.acls)


@dataclass(frozen=True, kw_only=True)
class _OfToken(Administration):
    """A request about a delegation token, by a user or over a connection with such a token."""

    absent_with: ClassVar[tuple[str, ...]] = ("raft", "zookeeper")
    token: NamedToken = field(metadata=key("token", "token", "one of cluster.security.tokens"))
    by_token: bool = field(
        default=False,
        metadata=key(
            "by.token", "flag", "true: who requests it is logged in with a token: Kafka refuses it"
        ),
    )

    @property
    def target_text(self) -> str:
        """The token."""
        return self.token.name


class CreateToken(_OfToken):
    """The owner of a delegation token that is there `later` has it made."""

    kind = "create-token"

    def request(self) -> CreateDelegationTokenRequest:
        """As in the scenario."""
        return self.token.creation(by_token=self.by_token)


@dataclass(frozen=True, kw_only=True)
class _OfLiveToken(_OfToken):
    """A change of a delegation token's end."""

    by: str | None = field(
        default=None, metadata=key("by", "user", "who requests it; default: its owner")
    )
    period_us: Micros | None = field(default=None, metadata=key("period", "duration", low=1))

    @property
    def requester(self) -> TokenRequester:
        """Principal whose request it is."""
        owner = self.token.owner
        return TokenRequester(owner if self.by is None else f"User:{self.by}", self.by_token)

    @property
    def period_ms(self) -> int:
        """The period, rounded up to whole milliseconds; less than 0 without one."""
        return NO_TIME if self.period_us is None else -(-self.period_us // MS)


class RenewToken(_OfLiveToken):
    """The owner or a renewer of a delegation token gives it a later end: `period` from then on."""

    kind = "renew-token"

    def request(self) -> RenewDelegationTokenRequest:
        """At most until its greatest lifetime ends."""
        return RenewDelegationTokenRequest(self.token.hmac, self.requester, self.period_ms)


class ExpireToken(_OfLiveToken):
    """The owner or a renewer ends a delegation token now or after `period`; sessions live on."""

    kind = "expire-token"

    def request(self) -> ExpireDelegationTokenRequest:
        """Without a period the token is removed."""
        return ExpireDelegationTokenRequest(self.token.hmac, self.requester, self.period_ms)


@dataclass(frozen=True, kw_only=True)
class UpgradeFeatures(Administration):
    """The administrator upgrades finalized features to the levels of a release."""

    kind = "upgrade-features"
    proof = f"{_COMMITTED}, and they were lower before"
    absent_with: ClassVar[tuple[str, ...]] = ("raft", "zookeeper")
    alternatives: ClassVar[tuple[str, ...]] = ("release", "metadata")
    release: Release | None = field(
        default=None, metadata=key("release", "release", "all features, as --release-version does")
    )
    metadata: Release | None = field(
        default=None,
        metadata=key("metadata", "metadata release", "metadata.version alone, as --metadata does"),
    )

    @property
    def to(self) -> Release:
        """The release, with the requested levels."""
        found = self.release or self.metadata
        assert found is not None, "the scenario has checked it"
        return found

    @property
    def target_text(self) -> str:
        """The features, and the release."""
        return f"{'metadata.version' if self.release is None else 'features'} of {self.to.name}"

    def request(self) -> UpdateFeaturesRequest:
        """All levels in one request."""
        return UpdateFeaturesRequest(self.to.levels)


ADMINISTRATION: Final[tuple[type[Fault], ...]] = (
    CreateTopic, DeleteTopic, CreatePartitions, AlterConfig, Reassign, CancelReassignment,
    ElectLeader, DeleteRecords, AlterReplicaLogDirs, AlterClientQuotas,
    AddAcl, RemoveAcl, CreateToken, RenewToken, ExpireToken, UpgradeFeatures,
)  # fmt: skip
