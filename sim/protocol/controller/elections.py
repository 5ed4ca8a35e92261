"""Partition changes: leader election, and the ISR and ELR that follow.

``lastKnownElr`` holds the last leader only, as in 4.1, unless the ends of replicas' logs decide
(KIP-966, part 2, which Kafka does not have); then it holds the last known ELR.

Source: ``org.apache.kafka.controller.{PartitionChangeBuilder,PartitionReassignmentReplicas}``
(4.1), there also with ``useLastKnownLeaderInBalancedRecovery`` off; KIP-455, KIP-966.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum, auto

from sim.ids import NO_LEADER, NodeId
from sim.protocol.metadata.image import PartitionRegistration
from sim.protocol.metadata.records import UNASSIGNED_DIRECTORY, PartitionChangeRecord

Nodes = tuple[NodeId, ...]


class ElectionKind(Enum):
    """Kind of an election."""

    ONLINE = auto()
    """Keep the leader if it is valid, else take the first valid replica."""
    UNCLEAN = auto()
    """As ONLINE, and any live replica rather than none."""
    PREFERRED = auto()
    """Prefer the first replica of the assignment."""


@dataclass(frozen=True, slots=True)
class Elected:
    """Outcome of an election; ``unclean`` if the leader may lack committed records."""

    leader: NodeId
    unclean: bool = False


@dataclass(frozen=True, slots=True)
class Assignment:
    """Replicas of a partition, and those that a reassignment adds and will remove."""

    replicas: Nodes
    """Target replicas in their order, then those to be removed."""
    removing: Nodes = ()
    adding: Nodes = ()

    def completed_by(self, in_sync: Nodes) -> "tuple[Assignment, Nodes] | None":
        """Assignment and ISR at the end of the reassignment, if this ISR completes it.

        It completes when every target replica is in the ISR.
        """
        if not self.removing and not self.adding:
            return None
        left = tuple(b for b in in_sync if b not in self.removing)
        target = tuple(b for b in self.replicas if b not in self.removing)
        if not left or not target or any(b not in left for b in target):
            return None
        return Assignment(target), left


_NOBODY = Elected(NO_LEADER)


@dataclass(frozen=True, slots=True)
class PartitionChange:
    """A change of one partition, to be built.

    ``acceptable(b)``: the broker is registered, neither fenced nor shutting down, and its directory
    is online, after the current event. ``target`` is the requested ISR.
    """

    registration: PartitionRegistration
    acceptable: Callable[[NodeId], bool]
    min_in_sync: int
    """``min.insync.replicas``, not above the number of replicas."""
    elr: bool
    """True if eligible leader replicas are on."""
    target: Nodes
    kind: ElectionKind = ElectionKind.ONLINE
    unclean_shutdown: Nodes = ()
    """Brokers that came back without a clean shutdown: they may have lost data."""
    recovering: bool | None = None
    """Requested leader recovery state; ``None`` leaves it."""
    notes_recovery: bool = True
    """True if an unclean election sets the leader recovery state (KIP-704, 3.2)."""
    bumps_on_shrink: bool = False
    """True if a member that leaves the ISR begins a leader epoch (before KAFKA-15021)."""
    assignment: Assignment | None = None
    """Requested assignment; ``None``: the present one."""
    queries_logs: bool = False
    """True if no unclean election is held before the replicas are asked (KIP-966, part 2)."""
    longest: NodeId = NO_LEADER
    """Replica with the longest log, once they have answered."""
    directory_for: Callable[[NodeId], str] = lambda _broker: UNASSIGNED_DIRECTORY
    """Log directory of a broker that is new among the replicas (KIP-858)."""

    @property
    def replicas(self) -> Nodes:
        """Replicas after the change."""
        return self.registration.replicas if self.assignment is None else self.assignment.replicas

    def record(self, partition: int) -> PartitionChangeRecord | None:
        """Record of the change; ``None`` if nothing changes."""
        completed = self._completed()
        if completed is not None:
            return completed.record(partition)
        old = self.registration
        eligible = self._target_eligible()
        elected = self._elect(eligible)
        in_sync = self.target
        recovering = self.recovering
        if elected.unclean and elected.leader != old.leader:
            # Only the new leader is left; records of others beyond its log end are lost.
            in_sync, eligible = (elected.leader,), ()
            recovering = True if self.notes_recovery else recovering
        elif elected.leader in eligible:
            in_sync = (elected.leader,)
            eligible = tuple(b for b in eligible if b != elected.leader)
        if not in_sync and not self.elr:
            in_sync = old.in_sync  # the last replica stays in the ISR
        record = PartitionChangeRecord(
            partition,
            old.topic_id,
            in_sync=_if_new(in_sync, old.in_sync),
            leader=elected.leader if self._begins_epoch(elected.leader, in_sync) else None,
            recovering=recovering if recovering not in {None, old.recovering} else None,
            eligible=_if_new(eligible, old.eligible),
            last_known_eligible=self._last_known(elected),
        )
        if self.assignment is not None:
            record = with_assignment(old, record, self.assignment, self.directory_for)
        return None if record == PartitionChangeRecord(partition, old.topic_id) else record

    def _completed(self) -> "PartitionChange | None":
        """This change with the completed reassignment, if its ISR completes it."""
        old = self.registration
        assignment = self.assignment or Assignment(old.replicas, old.removing, old.adding)
        ended = assignment.completed_by(self.target)
        if ended is None:
            return None
        return replace(self, assignment=ended[0], target=ended[1])

    def _begins_epoch(self, leader: NodeId, in_sync: Nodes) -> bool:
        """True if the change begins a leader epoch, of another leader or of the same."""
        old = self.registration
        shrinks = any(b not in in_sync for b in old.in_sync)
        return leader != old.leader or self._loses_replica() or (self.bumps_on_shrink and shrinks)

    def _loses_replica(self) -> bool:
        """Removing a replica requires a new leader epoch, even of the same leader."""
        return any(b not in self.replicas for b in self.registration.replicas)

    def _target_eligible(self) -> Nodes:
        """ELR while the ISR is below the minimum: former members that cannot have lost data.

        A replica that left the ISR then has every committed record: the high watermark does not
        advance below the minimum.
        """
        if not self.elr or len(self.target) >= self.min_in_sync:
            return ()
        old = self.registration
        candidates = dict.fromkeys((*old.eligible, *old.in_sync))
        return tuple(
            b for b in candidates if b not in self.target and b not in self.unclean_shutdown
        )

    def _elect(self, eligible: Nodes) -> Elected:
        old = self.registration

        def is_valid(broker: NodeId) -> bool:
            pool = self.target or eligible
            return broker in pool and self.acceptable(broker)

        if self.kind is ElectionKind.PREFERRED and is_valid(self.replicas[0]):
            return Elected(self.replicas[0])
        if old.leader != NO_LEADER and is_valid(old.leader):
            return Elected(old.leader)
        for replica in self.replicas:
            if is_valid(replica):
                return Elected(replica)
        if self.queries_logs:
            longest = self.longest
            known = longest != NO_LEADER and self.acceptable(longest)
            return Elected(longest, unclean=True) if known else _NOBODY
        if self._may_elect_last_known(eligible):
            return Elected(old.last_known_eligible[0], unclean=True)
        if self.kind is ElectionKind.UNCLEAN:
            for replica in self.replicas:
                if self.acceptable(replica):
                    return Elected(replica, unclean=True)
        return _NOBODY

    def _may_elect_last_known(self, eligible: Nodes) -> bool:
        """ISR and ELR are both lost, and the last leader is back."""
        last = self.registration.last_known_eligible
        return (
            self.elr
            and not self.target
            and not eligible
            and len(last) == 1
            and self.acceptable(last[0])
        )

    def _last_known(self, elected: Elected) -> Nodes | None:
        old, leader = self.registration, elected.leader
        if not self.elr:
            return () if old.last_known_eligible else None
        if self.queries_logs:
            return _if_new(self._last_known_eligible(elected), old.last_known_eligible)
        if leader != NO_LEADER:
            return () if old.last_known_eligible else None
        if old.leader != NO_LEADER and not old.last_known_eligible:
            return (old.leader,)
        return None

    def _last_known_eligible(self, elected: Elected) -> Nodes:
        """Members of the ISR and the ELR that are in neither any more, below the minimum."""
        if len(self.target) >= self.min_in_sync or elected.unclean:
            return ()
        old, eligible = self.registration, self._target_eligible()
        candidates = dict.fromkeys((*old.eligible, *old.in_sync, *old.last_known_eligible))
        return tuple(b for b in candidates if b not in self.target and b not in eligible)


def _if_new(new: Nodes, old: Nodes) -> Nodes | None:
    return None if new == old else new


def with_assignment(
    old: PartitionRegistration,
    record: PartitionChangeRecord,
    assignment: Assignment,
    directory_for: Callable[[NodeId], str] = lambda _broker: UNASSIGNED_DIRECTORY,
) -> PartitionChangeRecord:
    """The record with the assignment's changes.

    ``directory_for``: the log directory of a broker that is new among the replicas (KIP-858).
    """
    known = dict(zip(old.replicas, old.directories, strict=False))
    directories = tuple(known[b] if b in known else directory_for(b) for b in assignment.replicas)
    unknown = (UNASSIGNED_DIRECTORY,) * len(directories)
    return replace(
        record,
        replicas=_if_new(assignment.replicas, old.replicas),
        removing=_if_new(assignment.removing, old.removing),
        adding=_if_new(assignment.adding, old.adding),
        directories=None if directories == (old.directories or unknown) else directories,
    )
