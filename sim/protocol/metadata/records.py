"""Records of the metadata log, as plain values; ``sim.records.metadata`` encodes them.

Left out: SCRAM credentials.

Source: ``metadata/src/main/resources/common/metadata`` (4.1).
"""

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from sim.ids import BrokerEpoch, LeaderEpoch, NodeId, ProducerId
from sim.protocol.acls import Acl
from sim.protocol.metadata.versions import SupportedFeatures

FENCE, UNFENCE = 1, -1
"""``BrokerRegistrationChangeRecord.fenced``: fence, unfence; 0 leaves it as it is."""

TOPIC_RESOURCE, BROKER_RESOURCE, GROUP_RESOURCE = 2, 4, 32
"""``ConfigRecord.resource_type``; the broker resource named "" is the cluster's default."""

MEMBERSHIP = "membership"
"""Setting of one broker with its membership in a cluster of Raft groups: joining, draining or
removed; a broker without it is a plain member. Redpanda keeps that in a log of its own."""

JOINING, DRAINING, REMOVED = "joining", "draining", "removed"
"""Values of :data:`MEMBERSHIP`."""

UNASSIGNED_DIRECTORY = "AAAAAAAAAAAAAAAAAAAAAA"
"""Directory of a replica that its broker has not assigned yet (KIP-858)."""

MIGRATING_DIRECTORY = "AAAAAAAAAAAAAAAAAAAAAg"
"""As unassigned, for brokers that registered before they had directory ids (KIP-858)."""

LOST_DIRECTORY = "AAAAAAAAAAAAAAAAAAAAAQ"
"""A failed directory of unknown id (KIP-858)."""

# -- records --------------------------------------------------------------------------------------
# Ids (topics, incarnations, directories) are 128-bit and kept in Kafka's printed form: URL-safe
# base64 without padding, 22 characters.


@dataclass(frozen=True, slots=True)
class RegisterBrokerRecord:
    """Registers a broker process, fenced. Replaces its former registration."""

    broker: NodeId
    incarnation: str
    broker_epoch: BrokerEpoch
    rack: str
    fenced: bool
    in_controlled_shutdown: bool = False
    directories: tuple[str, ...] = ()
    features: SupportedFeatures = ()
    """Features that it supports."""
    cordoned: tuple[str, ...] | None = None
    """Log directories that get no new replicas; ``None``: not known (KIP-1066)."""


@dataclass(frozen=True, slots=True)
class UnregisterBrokerRecord:
    """Removes a broker for good."""

    broker: NodeId
    broker_epoch: BrokerEpoch


@dataclass(frozen=True, slots=True)
class TopicRecord:
    """A topic; its partitions follow as :class:`PartitionRecord`."""

    name: str
    topic_id: str


@dataclass(frozen=True, slots=True)
class RemoveTopicRecord:
    """A topic with all its partitions is deleted."""

    topic_id: str


@dataclass(frozen=True, slots=True)
class PartitionRecord:
    """A new partition."""

    partition: int
    topic_id: str
    replicas: tuple[NodeId, ...]
    in_sync: tuple[NodeId, ...]
    leader: NodeId
    leader_epoch: LeaderEpoch = 0
    partition_epoch: int = 0
    directories: tuple[str, ...] = ()
    removing: tuple[NodeId, ...] = ()
    adding: tuple[NodeId, ...] = ()
    eligible: tuple[NodeId, ...] = ()
    last_known_eligible: tuple[NodeId, ...] = ()
    recovering: bool = False


@dataclass(frozen=True, slots=True)
class PartitionChangeRecord:
    """Change of a partition; ``None`` leaves a field as it is.

    The partition epoch grows by one with every such record, the leader epoch by one whenever
    ``leader`` is given, even if it names the same leader.
    """

    partition: int
    topic_id: str
    in_sync: tuple[NodeId, ...] | None = None
    leader: NodeId | None = None
    replicas: tuple[NodeId, ...] | None = None
    removing: tuple[NodeId, ...] | None = None
    adding: tuple[NodeId, ...] | None = None
    recovering: bool | None = None
    eligible: tuple[NodeId, ...] | None = None
    last_known_eligible: tuple[NodeId, ...] | None = None
    directories: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class ConfigRecord:
    """One setting of a topic, a group, a broker or the cluster; ``None`` deletes it."""

    resource_type: int
    resource_name: str
    name: str
    value: str | None


@dataclass(frozen=True, slots=True)
class ClientQuotaRecord:
    """One quota of an entity; a value of ``None`` removes it (KIP-546)."""

    entity: tuple[tuple[str, str | None], ...]
    """Type (``user``, ``client-id``, ``ip``) and name of each part; ``None``: the default."""
    key: str
    value: float | None


