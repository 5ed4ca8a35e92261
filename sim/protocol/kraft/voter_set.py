"""The voters of a dynamic quorum: those in force, and those that were (KIP-853).

The set in force is that of the newest record in the log, committed or not; a log that is cut takes
it back. Pure bookkeeping; who may change the set is :mod:`sim.protocol.kraft.voter_changes`'s.

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
"""Where the voters stand that a new cluster was formatted with: before its log."""


@dataclass(frozen=True, slots=True)
class DynamicMember:
    """What a process of a dynamic quorum knows before it has read its log."""

    directory: str
    """``directory.id`` of the log directory that holds its metadata log."""
    bootstrap: tuple[NodeId, ...]
    """``controller.quorum.bootstrap.servers``: who is asked for the leader."""
    always_flushes: bool
    """A controller may become a voter at any time, so it syncs before it fetches on."""


class VoterHistory:
    """Voter sets by the offsets of their records, in the order of the log."""

    def __init__(self) -> None:
        self._sets: list[tuple[Offset, tuple[Voter, ...]]] = []

    @property
    def latest(self) -> tuple[Voter, ...]:
        """The set in force; empty before this process has read of any."""
        return self._sets[-1][1] if self._sets else ()

    @property
    def latest_offset(self) -> Offset | None:
        """Where the set in force stands; ``None`` before this process has read of any."""
        return self._sets[-1][0] if self._sets else None

    def at(self, end: Offset) -> tuple[Voter, ...]:
        """The set that the log below an offset says."""
        found: tuple[Voter, ...] = ()
        for offset, voters in self._sets:
            if offset < end:
                found = voters
        return found

    def read(self, records: Iterable[LoggedRecord]) -> bool:
        """Take what the log has grown by; returns whether there was a set in it."""
        before = len(self._sets)
        for offset, _, record in records:
            if isinstance(record, VotersRecord):
                self._sets.append((offset, record.voters))
        return len(self._sets) > before

    def begin_with(self, end: Offset, voters: tuple[Voter, ...]) -> None:
        """Forget everything: a snapshot of the log below ``end`` says this set."""
        self._sets = [(end - 1, voters)] if voters else []

    def cut(self, end: Offset) -> bool:
        """The log was cut there; returns whether another set is in force now."""
        kept = [entry for entry in self._sets if entry[0] < end]
        changed = len(kept) < len(self._sets)
        self._sets = kept
        return changed


def with_voter(voters: tuple[Voter, ...], added: Voter) -> tuple[Voter, ...]:
    """The set with one more, by id."""
    return tuple(sorted((*voters, added)))


def without_voter(voters: tuple[Voter, ...], removed: Voter) -> tuple[Voter, ...]:
    """The set without one; the same if it is not in it, by id and by directory."""
    return tuple(voter for voter in voters if voter != removed)
