"""The poll loop of an application around a client library, from its first poll to ``close()``.

The application polls, spends its time on what it got, and polls again. Clients differ in what a
poll does, in what the application does with records, and in what has to be done before the group
is left.

Source: ``KafkaConsumer``, ``ConsumerDelegate``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, assert_never

from sim.ids import NO_OFFSET, Offset, TopicPartition
from sim.protocol.clients.consumer.classic_protocol import ConsumerMembership
from sim.protocol.clients.consumer.config import ConsumerSetup
from sim.protocol.clients.consumer.consumer_protocol import ConsumerMembershipManager
from sim.protocol.clients.consumer.context import ConsumerEffect, ConsumerLink
from sim.protocol.clients.consumer.coordinator_lookup import CoordinatorFinder
from sim.protocol.clients.consumer.effects import Stopped
from sim.protocol.clients.consumer.metadata import ConsumerMetadata
from sim.protocol.events import RequestFailed, ResponseReceived, TimerFired
from sim.trace.rows.clients import Assignments, ConsumerErrors
from sim.units import SECOND, Micros

CLOSE_TIMEOUT_US: Micros = 30 * SECOND
"""Time that ``close()`` waits for the coordinator by default."""


@dataclass(frozen=True, slots=True)
class Start:
    """The application begins to poll."""


@dataclass(frozen=True, slots=True)
class CloseConsumer:
    """The application closes the consumer: commit, leave, stop."""


@dataclass(frozen=True, slots=True)
class ApplicationCall:
    """The application calls its consumer between two polls: seek, pause or resume.

    A partition that is not assigned is left out, where Kafka's client raises
    ``IllegalStateException``.

    Attributes:
        number: By which :class:`ApplicationCalled` refers to it.
        call: What is called.
        partitions: Of the call.
        offset: To seek; of no meaning with a timestamp.
        timestamp: To seek: EARLIEST_TIMESTAMP, LATEST_TIMESTAMP or milliseconds since 1970.

    Source: ``KafkaConsumer.{seek,seekToBeginning,seekToEnd,offsetsForTimes,pause,resume}``.
    """

    number: int
    call: Literal["seek", "pause", "resume"]
    partitions: tuple[TopicPartition, ...]
    offset: Offset = NO_OFFSET
    timestamp: int | None = None


ConsumerEvent = (
    Start | CloseConsumer | ApplicationCall | ResponseReceived | RequestFailed | TimerFired
)
"""Events of a consumer."""


class PollLoop:
    """One client library and its application."""

    _membership: ConsumerMembership | ConsumerMembershipManager

    def __init__(self, setup: ConsumerSetup) -> None:
        self.name = setup.name
        self.config = config = setup.config
        self._link = link = ConsumerLink(config, setup.unit)
        self._metadata = ConsumerMetadata(link, setup.bootstrap, config.topics, config.pattern)
        self._finder = CoordinatorFinder(link, self._metadata)
        self._polling = False
        """The application is inside poll(); otherwise it processes, or has not begun, or closed."""
        self._closed = False
        self._calls: list[ApplicationCall] = []
        """Calls of the application for the end of its present work."""

    def handle(self, event: ConsumerEvent, now: Micros) -> list[ConsumerEffect]:
        """Decide."""
        match event:
            case ResponseReceived() | RequestFailed():
                self._link.answered(event, now)
            case TimerFired(name):
                self._link.fire(name, now)
            case Start():
                self._polling = True
            case CloseConsumer():
                self._close(now)
            case ApplicationCall():
                self._calls.append(event)
            case _:
                assert_never(event)
        return self._continue(now)

    def _continue(self, now: Micros) -> list[ConsumerEffect]:
        if not self._closed:
            self._metadata.progress(now)
            if self._polling:
                if self._calls:
                    self._call()
                self._poll(now)
        return self._link.take()

    # -- what clients differ in -------------------------------------------------------------------

    def assignment(self) -> tuple[TopicPartition, ...]:
        """Its partitions, sorted."""
        raise NotImplementedError

    def _call(self) -> None:
        """Carry out the application's calls."""
        raise AssertionError("only a KafkaConsumer seeks and pauses")

    def _poll(self, now: Micros) -> None:
        """Poll until records are returned that take time, or there are none."""
        raise NotImplementedError

    def _before_leaving(self, now: Micros) -> None:
        """Do what comes before the group is left, and leave it then."""
        raise NotImplementedError

    # -- views ------------------------------------------------------------------------------------

    @property
    def generation(self) -> int:
        """Of its group, as it knows it; -1 for none."""
        return self._membership.generation

    @property
    def member_id(self) -> str:
        """As given by the coordinator, or chosen by the client (KIP-848); empty for none."""
        return self._membership.member_id

    # -- the application --------------------------------------------------------------------------

    def _busy(self, took: Micros, done: Callable[[Micros], None], now: Micros) -> None:
        """The application works on what it got, outside poll()."""
        self._polling = False
        self._link.set_timer("processed", now + took, done)
        interval = self.config.poll_interval_us_max
        if self.config.group_id and took > interval:
            self._link.set_timer("too-long", now + interval, self._polls_too_rarely)

    def _polls_too_rarely(self, now: Micros) -> None:
        """``max.poll.interval.ms`` has passed without a poll."""
        self._membership.expire(now)

    def _note_assignment(self) -> None:
        self._link.emit(
            Assignments.row(
                self.name,
                self.config.group_id,
                member_id=self.member_id,
                generation=self.generation,
                partitions=",".join(str(partition) for partition in self.assignment()),
            )
        )

    # -- the end ----------------------------------------------------------------------------------

    def _raise(self, now: Micros) -> None:
        """Leaves poll() by its error; the application closes the client."""
        error, group = self._link.error.name, self.config.group_id
        self._link.emit(ConsumerErrors.row(self.name, group, error=error))
        self._close(now)

    def _close(self, now: Micros) -> None:
        if self._link.is_set("close") or self._closed:
            return
        self._polling = False
        self._link.cancel_timer("processed")
        self._link.cancel_timer("too-long")
        self._link.set_timer("close", now + CLOSE_TIMEOUT_US, self._stop)
        self._before_leaving(now)

    def _leave(self, now: Micros) -> None:
        self._membership.leave(self._stop, now)

    def _stop(self, _now: Micros) -> None:
        if not self._closed:
            self._closed = True
            self._link.end()
            self._link.effects.append(Stopped(self._link.error))
