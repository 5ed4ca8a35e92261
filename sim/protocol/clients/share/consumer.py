"""A member of a share group: ``KafkaShareConsumer`` in its poll loop, with the application around.

The application polls, spends its time on each record that it got, and polls again. With implicit
acknowledgement the next poll accepts all that the last one returned; with explicit
acknowledgement the application says of each record whether it accepts it, gives it back, or
rejects it. What it has not said anything of when it closes, its brokers give to others. Left out:
``commitSync``, renewal of locks (4.2).

Source: ``ShareConsumerImpl``, ``ShareMembershipManager`` (4.1); KIP-932.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

from sim.error_codes import ErrorCode
from sim.ids import NodeId, TopicPartition, uuid_text
from sim.protocol.broker.share.partition import ACCEPT, REJECT, RELEASE
from sim.protocol.clients.consumer.config import ConsumerConfig
from sim.protocol.clients.consumer.consumer import (
    CLOSE_TIMEOUT_US,
    Close,
    ConsumerEvent,
    Start,
    Stopped,
)
from sim.protocol.clients.consumer.consumer_protocol import Holdings
from sim.protocol.clients.consumer.context import ConsumerEffect, ConsumerLink
from sim.protocol.clients.consumer.coordinator_lookup import CoordinatorFinder
from sim.protocol.clients.consumer.metadata import ConsumerMetadata
from sim.protocol.clients.share.fetcher import Received, ShareFetcher
from sim.protocol.clients.share.membership import ShareMembershipManager
from sim.protocol.events import RequestFailed, ResponseReceived, TimerFired
from sim.protocol.messages.share_records import Acknowledgement
from sim.trace.rows.clients import Assignments
from sim.units import Micros

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class ShareApplication:
    """What the application does with records; shares are in millionths."""

    explicit: bool = False
    """``share.acknowledgement.mode``: explicit, or implicit."""
    release_ppm: int = 0
    """Of deliveries that it gives back."""
    reject_ppm: int = 0
    """Of deliveries that it rejects."""

    def __post_init__(self) -> None:
        assert self.explicit or not self.release_ppm + self.reject_ppm, "it says nothing"

    def type_of(self, chance: float) -> int:
        """What it says of a record, by a number drawn uniform in [0, 1)."""
        drawn = chance * _MILLION
        if drawn < self.release_ppm:
            return RELEASE
        return REJECT if drawn < self.release_ppm + self.reject_ppm else ACCEPT


class ShareConsumer:
    """One member of a share group.

    Args:
        name: Its ``client.id``.
        config: Its settings.
        application: What is done with records.
        bootstrap: Brokers that it knows from the start.
        unit: Draws numbers uniform in [0, 1), for jitter and the choice of a broker to ask.
        chance: Draws them for the application.
    """

    def __init__(
        self,
        name: str,
        config: ConsumerConfig,
        application: ShareApplication,
        bootstrap: tuple[NodeId, ...],
        unit: Callable[[], float],
        chance: Callable[[], float],
    ) -> None:
        self.name = name
        self.config = config
        self.application = application
        self._chance = chance
        self._link = link = ConsumerLink(config, unit)
        self._metadata = ConsumerMetadata(link, bootstrap, config.topics)
        self._finder = CoordinatorFinder(link, self._metadata)
        member_id = uuid_text(f"{name}/{link.unit()}/{link.unit()}")
        self._fetcher = ShareFetcher(link, self._metadata, name, member_id)
        holdings = Holdings(
            hold=lambda _partitions: None,
            take=self._take,
            lose=self._lose,
            commit=lambda then, now: then(now),
        )
        self._membership = ShareMembershipManager(link, self._finder, member_id, holdings)
        self._in_hand: list[Received] = []
        """What the last poll returned and nothing is said of yet."""
        self._polling = False
        """The application is inside poll(); otherwise it processes, or has not begun, or closed."""
        self._closed = False

    def handle(self, event: ConsumerEvent, now: Micros) -> list[ConsumerEffect]:
        """Decide."""
        match event:
            case ResponseReceived() | RequestFailed():
                self._link.answered(event, now)
            case TimerFired(name):
                self._link.fire(name, now)
            case Start():
                self._polling = True
            case Close():
                self._close(now)
            case _:
                assert_never(event)
        if not self._closed:
            self._metadata.progress(now)
            if self._polling:
                self._poll(now)
        return self._link.take()

    def assignment(self) -> tuple[TopicPartition, ...]:
        """Its partitions, sorted; other members may have them too."""
        return self._fetcher.assigned

    @property
    def member_id(self) -> str:
        """As it chose it."""
        return self._membership.member_id

    # -- poll -------------------------------------------------------------------------------------

    def _poll(self, now: Micros) -> None:
        """Poll until records are returned that take time, or there are none."""
        while self._polling:
            self._membership.progress(now)
            if self._link.error is not ErrorCode.NONE:
                self._close(now)
                return
            self._in_hand = self._fetcher.collect(self.config.poll_records_max)
            if not self._in_hand:
                self._fetcher.fetch(now)
                return
            self._fetcher.acknowledge()
            self._process(now)

    def _process(self, now: Micros) -> None:
        """The application works on what it got, outside poll()."""
        count = sum(got.last - got.first + 1 for got in self._in_hand)
        took = count * self.config.processing_us
        if took == 0:
            self._processed(now)
            return
        self._polling = False
        self._link.set_timer("processed", now + took, self._processed)
        if took > self.config.poll_interval_us_max:
            late = now + self.config.poll_interval_us_max
            self._link.set_timer("too-long", late, self._membership.expire)

    def _processed(self, now: Micros) -> None:  # noqa: ARG002 - a timer's
        """It has something to say of each record, and polls again."""
        for got in self._in_hand:
            types: tuple[int, ...] = (ACCEPT,)
            if self.application.explicit:
                drawn = [self._type() for _ in range(got.last - got.first + 1)]
                types = tuple(drawn) if any(kind != drawn[0] for kind in drawn) else (drawn[0],)
            self._fetcher.say(got.node, got.partition, Acknowledgement(got.first, got.last, types))
        self._in_hand = []
        self._polling = True

    def _type(self) -> int:
        application = self.application
        if not application.release_ppm + application.reject_ppm:
            return ACCEPT
        return application.type_of(self._chance())

    # -- assignment -------------------------------------------------------------------------------

    def _take(self, partitions: tuple[TopicPartition, ...], _now: Micros) -> None:
        self._fetcher.assign(partitions)
        self._note_assignment()

    def _lose(self, _now: Micros) -> None:
        had = bool(self._fetcher.assigned)
        self._fetcher.assign(())
        if had:
            self._note_assignment()

    def _note_assignment(self) -> None:
        member = self._membership
        self._link.emit(
            Assignments.row(
                self.name,
                self.config.group_id,
                member_id=member.member_id,
                generation=member.generation,
                partitions=",".join(str(partition) for partition in self._fetcher.assigned),
            )
        )

    # -- the end ----------------------------------------------------------------------------------

    def _close(self, now: Micros) -> None:
        if self._link.is_set("close") or self._closed:
            return
        self._polling = False
        self._link.cancel_timer("processed")
        self._link.cancel_timer("too-long")
        self._link.set_timer("close", now + CLOSE_TIMEOUT_US, self._stop)
        self._fetcher.close(self._leave, now)

    def _leave(self, now: Micros) -> None:
        self._membership.leave(self._stop, now)

    def _stop(self, _now: Micros) -> None:
        if not self._closed:
            self._closed = True
            self._link.end()
            self._link.effects.append(Stopped(self._link.error))
