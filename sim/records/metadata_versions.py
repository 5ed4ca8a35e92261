"""Versions of metadata records by the finalized ``metadata.version``.

Source: ``MetadataVersion.{registerBroker,partition,partitionChange}RecordVersion``,
``isBrokerRegistrationChangeRecordSupported``; ``ReplicationControlManager``;
``QuorumFeatures.defaultSupportedFeatureMap``; the messages of 2.8 to 3.2.
"""

from collections.abc import Sequence
from typing import NamedTuple

from sim.protocol.metadata import records as mr
from sim.protocol.metadata.versions import (
    CORDONED_DIRECTORIES,
    DIRECTORY_ASSIGNMENT,
    ELIGIBLE_REPLICAS,
    FEATURE,
    METADATA_VERSION,
    MIGRATION,
    REGISTRATION_CHANGE,
    SHUTDOWN_STATE,
)


class RecordForm(NamedTuple):
    """Form in which a server writes records of the metadata."""

    metadata_version: int = METADATA_VERSION
    """The finalized level, or what a release without any implies."""

    def at(self, records: Sequence[mr.MetadataRecord]) -> "RecordForm":
        """The form once the records are in force: the last level that they finalize."""
        for record in reversed(records):
            if isinstance(record, mr.FeatureLevelRecord) and record.name == FEATURE:
                return RecordForm(record.level)
        return self


FORM = RecordForm()
"""That of a 4.0 cluster."""


def version_of(record: mr.MetadataRecord, level: int) -> int:
    """Version of a record at a level of ``metadata.version``.

    One with a field that the level lacks has the first version with that field: a scenario that
    mixes behaviours of several releases has such records.
    """
    match record:
        case mr.RegisterBrokerRecord():
            return _of_registration(record, level)
        case mr.PartitionRecord() | mr.PartitionChangeRecord():
            return _of_partition(record, level)
        case mr.BrokerRegistrationChangeRecord():
            # The controller takes the lowest that has what changes.
            if record.cordoned is not None:
                return 3
            return 2 if record.directories else int(record.in_controlled_shutdown != 0)
        case _:
            return 0


def _of_registration(record: mr.RegisterBrokerRecord, level: int) -> int:
    if level >= CORDONED_DIRECTORIES:
        return 4
    if record.directories or level >= DIRECTORY_ASSIGNMENT:
        return 3
    return (
        2 if level >= MIGRATION else int(level >= SHUTDOWN_STATE or record.in_controlled_shutdown)
    )


def fences_by_own_record(record: mr.MetadataRecord, level: int) -> bool:
    """True if a registration is fenced or unfenced by FenceBrokerRecord or UnfenceBrokerRecord.

    So are all below 3.3-IV2, unless something else changes with it.
    """
    return (
        level < REGISTRATION_CHANGE
        and isinstance(record, mr.BrokerRegistrationChangeRecord)
        and record
        == mr.BrokerRegistrationChangeRecord(
            record.broker, record.broker_epoch, fenced=record.fenced or mr.FENCE
        )
    )


def _of_partition(record: mr.PartitionRecord | mr.PartitionChangeRecord, level: int) -> int:
    # A new partition has no eligible replicas; a change to none is a change.
    absent = () if isinstance(record, mr.PartitionRecord) else None
    eligible = (record.eligible, record.last_known_eligible)
    if level >= ELIGIBLE_REPLICAS or any(each != absent for each in eligible):
        return 2
    return int(level >= DIRECTORY_ASSIGNMENT or record.directories != absent)
