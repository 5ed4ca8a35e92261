"""Where a consumer stands in each of its partitions, and how it finds out where to begin.

A partition begins at the group's committed offset; if there is none, or it is out of range, where
``auto.offset.reset`` says. Left out: validation of positions after a change of leader (KIP-320), so
a consumer learns of truncation by OFFSET_OUT_OF_RANGE or not at all; ``by_duration`` resets.

Source: ``SubscriptionState``, ``OffsetFetcher``, ``ConsumerCoordinator.fetchCommittedOffsets``.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial

from sim.error_codes import ErrorCode
from sim.ids import NO_EPOCH, NO_LEADER, NO_OFFSET, LeaderEpoch, NodeId, Offset, TopicPartition
from sim.protocol.consumer_link import ConsumerLink
from sim.protocol.consumer_metadata import ConsumerMetadata
from sim.protocol.messages import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    LeaderHint,
    ListOffsetsRequest,
    ListOffsetsResponse,
    Response,
)
from sim.units import LONG_AGO, Micros


class Stage(Enum):
    """How far a partition has come."""

    WANTS_COMMITTED = "wants committed offset"
    WANTS_RESET = "wants reset"
    FETCHING = "fetching"
    HELD = "held"
    """It is given up when its position is committed; nothing is fetched any more."""


@dataclass(slots=True)
class Position:
    """A consumer's place in one partition, for one assignment of it."""

    stage: Stage
    offset: Offset = NO_OFFSET
    """Next offset to return to the application; only meaningful while fetching."""
    epoch: LeaderEpoch = NO_EPOCH
    """Leader epoch of the last record returned."""
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

    def __init__(self, link: ConsumerLink, metadata: ConsumerMetadata) -> None:
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
        """What a commit says: every partition whose position is known, sorted."""
        return tuple(
            (partition, position.offset, position.epoch)
            for partition, position in sorted(self._positions.items())
            if position.stage in {Stage.FETCHING, Stage.HELD}
        )

    def rearranged(self) -> None:
        """Other partitions than before can be fetched, or from other brokers."""
        self.layout += 1
        self.changed = True

    def assign(self, partitions: Iterable[TopicPartition], stage: Stage) -> None:
        """Take over exactly these partitions, each at its beginning."""
        self._positions = {partition: Position(stage) for partition in partitions}
        self._unready = dict(self._positions)
        self._failures = 0
        self.rearranged()

    def hold(self, partitions: Iterable[TopicPartition]) -> None:
        """Return nothing of these any more; those that were read keep their position.

        What is buffered or in flight was asked for by the former position, and is dropped.
        """
        for partition in partitions:
            position = self._positions.get(partition)
            if position is not None and position.stage is Stage.FETCHING:
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
                self._seek(partition, position, offset, epoch)

    # -- resets -----------------------------------------------------------------------------------

    def progress(self, now: Micros) -> None:
        """Ask where to begin, for partitions that are to be reset."""
        for partition, position in list(self._unready.items()):
            if position.stage is Stage.WANTS_RESET and not position.asking:
                self._ask(partition, position, now)

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
        offset, epoch = NO_OFFSET, NO_EPOCH
        if response is not None:
            assert isinstance(response, ListOffsetsResponse)
            offset, epoch, error = response.offset, response.leader_epoch, response.error
        if error is ErrorCode.NONE:
            self._failures = 0
            self._seek(partition, position, offset, epoch)
        elif error.retriable:
            position.retry_at = now + self._link.backoff(self._failures)
            self._failures += 1
            self._metadata.request_update(now)
            self._link.set_timer(f"reset/{partition}", position.retry_at, self.progress)
        else:
            self._link.fail(error)

    def _seek(
        self, partition: TopicPartition, position: Position, offset: Offset, epoch: LeaderEpoch
    ) -> None:
        position.seek(offset, epoch)
        del self._unready[partition]
        self.rearranged()
