"""A consumer: Kafka's ``KafkaConsumer`` in its poll loop, with the application around it.

The application polls, processes each record, and polls again. The client works during a poll
(joining, auto-commit, fetching), except for heartbeats, which have their own thread. With
``group.protocol`` consumer (KIP-848) polls continue during reconciliation.

Source: ``ClassicKafkaConsumer``, ``AsyncKafkaConsumer``, ``ConsumerCoordinator``,
``AbstractFetch``.
"""

from collections.abc import Mapping
from functools import partial

from sim.error_codes import ErrorCode
from sim.ids import Offset, TopicPartition, uuid_text
from sim.protocol.clients.consumer.classic_protocol import ConsumerMembership
from sim.protocol.clients.consumer.commits import ConsumerCommits, Offsets
from sim.protocol.clients.consumer.config import ConsumerSetup
from sim.protocol.clients.consumer.consumer_protocol import (
    ConsumerMembershipManager,
    Holdings,
    Then,
)
from sim.protocol.clients.consumer.context import ConsumerEffect
from sim.protocol.clients.consumer.effects import ApplicationCalled, Deliver, Stopped
from sim.protocol.clients.consumer.fetcher import ConsumerFetcher
from sim.protocol.clients.consumer.poll_loop import (
    CLOSE_TIMEOUT_US,
    ApplicationCall,
    CloseConsumer,
    ConsumerEvent,
    PollLoop,
    Start,
)
from sim.protocol.clients.consumer.positions import ConsumerPositions, Stage
from sim.trace.rows.clients import Revocations
from sim.units import Micros

__all__ = [
    "CLOSE_TIMEOUT_US",
    "ApplicationCall",
    "ApplicationCalled",
    "CloseConsumer",
    "Consumer",
    "ConsumerEffect",
    "ConsumerEvent",
    "Deliver",
    "Start",
    "Stopped",
]


