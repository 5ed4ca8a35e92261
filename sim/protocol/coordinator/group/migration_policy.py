"""Policy of changes between the classic and the consumer protocol of a group with members.

Source: ``ConsumerGroupMigrationPolicy``; KIP-848.
"""

from enum import Enum


class MigrationPolicy(Enum):
    """``group.consumer.migration.policy``; values are Kafka's, in lower case."""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    DISABLED = "disabled"

    @property
    def upgrades(self) -> bool:
        """True if a classic group becomes a consumer group for a member of the new protocol."""
        return self in {MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE}

    @property
    def downgrades(self) -> bool:
        """True if it becomes a classic group again when the last one of those has left."""
        return self in {MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE}
