"""Voters of the quorum at one member: static, or read from its log (KIP-853).

Source: ``org.apache.kafka.raft.internals.KRaftControlRecordStateMachine`` (4.1).
"""

from sim.ids import NodeId, Offset, SnapshotId
from sim.protocol.kraft.log import MetadataLog
from sim.protocol.kraft.voter_set import DynamicMember, VoterHistory
from sim.protocol.metadata.records import Voter


class Electorate:
    """The part of a member that follows the voter set."""

    def __init__(
        self,
        node: NodeId,
        voters: tuple[NodeId, ...],
        log: MetadataLog,
        dynamic: DynamicMember | None,
    ) -> None:
        self.node = node
        self.voters = voters
        self.log = log
        self.is_voter = node in voters
        self.directory = "" if dynamic is None else dynamic.directory
        self.history: VoterHistory | None = None if dynamic is None else VoterHistory()
        """Voter sets by offset; ``None`` in a static quorum."""
        self._always_flushes = dynamic is not None and dynamic.always_flushes
        self._directories: dict[NodeId, str] = {}
        self._others = tuple(v for v in voters if v != node)
        contacts = self._others if dynamic is None else dynamic.bootstrap
        self._contacts = tuple(v for v in contacts if v != node)
        """Nodes that may know the leader."""

    def voters_at(self, end: Offset) -> tuple[Voter, ...]:
        """Voters of a dynamic quorum in the log below an offset; none in a static one."""
        return () if self.history is None else self.history.at(end)

    def _votes(self, node: NodeId, directory: str) -> bool:
        """True if that process's disk is a voter, not only its id."""
        if self.history is None:
            return node in self.voters
        return self._directories.get(node) == directory

    def _directory_of(self, voter: NodeId) -> str:
        return self._directories.get(voter, "")

    def _read_voters(self) -> None:
        """Reads the voters from the newest snapshot and the log after it."""
        if self.history is None:
            return
        log = self.log
        snapshot = log.latest_snapshot
        start = log.log_start_offset
        if snapshot is not None:
            start = max(snapshot.offset, start)
            self.history.begin_with(snapshot.offset, log.snapshot_voters(snapshot))
        self.history.read(log.records_between(start, log.log_end_offset))
        self._set_voters(self.history.latest)

    def _log_grew(self, base: Offset) -> None:
        if self.history is None:
            return
        log = self.log
        if self.history.read(log.records_between(base, log.log_end_offset)):
            self._update_voters()

    def _log_was_cut(self, end: Offset) -> None:
        if self.history is not None and self.history.cut(end):
            self._update_voters()

    def _log_restarted(self, snapshot: SnapshotId) -> None:
        """The log was restarted at a fetched snapshot."""
        if self.history is not None:
            self.history.begin_with(snapshot.offset, self.log.snapshot_voters(snapshot))
            self._update_voters()

    def _update_voters(self) -> None:
        """Puts the latest voter set in force."""
        assert self.history is not None
        voters = self.history.latest
        former = tuple(Voter(node, self._directories[node]) for node in self.voters)
        if voters != former:
            was_voter = self.is_voter
            self._set_voters(voters)
            self._voters_changed(former, was_voter=was_voter)

    def _set_voters(self, voters: tuple[Voter, ...]) -> None:
        self.voters = tuple(voter.node for voter in voters)
        self._directories = {voter.node: voter.directory for voter in voters}
        self._others = tuple(v for v in self.voters if v != self.node)
        self.is_voter = self._votes(self.node, self.directory)

    def _voters_changed(self, former: tuple[Voter, ...], *, was_voter: bool) -> None:
        """Hook of members: changes the role if required."""
        raise NotImplementedError
