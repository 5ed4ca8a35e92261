"""Metadata records as 2.8, KRaft's preview, wrote them: in a frame of their own.

Source: ``org.apache.kafka.raft.metadata.MetadataRecordSerde``, ``ReplicationControlManager`` and
the messages of 2.8.2; ``AbstractApiMessageSerde`` (3.0), which refuses that frame.
"""

from collections.abc import Mapping
from typing import Final

from sim.protocol.metadata import records as mr
from sim.protocol.metadata.versions import PREVIEW
from sim.records.metadata_versions import fences_by_own_record, version_of
from sim.wire.fields import Value
from sim.wire.schemas import encode_preview, schema_of

_ALIKE: Final = (
    mr.UnregisterBrokerRecord,
    mr.TopicRecord,
    mr.RemoveTopicRecord,
    mr.ClientQuotaRecord,
)
"""Records of which 2.8 can say all that later releases do."""

_NAMES: Final = {"ClientQuotaRecord": "QuotaRecord"}
"""Records that had another name in 2.8."""


def is_preview(record: mr.MetadataRecord, level: int) -> bool:
    """True if a record has the form of 2.8, which no later release reads.

    What 2.8 cannot say is in the form of the first release that can: producer ids, deleted
    settings, replicas that change, and what a scenario has of later behaviours.
    """
    if level != PREVIEW:
        return False
    match record:
        case mr.RegisterBrokerRecord():
            return record.fenced and version_of(record, level) == 0
        case mr.PartitionRecord():
            return not record.recovering and version_of(record, level) == 0
        case mr.PartitionChangeRecord():
            return record == mr.PartitionChangeRecord(
                record.partition, record.topic_id, record.in_sync, record.leader
            )
        case mr.ConfigRecord():
            return record.value is not None
        case mr.BrokerRegistrationChangeRecord():
            return fences_by_own_record(record, level)
        case _:
            return isinstance(record, _ALIKE)


def encode_as_preview(name: str, values: Mapping[str, Value]) -> bytes:
    """A record's bytes, of values as later releases have them.

    A new partition has null for no replicas that come or go.
    """
    name = _NAMES.get(name, name)
    said = {field.name: values[field.name] for field in schema_of(name, is_preview=True).fields}
    if name == "PartitionRecord":
        said |= {field: said[field] or None for field in ("removingReplicas", "addingReplicas")}
    return encode_preview(name, said)
