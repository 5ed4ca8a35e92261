"""Not a test: a table-top cluster on which consumers and group coordinators talk.

No network: a message takes ``DELAY_US``. Logs of the offsets topic are lists; an append is
committed after ``COMMIT_US``, unless the bench is told otherwise.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition, uuid_text
from sim.protocol import effects as fx
from sim.protocol.assignors.registry import partition_for_group
from sim.protocol.clients.consumer.config import ConsumerConfig, ConsumerSetup
from sim.protocol.clients.consumer.consumer import CloseConsumer, Consumer, Deliver, Start, Stopped
from sim.protocol.clients.consumer.effects import ApplicationCalled, ExternalWrite
from sim.protocol.coordinator.group.context import GroupConfig
from sim.protocol.coordinator.group.coordinator import GroupCoordinator
from sim.protocol.coordinator.group.requests import GROUP_REQUESTS
from sim.protocol.coordinator.log import (
    AppendRecords,
    PartitionElected,
    PartitionLoading,
    PartitionResigned,
    RecordsAppended,
)
from sim.protocol.events import RequestFailed, RequestReceived, ResponseReceived, TimerFired
from sim.protocol.messages.data import (
    EARLIEST_TIMESTAMP,
    AbortedTransaction,
    FetchRequest,
    FetchResponse,
    FetchResult,
    ListOffsetsRequest,
    ListOffsetsResponse,
)
from sim.protocol.messages.group import FindCoordinatorRequest, FindCoordinatorResponse
from sim.protocol.messages.leader_epochs import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from sim.protocol.messages.metadata import MetadataRequest, MetadataResponse, PartitionMetadata
from sim.protocol.metadata.image import MetadataImage
from sim.units import MS, SECOND, Micros

DELAY_US = 1 * MS
COMMIT_US = 2 * MS
LOOK_US = 100 * MS
"""How often a parked fetch looks for data."""
RECONNECT_US = 50 * MS
"""After which a request to a dead broker fails, in place of a connection's back-off."""


@dataclass(frozen=True)
class FakeBatch:
    base_offset: int
    record_count: int
    leader_epoch: int = 0
    producer_index: int = 0
    first_record: int = 0
    is_control: bool = False
    is_transactional: bool = False
    is_abort_marker: bool = False
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    max_timestamp_ms: int = 0
    size_bytes: int = 1000
    crc: int = 0
    damaged: bool = False

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.record_count - 1

    def valid(self) -> bool:
        return not self.damaged


@dataclass
class Party:
    name: str
    machine: Any
    timers: dict[str, tuple[int, int]] = field(default_factory=dict)
    dead: bool = False


