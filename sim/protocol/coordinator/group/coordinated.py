"""A consumer-protocol or share group at its coordinator: what is written, and what is committed.

Source: ``CoordinatorRuntime``, whose timelines keep both.
"""

from collections import deque
from dataclasses import dataclass, field

from sim.error_codes import ErrorCode
from sim.protocol.coordinator.group.classic_state import Group
from sim.protocol.coordinator.group.consumer_group_records import ConsumerGroupRecord
from sim.protocol.coordinator.group.consumer_group_state import ConsumerGroup, ConsumerGroupState
from sim.protocol.coordinator.group.context import Outcome
from sim.protocol.coordinator.group.records import GroupMetadataRecord, GroupTombstone
from sim.units import Micros


@dataclass(slots=True)
class Written:
    """Records of one change, and its pending response."""

    records: tuple[ConsumerGroupRecord, ...]
    outcomes: list[Outcome] = field(default_factory=list)
    is_doubtful: bool = False
    """True if it is in the log, and its commit timed out."""
    successor: GroupMetadataRecord | None = None
    """Classic group that takes its place with this change; ``None``: none does."""


@dataclass(slots=True)
class Coordinated:
    """A group with its written state and its committed state."""

    live: ConsumerGroup
    committed: ConsumerGroup
    unsettled: deque[Written] = field(default_factory=deque)
    predecessor: GroupTombstone | None = None
    """Tombstone of the classic group that it replaces, for its first write."""
    opening: list[ConsumerGroupRecord] = field(default_factory=list)
    """Records of the classic group's members, for the same write."""
    former: Group | None = None
    """The classic group as it was, until that is committed."""
    noted: ConsumerGroupState | None = None
    """State in its last row of the trace."""

    @property
    def has_progressed(self) -> bool:
        """True if its last row is of another state, which nothing that is written changes."""
        state = self.committed.state
        return state is not self.noted and state is self.live.state


def nobody_waits(_error: ErrorCode, _now: Micros) -> None:
    """Ignores the outcome of a change to which there is no response."""
