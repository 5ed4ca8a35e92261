"""Codec of metadata records.

A record has the version that the cluster's ``metadata.version`` requires, and a registration names
the features of its release. What the simulation does not model has one plausible value: a broker
has one plaintext listener.

Source: ``metadata/src/main/resources/common/metadata``; ``MetadataRecordSerde``.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, cast

from sim.ids import NodeId, server_name
from sim.protocol.metadata import records as mr
from sim.protocol.metadata.versions import SupportedFeatures
from sim.records import metadata_rights as rights
from sim.records.metadata_preview import encode_as_preview, is_preview
from sim.records.metadata_versions import FORM, RecordForm, fences_by_own_record, version_of
from sim.wire.fields import Value
from sim.wire.record_batch import NewRecord, RecordBatch, build_batch
from sim.wire.schemas import control_key, decode, decode_control, encode

Values: TypeAlias = Mapping[str, Value]

CACHE_MAX = 1_024
"""Batches whose records are kept decoded; followers read what the leader has just written."""

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
    records: Sequence[mr.MetadataRecord],
    base_offset: int,
    epoch: int,
    now_ms: int,
    form: RecordForm = FORM,
) -> RecordBatch:
    """One batch of records, or of control records."""
    control = type(records[0]) in _CONTROL
    new = [NewRecord(now_ms, record_key(record), encode_record(record, form)) for record in records]
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


def encode_record(record: mr.MetadataRecord, form: RecordForm = FORM) -> bytes:
    """The record's bytes: framed, or a control record's value."""
    level = form.metadata_version
    name, values_of = _ENCODERS[type(record)]
    values = values_of(record)
    if fences_by_own_record(record, level):
        is_fence = values["fenced"] == mr.FENCE
        name = "FenceBrokerRecord" if is_fence else "UnfenceBrokerRecord"
        values = {"id": values["brokerId"], "epoch": values["brokerEpoch"]}
    if is_preview(record, level):
        return encode_as_preview(name, values)
    return encode(name, version_of(record, level), values)


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


def _features(supported: SupportedFeatures) -> list[Value]:
    return [
        {"name": name, "minSupportedVersion": low, "maxSupportedVersion": high}
        for name, low, high in supported
    ]


def _listeners(node: NodeId) -> list[Value]:
    return [
        {
            "name": "PLAINTEXT",
            "host": server_name(node),
            "port": _PORT,
            "securityProtocol": 0,
        }
    ]


def _register_broker(record: mr.RegisterBrokerRecord) -> Values:
    return {
        "brokerId": record.broker,
        "isMigratingZkBroker": False,
        "incarnationId": record.incarnation,
        "brokerEpoch": record.broker_epoch,
        "endPoints": _listeners(record.broker),
        "features": _features(record.features),
        "rack": record.rack or None,
        "fenced": record.fenced,
        "inControlledShutdown": record.in_controlled_shutdown,
        "logDirs": record.directories,
        "cordonedLogDirs": record.cordoned,
    }


def _change_broker(record: mr.BrokerRegistrationChangeRecord) -> Values:
    return {
        "brokerId": record.broker,
        "brokerEpoch": record.broker_epoch,
        "fenced": record.fenced,
        "inControlledShutdown": record.in_controlled_shutdown,
        "logDirs": record.directories,
        "cordonedLogDirs": record.cordoned,
    }


def _partition(record: mr.PartitionRecord) -> Values:
    return {
        "partitionId": record.partition,
        "topicId": record.topic_id,
        "replicas": record.replicas,
        "isr": record.in_sync,
        "removingReplicas": record.removing,
        "addingReplicas": record.adding,
        "leader": record.leader,
        "leaderRecoveryState": int(record.recovering),
        "leaderEpoch": record.leader_epoch,
        "partitionEpoch": record.partition_epoch,
        "directories": record.directories,
        "eligibleLeaderReplicas": record.eligible or None,
        "lastKnownElr": record.last_known_eligible or None,
    }


def _change_partition(record: mr.PartitionChangeRecord) -> Values:
    return {
        "partitionId": record.partition,
        "topicId": record.topic_id,
        "isr": record.in_sync,
        "leader": _UNCHANGED_LEADER if record.leader is None else record.leader,
        "replicas": record.replicas,
        "removingReplicas": record.removing,
        "addingReplicas": record.adding,
        "leaderRecoveryState": (
            _UNCHANGED_STATE if record.recovering is None else int(record.recovering)
        ),
        "eligibleLeaderReplicas": record.eligible,
        "lastKnownElr": record.last_known_eligible,
        "directories": record.directories,
    }


def _register_controller(record: mr.RegisterControllerRecord) -> Values:
    return {
        "controllerId": record.controller,
        "incarnationId": record.incarnation,
        "zkMigrationReady": False,
        "endPoints": _listeners(record.controller),
        "features": _features(record.features),
    }


def _client_quota(record: mr.ClientQuotaRecord) -> Values:
    return {
        "entity": [{"entityType": kind, "entityName": name} for kind, name in record.entity],
        "key": record.key,
        "value": 0.0 if record.value is None else record.value,
        "remove": record.value is None,
    }


def _leader_change(record: mr.LeaderChangeMessage) -> Values:
    return {
        "leaderId": record.leader,
        "voters": [{"voterId": voter} for voter in record.voters],
        "grantingVoters": [{"voterId": voter} for voter in record.granting_voters],
    }


def _voters_record(record: mr.VotersRecord) -> Values:
    low, high = KRAFT_VERSIONS
    return {
        "voters": [
            {
                "voterId": voter.node,
                "voterDirectoryId": voter.directory,
                "endpoints": [
                    {
                        "name": _CONTROLLER_LISTENER,
                        "host": server_name(voter.node),
                        "port": _CONTROLLER_PORT,
                    }
                ],
                "kRaftVersionFeature": {"minSupportedVersion": low, "maxSupportedVersion": high},
            }
            for voter in record.voters
        ]
    }


# Each function takes the record type it is registered for; the dictionary's type is wider.
_ENCODERS: dict[type, tuple[str, Callable[..., Values]]] = {
    mr.RegisterBrokerRecord: ("RegisterBrokerRecord", _register_broker),
    mr.UnregisterBrokerRecord: (
        "UnregisterBrokerRecord",
        lambda r: {"brokerId": r.broker, "brokerEpoch": r.broker_epoch},
    ),
    mr.TopicRecord: ("TopicRecord", lambda r: {"name": r.name, "topicId": r.topic_id}),
    mr.RemoveTopicRecord: ("RemoveTopicRecord", lambda r: {"topicId": r.topic_id}),
    mr.PartitionRecord: ("PartitionRecord", _partition),
    mr.PartitionChangeRecord: (
        "PartitionChangeRecord",
        _change_partition,
    ),
    mr.ConfigRecord: (
        "ConfigRecord",
        lambda r: {
            "resourceType": r.resource_type,
            "resourceName": r.resource_name,
            "name": r.name,
            "value": r.value,
        },
    ),
    mr.ClientQuotaRecord: ("ClientQuotaRecord", _client_quota),
    **rights.ENCODERS,
    mr.BrokerRegistrationChangeRecord: (
        "BrokerRegistrationChangeRecord",
        _change_broker,
    ),
    mr.ProducerIdsRecord: (
        "ProducerIdsRecord",
        lambda r: {
            "brokerId": r.broker,
            "brokerEpoch": r.broker_epoch,
            "nextProducerId": r.next_producer_id,
        },
    ),
    mr.FeatureLevelRecord: (
        "FeatureLevelRecord",
        lambda r: {"name": r.name, "featureLevel": r.level},
    ),
    mr.ZkMigrationStateRecord: (
        "ZkMigrationStateRecord",
        lambda r: {"zkMigrationState": r.state},
    ),
    mr.NoOpRecord: ("NoOpRecord", lambda _: {}),
    mr.BeginTransactionRecord: (
        "BeginTransactionRecord",
        lambda r: {"name": r.name},
    ),
    mr.EndTransactionRecord: ("EndTransactionRecord", lambda _: {}),
    mr.ClearElrRecord: ("ClearElrRecord", lambda r: {"topicName": r.topic}),
    mr.RegisterControllerRecord: ("RegisterControllerRecord", _register_controller),
    mr.LeaderChangeMessage: ("LeaderChangeMessage", _leader_change),
    mr.KRaftVersionRecord: (
        "KRaftVersionRecord",
        lambda r: {"kRaftVersion": r.level},
    ),
    mr.VotersRecord: ("VotersRecord", _voters_record),
}


# -- from values ----------------------------------------------------------------------------------
# The schema engine has checked types and presence, so the casts below hold; a field that may be
# absent came with a later version.


def _int(values: Values, name: str) -> int:
    return cast("int", values[name])


def _str(values: Values, name: str) -> str:
    return cast("str | None", values[name]) or ""


def _nodes(values: Values, name: str) -> tuple[NodeId, ...]:
    return tuple(cast("Sequence[int] | None", values.get(name)) or ())


def _nodes_or_none(values: Values, name: str) -> tuple[NodeId, ...] | None:
    return None if values.get(name) is None else _nodes(values, name)


def _ids(values: Values, name: str) -> tuple[str, ...]:
    return tuple(cast("Sequence[str] | None", values.get(name)) or ())


def _voters(values: Values, name: str) -> tuple[NodeId, ...]:
    return tuple(_int(voter, "voterId") for voter in cast("Sequence[Values]", values[name]))


def read_voters(values: Values) -> tuple[mr.Voter, ...]:
    """The voters in the fields of a VotersRecord."""
    return tuple(
        mr.Voter(_int(voter, "voterId"), _str(voter, "voterDirectoryId"))
        for voter in cast("Sequence[Values]", values["voters"])
    )


def _read_partition(v: Values) -> mr.PartitionRecord:
    return mr.PartitionRecord(
        _int(v, "partitionId"),
        _str(v, "topicId"),
        _nodes(v, "replicas"),
        _nodes(v, "isr"),
        _int(v, "leader"),
        _int(v, "leaderEpoch"),
        _int(v, "partitionEpoch"),
        _ids(v, "directories"),
        _nodes(v, "removingReplicas"),
        _nodes(v, "addingReplicas"),
        _nodes(v, "eligibleLeaderReplicas"),
        _nodes(v, "lastKnownElr"),
        recovering=v.get("leaderRecoveryState") == 1,
    )


def _read_partition_change(v: Values) -> mr.PartitionChangeRecord:
    leader = _int(v, "leader")
    state = cast("int", v.get("leaderRecoveryState", _UNCHANGED_STATE))
    return mr.PartitionChangeRecord(
        _int(v, "partitionId"),
        _str(v, "topicId"),
        _nodes_or_none(v, "isr"),
        None if leader == _UNCHANGED_LEADER else leader,
        _nodes_or_none(v, "replicas"),
        _nodes_or_none(v, "removingReplicas"),
        _nodes_or_none(v, "addingReplicas"),
        None if state == _UNCHANGED_STATE else state == 1,
        _nodes_or_none(v, "eligibleLeaderReplicas"),
        _nodes_or_none(v, "lastKnownElr"),
        None if v.get("directories") is None else _ids(v, "directories"),
    )


def _read_register_broker(v: Values) -> mr.RegisterBrokerRecord:
    return mr.RegisterBrokerRecord(
        _int(v, "brokerId"),
        _str(v, "incarnationId"),
        _int(v, "brokerEpoch"),
        _str(v, "rack"),
        fenced=bool(v.get("fenced", True)),
        in_controlled_shutdown=bool(v.get("inControlledShutdown")),
        directories=_ids(v, "logDirs"),
        features=_read_features(v),
        cordoned=_read_cordoned(v),
    )


def _read_cordoned(v: Values) -> tuple[str, ...] | None:
    return None if v.get("cordonedLogDirs") is None else _ids(v, "cordonedLogDirs")


def _read_features(v: Values) -> SupportedFeatures:
    return tuple(
        (_str(each, "name"), _int(each, "minSupportedVersion"), _int(each, "maxSupportedVersion"))
        for each in cast("Sequence[Values]", v["features"])
    )


def _read_broker_change(v: Values) -> mr.BrokerRegistrationChangeRecord:
    return mr.BrokerRegistrationChangeRecord(
        _int(v, "brokerId"),
        _int(v, "brokerEpoch"),
        _int(v, "fenced"),
        cast("int", v.get("inControlledShutdown", 0)),
        _ids(v, "logDirs"),
        _read_cordoned(v),
    )


def _read_config(v: Values) -> mr.ConfigRecord:
    return mr.ConfigRecord(
        _int(v, "resourceType"),
        _str(v, "resourceName"),
        _str(v, "name"),
        cast("str | None", v["value"]),
    )


def _read_client_quota(v: Values) -> mr.ClientQuotaRecord:
    entity = cast("Sequence[Values]", v["entity"])
    return mr.ClientQuotaRecord(
        tuple((_str(e, "entityType"), cast("str | None", e["entityName"])) for e in entity),
        _str(v, "key"),
        None if v["remove"] else cast("float", v["value"]),
    )


_DECODERS: dict[str, Callable[[Values], mr.MetadataRecord]] = {
    "RegisterBrokerRecord": _read_register_broker,
    "UnregisterBrokerRecord": lambda v: mr.UnregisterBrokerRecord(
        _int(v, "brokerId"), _int(v, "brokerEpoch")
    ),
    "TopicRecord": lambda v: mr.TopicRecord(_str(v, "name"), _str(v, "topicId")),
    "RemoveTopicRecord": lambda v: mr.RemoveTopicRecord(_str(v, "topicId")),
    "PartitionRecord": _read_partition,
    "PartitionChangeRecord": _read_partition_change,
    "ConfigRecord": _read_config,
    "ClientQuotaRecord": _read_client_quota,
    "QuotaRecord": _read_client_quota,
    **rights.DECODERS,
    "BrokerRegistrationChangeRecord": _read_broker_change,
    "FenceBrokerRecord": lambda v: mr.BrokerRegistrationChangeRecord(
        _int(v, "id"), _int(v, "epoch"), fenced=mr.FENCE
    ),
    "UnfenceBrokerRecord": lambda v: mr.BrokerRegistrationChangeRecord(
        _int(v, "id"), _int(v, "epoch"), fenced=mr.UNFENCE
    ),
    "ProducerIdsRecord": lambda v: mr.ProducerIdsRecord(
        _int(v, "brokerId"), _int(v, "brokerEpoch"), _int(v, "nextProducerId")
    ),
    "FeatureLevelRecord": lambda v: mr.FeatureLevelRecord(_str(v, "name"), _int(v, "featureLevel")),
    "ZkMigrationStateRecord": lambda v: mr.ZkMigrationStateRecord(_int(v, "zkMigrationState")),
    "NoOpRecord": lambda _: mr.NoOpRecord(),
    "BeginTransactionRecord": lambda v: mr.BeginTransactionRecord(_str(v, "name")),
    "EndTransactionRecord": lambda _: mr.EndTransactionRecord(),
    "ClearElrRecord": lambda v: mr.ClearElrRecord(_str(v, "topicName")),
    "RegisterControllerRecord": lambda v: mr.RegisterControllerRecord(
        _int(v, "controllerId"), _str(v, "incarnationId"), _read_features(v)
    ),
    "LeaderChangeMessage": lambda v: mr.LeaderChangeMessage(
        _int(v, "leaderId"), _voters(v, "voters"), _voters(v, "grantingVoters")
    ),
    "KRaftVersionRecord": lambda v: mr.KRaftVersionRecord(_int(v, "kRaftVersion")),
    "VotersRecord": lambda v: mr.VotersRecord(read_voters(v)),
}
