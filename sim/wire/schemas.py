"""Schemas of what Kafka writes into its internal logs, and the calls that use them.

Records of the metadata log (framed), control records of a quorum, keys and values of
``__consumer_offsets``, ``__transaction_state`` and ``__share_group_state``, and the consumer
protocol's blobs inside. The long tables of groups are in :mod:`sim.wire.schemas_groups`.

Source: ``common/metadata`` and ``common/message`` under the resources of Kafka 4.3's modules
``metadata``, ``clients``, ``group-coordinator``, ``share-coordinator`` and
``transaction-coordinator``.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from sim.errors import SimulationError
from sim.wire import schemas_groups
from sim.wire.fields import Field, Reader, Schema, Value, Writer, parse_fields
from sim.wire.primitives import MalformedBytes, decode_uvarint, encode_uvarint

Kind: TypeAlias = Literal[
    "metadata", "control", "key", "transaction key", "share state key", "value"
]
"""Wrapping of a message: a frame, or two bytes of version or type in front."""

_FRAME_VERSION = 1
_NEVER_FLEXIBLE = 1 << 15
_CONTROL_KEY = struct.Struct(">hh")
_PREFIX = struct.Struct(">h")


class Decoded(NamedTuple):
    """A decoded message. ``values`` has every field of the version, under Kafka's names."""

    name: str
    version: int
    values: dict[str, Value]


@dataclass(frozen=True, slots=True)
class Message:
    """One message known to this module."""

    schema: Schema
    kind: Kind
    number: int
    """Api key of a metadata record, type of a control record or of a coordinator's key."""
    versions: range
    flexible_since: int


_STRUCTURES: dict[str, tuple[Field, ...]] = {
    name: parse_fields(text)
    for name, text in {
        "EndPoint": "Name:string Host:string Port:uint16 SecurityProtocol:int16",
        "Feature": "Name:string MinSupportedVersion:int16 MaxSupportedVersion:int16",
        "Voter": "VoterId:int32 VoterDirectoryId:uuid@1",
        "VoterEndpoint": "Name:string Host:string Port:uint16",
        "VersionRange": "MinSupportedVersion:int16 MaxSupportedVersion:int16",
        "VoterRecord": (
            "VoterId:int32 VoterDirectoryId:uuid Endpoints:[]VoterEndpoint "
            "KRaftVersionFeature:VersionRange"
        ),
        "Member": (
            "memberId:string groupInstanceId:string?3@3=null clientId:string clientHost:string "
            "rebalanceTimeout:int32@1 sessionTimeout:int32 subscription:bytes assignment:bytes"
        ),
        "TopicPartitions": "Topic:string Partitions:[]int32",
        "PartitionsSchema": "topic:string partitionIds:[]int32",
        "QuotaEntity": "EntityType:string EntityName:string?",
        **schemas_groups.STRUCTURES,
    }.items()
}

_MESSAGES: dict[str, Message] = {}


def _define(
    kind: Kind, name: str, number: int, last: int, fields: str = "", *, flexible: int = 0
) -> None:
    schema = Schema(name, parse_fields(fields), _STRUCTURES)
    _MESSAGES[name] = Message(schema, kind, number, range(last + 1), flexible)


