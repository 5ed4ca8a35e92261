"""A member of a share group: ``KafkaShareConsumer`` in its poll loop, with the application around.

The application polls, processes each record, and polls again. With implicit acknowledgement the
next poll accepts all that the last one returned; with explicit acknowledgement the application
accepts, releases or rejects each record. Records without an acknowledgement when it closes are
delivered to others.

An application that renews locks works in a thread of its own: every so often the polling thread
acknowledges what is finished, renews the locks of all else, and polls until it knows for which of
them that counts; it gives up the others (KIP-1222). Left out: ``commitSync``.

Source: ``ShareConsumerImpl``, ``ShareMembershipManager`` (4.1), ``ShareInFlightBatch`` (4.2);
KIP-932, KIP-1222.
"""

from collections.abc import Callable
from dataclasses import dataclass

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition, uuid_text
from sim.protocol.broker.share.partition import ACCEPT, REJECT, RELEASE
from sim.protocol.clients.consumer.config import ConsumerSetup
from sim.protocol.clients.consumer.consumer_protocol import Holdings, Then
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
    renew_us: Micros = 0
    """Time after which it renews the locks of what it has not finished; 0: it never does."""

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
            revoke=lambda _revoked, then, now: then(now),
        )
        self._membership = ShareMembershipManager(
            link, self._finder, member_id, holdings, lambda: self.config.topics
        )
        self._in_hand: list[Received] = []
        """Records of the last poll without an acknowledgement so far, or whose locks are being
        renewed."""
        self._began_us: Micros = 0
        """Instant at which the work on the first of them began."""

    def assignment(self) -> tuple[TopicPartition, ...]:
        """Its partitions, sorted; other members may have them too."""
        return self._fetcher.assigned

    # -- poll -------------------------------------------------------------------------------------

    def _poll(self, now: Micros) -> None:
        """Polls until records are returned that take time, or there are none."""
        while self._polling:
            self._membership.progress(now)
            if self._link.error is not ErrorCode.NONE:
                self._raise(now)
                return
            if self._in_hand:
                if not self._take_renewed(now):
                    return
                continue
            self._in_hand = self._fetcher.collect(self.config.poll_records_max)
            if not self._in_hand:
                self._fetcher.fetch(now)
                return
            self._fetcher.acknowledge()
            self._process(now)

    def _process(self, now: Micros) -> None:
        """The application begins to work on what it got."""
        self._began_us = now
        self._work(now)

    def _work(self, now: Micros) -> None:
        """The application works until it is done, or renews locks."""
        done_at = self._began_us + self._count() * self.config.processing_us
        took = max(0, done_at - now)
        if self.application.renew_us:
            took = min(took, self.application.renew_us)
        if took == 0:
            self._processed(now)
        else:
            self._busy(took, self._processed, now)

    def _count(self) -> int:
        return sum(got.last - got.first + 1 for got in self._in_hand)

    def _processed(self, now: Micros) -> None:
        """Acknowledges each finished record, renews the locks of the others, and polls again."""
        left = self._count()
        if self.application.renew_us and self.config.processing_us:
            left = min(left, (now - self._began_us) // self.config.processing_us)
            self._began_us += left * self.config.processing_us
        unfinished: list[Received] = []
        for got in self._in_hand:
            count = min(left, got.last - got.first + 1)
            left -= count
            if count:
                self._acknowledge(got, count)
            if got.first + count <= got.last:
                unfinished.append(got._replace(first=got.first + count))
        for got in unfinished:
            self._fetcher.renew(got)
        self._in_hand = unfinished
        self._polling = True

    def _acknowledge(self, got: Received, count: int) -> None:
        """Acknowledges the first records."""
        types: tuple[int, ...] = (ACCEPT,)
        if self.application.explicit:
            drawn = [self._type() for _ in range(count)]
            types = tuple(drawn) if any(kind != drawn[0] for kind in drawn) else (drawn[0],)
        said = Acknowledgement(got.first, got.first + count - 1, types)
        self._fetcher.say(got.node, got.partition, said)

    def _take_renewed(self, now: Micros) -> bool:
        """Continues with records whose locks are renewed; false while that is not known."""
        renewed = self._fetcher.take_renewed()
        if renewed is None:
            self._fetcher.fetch(now)
            return False
        head = self._in_hand[0]
        self._in_hand = [got for got in self._in_hand if (got.partition, got.first) in renewed]
        if self._in_hand:
            if self._in_hand[0] is not head:  # the work on it was in vain
                self._began_us = now
            self._work(now)
        return True

    def _type(self) -> int:
        application = self.application
        if not application.release_ppm + application.reject_ppm:
            return ACCEPT
        return application.type_of(self._chance())

    # -- assignment -------------------------------------------------------------------------------

    def _take(self, partitions: tuple[TopicPartition, ...], _now: Micros) -> None:
        self._fetcher.assign(partitions)
        self._note_assignment()

    def _lose(self, then: Then, now: Micros) -> None:
        had = bool(self._fetcher.assigned)
        self._fetcher.assign(())
        if had:
            self._note_assignment()
        then(now)

    # -- the end ----------------------------------------------------------------------------------

    def _before_leaving(self, now: Micros) -> None:
        self._fetcher.close(self._leave, now)