class Bench:
    """Brokers 1..n with a coordinator each; consumers by name."""

    def __init__(self, topics: dict[str, int], brokers: int = 2, config: GroupConfig | None = None):
        self.now: Micros = 0
        self._queue: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._order = count()
        self.topics = dict(topics)
        self.rows: list[tuple[Any, ...]] = []
        self.delivered: list[tuple[Micros, str, Deliver]] = []
        self.written: list[tuple[Micros, str, Deliver]] = []
        self.stopped: dict[str, ErrorCode] = {}
        self.called: list[tuple[TopicPartition, ...]] = []
        self.requests: list[tuple[Micros, str, Any]] = []
        self.answers: list[tuple[Micros, str, Any, Any]] = []
        self.config = config or GroupConfig()
        self.brokers = {
            n: Party(f"broker-{n}", GroupCoordinator(n, 1, self.config, self.image))
            for n in range(1, brokers + 1)
        }
        self.consumers: dict[str, Party] = {}
        self.offsets_leader = 1
        self.offsets_epoch = 0
        self.offsets_log: dict[int, list[Any]] = {}
        self.commit_error = ErrorCode.NONE
        self.data: dict[TopicPartition, list[FakeBatch]] = {}
        self.leaders: dict[TopicPartition, int] = {}
        self.epochs: dict[TopicPartition, int] = {}
        self.high_watermarks: dict[TopicPartition, int] = {}
        self.stable: dict[TopicPartition, int] = {}
        self.aborted: dict[TopicPartition, tuple[AbortedTransaction, ...]] = {}
        self.fetch_errors: dict[TopicPartition, ErrorCode] = {}
        self.parked: list[tuple[int, Party, int, FetchRequest, Any]] = []
        self.sessions: dict[tuple[int, str], dict[TopicPartition, Any]] = {}
        self._tokens: dict[int, tuple[Party, int, int, Any]] = {}
        self._token = count(1)

    def image(self) -> MetadataImage:
        """What brokers know of the topics."""
        image = MetadataImage()
        image.topic_ids = {topic: uuid_text(topic) for topic in self.topics}
        image.topic_names = {uuid_text(topic): topic for topic in self.topics}
        image.partition_counts = dict(self.topics)
        return image

    # -- running ----------------------------------------------------------------------------------

    def at(self, when: Micros, fn: Callable[..., None], *args: Any) -> None:
        heapq.heappush(self._queue, (max(when, self.now), next(self._order), fn, args))

    def run(self, until: Micros) -> None:
        steps = 0
        while self._queue and self._queue[0][0] <= until:
            self.now, _, fn, args = heapq.heappop(self._queue)
            fn(*args)
            steps += 1
            assert steps < 300_000, "the bench does not come to rest"
        self.now = until

    def elect(self, broker: int, partitions: list[int] | None = None) -> None:
        """Make a broker lead the offsets topic, after a load that takes 20 ms."""
        self.offsets_epoch += 1
        old, self.offsets_leader = self.offsets_leader, broker
        partitions = partitions if partitions is not None else sorted(self.offsets_log)
        for partition in partitions:
            if old != broker and not self.brokers[old].dead:
                self.give(self.brokers[old], PartitionResigned(partition))
            self.give(self.brokers[broker], PartitionLoading(partition, self.offsets_epoch))
            self.at(self.now + 20 * MS, self._loaded, broker, partition, self.offsets_epoch)

    def _loaded(self, broker: int, partition: int, epoch: int) -> None:
        records = tuple(self.offsets_log.get(partition, []))
        self.give(self.brokers[broker], PartitionElected(partition, epoch, records))

    def consumer(
        self,
        name: str,
        start_at: Micros = 0,
        make: Callable[..., Any] = Consumer,
        more: tuple[Any, ...] = (),
        **settings: Any,
    ) -> Party:
        config = ConsumerConfig(**({"topics": tuple(self.topics), "group_id": "g"} | settings))
        machine = make(ConsumerSetup(name, config, tuple(self.brokers), lambda: 0.5), *more)
        party = self.consumers[name] = Party(name, machine)
        if config.group_id:
            self.offsets_log.setdefault(partition_for_group(config.group_id), [])
        self.at(start_at, self.give, party, Start())
        return party

    def kill(self, name: str) -> None:
        self.consumers[name].dead = True

    def close(self, name: str) -> None:
        self.give(self.consumers[name], CloseConsumer())

    def give(self, party: Party, event: Any) -> None:
        if party.dead:
            return
        for effect in party.machine.handle(event, self.now):
            self.perform(party, effect)

    # -- effects ----------------------------------------------------------------------------------

    def perform(self, party: Party, effect: Any) -> None:
        match effect:
            case fx.Send():
                self.at(self.now + DELAY_US, self._arrive, party, effect)
            case fx.Reply(token, response):
                asker, to, correlation, request = self._tokens.pop(token)
                self.answers.append((self.now, asker.name, request, response))
                if response is not None:
                    event = ResponseReceived(to, correlation, response)
                    self.at(self.now + DELAY_US, self.give, asker, event)
            case fx.SetTimer(name, at):
                number = next(self._order)
                party.timers[name] = (at, number)
                self.at(at, self._fire, party, name, number)
            case fx.CancelTimer(name):
                party.timers.pop(name, None)
            case fx.Disconnect(to, _):
                self._cut(party, to)
            case fx.Emit(table, row):
                self.rows.append((self.now, table, *row))
            case AppendRecords():
                self._append(party, effect)
            case Deliver():
                self.delivered.append((self.now, party.name, effect))
            case ExternalWrite(pieces):
                self.written += [(self.now, party.name, piece) for piece in pieces]
            case ApplicationCalled():
                self.called.append(effect.partitions)
            case Stopped(error):
                self.stopped[party.name] = error
            case _:
                raise AssertionError(effect)

    def _fire(self, party: Party, name: str, number: int) -> None:
        if party.timers.get(name, (0, -1))[1] == number:
            del party.timers[name]
            self.give(party, TimerFired(name))

    def _cut(self, party: Party, to: int) -> None:
        for token, (asker, node, correlation, request) in list(self._tokens.items()):
            if asker is party and node == to and isinstance(request, GROUP_REQUESTS):
                self._tokens[token] = (Party("nobody", None, dead=True), node, correlation, request)
                error = ErrorCode.NETWORK_EXCEPTION
                self.at(self.now, self.give, party, RequestFailed(to, correlation, error))

    def _append(self, party: Party, effect: AppendRecords) -> None:
        if self.commit_error is ErrorCode.NONE:
            self.offsets_log[effect.partition].extend(effect.records)
        event = RecordsAppended(effect.token, self.commit_error)
        self.at(self.now + COMMIT_US, self.give, party, event)

    # -- what brokers answer ----------------------------------------------------------------------

    def _arrive(self, asker: Party, effect: fx.Send) -> None:
        if asker.dead:
            return
        self.requests.append((self.now, asker.name, effect.request))
        broker = self.brokers[effect.to]
        if broker.dead:
            event = RequestFailed(effect.to, effect.correlation, ErrorCode.NETWORK_EXCEPTION)
            self.at(self.now + RECONNECT_US, self.give, asker, event)
            return
        request = effect.request
        if isinstance(request, GROUP_REQUESTS):
            token = next(self._token)
            self._tokens[token] = (asker, effect.to, effect.correlation, request)
            self.give(broker, RequestReceived(token, asker.name, request))
            return
        answer: Any
        match request:
            case MetadataRequest():
                answer = self._metadata(request)
            case FindCoordinatorRequest():
                fine = not self.brokers[self.offsets_leader].dead
                answer = (
                    FindCoordinatorResponse(ErrorCode.NONE, self.offsets_leader)
                    if fine
                    else FindCoordinatorResponse(ErrorCode.COORDINATOR_NOT_AVAILABLE)
                )
            case ListOffsetsRequest():
                earliest = request.timestamp == EARLIEST_TIMESTAMP
                end = self.end_of(request.partition)
                if request.isolation_level == "read_committed":
                    end = self.stable.get(request.partition, end)
                offset = 0 if earliest else end
                answer = ListOffsetsResponse(request.partition, ErrorCode.NONE, offset, 0)
            case FetchRequest():
                self._fetch(asker, effect, request)
                return
            case OffsetForLeaderEpochRequest(place, epoch) if self.brokers[effect.to].dead:
                event = RequestFailed(effect.to, effect.correlation, ErrorCode.NETWORK_EXCEPTION)
                self.give(asker, event)
                return
            case OffsetForLeaderEpochRequest(place, epoch):
                answer = self._end_of_epoch(place, epoch, effect.to)
            case _:
                raise AssertionError(request)
        self._answer(asker, effect, answer)

    def _answer(self, asker: Party, effect: fx.Send, answer: Any) -> None:
        event = ResponseReceived(effect.to, effect.correlation, answer)
        self.at(self.now + DELAY_US, self.give, asker, event)

    def _end_of_epoch(self, place: TopicPartition, epoch: int, broker: int) -> Any:
        if self.leader_of(place) != broker:
            return OffsetForLeaderEpochResponse(place, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        known = [b for b in self.data.get(place, []) if b.leader_epoch <= epoch]
        if not known:
            return OffsetForLeaderEpochResponse(place, ErrorCode.NONE)
        found, end = known[-1].leader_epoch, known[-1].last_offset + 1
        return OffsetForLeaderEpochResponse(place, ErrorCode.NONE, found, end)

    def leader_of(self, partition: TopicPartition) -> int:
        return self.leaders.get(partition, 1)

    def end_of(self, partition: TopicPartition) -> int:
        batches = self.data.get(partition, [])
        return batches[-1].last_offset + 1 if batches else 0

    def _metadata(self, request: MetadataRequest) -> MetadataResponse:
        topics = {
            topic: tuple(
                PartitionMetadata(
                    n,
                    self.leader_of(TopicPartition(topic, n)),
                    self.epochs.get(TopicPartition(topic, n), 0),
                    (1, 2),
                    (1, 2),
                )
                for n in range(self.topics[topic])
            )
            for topic in request.topics
            if topic in self.topics
        }
        alive = tuple(n for n, party in self.brokers.items() if not party.dead)
        return MetadataResponse(alive, topics)

    def _fetch(self, asker: Party, effect: fx.Send, request: FetchRequest) -> None:
        session = self.sessions.setdefault((effect.to, asker.name), {})
        if request.session_epoch == 0:
            session.clear()
        for place in request.forgotten:
            session.pop(place, None)
        for item in request.partitions:
            session[item.partition] = item
        self._serve(asker, effect, session, self.now + request.max_wait_us)

    def _result(self, place: TopicPartition, batches: Any, committed: bool) -> FetchResult:
        end = self.end_of(place)
        if not committed:
            return FetchResult(place, ErrorCode.NONE, end, 0, batches)
        stable = self.stable.get(place, end)
        aborted = self.aborted.get(place, ())
        return FetchResult(
            place,
            ErrorCode.NONE,
            end,
            0,
            batches,
            last_stable_offset=stable,
            aborted=aborted,
        )

    def _serve(self, asker: Party, effect: fx.Send, session: Any, deadline: Micros) -> None:
        if self.brokers[effect.to].dead:
            event = RequestFailed(effect.to, effect.correlation, ErrorCode.NETWORK_EXCEPTION)
            self.give(asker, event)
            return
        results = []
        for place, item in session.items():
            error = self.fetch_errors.get(place, ErrorCode.NONE)
            if self.leader_of(place) != effect.to:
                error = ErrorCode.NOT_LEADER_OR_FOLLOWER
            elif item.fetch_offset > self.end_of(place):
                error = ErrorCode.OFFSET_OUT_OF_RANGE
            if error is not ErrorCode.NONE:
                results.append(FetchResult(place, error))
                continue
            committed = effect.request.isolation_level == "read_committed"
            end = self.end_of(place)
            if committed:
                end = self.stable.get(place, end)
            batches = tuple(
                b
                for b in self.data.get(place, [])
                if b.last_offset >= item.fetch_offset and b.last_offset < end
            )
            if batches:
                results.append(self._result(place, batches[:4], committed))
        if results or self.now >= deadline:
            self._answer(asker, effect, FetchResponse(ErrorCode.NONE, 7, tuple(results)))
        else:
            self.at(
                min(self.now + LOOK_US, deadline), self._serve, asker, effect, session, deadline
            )

    # -- questions --------------------------------------------------------------------------------

    def produce(self, partition: TopicPartition, records: int, **more: Any) -> FakeBatch:
        batches = self.data.setdefault(partition, [])
        base = self.end_of(partition)
        batch = FakeBatch(base, records, first_record=base, **more)
        batches.append(batch)
        return batch

    def table(self, name: str) -> list[tuple[Any, ...]]:
        return [(row[0], *row[2:]) for row in self.rows if row[1] == name]

    def shares(self) -> dict[str, tuple[TopicPartition, ...]]:
        """What each living consumer holds."""
        return {
            name: party.machine.assignment()
            for name, party in self.consumers.items()
            if not party.dead
        }

    def assigned_text(self) -> dict[int, dict[str, str]]:
        """Assignments as the consumers took them over, by generation and consumer."""
        found: dict[int, dict[str, str]] = {}
        for _, consumer, _, _, generation, text in self.table("assignments"):
            found.setdefault(generation, {})[consumer] = text
        return found


SETTLED = 4 * SECOND