class Consumer(PollLoop):
    """One consumer, alone or in a group."""

    def __init__(self, setup: ConsumerSetup) -> None:
        super().__init__(setup)
        link, name = self._link, self.name
        self._positions = ConsumerPositions(name, link, self._metadata)
        self._fetcher = ConsumerFetcher(link, self._metadata, self._positions)
        self._membership = self._join_as()
        self._commits = ConsumerCommits(link, self._positions, self._finder, self._membership, name)
        self._metadata.on_change.append(self._on_metadata)
        self._close_due = False
        """True if the application closes after it has processed its records."""

    # -- views ------------------------------------------------------------------------------------

    def assignment(self) -> tuple[TopicPartition, ...]:
        """Its partitions, sorted."""
        return tuple(sorted(self._positions.all()))

    def position(self, partition: TopicPartition) -> Offset:
        """Next offset to return; -1 if the partition is not assigned, or not known yet."""
        position = self._positions.all().get(partition)
        return -1 if position is None or position.stage is not Stage.FETCHING else position.offset

    def committed(self) -> Mapping[TopicPartition, Offset]:
        """Offsets acknowledged as committed to this consumer."""
        return self._commits.committed

    # -- poll -------------------------------------------------------------------------------------

    def _poll(self, now: Micros) -> None:
        """Polls until records are returned that take time, or there are none."""
        while self._polling:
            if self.config.group_id:
                self._membership.progress(now)
                if not self._is_polling():
                    return  # a listener of the application is being called
                self._commits.invoke_callbacks(now)
                if not self._membership.rebalancing:
                    self._commits.auto(now)
                    self._commits.fetch_committed(now)
                elif self._link.error is ErrorCode.NONE and not self.config.cooperates:
                    return
            count = self._fetcher.collect(self.config.poll_records_max, now)
            self._positions.progress(now)
            if self._link.error is not ErrorCode.NONE:
                self._raise(now)
                return
            self._fetcher.send(now)
            if count == 0:
                return
            self._process(count, now)

    def _call(self) -> None:
        """Seeks, pauses or resumes, before the next poll."""
        calls, self._calls = self._calls, []
        for each in calls:
            done = tuple(place for place in each.partitions if self._called(each, place))
            self._link.effects.append(ApplicationCalled(each.number, done))

    def _called(self, each: ApplicationCall, place: TopicPartition) -> bool:
        if each.call == "seek":
            return self._positions.seek(place, each.offset, each.timestamp)
        return self._positions.pause(place, paused=each.call == "pause")

    def _process(self, count: int, now: Micros) -> None:
        """The application works on what it got."""
        took = count * self.config.processing_us
        if took > 0:
            self._busy(took, self._processed, now)
        elif self.config.commit_after_processing:
            self._processed(now)

    def _processed(self, now: Micros) -> None:
        if self._close_due:
            self._close(now)
            return
        if self.config.commit_async and self.config.group_id:
            self._commits.commit_async(_heed_nothing, now)
            self._polling = True
        elif self.config.commit_after_processing and self.config.group_id:
            self._polling = False
            self._commits.commit_and_wait(self._poll_again, self.config.api_timeout_us, now)
        else:
            self._polling = True

    def _poll_again(self, _now: Micros) -> None:
        self._polling = True
        if self._commits.refused is not ErrorCode.NONE:
            self._link.fail(self._commits.refused)  # commitSync raises it

    def _is_polling(self) -> bool:
        return self._polling

    # -- assignment -------------------------------------------------------------------------------

    def _join_as(self) -> ConsumerMembership | ConsumerMembershipManager:
        """Membership of ``group.protocol``."""
        link, finder = self._link, self._finder
        if self.config.group_protocol == "classic":
            return ConsumerMembership(
                link,
                self._metadata,
                finder,
                self.name,
                prepare=self._prepare,
                assigned=self._assigned,
                owned=self.assignment,
                polls=self._is_polling,
            )
        holdings = Holdings(
            hold=self._positions.hold,
            take=self._retaken,
            lose=self._lost,
            revoke=self._commit_before,
        )
        member_id = uuid_text(f"{self.name}/{link.unit()}/{link.unit()}")
        return ConsumerMembershipManager(link, finder, member_id, holdings, self._subscribed)

    def _subscribed(self) -> tuple[str, ...]:
        return self._metadata.subscribed

    def _commit_before(
        self,
        revoked: tuple[TopicPartition, ...],  # noqa: ARG002 - auto-commit commits all there is
        then: Then,
        now: Micros,
    ) -> None:
        if self.config.auto_commits:
            self._commits.commit_and_wait(then, self.config.poll_interval_us_max, now)
        else:
            then(now)

    def _retaken(self, partitions: tuple[TopicPartition, ...], now: Micros) -> None:
        self._positions.retake(partitions)
        self._commits.begin(now)
        self._note_assignment()

    def _lost(self, then: Then, now: Micros) -> None:
        had = bool(self._positions.all())
        self._positions.assign((), Stage.AWAITS_COMMITTED)
        self._fetcher.forget()
        self._commits.pause()
        if had:
            self._note_assignment()
        then(now)

    def _prepare(self, then: Then, now: Micros) -> None:
        """Before a rebalance: commits, then revokes all partitions.

        A cooperative member keeps all, unless it has lost its membership.
        """
        if self.config.auto_commits:
            self._commits.commit_and_wait(
                partial(self._give_up, then), self.config.poll_interval_us_max, now
            )
        else:
            self._give_up(then, now)

    def _give_up(self, then: Then, now: Micros) -> None:
        if not self.config.cooperates or self._membership.generation < 0:
            self._note_revocation(self.assignment())
            self._positions.assign((), Stage.AWAITS_COMMITTED)
            self._fetcher.forget()
            self._commits.pause()
        then(now)

    def _assigned(self, partitions: tuple[TopicPartition, ...], now: Micros) -> bool:
        """Adds new partitions; true if any were revoked."""
        given_up = tuple(p for p in self.assignment() if p not in partitions)
        self._note_revocation(given_up)
        self._positions.assign(partitions, Stage.AWAITS_COMMITTED)
        self._commits.begin(now)
        self._note_assignment()
        return bool(given_up)

    def _on_metadata(self, _now: Micros) -> None:
        self._positions.heed_leaders()
        if self.config.group_id:
            return
        have = self._positions.all()
        new = [p for p in self._metadata.partitions(self.config.topics) if p not in have]
        for partition in new:
            self._positions.add(partition)
        if new:
            self._note_assignment()

    def _note_revocation(self, partitions: tuple[TopicPartition, ...]) -> None:
        if partitions:
            text = ",".join(str(partition) for partition in partitions)
            who, generation = (self.name, self.config.group_id), self.generation
            self._link.emit(Revocations.row(*who, generation=generation, partitions=text))

    # -- the end ----------------------------------------------------------------------------------

    def _close(self, now: Micros) -> None:
        # While it closes, it processes nothing.
        if self.config.commit_async and self._link.is_set("processed"):
            self._close_due = True  # it has processed the records that it commits then
        else:
            super()._close(now)

    def _before_leaving(self, now: Micros) -> None:
        self._commits.give_up()
        if self.config.commits_at_close and self._finder.known:
            self._commits.commit_and_wait(self._leave, CLOSE_TIMEOUT_US, now)
        else:
            self._leave(now)


def _heed_nothing(_offsets: Offsets, _error: ErrorCode, _now: Micros) -> None:
    """Callback of an application that ignores the outcome."""
