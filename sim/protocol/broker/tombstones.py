"""Coordinated removal of tombstones: none goes before all replicas have cleaned beyond it.

The leader of a compacted partition collects from every replica how far it has cleaned, and hands
the least of these offsets to all of them: below it a cleaner may remove tombstones that are old
enough. It never decreases. A replica that does not answer holds it up, for however long. What a
leader knows is in its memory: the next one collects it again.

One request does both: it brings the offset, and its response what the replica has cleaned. Redpanda
has one for each, and lets chance choose when a leader begins.

Source: Redpanda 25.3, ``raft/compaction_coordinator.cc``; Kafka has nothing of the kind.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Final

from sim.ids import NodeId, Offset, TopicPartition
from sim.protocol import effects as fx
from sim.protocol.events import RequestFailed, RequestReceived, ResponseReceived, TimerFired
from sim.protocol.messages.leader_epochs import (
    TombstoneOffsetsRequest,
    TombstoneOffsetsResponse,
)
from sim.units import MS, SECOND, Micros

TIMER: Final = "tombstones"
CHANNEL: Final = "tombstones"
"""Label of the connections between brokers."""

REQUEST_TIMEOUT_US: Final[Micros] = 10 * SECOND

ROUNDS: Final = 24
"""Rounds in one ``delete.retention.ms``."""

RETRIES: Final = 10
"""Attempts in one round, while a replica does not answer."""

IDLE_US: Final[Micros] = SECOND
"""Time until a broker that leads nothing compacted looks again; ours."""

UNKNOWN: Final[Offset] = -1
"""Cleaned offset of a log that is not open here."""


@dataclass(frozen=True, slots=True)
class LedLog:
    """A compacted partition that this broker leads."""

    partition: TopicPartition
    followers: tuple[NodeId, ...]
    delete_retention_us: Micros

    @property
    def interval_us(self) -> Micros:
        """Time from one round to the next."""
        return max(self.delete_retention_us // ROUNDS, MS)


class CleanedLogs(ABC):
    """The logs of one broker, as far as the coordination looks at them."""

    @abstractmethod
    def led(self) -> list[LedLog]:
        """Compacted partitions that this broker leads."""

    @abstractmethod
    def cleaned(self, partition: TopicPartition) -> Offset:
        """First dirty offset of a log; :data:`UNKNOWN` if it is not open."""


TombstoneEvent = RequestReceived | ResponseReceived | RequestFailed | TimerFired
TombstoneEffect = fx.Send | fx.Reply | fx.SetTimer


class TombstoneCoordinator:
    """Offsets below which tombstones may be removed from the logs of one broker.

    Args:
        broker: Its id.
        logs: Its logs.
    """

    def __init__(self, broker: NodeId, logs: CleanedLogs) -> None:
        self._broker = broker
        self._logs = logs
        self._removable: dict[TopicPartition, Offset] = {}
        self._cleaned: dict[TopicPartition, dict[NodeId, Offset]] = {}
        """Answers of followers, of partitions that it leads."""
        self._due: dict[TopicPartition, Micros] = {}
        self._open: dict[int, tuple[LedLog, ...]] = {}
        self._correlation = 0

    def start(self, now: Micros) -> list[TombstoneEffect]:
        """Effects of the start."""
        return [fx.SetTimer(TIMER, now + IDLE_US)]

    def removable(self, partition: TopicPartition) -> Offset:
        """Offset below which tombstones may be removed from the partition's log."""
        return self._removable.get(partition, 0)

    def handle(self, event: TombstoneEvent, now: Micros) -> list[TombstoneEffect]:
        """Handles an event; returns effects."""
        match event:
            case TimerFired():
                return self._round(now)
            case RequestReceived():
                assert isinstance(event.request, TombstoneOffsetsRequest)
                return [fx.Reply(event.token, self._answer(event.request))]
            case ResponseReceived():
                assert isinstance(event.response, TombstoneOffsetsResponse)
                self._open.pop(event.correlation, None)
                self._note(event.sender, event.response)
            case RequestFailed():
                for led in self._open.pop(event.correlation, ()):
                    again = now + max(led.interval_us // RETRIES, MS)
                    due = self._due.get(led.partition, again)
                    self._due[led.partition] = min(due, again)
        return []

    # -- leader -----------------------------------------------------------------------------------

    def _round(self, now: Micros) -> list[TombstoneEffect]:
        """Sends what is due to each follower, and sets the timer for the next round."""
        led = {each.partition: each for each in self._logs.led()}
        self._cleaned = {p: known for p, known in self._cleaned.items() if p in led}
        self._due = {p: self._due.get(p, now) for p in led}
        sending: dict[NodeId, list[LedLog]] = {}
        for partition, each in led.items():
            if self._due[partition] <= now:
                self._due[partition] = now + each.interval_us
                self._advance(partition, each)
                for broker in each.followers:
                    sending.setdefault(broker, []).append(each)
        out: list[TombstoneEffect] = []
        for broker, logs in sending.items():
            self._correlation += 1
            self._open[self._correlation] = tuple(logs)
            offsets = tuple((each.partition, self.removable(each.partition)) for each in logs)
            request = TombstoneOffsetsRequest(self._broker, offsets)
            out.append(fx.Send(broker, self._correlation, request, REQUEST_TIMEOUT_US, CHANNEL))
        shortest = min((each.interval_us for each in led.values()), default=IDLE_US)
        out.append(fx.SetTimer(TIMER, now + max(min(shortest // RETRIES, IDLE_US), MS)))
        return out

    def _note(self, follower: NodeId, response: TombstoneOffsetsResponse) -> None:
        for partition, cleaned in response.cleaned:
            if cleaned != UNKNOWN:
                self._cleaned.setdefault(partition, {})[follower] = cleaned

    def _advance(self, partition: TopicPartition, led: LedLog) -> None:
        """Raises the offset to the least that any replica has cleaned to, if all have said it."""
        known = self._cleaned.get(partition, {})
        if any(broker not in known for broker in led.followers):
            return
        least = min((known[b] for b in led.followers), default=self._own(partition))
        self._raise(partition, min(least, self._own(partition)))

    # -- every replica ----------------------------------------------------------------------------

    def _answer(self, request: TombstoneOffsetsRequest) -> TombstoneOffsetsResponse:
        for partition, removable in request.offsets:
            self._raise(partition, removable)
        cleaned = tuple((partition, self._own(partition)) for partition, _ in request.offsets)
        return TombstoneOffsetsResponse(cleaned)

    def _own(self, partition: TopicPartition) -> Offset:
        """First dirty offset; what all had cleaned is clean in a log that is fetched again, too."""
        cleaned = self._logs.cleaned(partition)
        return cleaned if cleaned == UNKNOWN else max(cleaned, self.removable(partition))

    def _raise(self, partition: TopicPartition, offset: Offset) -> None:
        if offset > self.removable(partition):
            self._removable[partition] = offset
