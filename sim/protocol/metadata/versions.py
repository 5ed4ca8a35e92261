"""Levels of ``metadata.version`` from which on something holds.

Before 3.3 a cluster finalizes none (KIP-778), and its controller decides as its release does:
that is a level that the metadata log never has, below :data:`FIRST_FINALIZED`.

Source: ``org.apache.kafka.server.common.MetadataVersion`` (3.3 to 4.3).
"""

from collections.abc import Mapping
from typing import Final, TypeAlias

METADATA_VERSION: Final = 25
"""4.0-IV3: every 4.x broker can start on it, and it has eligible leader replicas."""

FEATURE: Final = "metadata.version"
"""The feature's name."""

PREVIEW: Final = 0
"""2.8, whose records have a form of their own; Kafka has no such level."""

LEADER_RECOVERY: Final = 3
"""3.2-IV0: an unclean election is noted with its partition (KIP-704)."""

FIRST_FINALIZED: Final = 4
"""3.3-IV0: the lowest level with which a cluster can begin (``MINIMUM_BOOTSTRAP_VERSION``)."""

REGISTRATION_CHANGE: Final = 6
"""3.3-IV2: a registration that changes is a record; before, two are that fence and unfence."""

SHUTDOWN_STATE: Final = 7
"""3.3-IV3: a registration says whether its broker shuts down (KIP-841)."""

MIGRATION: Final = 8
"""3.4-IV0: a registration says whether a broker migrates from ZooKeeper (KIP-866)."""

LAST_OF_MIGRATIONS: Final = 21
"""3.9-IV0: the last level of a release that can migrate from ZooKeeper."""

LAST_WITH_EPOCH_OF_SHRINK: Final = 11
"""3.5-IV2: the last in which an ISR that shrinks begins a leader epoch (KAFKA-15021)."""

CONTROLLER_REGISTRATION: Final = 15
"""3.7-IV0: controllers register, and say which features they support (KIP-919)."""

TRANSACTIONS: Final = 13
"""3.6-IV1: records that belong together may be in several batches (KIP-868)."""

DELEGATION_TOKENS: Final = 14
"""3.6-IV2: the metadata has delegation tokens (KAFKA-15219)."""

DIRECTORY_ASSIGNMENT: Final = 17
"""3.7-IV2: the metadata knows the log directories of brokers and replicas (KIP-858)."""

ELIGIBLE_REPLICAS: Final = 23
"""4.0-IV1: eligible leader replicas (KIP-966)."""

CORDONED_DIRECTORIES: Final = 30
"""4.3-IV0: a registration names cordoned log directories (KIP-1066)."""

CHANGED: Final = (5, 6, 7, 8, 11, 13, 14, 15, 17, 23, 30)
"""Levels that changed the metadata's form, to the last of 4.3: none may be left downwards.

Source: ``MetadataVersion.didMetadataChange`` (3.9, 4.3).
"""

ELR_FEATURE: Final = "eligible.leader.replicas.version"
"""Name of the feature of eligible leader replicas."""

SupportedFeatures: TypeAlias = tuple[tuple[str, int, int], ...]
"""Features that a server supports: name, lowest and highest level."""

SUPPORTED: Final[SupportedFeatures] = (
    (FEATURE, 7, METADATA_VERSION),
    ("group.version", 0, 1),
    ("transaction.version", 0, 2),
    (ELR_FEATURE, 0, 1),
)
"""Those of a 4.0 server, without the quorum's."""


def has_migration_state(levels: Mapping[str, int], supported: SupportedFeatures) -> bool:
    """True if a server writes the state of a migration: of 3.4 to 3.9, from 3.4-IV0 on.

    Source: ``MetadataVersion.isMigrationSupported``, ``ActivationRecordsGenerator``,
    ``FeaturesImage.write`` (3.9), and their lack of it since 4.0.
    """
    highest = max((high for name, _, high in supported if name == FEATURE), default=0)
    return MIGRATION <= highest <= LAST_OF_MIGRATIONS and is_at_least(levels, MIGRATION)


def implied(levels: Mapping[str, int]) -> dict[str, int]:
    """The level of a cluster that finalizes none, as what its release does; else nothing."""
    level = levels.get(FEATURE, METADATA_VERSION)
    return {FEATURE: level} if level < FIRST_FINALIZED else {}


def finalized(levels: Mapping[str, int]) -> dict[str, int]:
    """Levels that are in the metadata log: all but what a release implies."""
    kept = implied(levels)
    return {name: level for name, level in levels.items() if name not in kept}


def keeps_metadata(level: int, lower: int) -> bool:
    """True if Kafka permits a downgrade: no level above the lower one changed the metadata.

    Source: ``FeatureControlManager.updateMetadataVersion`` (3.7 to 4.3), which refuses all others,
        unsafe ones, too (KAFKA-13896).
    """
    return not any(lower < each <= level for each in CHANGED)


def is_at_least(features: Mapping[str, int], level: int) -> bool:
    """True if the finalized ``metadata.version`` is that level or a later one."""
    return features.get(FEATURE, METADATA_VERSION) >= level
