"""Levels of ``metadata.version`` from which on something holds.

Source: ``org.apache.kafka.server.common.MetadataVersion`` (3.3 to 4.3).
"""

from collections.abc import Mapping
from typing import Final

METADATA_VERSION: Final = 25
"""4.0-IV3: every 4.x broker can start on it, and it has eligible leader replicas."""

FEATURE: Final = "metadata.version"
"""The feature's name."""

MIGRATION: Final = 8
"""3.4-IV0: a registration says whether a broker migrates from ZooKeeper (KIP-866)."""

LAST_WITH_EPOCH_OF_SHRINK: Final = 11
"""3.5-IV2: the last in which an ISR that shrinks begins a leader epoch (KAFKA-15021)."""

TRANSACTIONS: Final = 13
"""3.6-IV1: records that belong together may be in several batches (KIP-868)."""

DIRECTORY_ASSIGNMENT: Final = 17
"""3.7-IV2: the metadata knows the log directories of brokers and replicas (KIP-858)."""

ELIGIBLE_REPLICAS: Final = 23
"""4.0-IV1: eligible leader replicas (KIP-966)."""

CORDONED_DIRECTORIES: Final = 30
"""4.3-IV0: a registration names cordoned log directories (KIP-1066)."""


def is_at_least(features: Mapping[str, int], level: int) -> bool:
    """True if the finalized ``metadata.version`` is that level or a later one."""
    return features.get(FEATURE, METADATA_VERSION) >= level
