"""Levels of ``metadata.version`` from which on something holds.

Source: ``org.apache.kafka.server.common.MetadataVersion`` (3.3 to 4.3).
"""

from collections.abc import Mapping
from typing import Final, TypeAlias

METADATA_VERSION: Final = 25
"""4.0-IV3: every 4.x broker can start on it, and it has eligible leader replicas."""

FEATURE: Final = "metadata.version"
"""The feature's name."""

MIGRATION: Final = 8
"""3.4-IV0: a registration says whether a broker migrates from ZooKeeper (KIP-866)."""

LAST_WITH_EPOCH_OF_SHRINK: Final = 11
"""3.5-IV2: the last in which an ISR that shrinks begins a leader epoch (KAFKA-15021)."""

CONTROLLER_REGISTRATION: Final = 15
"""3.7-IV0: controllers register, and say which features they support (KIP-919)."""

TRANSACTIONS: Final = 13
"""3.6-IV1: records that belong together may be in several batches (KIP-868)."""

DIRECTORY_ASSIGNMENT: Final = 17
"""3.7-IV2: the metadata knows the log directories of brokers and replicas (KIP-858)."""

ELIGIBLE_REPLICAS: Final = 23
"""4.0-IV1: eligible leader replicas (KIP-966)."""

CORDONED_DIRECTORIES: Final = 30
"""4.3-IV0: a registration names cordoned log directories (KIP-1066)."""


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


def is_at_least(features: Mapping[str, int], level: int) -> bool:
    """True if the finalized ``metadata.version`` is that level or a later one."""
    return features.get(FEATURE, METADATA_VERSION) >= level
