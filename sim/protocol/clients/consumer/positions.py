"""Positions of a consumer in its partitions: initial offsets, resets, validation.

A partition begins at the group's committed offset; without one, or if it is out of range, by
``auto.offset.reset``. A position with the epoch of its last record is validated with each new
leader by the end of that epoch in its log: a position beyond it was read from a log that has been
truncated since, and goes back to that end (KIP-320). Left out: ``by_duration`` resets.

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
    """Stage of a partition's position."""

    AWAITS_COMMITTED = "wants committed offset"
    AWAITS_RESET = "wants reset"
    VALIDATING = "wants validation"
    FETCHING = "fetching"
    HELD = "held"
    """It is revoked when its position is committed; nothing is fetched any more."""


@dataclass(slots=True)
class Position:
    """Position in one partition, for one assignment of it."""

    stage: Stage
    offset: Offset = NO_OFFSET
    """Next offset to return to the application; only meaningful while validating or fetching."""
    epoch: LeaderEpoch = NO_EPOCH
    """Leader epoch of the last record returned; -1 where a reset began."""
    leader: LeaderHint | None = None
    """Leader with which it is valid, or to be validated."""
    asking: bool = False
    retry_at: Micros = LONG_AGO
    waits_for_version: int = 0
    """Not fetched before the metadata have this version: their leader refused."""
    preferred: NodeId = NO_LEADER
    """Preferred read replica (KIP-392)."""
    preferred_until: Micros = LONG_AGO
    """End of the preferred replica's lease."""
    preferred_by: LeaderHint | None = None
    """Leader that named it; another one, or another epoch, chooses again."""
    paused: bool = False
    """True if the application has paused the partition: it is not fetched, nothing is returned."""
    sought: int | None = None
    """Timestamp of the offset that the application seeks; ``None``: a reset is by the policy."""

    def seek(self, offset: Offset, epoch: LeaderEpoch) -> None:
        """Continues at the offset."""
        self.stage = Stage.FETCHING
        self.offset = offset
        self.epoch = epoch
        self.asking = False
        self.retry_at = LONG_AGO

    def prefer(self, replica: NodeId, until: Micros, by: LeaderHint) -> None:
        """Sets the preferred read replica, until the end of its lease."""
        self.preferred = replica
        self.preferred_until = until
        self.preferred_by = by

    def read_from(self, leader: LeaderHint, now: Micros) -> NodeId:
        """Replica to fetch from: the preferred one during its lease, else the leader."""
        if self.preferred >= 0 and (self.preferred_by != leader or now >= self.preferred_until):
            self.preferred = NO_LEADER
        return leader.leader if self.preferred < 0 else self.preferred