_define(
    "metadata", "RegisterBrokerRecord", 0, 4,
    "BrokerId:int32 IsMigratingZkBroker:bool@2=false IncarnationId:uuid BrokerEpoch:int64 "
    "EndPoints:[]EndPoint Features:[]Feature Rack:string? Fenced:bool=true "
    "InControlledShutdown:bool@1=false LogDirs:[]uuid@3#0 CordonedLogDirs:[]uuid?@4#1",
)  # fmt: skip
_define("metadata", "UnregisterBrokerRecord", 1, 0, "BrokerId:int32 BrokerEpoch:int64")
_define("metadata", "TopicRecord", 2, 0, "Name:string TopicId:uuid")
_define(
    "metadata", "PartitionRecord", 3, 2,
    "PartitionId:int32 TopicId:uuid Replicas:[]int32 Isr:[]int32 RemovingReplicas:[]int32 "
    "AddingReplicas:[]int32 Leader:int32 LeaderRecoveryState:int8#0=0 LeaderEpoch:int32 "
    "PartitionEpoch:int32 Directories:[]uuid@1 EligibleLeaderReplicas:[]int32?@2#1 "
    "LastKnownElr:[]int32?@2#2",
)  # fmt: skip
_define(
    "metadata", "ConfigRecord", 4, 0,
    "ResourceType:int8 ResourceName:string Name:string Value:string?",
)  # fmt: skip
_define(
    "metadata", "PartitionChangeRecord", 5, 2,
    "PartitionId:int32 TopicId:uuid Isr:[]int32?#0 Leader:int32#1=-2 Replicas:[]int32?#2 "
    "RemovingReplicas:[]int32?#3 AddingReplicas:[]int32?#4 LeaderRecoveryState:int8#5=-1 "
    "Directories:[]uuid?@1#8 EligibleLeaderReplicas:[]int32?@2#6 LastKnownElr:[]int32?@2#7",
)  # fmt: skip
_define(
    "metadata", "DelegationTokenRecord", 10, 0,
    "Owner:string Requester:string Renewers:[]string IssueTimestamp:int64 MaxTimestamp:int64 "
    "ExpirationTimestamp:int64 TokenId:string",
)  # fmt: skip
_define("metadata", "RemoveDelegationTokenRecord", 26, 0, "TokenId:string")
_define(
    "metadata", "UserScramCredentialRecord", 11, 0,
    "Name:string Mechanism:int8 Salt:bytes StoredKey:bytes ServerKey:bytes Iterations:int32",
)  # fmt: skip
_define("metadata", "RemoveUserScramCredentialRecord", 22, 0, "Name:string Mechanism:int8")
_define(
    "metadata", "ClientQuotaRecord", 14, 0,
    "Entity:[]QuotaEntity Key:string Value:float64 Remove:bool",
)  # fmt: skip
_define(
    "metadata", "AccessControlEntryRecord", 18, 0,
    "Id:uuid ResourceType:int8 ResourceName:string PatternType:int8 Principal:string Host:string "
    "Operation:int8 PermissionType:int8",
)  # fmt: skip
_define("metadata", "RemoveAccessControlEntryRecord", 19, 0, "Id:uuid")
_define("metadata", "FenceBrokerRecord", 7, 0, "Id:int32 Epoch:int64")
_define("metadata", "UnfenceBrokerRecord", 8, 0, "Id:int32 Epoch:int64")
_define("metadata", "RemoveTopicRecord", 9, 0, "TopicId:uuid")
_define("metadata", "FeatureLevelRecord", 12, 0, "Name:string FeatureLevel:int16")
_define(
    "metadata", "ProducerIdsRecord", 15, 0, "BrokerId:int32 BrokerEpoch:int64 NextProducerId:int64"
)
_define(
    "metadata", "BrokerRegistrationChangeRecord", 17, 3,
    "BrokerId:int32 BrokerEpoch:int64 Fenced:int8#0=0 InControlledShutdown:int8@1#1=0 "
    "LogDirs:[]uuid@2#2 CordonedLogDirs:[]uuid?@3#3",
)  # fmt: skip
_define("metadata", "NoOpRecord", 20, 0)
_define("metadata", "ZkMigrationStateRecord", 21, 0, "ZkMigrationState:int8")
_define("metadata", "BeginTransactionRecord", 23, 0, "Name:string?#0")
_define("metadata", "EndTransactionRecord", 24, 0)
_define("metadata", "AbortTransactionRecord", 25, 0, "Reason:string?#0")
_define(
    "metadata", "RegisterControllerRecord", 27, 0,
    "ControllerId:int32 IncarnationId:uuid ZkMigrationReady:bool=false EndPoints:[]EndPoint "
    "Features:[]Feature",
)  # fmt: skip
_define("metadata", "ClearElrRecord", 28, 0, "TopicName:string")

_define(
    "control", "LeaderChangeMessage", 2, 1,
    "LeaderId:int32 Voters:[]Voter GrantingVoters:[]Voter",
)  # fmt: skip
_define("control", "SnapshotHeaderRecord", 3, 0, "LastContainedLogTimestamp:int64")
_define("control", "SnapshotFooterRecord", 4, 0)
_define("control", "KRaftVersionRecord", 5, 0, "KRaftVersion:int16")
_define("control", "VotersRecord", 6, 0, "Voters:[]VoterRecord")
_define("control", "EndTxnMarker", 0, 0, "CoordinatorEpoch:int32", flexible=_NEVER_FLEXIBLE)

