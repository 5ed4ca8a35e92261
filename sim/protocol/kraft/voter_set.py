"""Voter sets of a dynamic quorum by offset (KIP-853).

The set in force is that of the newest record in the log, committed or not; truncation restores an
earlier one. Pure bookkeeping; :mod:`sim.protocol.kraft.voter_changes` changes the set.

Source: ``org.apache.kafka.raft.VoterSet``,
``org.apache.kafka.raft.internals.{VoterSetHistory,KRaftControlRecordStateMachine}`` (4.1).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from sim.ids import NodeId, Offset
from sim.protocol.kraft.log import LoggedRecord
from sim.protocol.metadata.records import Voter, VotersRecord

BOOTSTRAP_OFFSET: Final[Offset] = -1
"""Offset of the voters that a new cluster was formatted with: before its log."""


@dataclass(frozen=True, slots=True)
class DynamicMember:
    """A process of a dynamic quorum, before it has read its log."""

    directory: str
    """``directory.id`` of the log directory that holds its metadata log."""
    bootstrap: tuple[NodeId, ...]
    """``controller.quorum.bootstrap.servers``: nodes that may know the leader."""
    always_flushes: bool
    """True for a controller: it may become a voter at any time, so it fsyncs every fetch."""


class VoterHistory:
    """Voter sets by the offsets of their records, in the order of the log."""

    def __init__(self) -> None:
        self._sets: list[tuple[Offset, tuple[Voter, ...]]] = []

    @property
    def latest(self) -> tuple[Voter, ...]:
        """The set in force; empty before any was read."""
        return self._sets[-1][1] if self._sets else ()

    @property
    def latest_offset(self) -> Offset | None:
        """Offset of the set in force; ``None`` before any was read."""
        return self._sets[-1][0] if self._sets else None

    def at(self, end: Offset) -> tuple[Voter, ...]:
        """The set in the log below an offset."""
        found: tuple[Voter, ...] = ()
        for offset, voters in self._sets:
            if offset < end:
                found = voters
        return found

    def read(self, records: Iterable[LoggedRecord]) -> bool:
        """Reads the records that the log has grown by; true if a set was among them."""
        before = len(self._sets)
        for offset, _, record in records:
            if isinstance(record, VotersRecord):
                self._sets.append((offset, record.voters))
        return len(self._sets) > before

    def begin_with(self, end: Offset, voters: tuple[Voter, ...]) -> None:
        """Restarts with the set of a snapshot of the log below ``end``."""
        self._sets = [(end - 1, voters)] if voters else []

    def cut(self, end: Offset) -> bool:
        """Truncates; true if another set is in force now."""
        kept = [entry for entry in self._sets if entry[0] < end]
        changed = len(kept) < len(self._sets)
        self._sets = kept
        return changed


def with_voter(voters: tuple[Voter, ...], added: Voter) -> tuple[Voter, ...]:
    """The set with one more voter, by id."""
    return tuple(sorted((*voters, added)))


def without_voter(voters: tuple[Voter, ...], removed: Voter) -> tuple[Voter, ...]:
    """The set without a voter; the same if it is not in it, by id and by directory."""
    return tuple(voter for voter in voters if voter != removed)