class ConsumerPositions:
    """Positions of all assigned partitions."""

    def __init__(self, name: str, link: ConsumerLink, metadata: ConsumerMetadata) -> None:
        self._name = name
        self.changed = True
        """True if more may be fetched than before; reset by the fetcher."""
        self.layout = 0
        """Counts changes of the fetchable partitions, and of their replicas."""
        self.resetting: dict[NodeId, int] = {}
        """Open ListOffsets requests of resets, by broker. Kafka sends one to a broker for all its
        partitions and fetches then; here a fetch waits until the last of them is answered."""
        self._link = link
        self._metadata = metadata
        self._positions: dict[TopicPartition, Position] = {}
        self._unready: dict[TopicPartition, Position] = {}
        self._failures = 0

    def all(self) -> Mapping[TopicPartition, Position]:
        """Positions by partition, in the order of fetching."""
        return self._positions

    def consumed(self) -> tuple[tuple[TopicPartition, Offset, LeaderEpoch], ...]:
        """Positions to commit: of every partition whose position is valid, sorted.

        Source: ``SubscriptionState.allConsumed``.
        """
        return self._places(_VALID)

    def processed(self) -> tuple[tuple[TopicPartition, Offset, LeaderEpoch], ...]:
        """The same for tasks that keep their own positions: with those under validation.

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
        """The fetchable partitions, or their replicas, have changed."""
        self.layout += 1
        self.changed = True

    def heed_leaders(self) -> None:
        """Leaders may have changed: positions must be validated with new ones.

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
        """Sets the partitions: new ones at their initial offset, the others continue."""
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
        """Returns nothing of these any more; those that were read keep their position.

        Buffered records and open requests of the former position are dropped.
        """
        for partition in partitions:
            position = self._positions.get(partition)
            if position is not None and position.stage in _KNOWN:
                self._unready.pop(partition, None)
                self._positions[partition] = Position(Stage.HELD, position.offset, position.epoch)
        self.rearranged()

    def retake(self, partitions: Iterable[TopicPartition]) -> None:
        """Sets the partitions: known ones continue, others begin."""
        held, self._positions = self._positions, {}
        unready, self._unready = self._unready, {}
        for partition in partitions:
            position = held.get(partition)
            if position is None or position.stage is Stage.HELD:
                position = Position(Stage.AWAITS_COMMITTED)
                self._unready[partition] = position
            elif partition in unready:
                self._unready[partition] = position
            self._positions[partition] = position
        self.rearranged()

    def add(self, partition: TopicPartition) -> None:
        """Adds one partition, without a group."""
        position = Position(Stage.AWAITS_RESET)
        self._positions[partition] = self._unready[partition] = position

    def move_to_end(self, partition: TopicPartition) -> None:
        """Fetches another partition first the next time."""
        self._positions[partition] = self._positions.pop(partition)

    def reset(self, partition: TopicPartition) -> None:
        """The position is out of range: resets it by the policy."""
        position = self._positions[partition]
        position.stage = Stage.AWAITS_RESET
        self._unready[partition] = position
        self.rearranged()

    # -- the application's ------------------------------------------------------------------------

    def pause(self, partition: TopicPartition, *, paused: bool) -> bool:
        """Pauses a partition or resumes it; false if it is not assigned, or was so before.

        A partition that is assigned again is not paused.

        Source: ``SubscriptionState.{pause,resume}``.
        """
        position = self._positions.get(partition)
        if position is None or position.paused == paused:
            return False
        position.paused = paused
        self.rearranged()
        return True

    def seek(self, partition: TopicPartition, offset: Offset, timestamp: int | None) -> bool:
        """Moves to an offset, or to that of a timestamp; false if it is not assigned.

        Buffered records and open requests of the former position are dropped. An offset is not
        validated: it has no epoch.

        Args:
            partition: The partition.
            offset: Next offset to return; of no meaning with a timestamp.
            timestamp: EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, or milliseconds since 1970.

        Source: ``SubscriptionState.{seekUnvalidated,requestOffsetReset}``.
        """
        former = self._positions.get(partition)
        if former is None or former.stage is Stage.HELD:
            return False
        position = Position(Stage.AWAITS_RESET, former.offset, paused=former.paused)
        self._positions[partition] = self._unready[partition] = position
        position.sought = timestamp
        if timestamp is None:
            self._seek(partition, position, offset, NO_EPOCH, "seek")
        self.rearranged()
        return True

    # -- committed offsets ------------------------------------------------------------------------

    def without_committed(self) -> tuple[TopicPartition, ...]:
        """Partitions whose committed offset must be fetched."""
        return tuple(p for p, at in self._unready.items() if at.stage is Stage.AWAITS_COMMITTED)

    def take_committed(self, offsets: Iterable[tuple[TopicPartition, Offset, LeaderEpoch]]) -> None:
        """Applies the group's committed offsets; -1 without one."""
        for partition, offset, epoch in offsets:
            position = self._unready.get(partition)
            if position is None or position.stage is not Stage.AWAITS_COMMITTED:
                continue
            if offset == NO_OFFSET:
                position.stage = Stage.AWAITS_RESET
            else:
                self._seek(partition, position, offset, epoch, "committed")

    # -- resets and validation --------------------------------------------------------------------

    def progress(self, now: Micros) -> None:
        """Sends the requests of pending resets and validations."""
        for partition, position in list(self._unready.items()):
            if position.asking:
                continue
            if position.stage is Stage.AWAITS_RESET:
                self._list_offsets(partition, position, now)
            elif position.stage is Stage.VALIDATING:
                self._look_up_end_of_epoch(partition, position, now)

    def _look_up_end_of_epoch(
        self, partition: TopicPartition, position: Position, now: Micros
    ) -> None:
        leader = position.leader
        assert leader is not None, "only a position with a leader is validated"
        if now < position.retry_at:
            return
        if leader.leader < 0:
            # A committed position without a leader: it is validated as soon as there is one.
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
        """Handles the end of the epoch in the leader's log.

        Source: ``SubscriptionState.maybeCompleteValidation``.
        """
        if (
            self._unready.get(partition) is not position
            or position.stage is not Stage.VALIDATING
            or position.leader is not leader
        ):
            return  # revoked meanwhile, or to be validated with another leader
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
            position.stage = Stage.AWAITS_RESET
        elif truncated:
            self._note(partition, position, end, "truncated")
            position.seek(end, epoch)
        else:
            position.stage = Stage.FETCHING
        if position.stage is Stage.FETCHING:
            del self._unready[partition]
        self.rearranged()

    def _later(self, partition: TopicPartition, position: Position, now: Micros, what: str) -> None:
        """Retries after a back-off, with newer metadata."""
        position.retry_at = now + self._link.backoff(self._failures)
        self._failures += 1
        self._metadata.request_update(now)
        self._link.set_timer(f"{what}/{partition}", position.retry_at, self.progress)

    def _list_offsets(self, partition: TopicPartition, position: Position, now: Micros) -> None:
        policy = self._link.config.auto_offset_reset
        if policy == "none" and position.sought is None:
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
        by_policy = EARLIEST_TIMESTAMP if policy == "earliest" else LATEST_TIMESTAMP
        self._link.send(
            known.leader,
            ListOffsetsRequest(
                partition,
                by_policy if position.sought is None else position.sought,
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
            self._found(partition, position, offset)
        elif error.retriable:
            self._later(partition, position, now, "reset")
        else:
            self._link.fail(error)

    def _found(self, partition: TopicPartition, position: Position, offset: Offset) -> None:
        """Begins where a reset, or a seek, leads: without an epoch, for no record was read there.

        An application that finds no record at or after its timestamp seeks to the end.
        """
        sought, position.sought = position.sought, None
        if offset == NO_OFFSET:
            position.sought = LATEST_TIMESTAMP
        else:
            why = "reset" if sought is None else "seek"
            self._seek(partition, position, offset, NO_EPOCH, why)

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
        """Writes the new position, and the former one, to the trace."""
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
