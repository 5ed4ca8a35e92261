"""A broker's remote log manager: copies closed segments, deletes old ones, serves remote reads.

Each tiered partition that the broker leads has a copy task and an expiration task, which run again
so long after they end; followers only learn how far the remote log reaches. A task does one thing
at a time; a step that fails ends it until its next run.

Left out: quotas of copies and fetches (KIP-956), custom metadata.

Source: ``RemoteLogManager`` (4.0); KIP-405.
"""

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from sim.ids import NodeId, Offset, TopicPartition, uuid_text
from sim.protocol import effects as fx
from sim.protocol.broker.tiered.metadata_topic import metadata_partition_of
from sim.protocol.broker.tiered.ports import (
    AssignMetadata,
    AuxStateDone,
    AuxStateRequested,
    ClosedSegment,
    CopySegment,
    DeleteSegment,
    Effects,
    EventsRead,
    PartitionStopped,
    Published,
    PublishEvent,
    RaiseLogStart,
    ReadAuxState,
    RemoteReadCancelled,
    RemoteReadRequested,
    RoleApplied,
    SegmentRead,
    StorageDone,
    TieredConfig,
    TieredLog,
)
from sim.protocol.broker.tiered.reads import RemoteReads
from sim.protocol.broker.tiered.retention import expired, first_remote_offset, highest_copied
from sim.protocol.broker.tiered.segments import (
    RemoteEvent,
    RemoteSegment,
    SegmentState,
    epochs_between,
    update_of,
)
from sim.protocol.broker.tiered.tasks import Pool, Step, Tiered
from sim.protocol.events import TimerFired
from sim.trace.rows.tiered import (
    RemoteSegments,
)
from sim.units import Micros, timestamp_ms

TieredEvent: TypeAlias = (
    RoleApplied
    | PartitionStopped
    | EventsRead
    | Published
    | StorageDone
    | SegmentRead
    | RemoteReadRequested
    | RemoteReadCancelled
    | AuxStateRequested
    | TimerFired
)


