"""A member of a share group: ``KafkaShareConsumer`` in its poll loop, with the application around.

The application polls, processes each record, and polls again. With implicit acknowledgement the
next poll accepts all that the last one returned; with explicit acknowledgement the application
accepts, releases or rejects each record. Records without an acknowledgement when it closes are
delivered to others. Left out: ``commitSync``, renewal of locks (4.2).

Source: ``ShareConsumerImpl``, ``ShareMembershipManager`` (4.1); KIP-932.
"""

from collections.abc import Callable
from dataclasses import dataclass

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition, uuid_text
from sim.protocol.broker.share.partition import ACCEPT, REJECT, RELEASE
from sim.protocol.clients.consumer.config import ConsumerSetup
from sim.protocol.clients.consumer.consumer_protocol import Holdings
from sim.protocol.clients.consumer.poll_loop import PollLoop
from sim.protocol.clients.share.fetcher import Received, ShareFetcher
from sim.protocol.clients.share.membership import ShareMembershipManager
from sim.protocol.messages.share_records import Acknowledgement
from sim.units import Micros

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class ShareApplication:
    """The application's acknowledgements; shares are in millionths."""

    explicit: bool = False
    """``share.acknowledgement.mode``: explicit, or implicit."""
    release_ppm: int = 0
    """Deliveries that it releases."""
    reject_ppm: int = 0
    """Deliveries that it rejects."""

    def __post_init__(self) -> None:
        assert self.explicit or not self.release_ppm + self.reject_ppm, "it says nothing"

    def type_of(self, chance: float) -> int:
        """Its acknowledgement type of a record, by a number drawn uniform in [0, 1)."""
        drawn = chance * _MILLION
        if drawn < self.release_ppm:
            return RELEASE
        return REJECT if drawn < self.release_ppm + self.reject_ppm else ACCEPT


class ShareConsumer(PollLoop):
    """One member of a share group.

    Args:
        setup: As of every consumer.
        application: What is done with records.
        chance: Draws numbers uniform in [0, 1) for the application.
    """

    def __init__(
        self, setup: ConsumerSetup, application: ShareApplication, chance: Callable[[], float]
    ) -> None:
        super().__init__(setup)
        self.application = application
        self._chance = chance
        link, name = self._link, self.name
        member_id = uuid_text(f"{name}/{link.unit()}/{link.unit()}")
        self._fetcher = ShareFetcher(link, self._metadata, name, member_id)
        holdings = Holdings(
            hold=lambda _partitions: None,
            take=self._take,
            lose=self._lose,
            commit=lambda then, now: then(now),
        )
        self._membership = ShareMembershipManager(
            link, self._finder, member_id, holdings, lambda: self.config.topics
        )
        self._in_hand: list[Received] = []
        """Records of the last poll without an acknowledgement so far."""

    def assignment(self) -> tuple[TopicPartition, ...]:
        """Its partitions, sorted; other members may have them too."""
        return self._fetcher.assigned

    # -- poll -------------------------------------------------------------------------------------

    def _poll(self, now: Micros) -> None:
        """Polls until records are returned that take time, or there are none."""
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
        """The application works on what it got."""
        count = sum(got.last - got.first + 1 for got in self._in_hand)
        took = count * self.config.processing_us
        if took == 0:
            self._processed(now)
        else:
            self._busy(took, self._processed, now)

    def _processed(self, now: Micros) -> None:  # noqa: ARG002 - a timer's
        """Acknowledges each record, and polls again."""
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

    # -- the end ----------------------------------------------------------------------------------

    def _before_leaving(self, now: Micros) -> None:
        self._fetcher.close(self._leave, now)