_define(
    "key", "LegacyOffsetCommitKey", 0, 0, "group:string topic:string partition:int32",
    flexible=_NEVER_FLEXIBLE,
)  # fmt: skip
_define(
    "value", "LegacyOffsetCommitValue", 0, 0,
    "offset:int64 metadata:string commitTimestamp:int64", flexible=_NEVER_FLEXIBLE,
)  # fmt: skip
_define(
    "key", "OffsetCommitKey", 1, 0, "group:string topic:string partition:int32",
    flexible=_NEVER_FLEXIBLE,
)  # fmt: skip
_define("key", "GroupMetadataKey", 2, 0, "group:string", flexible=_NEVER_FLEXIBLE)
_define(
    "value", "OffsetCommitValue", 1, 4,
    "offset:int64 leaderEpoch:int32@3=-1 metadata:string commitTimestamp:int64 "
    "expireTimestamp:int64@1-1=-1 topicId:uuid@4#0",
    flexible=4,
)  # fmt: skip
_define(
    "value", "GroupMetadataValue", 2, 4,
    "protocolType:string generation:int32 protocol:string? leader:string? "
    "currentStateTimestamp:int64@2=-1 members:[]Member",
    flexible=4,
)  # fmt: skip
_define(
    "value", "ConsumerProtocolSubscription", -1, 3,
    "Topics:[]string UserData:bytes?=null OwnedPartitions:[]TopicPartitions@1=empty "
    "GenerationId:int32@2=-1 RackId:string?@3=null",
    flexible=_NEVER_FLEXIBLE,
)  # fmt: skip
_define(
    "value", "ConsumerProtocolAssignment", -1, 3,
    "AssignedPartitions:[]TopicPartitions UserData:bytes?=null",
    flexible=_NEVER_FLEXIBLE,
)  # fmt: skip

_define(
    "transaction key", "TransactionLogKey", 0, 0, "transactionalId:string", flexible=_NEVER_FLEXIBLE
)
_define(
    "value", "TransactionLogValue", 0, 1,
    "producerId:int64 previousProducerId:int64@1#0=-1 nextProducerId:int64@1#1=-1 "
    "producerEpoch:int16 nextProducerEpoch:int16@1#3=-1 transactionTimeoutMs:int32 "
    "transactionStatus:int8 transactionPartitions:[]PartitionsSchema? "
    "transactionLastUpdateTimestampMs:int64 transactionStartTimestampMs:int64 "
    "clientTransactionVersion:int16@1#2=0",
    flexible=1,
)  # fmt: skip

for _name, _number, _key, _value in schemas_groups.GROUP_MESSAGES:
    _define("key", f"{_name}Key", _number, 0, _key, flexible=_NEVER_FLEXIBLE)
    _define("value", f"{_name}Value", _number, 0, _value)
for _name, _number, _key, _value in schemas_groups.SHARE_STATE_MESSAGES:
    _define("share state key", f"{_name}Key", _number, 0, _key, flexible=_NEVER_FLEXIBLE)
    _define("value", f"{_name}Value", _number, 0, _value)

_METADATA_NAMES = {m.number: name for name, m in _MESSAGES.items() if m.kind == "metadata"}
_CONTROL_NAMES = {m.number: name for name, m in _MESSAGES.items() if m.kind == "control"}
_CONTROL_NAMES[1] = "EndTxnMarker"
_KEY_KINDS = ("key", "transaction key", "share state key")


def _pairs(kind: Kind) -> dict[int, tuple[str, str]]:
    """Names of key and value by the key's type."""
    return {
        m.number: (name, name.removesuffix("Key") + "Value")
        for name, m in _MESSAGES.items()
        if m.kind == kind
    }


_GROUP_NAMES = _pairs("key")
_SHARE_STATE_NAMES = _pairs("share state key")


def encode(name: str, version: int, values: Mapping[str, Value]) -> bytes:
    """A message with its frame or prefix, as a record holds it.

    Args:
        name: Kafka's name of the message, as ``PartitionRecord`` or ``OffsetCommitKey``.
        version: Of the message; 0 for keys.
        values: Fields by Kafka's names; uuids are text of 22 characters. Fields with a default may
            be absent.

    Raises:
        SimulationError: If the message, a version or a field is unknown, missing or out of range.
    """
    message = _MESSAGES.get(name)
    if message is None:
        raise SimulationError(f"unknown message {name}; known are {', '.join(sorted(_MESSAGES))}")
    if version not in message.versions:
        raise SimulationError(f"{name} has versions 0 to {message.versions[-1]}, not {version}")
    writer = Writer(message.schema, version, flexible=version >= message.flexible_since)
    body = writer.structure(message.schema.fields, values)
    match message.kind:
        case "metadata":
            frame = (_FRAME_VERSION, message.number, version)
            return b"".join(map(encode_uvarint, frame)) + body
        case "key" | "transaction key" | "share state key":
            return _PREFIX.pack(message.number) + body
        case "control" | "value":
            return _PREFIX.pack(version) + body