class RemoteLogManager:
    """Tiered partitions of one broker process.

    Args:
        broker: Its id.
        incarnation: Number of its starts, for the ids of segments.
        config: Settings.
        log_of: A replica's log; ``None`` if it is not on this broker.
    """

    def __init__(
        self,
        broker: NodeId,
        incarnation: int,
        config: TieredConfig,
        log_of: Callable[[TopicPartition], TieredLog | None],
    ) -> None:
        self.config = config
        self._broker = broker
        self._incarnation = incarnation
        self._log_of = log_of
        self._partitions: dict[TopicPartition, Tiered] = {}
        self._steps: dict[int, Step] = {}
        self._tokens = 0
        self._segments = 0
        self._copiers = Pool(config.copiers)
        self._expirers = Pool(config.expirers)
        self._read_to: dict[int, Offset] = {}
        """Offset of the last event of each metadata partition that was ever read."""
        self._reads = RemoteReads(config, log_of)

    def handle(self, event: TieredEvent, now: Micros) -> Effects:
        """Handles an event; returns effects in order."""
        out: Effects = []
        match event:
            case RoleApplied():
                self._take_role(event, now, out)
            case PartitionStopped():
                self._stop(event, now, out)
            case EventsRead():
                self._replay(event, now, out)
            case Published() | StorageDone():
                step = self._steps.pop(event.token, None)
                if step is not None:
                    step(event.ok, now, out)
            case RemoteReadRequested():
                tiered = self._partitions.get(event.partition)
                known = tiered.cache if tiered is not None and tiered.is_read else None
                self._reads.request(event, known, out)
            case RemoteReadCancelled(token):
                self._reads.cancel(token, out)
            case SegmentRead():
                self._reads.answered(event, out)
            case AuxStateRequested():
                self._aux_state(event, out)
            case TimerFired(name):
                self._run(name, now, out)
        return out

    # -- partitions -------------------------------------------------------------------------------

    def _take_role(self, event: RoleApplied, now: Micros, out: Effects) -> None:
        partition = event.partition
        tiered = self._partitions.get(partition)
        if tiered is None or tiered.topic_id != event.topic_id:
            count = self.config.metadata_partitions
            where = metadata_partition_of(event.topic_id, partition.partition, count)
            tiered = self._partitions[partition] = Tiered(partition, event.topic_id, where)
            if not self.config.rereads_events:
                tiered.read_offset = self._read_to.get(where, -1)
            self._assign((where,), out)
        elif tiered.is_leader == event.is_leader:
            return  # its tasks continue
        tiered.is_leader = event.is_leader
        tiered.term += 1
        tiered.copied = None
        tiered.has_log_start = False
        if tiered.is_read:
            self._begin(tiered, now, out)

    def _assign(self, restarted: tuple[int, ...], out: Effects) -> None:
        assigned = dict.fromkeys(t.metadata_partition for t in self._partitions.values())
        out.append(AssignMetadata(tuple(assigned), restarted))

    def _begin(self, tiered: Tiered, now: Micros, out: Effects) -> None:
        """Starts the tasks of a role; they run at once."""
        self._copy_or_follow(tiered, tiered.term, now, out)
        if tiered.is_leader:
            self._expire(tiered, tiered.term, now, out)

    def _run(self, name: str, now: Micros, out: Effects) -> None:
        kind, topic, number, term = name.split("/")
        tiered = self._partitions.get(TopicPartition(topic, int(number)))
        if tiered is None or tiered.term != int(term):
            return
        if kind == "copy":
            self._copy_or_follow(tiered, tiered.term, now, out)
        else:
            self._expire(tiered, tiered.term, now, out)

    def _again(self, kind: str, tiered: Tiered, term: int, now: Micros, out: Effects) -> None:
        """Runs a task again after the interval, unless its role has ended."""
        if tiered.term == term and self._partitions.get(tiered.partition) is tiered:
            topic, number = tiered.partition
            at = now + self.config.interval_us
            out.append(fx.SetTimer(f"{kind}/{topic}/{number}/{term}", at))

    def _stop(self, event: PartitionStopped, now: Micros, out: Effects) -> None:
        """Ends the tasks of a partition; the leader of a deleted one deletes its objects.

        Source: ``RemoteLogManager.stopPartitions``, ``deleteRemoteLogPartition``.
        """
        tiered = self._partitions.get(event.partition)
        if tiered is None:
            return
        tiered.term += 1
        tiered.is_leader = False
        if event.deletes_remote:
            tiered.is_deleted = True
            self._delete_all(tiered, list(tiered.cache.segments()), now, out)
        else:
            self._forget(tiered, out)

    def _forget(self, tiered: Tiered, out: Effects) -> None:
        if self._partitions.get(tiered.partition) is tiered:
            del self._partitions[tiered.partition]
            self._assign((), out)

    def _delete_all(
        self, tiered: Tiered, left: list[RemoteSegment], now: Micros, out: Effects
    ) -> None:
        if not left:
            self._forget(tiered, out)
            return

        def following(_ok: bool, then: Micros, effects: Effects) -> None:  # noqa: FBT001
            self._delete_all(tiered, left[1:], then, effects)

        self._delete(left[0], following, now, out)

    # -- metadata ---------------------------------------------------------------------------------

    def _replay(self, event: EventsRead, now: Micros, out: Effects) -> None:
        number = event.metadata_partition
        for offset, each in event.events:
            tiered = self._partitions.get(each.partition)
            if (
                tiered is not None
                and tiered.topic_id == each.topic_id
                and offset > tiered.read_offset
            ):
                tiered.read_offset = offset
                tiered.cache.apply(each)
            self._read_to[number] = max(self._read_to.get(number, -1), offset)
        if not event.caught_up:
            return
        for tiered in list(self._partitions.values()):
            if tiered.metadata_partition == number and not tiered.is_read:
                tiered.is_read = True
                if not tiered.is_deleted:
                    self._begin(tiered, now, out)

    def _publish(self, event: RemoteEvent, step: Step, out: Effects) -> None:
        out.append(PublishEvent(self._next(step), event))

    def _next(self, step: Step) -> int:
        self._tokens += 1
        self._steps[self._tokens] = step
        return self._tokens

    def _note(self, segment: RemoteSegment, state: SegmentState, out: Effects) -> None:
        """Writes the state of a segment to the trace, as its event was written."""
        out.append(
            RemoteSegments.row(
                self._broker,
                *segment.partition,
                segment=segment.segment_id,
                state=state.name,
                start_offset=segment.start,
                end_offset=segment.end,
                leader_epochs=",".join(f"{epoch}:{start}" for epoch, start in segment.epochs),
                size_bytes=segment.size,
            )
        )

    # -- copying ----------------------------------------------------------------------------------

    def _copy_or_follow(self, tiered: Tiered, term: int, now: Micros, out: Effects) -> None:
        if tiered.is_leader:
            self._copiers.run(partial(self._copy, tiered, term), now, out)
            return
        log = self._log_of(tiered.partition)
        if log is not None:
            log.note_copied(highest_copied(tiered.cache, log.epochs, log.log_end_offset))
        self._again("copy", tiered, term, now, out)

    def _copy(self, tiered: Tiered, term: int, now: Micros, out: Effects) -> None:
        """One run of the copy task (``RLMCopyTask.copyLogSegmentsToRemote``)."""
        log = self._log_of(tiered.partition)
        if log is None or tiered.term != term:
            self._copied(tiered, term, now, out)
            return
        if not tiered.has_log_start:
            tiered.has_log_start = True
            start = first_remote_offset(tiered.cache, log)
            if start > log.log_start_offset:
                out.append(RaiseLogStart(tiered.partition, start, "remote"))
        if tiered.copied is None:
            tiered.copied = highest_copied(tiered.cache, log.epochs, log.log_end_offset)
            log.note_copied(tiered.copied)
        stable = log.last_stable_offset
        start = max(tiered.copied + 1, log.log_start_offset)
        candidates = [s for s in log.closed_segments(start) if s.next_offset <= stable]
        self._copy_next(tiered, term, candidates if tiered.copied < stable else [], now, out)

    def _copied(self, tiered: Tiered, term: int, now: Micros, out: Effects) -> None:
        """A run of the copy task ends."""
        self._copiers.done(now, out)
        self._again("copy", tiered, term, now, out)

    def _copy_next(
        self,
        tiered: Tiered,
        term: int,
        candidates: list[ClosedSegment],
        now: Micros,
        out: Effects,
    ) -> None:
        log = self._log_of(tiered.partition)
        if not candidates or log is None or tiered.term != term:
            self._copied(tiered, term, now, out)
            return
        candidate, rest = candidates[0], candidates[1:]
        self._segments += 1
        name = f"remote/{tiered.partition}/{self._broker}/{self._incarnation}/{self._segments}"
        segment = RemoteSegment(
            uuid_text(name),
            tiered.topic_id,
            tiered.partition,
            candidate.base_offset,
            candidate.next_offset - 1,
            candidate.max_timestamp_ms,
            self._broker,
            timestamp_ms(now),
            candidate.size,
            epochs_between(log.epochs, candidate.base_offset, candidate.next_offset),
            lacks_aborted=candidate.lacks_aborted,
        )
        tiered.being_copied[segment.segment_id] = None
        self._publish(segment, partial(self._started, tiered, term, segment, rest), out)

    def _started(
        self,
        tiered: Tiered,
        term: int,
        segment: RemoteSegment,
        rest: list[ClosedSegment],
        ok: bool,  # noqa: FBT001 - the outcome of a step
        now: Micros,
        out: Effects,
    ) -> None:
        if not ok or tiered.term != term:
            self._given_up(tiered, term, segment, now, out)
            return
        self._note(segment, SegmentState.COPY_SEGMENT_STARTED, out)
        step = partial(self._stored, tiered, term, segment, rest)
        out.append(CopySegment(self._next(step), segment))

    def _stored(
        self,
        tiered: Tiered,
        term: int,
        segment: RemoteSegment,
        rest: list[ClosedSegment],
        ok: bool,  # noqa: FBT001 - the outcome of a step
        now: Micros,
        out: Effects,
    ) -> None:
        if tiered.term != term:
            self._given_up(tiered, term, segment, now, out)
        elif ok:
            event = update_of(
                segment, SegmentState.COPY_SEGMENT_FINISHED, self._broker, timestamp_ms(now)
            )
            self._publish(event, partial(self._finished, tiered, term, segment, rest), out)
        elif self.config.deletes_failed:

            def cleaned(_ok: bool, then: Micros, effects: Effects) -> None:  # noqa: FBT001
                self._given_up(tiered, term, segment, then, effects)

            self._delete(segment, cleaned, now, out)
        else:
            self._given_up(tiered, term, segment, now, out)

    def _given_up(
        self, tiered: Tiered, term: int, segment: RemoteSegment, now: Micros, out: Effects
    ) -> None:
        tiered.being_copied.pop(segment.segment_id, None)
        self._copied(tiered, term, now, out)

    def _finished(
        self,
        tiered: Tiered,
        term: int,
        segment: RemoteSegment,
        rest: list[ClosedSegment],
        ok: bool,  # noqa: FBT001 - the outcome of a step
        now: Micros,
        out: Effects,
    ) -> None:
        if not ok:
            self._given_up(tiered, term, segment, now, out)
            return
        self._note(segment, SegmentState.COPY_SEGMENT_FINISHED, out)
        tiered.being_copied.pop(segment.segment_id, None)
        log = self._log_of(tiered.partition)
        if log is not None and tiered.term == term:
            tiered.copied = segment.end
            log.note_copied(segment.end)
        self._copy_next(tiered, term, rest, now, out)

    # -- deletion ---------------------------------------------------------------------------------

    def _expire(self, tiered: Tiered, term: int, now: Micros, out: Effects) -> None:
        self._expirers.run(partial(self._clean_up, tiered, term), now, out)

    def _clean_up(self, tiered: Tiered, term: int, now: Micros, out: Effects) -> None:
        """One run of the expiration task; the log start moves before anything is deleted."""
        log = self._log_of(tiered.partition)
        doomed: list[RemoteSegment] = []
        if log is not None and tiered.term == term:
            counts_failed = not self.config.deletes_failed
            found = expired(
                tiered.cache,
                log,
                timestamp_ms(now),
                tiered.being_copied,
                counts_failed=counts_failed,
            )
            doomed = list(found.segments)
            if found.log_start > log.log_start_offset:
                out.append(RaiseLogStart(tiered.partition, found.log_start, found.reason))
        self._delete_next(tiered, term, doomed, now, out)

    def _delete_next(
        self, tiered: Tiered, term: int, left: list[RemoteSegment], now: Micros, out: Effects
    ) -> None:
        if not left or tiered.term != term:
            self._expirers.done(now, out)
            self._again("expire", tiered, term, now, out)
            return

        def following(ok: bool, then: Micros, effects: Effects) -> None:  # noqa: FBT001
            self._delete_next(tiered, term, left[1:] if ok else [], then, effects)

        self._delete(left[0], following, now, out)

    def _delete(self, segment: RemoteSegment, step: Step, now: Micros, out: Effects) -> None:
        """Deletes a segment: event, objects, event (``deleteRemoteLogSegment``)."""

        def begun(ok: bool, then: Micros, effects: Effects) -> None:  # noqa: FBT001
            if not ok:
                step(False, then, effects)  # noqa: FBT003
                return
            self._note(segment, SegmentState.DELETE_SEGMENT_STARTED, effects)
            effects.append(DeleteSegment(self._next(removed), segment))

        def removed(ok: bool, then: Micros, effects: Effects) -> None:  # noqa: FBT001
            if not ok:
                step(False, then, effects)  # noqa: FBT003
                return
            state = SegmentState.DELETE_SEGMENT_FINISHED
            event = update_of(segment, state, self._broker, timestamp_ms(then))
            self._publish(event, ended, effects)

        def ended(ok: bool, then: Micros, effects: Effects) -> None:  # noqa: FBT001
            if ok:
                self._note(segment, SegmentState.DELETE_SEGMENT_FINISHED, effects)
            step(ok, then, effects)

        state = SegmentState.DELETE_SEGMENT_STARTED
        self._publish(update_of(segment, state, self._broker, timestamp_ms(now)), begun, out)

    # -- followers --------------------------------------------------------------------------------

    def _aux_state(self, event: AuxStateRequested, out: Effects) -> None:
        """Finds the segment with the state that a follower needs (``TierStateMachine``)."""
        tiered = self._partitions.get(event.partition)
        segment = None
        if tiered is not None and tiered.is_read:
            segment = tiered.cache.find(event.epoch, event.offset)
        if segment is None:
            out.append(AuxStateDone(event.token, None))
        else:
            out.append(ReadAuxState(event.token, segment))