@dataclass(frozen=True, slots=True)
class AccessControlEntryRecord:
    """A new ACL (KIP-801)."""

    entry_id: str
    acl: Acl


@dataclass(frozen=True, slots=True)
class RemoveAccessControlEntryRecord:
    """An ACL is deleted."""

    entry_id: str


@dataclass(frozen=True, slots=True)
class DelegationTokenRecord:
    """A delegation token, new or renewed (KIP-48); timestamps in milliseconds."""

    owner: str
    """Principal that a client with the token is authenticated as."""
    requester: str
    """Principal that has created it."""
    renewers: tuple[str, ...]
    """Principals that may renew and expire it, beside the owner."""
    issue_ms: int
    max_ms: int
    """End that no renewal exceeds."""
    expiry_ms: int
    """End until which it has been renewed."""
    token_id: str


@dataclass(frozen=True, slots=True)
class RemoveDelegationTokenRecord:
    """A delegation token is expired by a request, or has expired and was found by the sweep."""

    token_id: str


@dataclass(frozen=True, slots=True)
class BrokerRegistrationChangeRecord:
    """A broker is fenced, unfenced, enters controlled shutdown, or has other directories online.

    ``cordoned`` directories get no new replicas; ``None``: as before (KIP-1066).
    """

    broker: NodeId
    broker_epoch: BrokerEpoch
    fenced: int = 0
    in_controlled_shutdown: int = 0
    directories: tuple[str, ...] = ()
    cordoned: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class ProducerIdsRecord:
    """A block of producer ids was given to a broker; the next block starts at the id."""

    broker: NodeId
    broker_epoch: BrokerEpoch
    next_producer_id: ProducerId


@dataclass(frozen=True, slots=True)
class FeatureLevelRecord:
    """The finalized level of a feature; 0 removes it."""

    name: str
    level: int


@dataclass(frozen=True, slots=True)
class ClearElrRecord:
    """Clears the eligible leader replicas of a topic, or with "" of every topic (KIP-966)."""

    topic: str


@dataclass(frozen=True, slots=True)
class ZkMigrationStateRecord:
    """State of a migration from ZooKeeper (KIP-866), as 3.4 to 3.9 write it."""

    state: int = 0
    """0, ``NONE``: of a cluster that began with KRaft."""


@dataclass(frozen=True, slots=True)
class NoOpRecord:
    """Nothing; advances the metadata offset."""


@dataclass(frozen=True, slots=True)
class BeginTransactionRecord:
    """The following records, up to :class:`EndTransactionRecord`, belong together (KIP-868)."""

    name: str


@dataclass(frozen=True, slots=True)
class EndTransactionRecord:
    """The end of a metadata transaction."""


@dataclass(frozen=True, slots=True)
class RegisterControllerRecord:
    """Registers a controller process (KIP-919)."""

    controller: NodeId
    incarnation: str
    features: SupportedFeatures = ()
    """Features that it supports."""


@dataclass(frozen=True, slots=True)
class LeaderChangeMessage:
    """Control record: the first of every quorum epoch."""

    leader: NodeId
    voters: tuple[NodeId, ...]
    granting_voters: tuple[NodeId, ...]


class Voter(NamedTuple):
    """A voter of a dynamic quorum: an id and its directory (KIP-853)."""

    node: NodeId
    directory: str
    """``directory.id`` of the log directory with its metadata log."""


@dataclass(frozen=True, slots=True)
class KRaftVersionRecord:
    """Control record: the level of ``kraft.version``; 1 where voters can change."""

    level: int


@dataclass(frozen=True, slots=True)
class VotersRecord:
    """Control record: voters from here on, by id; in force before it is committed."""

    voters: tuple[Voter, ...]


MetadataRecord: TypeAlias = (
    RegisterBrokerRecord
    | UnregisterBrokerRecord
    | TopicRecord
    | RemoveTopicRecord
    | PartitionRecord
    | PartitionChangeRecord
    | ConfigRecord
    | ClientQuotaRecord
    | AccessControlEntryRecord
    | RemoveAccessControlEntryRecord
    | DelegationTokenRecord
    | RemoveDelegationTokenRecord
    | BrokerRegistrationChangeRecord
    | ProducerIdsRecord
    | FeatureLevelRecord
    | ZkMigrationStateRecord
    | NoOpRecord
    | BeginTransactionRecord
    | ClearElrRecord
    | EndTransactionRecord
    | RegisterControllerRecord
    | LeaderChangeMessage
    | KRaftVersionRecord
    | VotersRecord
)
"""Union of the metadata log's records."""
