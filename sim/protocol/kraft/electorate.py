"""Who votes, as one member of the quorum sees it: given once, or read from its log (KIP-853).

Source: ``org.apache.kafka.raft.internals.KRaftControlRecordStateMachine`` (4.1).
"""

from sim.ids import NodeId, Offset, SnapshotId
from sim.protocol.kraft.log import MetadataLog
from sim.protocol.kraft.voter_set import DynamicMember, VoterHistory
from sim.protocol.metadata.records import Voter


class Electorate:
    """The part of a member that follows the set of voters."""

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
        """Who votes and voted; ``None`` in a static quorum."""
        self._always_flushes = dynamic is not None and dynamic.always_flushes
        self._directories: dict[NodeId, str] = {}
        self._others = tuple(v for v in voters if v != node)
        asked = self._others if dynamic is None else dynamic.bootstrap
        self._contacts = tuple(v for v in asked if v != node)
        """Who is asked for the leader."""

    def voters_at(self, end: Offset) -> tuple[Voter, ...]:
        """Who votes in a dynamic quorum as the log below an offset says; nobody in a static one."""
        return () if self.history is None else self.history.at(end)

    def _votes(self, node: NodeId, directory: str) -> bool:
        """Whether that process's disk has a vote, and not only its id."""
        if self.history is None:
            return node in self.voters
        return self._directories.get(node) == directory

    def _directory_of(self, voter: NodeId) -> str:
        return self._directories.get(voter, "")

    def _read_voters(self) -> None:
        """Find who votes in what was loaded: the newest snapshot, and the log behind it."""
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
            self._take_voters()

    def _log_was_cut(self, end: Offset) -> None:
        if self.history is not None and self.history.cut(end):
            self._take_voters()

    def _log_began_anew(self, snapshot: SnapshotId) -> None:
        """The log starts at a snapshot that was fetched."""
        if self.history is not None:
            self.history.begin_with(snapshot.offset, self.log.snapshot_voters(snapshot))
            self._take_voters()

    def _take_voters(self) -> None:
        """Another set is in force, from this instant on."""
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
        """What that means for the role; a member says it."""
        raise NotImplementedError