def decode(data: bytes) -> Decoded:
    """A record of the metadata log.

    Raises:
        MalformedBytes: If the frame, the record's type or its bytes are not known.
    """
    frame, position = decode_uvarint(data, 0)
    number, position = decode_uvarint(data, position)
    version, position = decode_uvarint(data, position)
    name = _METADATA_NAMES.get(number)
    if frame != _FRAME_VERSION or name is None:
        raise MalformedBytes(f"frame version {frame} with record type {number} is not known")
    return _decode_body(name, version, data, position)


def decode_as(name: str, data: bytes) -> Decoded:
    """A control value, a coordinator's key or value, or a blob, whose name is known.

    Raises:
        MalformedBytes: If the bytes do not follow the schema.
    """
    message = _MESSAGES[name]
    if message.kind == "metadata":
        return decode(data)
    if len(data) < _PREFIX.size:
        raise MalformedBytes(f"{name} in {len(data)} bytes")
    (prefix,) = _PREFIX.unpack_from(data)
    if message.kind in _KEY_KINDS:
        if prefix != message.number:
            raise MalformedBytes(f"a key of type {prefix} is no {name}")
        prefix = 0
    return _decode_body(name, prefix, data, _PREFIX.size)


def control_key(name: str, *, commit: bool = False) -> bytes:
    """The key of a control record; an ``EndTxnMarker`` aborts unless it commits."""
    return _CONTROL_KEY.pack(0, _MESSAGES[name].number + (1 if commit else 0))


def decode_control(key: bytes, value: bytes) -> Decoded:
    """A control record.

    Raises:
        MalformedBytes: If its type is unknown or its bytes do not follow the schema.
    """
    if len(key) < _CONTROL_KEY.size:
        raise MalformedBytes(f"a control record's key of {len(key)} bytes")
    number: int = _CONTROL_KEY.unpack_from(key)[1]
    name = _CONTROL_NAMES.get(number)
    if name is None:
        raise MalformedBytes(f"control record type {number} is not known")
    return decode_as(name, value)


def decode_coordinator(key: bytes, value: bytes | None) -> tuple[Decoded, Decoded | None]:
    """A record of ``__consumer_offsets``: its key, and its value unless it is a deletion.

    Raises:
        MalformedBytes: If the key's type is unknown or bytes do not follow a schema.
    """
    return _decode_pair(_GROUP_NAMES, key, value)


def decode_share_state(key: bytes, value: bytes | None) -> tuple[Decoded, Decoded | None]:
    """A record of ``__share_group_state``: its key, and its value unless it is a deletion.

    Raises:
        MalformedBytes: If the key's type is unknown or bytes do not follow a schema.
    """
    return _decode_pair(_SHARE_STATE_NAMES, key, value)


def decode_transaction(key: bytes, value: bytes | None) -> tuple[Decoded, Decoded | None]:
    """A record of ``__transaction_state``: its key, and its value unless it is a deletion.

    Raises:
        MalformedBytes: If the key's type is unknown or bytes do not follow a schema.
    """
    return (
        decode_as("TransactionLogKey", key),
        None if value is None else decode_as("TransactionLogValue", value),
    )


def _decode_pair(
    known: Mapping[int, tuple[str, str]], key: bytes, value: bytes | None
) -> tuple[Decoded, Decoded | None]:
    if len(key) < _PREFIX.size:
        raise MalformedBytes(f"a coordinator's key of {len(key)} bytes")
    number: int = _PREFIX.unpack_from(key)[0]
    names = known.get(number)
    if names is None:
        raise MalformedBytes(f"coordinator key type {number} is not known")
    return decode_as(names[0], key), None if value is None else decode_as(names[1], value)


def number_of(name: str) -> int:
    """The number that names the message: api key, control type or key type."""
    return _MESSAGES[name].number


def schema_of(name: str) -> Schema:
    """The fields of a message in wire order and its structures, for those who print it."""
    return _MESSAGES[name].schema


def messages() -> dict[str, Message]:
    """Every message known here, by Kafka's name."""
    return dict(_MESSAGES)


def _decode_body(name: str, version: int, data: bytes, position: int) -> Decoded:
    message = _MESSAGES[name]
    if version not in message.versions:
        raise MalformedBytes(f"version {version} of {name} is not known")
    flexible = version >= message.flexible_since
    reader = Reader(message.schema, version, data, position, flexible=flexible)
    try:
        values = reader.structure(message.schema.fields)
    except UnicodeDecodeError as error:
        raise MalformedBytes(f"{name}: {error}") from error
    if reader.position != len(data):
        raise MalformedBytes(f"{len(data) - reader.position} bytes follow the {name}")
    return Decoded(name, version, values)
