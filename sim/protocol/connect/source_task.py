"""A source task of Connect: polls an external log, and stores its position in Kafka.

At least once, it stores every ``offset.flush.interval.ms`` the position up to which everything is
acknowledged, and polls meanwhile; after a restart later records are sent again. Exactly once, its
records and the position after them are one transaction, at whose end it waits, and it reads its
position only after producers before it are fenced. A task whose record or transaction failed fails,
until it is restarted.

Positions are kept as offsets of a group without members; Connect keeps them in a topic of its own.

Source: ``connect.runtime.{AbstractWorkerSourceTask,WorkerSourceTask,ExactlyOnceWorkerSourceTask,
SubmittedRecords,SourceTaskOffsetCommitter}``; KIP-618, KAFKA-12226.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from sim.error_codes import ErrorCode
from sim.ids import NO_EPOCH, NO_LEADER, NO_OFFSET, NodeId, Offset, TopicPartition
from sim.protocol.clients.admin.group_offsets import API_TIMEOUT_US, GroupOffsets
from sim.protocol.clients.consumer.effects import Deliver
from sim.protocol.clients.consumer.work import WorkEnded, WorkEnding, WorkTaken
from sim.protocol.effects import Send, SetTimer
from sim.protocol.events import RequestFailed, ResponseReceived, TimerFired
from sim.protocol.messages.base import Response
from sim.protocol.messages.group import OffsetCommitResponse, OffsetFetchResponse
from sim.trace.emit import Emit
from sim.trace.rows import connectors as rows
from sim.units import Micros

SourceOffsets: TypeAlias = Literal["acked", "inside", "taken", "apart"]
"""Position that a source stores: up to the acknowledged records; inside its transactions. The
others are defects that tests plant: of polled records, and after the transaction."""

_FETCH: Final = "ask"
_POLL: Final = "poll"
_FLUSH: Final = "flush"
_BOUNDARY: Final = "boundary"
_CLOSE: Final = "close"


@dataclass(frozen=True, slots=True)
class SourcePlan:
    """Settings of one source task."""

    connector: str
    number: int
    """Number of the connector, as written into its records."""
    task: int
    """Number of the task, and of the partition of the external log that it reads."""
    topic: str
    """Topic of its records."""
    group: str
    """Group of its position, which is the offset of partition ``task`` of the topic."""
    poll_us: Micros
    """Interval of polls of the external log."""
    batch: int
    """Records that a poll returns at most."""
    offsets: SourceOffsets
    flush_interval_us: Micros
    """``offset.flush.interval.ms``."""
    flush_timeout_us: Micros
    """``offset.flush.timeout.ms``."""
    boundary_us: Micros = 0
    """``transaction.boundary.interval.ms``; 0: each poll is a transaction."""

    @property
    def place(self) -> TopicPartition:
        """Partition whose offset is the position."""
        return TopicPartition(self.topic, self.task)


@dataclass(frozen=True, slots=True)
class SourceStarted:
    """The task may begin; exactly once, after ``initTransactions()``."""


@dataclass(frozen=True, slots=True)
class SourceAcked:
    """Kafka has acknowledged records: runs of positions, by first position and end."""

    stretches: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class SourceRefused:
    """A record could not be written, or its outcome is unknown."""


@dataclass(frozen=True, slots=True)
class SourceClosing:
    """The task is to stop in good order."""


@dataclass(frozen=True, slots=True)
class SourceEnded:
    """The task has ended."""

    failed: bool


SourceEvent = (
    SourceStarted
    | SourceAcked
    | SourceRefused
    | SourceClosing
    | WorkEnded
    | ResponseReceived
    | RequestFailed
    | TimerFired
)
"""Events of a source task."""

SourceEffect = Send | SetTimer | Emit | WorkTaken | WorkEnding | SourceEnded
"""Effects of a source task."""


class SourceTask:
    """One source task.

    Args:
        plan: Its settings.
        bootstrap: ``bootstrap.servers``.
        length: Present length of the external log.
    """

    def __init__(
        self, plan: SourcePlan, bootstrap: tuple[NodeId, ...], length: Callable[[], int]
    ) -> None:
        self._plan = plan
        self._length = length
        self._calls = GroupOffsets(bootstrap)
        self._transactional = plan.offsets in ("inside", "apart")
        self._position = 0
        self._begun = self._closing = self._ended = False
        self._acked_to = 0
        """Everything before this position is acknowledged."""
        self._acked: dict[int, int] = {}
        """Acknowledged runs after it, by their first position."""
        self._stored = 0
        self._storing_until: Micros = 0
        """End of the wait for a position that is being stored."""
        self._round = 0
        self._open_since: Micros | None = None
        """Time of the round's first record; ``None`` if it has none."""
        self._waits = False
        """True if it waits for the end of a round."""
        self._out: list[SourceEffect] = []

    @property
    def is_idle(self) -> bool:
        """True if it has begun, and every appended record is written."""
        if self._ended:
            return True
        if not self._begun or self._position < self._length() or self._waits:
            return False
        if self._transactional:
            return self._open_since is None
        return self._acked_to == self._position

    def handle(self, event: SourceEvent, now: Micros) -> list[SourceEffect]:
        """Handles an event; returns effects in order."""
        self._out = []
        if self._ended:
            return []
        match event:
            case SourceStarted():
                self._fetch_position(now)
            case TimerFired():
                self._on_timer(event, now)
            case ResponseReceived() | RequestFailed():
                self._calls.handle(event, now)
            case SourceAcked():
                self._on_acked(event)
            case SourceRefused():
                self._end(failed=True)
            case WorkEnded():
                self._on_ended(event, now)
            case SourceClosing():
                self._close(now)
        sends, self._calls.effects = self._calls.effects, []
        return [*self._out, *sends]

    def _on_timer(self, event: TimerFired, now: Micros) -> None:
        name = event.name
        if name == _FETCH and not self._begun:
            self._fetch_position(now)
        elif name == _POLL:
            self._poll(now)
        elif name == _BOUNDARY:
            self._end_round()
        elif name == _FLUSH:
            self._out.append(SetTimer(_FLUSH, now + self._plan.flush_interval_us))
            self._store(now)
        elif name == _CLOSE:
            self._end(failed=False)
        elif name != _FETCH:
            self._calls.handle(event, now)

    # -- first position ----------------------------------------------------------------------------

    def _fetch_position(self, now: Micros) -> None:
        plan = self._plan
        self._calls.fetch(plan.group, (plan.place,), self._on_stored, now, stable=True)
        self._out.append(SetTimer(_FETCH, now + API_TIMEOUT_US))

    def _on_stored(self, response: Response, now: Micros) -> None:
        assert isinstance(response, OffsetFetchResponse)
        if self._begun:
            return
        if response.error is not ErrorCode.NONE:
            self._end(failed=True)
            return
        found = next((offset for _, offset, _ in response.offsets), NO_OFFSET)
        self._begun = True
        self._position = self._acked_to = self._stored = max(0, found)
        self._note_position("begun", self._position)
        if not self._transactional:
            self._out.append(SetTimer(_FLUSH, now + self._plan.flush_interval_us))
        self._poll(now)

    # -- records ----------------------------------------------------------------------------------

    def _poll(self, now: Micros) -> None:
        if self._closing:
            return
        plan = self._plan
        self._out.append(SetTimer(_POLL, now + plan.poll_us))
        count = min(self._length() - self._position, plan.batch)
        if count <= 0 or self._waits:
            return
        self._take(count, now)
        if not self._transactional:
            return
        if self._open_since is None:
            self._open_since = now
            if plan.boundary_us:
                self._out.append(SetTimer(_BOUNDARY, now + plan.boundary_us))
        if not plan.boundary_us:
            self._end_round()

    def _take(self, count: int, now: Micros) -> None:
        plan, first = self._plan, self._position
        self._position += count
        source = TopicPartition(plan.connector, plan.task)
        last = self._position - 1
        piece = Deliver(
            source, first, last, NO_EPOCH, plan.number, first, count, NO_OFFSET, NO_LEADER
        )
        self._out.append(WorkTaken(self._round, (piece,), now, 0))

    def _on_acked(self, event: SourceAcked) -> None:
        for first, stop in event.stretches:
            self._acked[first] = stop
        while self._acked_to in self._acked:
            self._acked_to = self._acked.pop(self._acked_to)

    # -- rounds: transactions, and the last one ----------------------------------------------------

    def _end_round(self) -> None:
        if self._waits or self._open_since is None:
            return
        plan = self._plan
        self._waits = True
        inside: tuple[tuple[TopicPartition, Offset, int], ...] = ()
        if plan.offsets == "inside":
            inside = ((plan.place, self._position, NO_EPOCH),)
        self._out.append(WorkEnding(self._round, commits=True, group=plan.group, offsets=inside))

    def _on_ended(self, event: WorkEnded, now: Micros) -> None:
        self._round = event.round + 1
        self._waits = False
        self._open_since = None
        if not event.ok:
            self._end(failed=True)
            return
        if self._plan.offsets == "inside":
            self._stored = self._position
            self._note_position("stored", self._stored)
        elif self._plan.offsets == "apart":
            self._store(now)
        if self._closing:
            self._finish(now)

    # -- positions --------------------------------------------------------------------------------

    def _store(self, now: Micros) -> None:
        """Stores the safe position, unless a store is in flight."""
        plan = self._plan
        position = self._acked_to if plan.offsets == "acked" else self._position
        if now < self._storing_until or position <= self._stored:
            return
        self._storing_until = now + plan.flush_timeout_us

        def answered(response: Response, at: Micros) -> None:
            assert isinstance(response, OffsetCommitResponse)
            self._storing_until = at
            if response.error is ErrorCode.NONE:
                self._stored = max(self._stored, position)
                self._note_position("stored", position)
            if self._closing:
                self._end(failed=False)

        offsets = ((plan.place, position, NO_EPOCH),)
        self._calls.commit(plan.group, offsets, answered, now, plan.flush_timeout_us)

    def _note_position(self, what: str, position: int) -> None:
        self._out.append(
            rows.SourceOffsets.row(
                connector=self._plan.connector,
                source_partition=self._plan.task,
                position=position,
                what=what,
            )
        )

    # -- the end ----------------------------------------------------------------------------------

    def _close(self, now: Micros) -> None:
        if self._closing:
            return
        self._closing = True
        if not self._begun:
            self._end(failed=False)
        elif self._transactional and self._open_since is None:
            self._finish(now)
        elif self._transactional:
            self._end_round()
        else:
            self._waits = True
            self._out.append(WorkEnding(self._round, commits=True))

    def _finish(self, now: Micros) -> None:
        """Everything is written: stores the last position, and waits for it up to the timeout."""
        if self._transactional or self._acked_to <= self._stored:
            self._end(failed=False)
            return
        self._storing_until = now
        self._out.append(SetTimer(_CLOSE, now + self._plan.flush_timeout_us))
        self._store(now)

    def _end(self, *, failed: bool) -> None:
        if not self._ended:
            self._ended = True
            self._out.append(SourceEnded(failed))
