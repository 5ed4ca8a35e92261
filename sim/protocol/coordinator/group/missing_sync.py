"""What ends the wait for a member that is told of its generation and never asks for its share.

The others wait with it: without the leader's SyncGroup there is no assignment, and whoever has
asked for one is kept, however long that takes. The rule has changed four times.

Source: ``GroupCoordinator`` (2.1 to 3.9), ``MemberMetadata.shouldKeepAlive``,
``GroupMetadataManager.expirePendingSync``; KAFKA-9752, KAFKA-10134, KAFKA-12890.
"""

from enum import Enum


class MissingSync(Enum):
    """The rule of one time; values are the positions of the behaviour ``group.missing_sync``."""

    REBALANCE_TIMEOUT = "rebalance_timeout"
    """A deadline of its own, beside the session (since 3.0)."""
    HEARTBEATS = "heartbeats"
    """The session alone, and heartbeats prolong it (2.7 and 2.8)."""
    SESSION = "session"
    """The session alone; heartbeats are refused meanwhile and prolong nothing (until 2.6)."""
    NEW_MEMBERS_STAY = "new_members_stay"
    """The same, but whoever has just been let in has no session before it is heard of again: the
    task that would end it takes the member's five minutes to join for a sign of life (2.2 to 2.5).
    """

    @property
    def has_deadline(self) -> bool:
        """Whether members must ask within the rebalance timeout."""
        return self is MissingSync.REBALANCE_TIMEOUT

    @property
    def takes_heartbeats(self) -> bool:
        """Whether heartbeats are taken while the group waits for its assignment."""
        return self in {MissingSync.REBALANCE_TIMEOUT, MissingSync.HEARTBEATS}

    @property
    def forgets_new_members(self) -> bool:
        """Whether the session of a new member begins only when it is next heard of."""
        return self is MissingSync.NEW_MEMBERS_STAY
