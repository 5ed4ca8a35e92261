"""Where a consumer stands in each of its partitions, and how it finds out where to begin.

A partition begins at the group's committed offset; if there is none, or it is out of range, where
``auto.offset.reset`` says. A position that is known with the epoch of its last record is validated
with each leader, which says where that epoch ends in its log: a position beyond it was read from a
log that has been truncated since, and goes back to that end (KIP-320). Left out: ``by_duration``
resets.

Source: ``SubscriptionState``, ``OffsetFetcher``, ``ConsumerCoordinator.fetchCommittedOffsets``.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial

from sim.error_codes import ErrorCode
from sim.ids import NO_EPOCH, NO_LEADER, NO_OFFSET, LeaderEpoch, NodeId, Offset, TopicPartition
from sim.protocol.clients.consumer.context import ConsumerLink
from sim.protocol.clients.consumer.metadata import ConsumerMetadata
from sim.protocol.messages.base import Response
from sim.protocol.messages.data import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    LeaderHint,
    ListOffsetsRequest,
    ListOffsetsResponse,
)
from sim.protocol.messages.leader_epochs import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from sim.trace.rows.clients import Positions
from sim.units import LONG_AGO, Micros


class Stage(Enum):
    """How far a partition has come."""

    WANTS_COMMITTED = "wants committed offset"
    WANTS_RESET = "wants reset"
    VALIDATING = "wants validation"
    FETCHING = "fetching"
    HELD = "held"
    """It is given up when its position is committed; nothing is fetched any more."""


@dataclass(slots=True)
class Position:
    """A consumer's place in one partition, for one assignment of it."""

    stage: Stage
    offset: Offset = NO_OFFSET
    """Next offset to return to the application; only meaningful while validating or fetching."""
    epoch: LeaderEpoch = NO_EPOCH
    """Leader epoch of the last record returned; -1 where a reset began."""
    leader: LeaderHint | None = None
    """The leader with which it is valid, or to be validated."""
    asking: bool = False
    retry_at: Micros = LONG_AGO
    waits_for_version: int = 0
    """Not fetched before the metadata have come to this version: their leader said no."""
    preferred: NodeId = NO_LEADER
    """The replica to fetch from instead of the leader (KIP-392)."""
    preferred_until: Micros = LONG_AGO
    """When the leader is to be asked again."""
    preferred_by: LeaderHint | None = None
    """The leader that named it; another one, or another epoch, chooses anew."""

    def seek(self, offset: Offset, epoch: LeaderEpoch) -> None:
        """Go on from the offset."""
        self.stage = Stage.FETCHING
        self.offset = offset
        self.epoch = epoch
        self.asking = False
        self.retry_at = LONG_AGO

    def prefer(self, replica: NodeId, until: Micros, by: LeaderHint) -> None:
        """The leader sends the consumer to another replica, for a while."""
        self.preferred = replica
        self.preferred_until = until
        self.preferred_by = by

    def read_from(self, leader: LeaderHint, now: Micros) -> NodeId:
        """The replica to fetch from: the preferred one while its lease lasts, else the leader."""
        if self.preferred >= 0 and (self.preferred_by != leader or now >= self.preferred_until):
            self.preferred = NO_LEADER
        return leader.leader if self.preferred < 0 else self.preferred


