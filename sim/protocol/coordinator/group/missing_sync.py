"""Pending-sync timeout: a member that joined but never sent SyncGroup.

The others wait with it: without the leader's SyncGroup there is no assignment, and members with an
open SyncGroup are kept, however long that takes. The rule has changed four times.

Source: ``GroupCoordinator`` (2.1 to 3.9), ``MemberMetadata.shouldKeepAlive``,
``GroupMetadataManager.expirePendingSync``; KAFKA-9752, KAFKA-10134, KAFKA-12890.
"""

from enum import Enum


class MissingSync(Enum):
    """Rule of some versions; values are the positions of the behaviour ``group.missing_sync``."""

    REBALANCE_TIMEOUT = "rebalance_timeout"
    """A timeout of its own, beside the session (since 3.0)."""
    HEARTBEATS = "heartbeats"
    """The session alone, and heartbeats renew it (2.7 and 2.8)."""
    SESSION = "session"
    """The session alone; heartbeats are refused meanwhile and renew nothing (until 2.6)."""
    NEW_MEMBERS_STAY = "new_members_stay"
    """The same, but a new member has no session before its next request: the task that would expire
    it takes the member's five minutes to join for a heartbeat (2.2 to 2.5)."""

    @property
    def has_deadline(self) -> bool:
        """True if members must send SyncGroup within the rebalance timeout."""
        return self is MissingSync.REBALANCE_TIMEOUT

    @property
    def takes_heartbeats(self) -> bool:
        """True if heartbeats are accepted while the group waits for its assignment."""
        return self in {MissingSync.REBALANCE_TIMEOUT, MissingSync.HEARTBEATS}

    @property
    def forgets_new_members(self) -> bool:
        """True if the session of a new member begins only with its next request."""
        return self is MissingSync.NEW_MEMBERS_STAY
