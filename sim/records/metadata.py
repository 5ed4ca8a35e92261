"""Codec of metadata records.

Records are written for metadata.version 25 (4.0-IV3), which every 4.x broker can read. What the
simulation does not model has one plausible value: a broker has one plaintext listener.

Source: ``metadata/src/main/resources/common/metadata``; ``MetadataRecordSerde``.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, cast

from sim.ids import NodeId, server_name
from sim.protocol.controller.types import METADATA_VERSION
from sim.protocol.metadata import records as mr
from sim.wire.fields import Value
from sim.wire.record_batch import NewRecord, RecordBatch, build_batch
from sim.wire.schemas import control_key, decode, decode_control, encode

Values: TypeAlias = Mapping[str, Value]

CACHE_MAX = 1_024
"""Batches whose records are kept decoded; followers read what the leader has just written."""

_FEATURES: list[Value] = [
    {"Name": name, "MinSupportedVersion": low, "MaxSupportedVersion": high}
    for name, low, high in (
        ("metadata.version", 7, METADATA_VERSION),
        ("group.version", 0, 1),
        ("transaction.version", 0, 2),
        ("eligible.leader.replicas.version", 0, 1),
    )
]
_PORT = 9092
_UNCHANGED_LEADER = -2
_UNCHANGED_STATE = -1


_CONTROL: dict[type, str] = {
    mr.LeaderChangeMessage: "LeaderChangeMessage",
    mr.KRaftVersionRecord: "KRaftVersionRecord",
    mr.VotersRecord: "VotersRecord",
}
"""Control records by their names."""

_CONTROLLER_LISTENER = "CONTROLLER"
_CONTROLLER_PORT = 9093
KRAFT_VERSIONS = (0, 1)
"""The levels of ``kraft.version`` that every process supports."""

_known: dict[bytes, tuple[mr.MetadataRecord, ...]] = {}
"""Records by the bytes of their batch, oldest first: a cache of :func:`records_of`."""


def build_metadata_batch(
    records: Sequence[mr.MetadataRecord], base_offset: int, epoch: int, now_ms: int
) -> RecordBatch:
    """One batch of records, or of control records."""
    control = type(records[0]) in _CONTROL
    new = [NewRecord(now_ms, record_key(record), encode_record(record)) for record in records]
    batch = build_batch(new, base_offset=base_offset, leader_epoch=epoch, control=control)
    _remember(batch, tuple(records))
    return batch


def records_of(batch: RecordBatch) -> tuple[mr.MetadataRecord, ...]:
    """The batch's records. :func:`build_metadata_batch` caches them, so few batches are decoded.

    Raises:
        MalformedBytes: If the bytes do not follow Kafka's schemas.
        KeyError: If it holds records that this project does not model.
    """
    known = _known.get(batch.data)
    if known is not None:
        return known
    records = tuple(
        _decode(decode_control(record.key or b"", record.value or b""))
        if batch.is_control
        else _decode(decode(record.value or b""))
        for record in batch.records()
    )
    _remember(batch, records)
    return records


def encode_record(record: mr.MetadataRecord) -> bytes:
    """The record's bytes: framed, or a control record's value."""
    name, version, values_of = _ENCODERS[type(record)]
    return encode(name, version, values_of(record))


def decode_record(data: bytes) -> mr.MetadataRecord:
    """A framed record.

    Raises:
        MalformedBytes: If the bytes do not follow Kafka's schemas.
        KeyError: If this project does not model the record.
    """
    return _decode(decode(data))


def _remember(batch: RecordBatch, records: tuple[mr.MetadataRecord, ...]) -> None:
    if len(_known) >= CACHE_MAX:
        del _known[next(iter(_known))]
    _known[batch.data] = records


def record_key(record: mr.MetadataRecord) -> bytes | None:
    """The key of a control record; other records have none."""
    name = _CONTROL.get(type(record))
    return None if name is None else control_key(name)


def _decode(decoded: tuple[str, int, dict[str, Value]]) -> mr.MetadataRecord:
    name, _, values = decoded
    return _DECODERS[name](values)


# -- to values ------------------------------------------------------------------------------------


def _listeners(node: NodeId) -> list[Value]:
    return [
        {
            "Name": "PLAINTEXT",
            "Host": server_name(node),
            "Port": _PORT,
            "SecurityProtocol": 0,
        }
    ]


def _register_broker(record: mr.RegisterBrokerRecord) -> Values:
    return {
        "BrokerId": record.broker,
        "IncarnationId": record.incarnation,
        "BrokerEpoch": record.broker_epoch,
        "EndPoints": _listeners(record.broker),
        "Features": _FEATURES,
        "Rack": record.rack or None,
        "Fenced": record.fenced,
        "InControlledShutdown": record.in_controlled_shutdown,
        "LogDirs": record.directories,
    }


def _change_broker(record: mr.BrokerRegistrationChangeRecord) -> Values:
    return {
        "BrokerId": record.broker,
        "BrokerEpoch": record.broker_epoch,
        "Fenced": record.fenced,
        "InControlledShutdown": record.in_controlled_shutdown,
        "LogDirs": record.directories,
    }


def _partition(record: mr.PartitionRecord) -> Values:
    return {
        "PartitionId": record.partition,
        "TopicId": record.topic_id,
        "Replicas": record.replicas,
        "Isr": record.in_sync,
        "RemovingReplicas": record.removing,
        "AddingReplicas": record.adding,
        "Leader": record.leader,
        "LeaderRecoveryState": int(record.recovering),
        "LeaderEpoch": record.leader_epoch,
        "PartitionEpoch": record.partition_epoch,
        "Directories": record.directories,
        "EligibleLeaderReplicas": record.eligible or None,
        "LastKnownElr": record.last_known_eligible or None,
    }


def _change_partition(record: mr.PartitionChangeRecord) -> Values:
    return {
        "PartitionId": record.partition,
        "TopicId": record.topic_id,
        "Isr": record.in_sync,
        "Leader": _UNCHANGED_LEADER if record.leader is None else record.leader,
        "Replicas": record.replicas,
        "RemovingReplicas": record.removing,
        "AddingReplicas": record.adding,
        "LeaderRecoveryState": (
            _UNCHANGED_STATE if record.recovering is None else int(record.recovering)
        ),
        "EligibleLeaderReplicas": record.eligible,
        "LastKnownElr": record.last_known_eligible,
        "Directories": record.directories,
    }


def _register_controller(record: mr.RegisterControllerRecord) -> Values:
    return {
        "ControllerId": record.controller,
        "IncarnationId": record.incarnation,
        "EndPoints": _listeners(record.controller),
        "Features": _FEATURES,
    }


def _client_quota(record: mr.ClientQuotaRecord) -> Values:
    return {
        "Entity": [{"EntityType": kind, "EntityName": name} for kind, name in record.entity],
        "Key": record.key,
        "Value": 0.0 if record.value is None else record.value,
        "Remove": record.value is None,
    }


def _leader_change(record: mr.LeaderChangeMessage) -> Values:
    return {
        "LeaderId": record.leader,
        "Voters": [{"VoterId": voter} for voter in record.voters],
        "GrantingVoters": [{"VoterId": voter} for voter in record.granting_voters],
    }


def _voters_record(record: mr.VotersRecord) -> Values:
    low, high = KRAFT_VERSIONS
    return {
        "Voters": [
            {
                "VoterId": voter.node,
                "VoterDirectoryId": voter.directory,
                "Endpoints": [
                    {
                        "Name": _CONTROLLER_LISTENER,
                        "Host": server_name(voter.node),
                        "Port": _CONTROLLER_PORT,
                    }
                ],
                "KRaftVersionFeature": {"MinSupportedVersion": low, "MaxSupportedVersion": high},
            }
            for voter in record.voters
        ]
    }


# Each function takes the record type it is registered for; the dictionary's type is wider.
_ENCODERS: dict[type, tuple[str, int, Callable[..., Values]]] = {
    mr.RegisterBrokerRecord: ("RegisterBrokerRecord", 3, _register_broker),
    mr.UnregisterBrokerRecord: (
        "UnregisterBrokerRecord",
        0,
        lambda r: {"BrokerId": r.broker, "BrokerEpoch": r.broker_epoch},
    ),
    mr.TopicRecord: ("TopicRecord", 0, lambda r: {"Name": r.name, "TopicId": r.topic_id}),
    mr.RemoveTopicRecord: ("RemoveTopicRecord", 0, lambda r: {"TopicId": r.topic_id}),
    mr.PartitionRecord: ("PartitionRecord", 2, _partition),
    mr.PartitionChangeRecord: ("PartitionChangeRecord", 2, _change_partition),
    mr.ConfigRecord: (
        "ConfigRecord",
        0,
        lambda r: {
            "ResourceType": r.resource_type,
            "ResourceName": r.resource_name,
            "Name": r.name,
            "Value": r.value,
        },
    ),
    mr.ClientQuotaRecord: ("ClientQuotaRecord", 0, _client_quota),
    mr.BrokerRegistrationChangeRecord: ("BrokerRegistrationChangeRecord", 2, _change_broker),
    mr.ProducerIdsRecord: (
        "ProducerIdsRecord",
        0,
        lambda r: {
            "BrokerId": r.broker,
            "BrokerEpoch": r.broker_epoch,
            "NextProducerId": r.next_producer_id,
        },
    ),
    mr.FeatureLevelRecord: (
        "FeatureLevelRecord",
        0,
        lambda r: {"Name": r.name, "FeatureLevel": r.level},
    ),
    mr.NoOpRecord: ("NoOpRecord", 0, lambda _: {}),
    mr.BeginTransactionRecord: ("BeginTransactionRecord", 0, lambda r: {"Name": r.name}),
    mr.EndTransactionRecord: ("EndTransactionRecord", 0, lambda _: {}),
    mr.ClearElrRecord: ("ClearElrRecord", 0, lambda r: {"TopicName": r.topic}),
    mr.RegisterControllerRecord: ("RegisterControllerRecord", 0, _register_controller),
    mr.LeaderChangeMessage: ("LeaderChangeMessage", 0, _leader_change),
    mr.KRaftVersionRecord: ("KRaftVersionRecord", 0, lambda r: {"KRaftVersion": r.level}),
    mr.VotersRecord: ("VotersRecord", 0, _voters_record),
}


# -- from values ----------------------------------------------------------------------------------
# The schema engine has checked types and presence, so the casts below hold.


def _int(values: Values, name: str) -> int:
    return cast("int", values[name])


def _str(values: Values, name: str) -> str:
    return cast("str | None", values[name]) or ""


def _nodes(values: Values, name: str) -> tuple[NodeId, ...]:
    return tuple(cast("Sequence[int] | None", values[name]) or ())


def _nodes_or_none(values: Values, name: str) -> tuple[NodeId, ...] | None:
    return None if values[name] is None else _nodes(values, name)


def _ids(values: Values, name: str) -> tuple[str, ...]:
    return tuple(cast("Sequence[str] | None", values[name]) or ())


def _voters(values: Values, name: str) -> tuple[NodeId, ...]:
    return tuple(_int(voter, "VoterId") for voter in cast("Sequence[Values]", values[name]))


def read_voters(values: Values) -> tuple[mr.Voter, ...]:
    """The voters in the fields of a VotersRecord."""
    return tuple(
        mr.Voter(_int(voter, "VoterId"), _str(voter, "VoterDirectoryId"))
        for voter in cast("Sequence[Values]", values["Voters"])
    )


def _read_partition(v: Values) -> mr.PartitionRecord:
    return mr.PartitionRecord(
        _int(v, "PartitionId"),
        _str(v, "TopicId"),
        _nodes(v, "Replicas"),
        _nodes(v, "Isr"),
        _int(v, "Leader"),
        _int(v, "LeaderEpoch"),
        _int(v, "PartitionEpoch"),
        _ids(v, "Directories"),
        _nodes(v, "RemovingReplicas"),
        _nodes(v, "AddingReplicas"),
        _nodes(v, "EligibleLeaderReplicas"),
        _nodes(v, "LastKnownElr"),
        recovering=_int(v, "LeaderRecoveryState") == 1,
    )


def _read_partition_change(v: Values) -> mr.PartitionChangeRecord:
    leader = _int(v, "Leader")
    state = _int(v, "LeaderRecoveryState")
    return mr.PartitionChangeRecord(
        _int(v, "PartitionId"),
        _str(v, "TopicId"),
        _nodes_or_none(v, "Isr"),
        None if leader == _UNCHANGED_LEADER else leader,
        _nodes_or_none(v, "Replicas"),
        _nodes_or_none(v, "RemovingReplicas"),
        _nodes_or_none(v, "AddingReplicas"),
        None if state == _UNCHANGED_STATE else state == 1,
        _nodes_or_none(v, "EligibleLeaderReplicas"),
        _nodes_or_none(v, "LastKnownElr"),
        None if v["Directories"] is None else _ids(v, "Directories"),
    )


def _read_register_broker(v: Values) -> mr.RegisterBrokerRecord:
    return mr.RegisterBrokerRecord(
        _int(v, "BrokerId"),
        _str(v, "IncarnationId"),
        _int(v, "BrokerEpoch"),
        _str(v, "Rack"),
        fenced=bool(v["Fenced"]),
        in_controlled_shutdown=bool(v["InControlledShutdown"]),
        directories=_ids(v, "LogDirs"),
    )


def _read_broker_change(v: Values) -> mr.BrokerRegistrationChangeRecord:
    return mr.BrokerRegistrationChangeRecord(
        _int(v, "BrokerId"),
        _int(v, "BrokerEpoch"),
        _int(v, "Fenced"),
        _int(v, "InControlledShutdown"),
        _ids(v, "LogDirs"),
    )


def _read_config(v: Values) -> mr.ConfigRecord:
    return mr.ConfigRecord(
        _int(v, "ResourceType"),
        _str(v, "ResourceName"),
        _str(v, "Name"),
        cast("str | None", v["Value"]),
    )


def _read_client_quota(v: Values) -> mr.ClientQuotaRecord:
    entity = cast("Sequence[Values]", v["Entity"])
    return mr.ClientQuotaRecord(
        tuple((_str(e, "EntityType"), cast("str | None", e["EntityName"])) for e in entity),
        _str(v, "Key"),
        None if v["Remove"] else cast("float", v["Value"]),
    )


_DECODERS: dict[str, Callable[[Values], mr.MetadataRecord]] = {
    "RegisterBrokerRecord": _read_register_broker,
    "UnregisterBrokerRecord": lambda v: mr.UnregisterBrokerRecord(
        _int(v, "BrokerId"), _int(v, "BrokerEpoch")
    ),
    "TopicRecord": lambda v: mr.TopicRecord(_str(v, "Name"), _str(v, "TopicId")),
    "RemoveTopicRecord": lambda v: mr.RemoveTopicRecord(_str(v, "TopicId")),
    "PartitionRecord": _read_partition,
    "PartitionChangeRecord": _read_partition_change,
    "ConfigRecord": _read_config,
    "ClientQuotaRecord": _read_client_quota,
    "BrokerRegistrationChangeRecord": _read_broker_change,
    "ProducerIdsRecord": lambda v: mr.ProducerIdsRecord(
        _int(v, "BrokerId"), _int(v, "BrokerEpoch"), _int(v, "NextProducerId")
    ),
    "FeatureLevelRecord": lambda v: mr.FeatureLevelRecord(_str(v, "Name"), _int(v, "FeatureLevel")),
    "NoOpRecord": lambda _: mr.NoOpRecord(),
    "BeginTransactionRecord": lambda v: mr.BeginTransactionRecord(_str(v, "Name")),
    "EndTransactionRecord": lambda _: mr.EndTransactionRecord(),
    "ClearElrRecord": lambda v: mr.ClearElrRecord(_str(v, "TopicName")),
    "RegisterControllerRecord": lambda v: mr.RegisterControllerRecord(
        _int(v, "ControllerId"), _str(v, "IncarnationId")
    ),
    "LeaderChangeMessage": lambda v: mr.LeaderChangeMessage(
        _int(v, "LeaderId"), _voters(v, "Voters"), _voters(v, "GrantingVoters")
    ),
    "KRaftVersionRecord": lambda v: mr.KRaftVersionRecord(_int(v, "KRaftVersion")),
    "VotersRecord": lambda v: mr.VotersRecord(read_voters(v)),
}