class ConsumerPositions:
    """The positions of all assigned partitions."""

    def __init__(self, name: str, link: ConsumerLink, metadata: ConsumerMetadata) -> None:
        self._name = name
        self.changed = True
        """Something may be fetched that could not before; whoever fetches clears it."""
        self.layout = 0
        """Counts the changes of which partitions can be fetched, and from whom."""
        self.resetting: dict[NodeId, int] = {}
        """Open questions to each broker where to begin. Kafka asks a broker for all its partitions
        at once and fetches then; here a fetch waits until the last of them is answered."""
        self._link = link
        self._metadata = metadata
        self._positions: dict[TopicPartition, Position] = {}
        self._unready: dict[TopicPartition, Position] = {}
        self._failures = 0

    def all(self) -> Mapping[TopicPartition, Position]:
        """Positions by partition, in the order in which they are to be fetched."""
        return self._positions

    def consumed(self) -> tuple[tuple[TopicPartition, Offset, LeaderEpoch], ...]:
        """What a commit says: every partition whose position is valid, sorted.

        Source: ``SubscriptionState.allConsumed``.
        """
        return self._places(_VALID)

    def processed(self) -> tuple[tuple[TopicPartition, Offset, LeaderEpoch], ...]:
        """The same for who keeps positions of its own: those under validation are among them.

        Source: ``StreamTask.consumedOffsets``, ``WorkerSinkTask.currentOffsets``.
        """
        return self._places(_VALID | {Stage.VALIDATING})

    def _places(
        self, stages: frozenset[Stage]
    ) -> tuple[tuple[TopicPartition, Offset, LeaderEpoch], ...]:
        with_epochs = self._link.config.commits_epochs
        return tuple(
            (partition, position.offset, position.epoch if with_epochs else NO_EPOCH)
            for partition, position in sorted(self._positions.items())
            if position.stage in stages
        )

    def rearranged(self) -> None:
        """Other partitions than before can be fetched, or from other brokers."""
        self.layout += 1
        self.changed = True

    def heed_leaders(self) -> None:
        """Leaders may have changed: positions are valid with those that are known to be theirs.

        Source: ``SubscriptionState.maybeValidatePositionForCurrentLeader``.
        """
        for partition, position in self._positions.items():
            if position.stage in _KNOWN:
                leader = self._metadata.leader(partition)
                if leader.leader >= 0 and leader != position.leader:
                    self._validate(partition, position, leader)
        self.rearranged()

    def _validate(self, partition: TopicPartition, position: Position, leader: LeaderHint) -> None:
        position.leader = leader
        position.preferred = NO_LEADER
        if position.epoch < 0 or leader.leader_epoch < 0 or not self._link.config.validates:
            return
        position.stage = Stage.VALIDATING
        position.asking = False
        position.retry_at = LONG_AGO
        self._unready[partition] = position

    def assign(self, partitions: Iterable[TopicPartition], stage: Stage) -> None:
        """Take over exactly these partitions: new ones at their beginning, the others go on."""
        before, unready = self._positions, self._unready
        self._positions = {p: before[p] if p in before else Position(stage) for p in partitions}
        self._unready = {
            p: position
            for p, position in self._positions.items()
            if p not in before or p in unready
        }
        self._failures = 0
        self.rearranged()

    def hold(self, partitions: Iterable[TopicPartition]) -> None:
        """Return nothing of these any more; those that were read keep their position.

        What is buffered or in flight was asked for by the former position, and is dropped.
        """
        for partition in partitions:
            position = self._positions.get(partition)
            if position is not None and position.stage in _KNOWN:
                self._unready.pop(partition, None)
                self._positions[partition] = Position(Stage.HELD, position.offset, position.epoch)
        self.rearranged()

    def retake(self, partitions: Iterable[TopicPartition]) -> None:
        """Have exactly these: go on in those that are known, begin in the others."""
        held, self._positions = self._positions, {}
        unready, self._unready = self._unready, {}
        for partition in partitions:
            position = held.get(partition)
            if position is None or position.stage is Stage.HELD:
                position = Position(Stage.WANTS_COMMITTED)
                self._unready[partition] = position
            elif partition in unready:
                self._unready[partition] = position
            self._positions[partition] = position
        self.rearranged()

    def add(self, partition: TopicPartition) -> None:
        """Take over one more partition, without a group."""
        position = Position(Stage.WANTS_RESET)
        self._positions[partition] = self._unready[partition] = position

    def move_to_end(self, partition: TopicPartition) -> None:
        """Another partition is fetched first the next time."""
        self._positions[partition] = self._positions.pop(partition)

    def reset(self, partition: TopicPartition) -> None:
        """The position is out of range: begin again where the policy says."""
        position = self._positions[partition]
        position.stage = Stage.WANTS_RESET
        self._unready[partition] = position
        self.rearranged()

    # -- committed offsets ------------------------------------------------------------------------

    def without_committed(self) -> tuple[TopicPartition, ...]:
        """Partitions whose committed offset is to be asked for."""
        return tuple(p for p, at in self._unready.items() if at.stage is Stage.WANTS_COMMITTED)

    def take_committed(self, offsets: Iterable[tuple[TopicPartition, Offset, LeaderEpoch]]) -> None:
        """The group's committed offsets; -1 where there is none."""
        for partition, offset, epoch in offsets:
            position = self._unready.get(partition)
            if position is None or position.stage is not Stage.WANTS_COMMITTED:
                continue
            if offset == NO_OFFSET:
                position.stage = Stage.WANTS_RESET
            else:
                self._seek(partition, position, offset, epoch, "committed")

    # -- resets and validation --------------------------------------------------------------------

    def progress(self, now: Micros) -> None:
        """Ask where to begin, or whether a position is valid, for partitions that wait for it."""
        for partition, position in list(self._unready.items()):
            if position.asking:
                continue
            if position.stage is Stage.WANTS_RESET:
                self._ask(partition, position, now)
            elif position.stage is Stage.VALIDATING:
                self._ask_end_of_epoch(partition, position, now)

    def _ask_end_of_epoch(self, partition: TopicPartition, position: Position, now: Micros) -> None:
        leader = position.leader
        assert leader is not None, "only a position with a leader is validated"
        if now < position.retry_at:
            return
        if leader.leader < 0:
            # A committed position, and nobody leads: it is asked for as soon as somebody does.
            self._metadata.request_update(now)
            return
        position.asking = True
        self._link.send(
            leader.leader,
            OffsetForLeaderEpochRequest(partition, position.epoch, leader.leader_epoch),
            partial(self._on_end_of_epoch, partition, position, leader),
        )

    def _on_end_of_epoch(
        self,
        partition: TopicPartition,
        position: Position,
        leader: LeaderHint,
        _sender: NodeId,
        response: Response | None,
        error: ErrorCode,
        now: Micros,
    ) -> None:
        """The leader said where the epoch ends in its log.

        Source: ``SubscriptionState.maybeCompleteValidation``.
        """
        if (
            self._unready.get(partition) is not position
            or position.stage is not Stage.VALIDATING
            or position.leader is not leader
        ):
            return  # taken away meanwhile, or to be asked of another leader
        position.asking = False
        epoch, end = NO_EPOCH, NO_OFFSET
        if response is not None:
            assert isinstance(response, OffsetForLeaderEpochResponse)
            error, epoch, end = response.error, response.leader_epoch, response.end_offset
        if error is ErrorCode.NONE:
            self._validated(partition, position, epoch, end)
        elif error.retriable or error is ErrorCode.UNKNOWN_LEADER_EPOCH:
            self._later(partition, position, now, "validate")
        else:
            self._link.fail(error)

    def _validated(
        self, partition: TopicPartition, position: Position, epoch: LeaderEpoch, end: Offset
    ) -> None:
        truncated = epoch < 0 or end < position.offset
        if truncated and self._link.config.auto_offset_reset == "none":
            # LogTruncationException is an OffsetOutOfRangeException.
            self._link.fail(ErrorCode.OFFSET_OUT_OF_RANGE)
        elif epoch < 0 or end < 0:
            position.stage = Stage.WANTS_RESET
        elif truncated:
            self._note(partition, position, end, "truncated")
            position.seek(end, epoch)
        else:
            position.stage = Stage.FETCHING
        if position.stage is Stage.FETCHING:
            del self._unready[partition]
        self.rearranged()

    def _later(self, partition: TopicPartition, position: Position, now: Micros, what: str) -> None:
        """Ask again after a back-off, with newer metadata."""
        position.retry_at = now + self._link.backoff(self._failures)
        self._failures += 1
        self._metadata.request_update(now)
        self._link.set_timer(f"{what}/{partition}", position.retry_at, self.progress)

    def _ask(self, partition: TopicPartition, position: Position, now: Micros) -> None:
        policy = self._link.config.auto_offset_reset
        if policy == "none":
            self._link.fail(ErrorCode.OFFSET_OUT_OF_RANGE)
            return
        if now < position.retry_at:
            return
        known = self._metadata.leader(partition)
        if known.leader < 0:
            self._metadata.request_update(now)
            return
        position.asking = True
        self.resetting[known.leader] = self.resetting.get(known.leader, 0) + 1
        earliest = policy == "earliest"
        self._link.send(
            known.leader,
            ListOffsetsRequest(
                partition,
                EARLIEST_TIMESTAMP if earliest else LATEST_TIMESTAMP,
                known.leader_epoch,
                isolation_level=self._link.config.isolation_level,
            ),
            partial(self._on_offset, partition, position),
        )

    def _on_offset(
        self,
        partition: TopicPartition,
        position: Position,
        sender: NodeId,
        response: Response | None,
        error: ErrorCode,
        now: Micros,
    ) -> None:
        position.asking = False
        self.resetting[sender] -= 1
        self.changed = True
        if self._unready.get(partition) is not position:
            return  # taken away meanwhile
        offset = NO_OFFSET
        if response is not None:
            assert isinstance(response, ListOffsetsResponse)
            offset, error = response.offset, response.error
        if error is ErrorCode.NONE:
            self._failures = 0
            # No record was read there: the position has no epoch yet.
            self._seek(partition, position, offset, NO_EPOCH, "reset")
        elif error.retriable:
            self._later(partition, position, now, "reset")
        else:
            self._link.fail(error)

    def _seek(
        self,
        partition: TopicPartition,
        position: Position,
        offset: Offset,
        epoch: LeaderEpoch,
        why: str,
    ) -> None:
        self._note(partition, position, offset, why)
        position.seek(offset, epoch)
        del self._unready[partition]
        self._validate(partition, position, self._metadata.leader(partition))
        self.rearranged()

    def _note(
        self, partition: TopicPartition, position: Position, offset: Offset, why: str
    ) -> None:
        """Say in the trace where the consumer goes on, and where it stood."""
        self._link.emit(
            Positions.row(
                self._name,
                self._link.config.group_id,
                *partition,
                offset_before=position.offset,
                offset=offset,
                reason=why,
            )
        )


_KNOWN = frozenset({Stage.FETCHING, Stage.VALIDATING})
"""Stages in which a position has an offset."""

_VALID = frozenset({Stage.FETCHING, Stage.HELD})
"""Stages in which an offset is known to be in the leader's log."""
