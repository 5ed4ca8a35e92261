"""What a broker answers from its own metadata image: where things are, and who is who.

Metadata and coordinators are as this broker has replayed them, which may be behind. Producer ids
come in blocks of 1,000 from the controller; requests wait while a block is on its way. The topic of
transactional ids is created when a first producer looks for its coordinator.

Source: ``kafka.server.KafkaApis``, ``RPCProducerIdManager``, ``AutoTopicCreationManager``.
"""

from dataclasses import dataclass
from typing import TypeAlias

from sim.error_codes import ErrorCode
from sim.ids import NO_LEADER, TRANSACTIONS_TOPIC, BrokerEpoch, NodeId, TopicPartition
from sim.protocol import effects as fx
from sim.protocol.coordinator.lookup import find_coordinator
from sim.protocol.coordinator.transaction.records import ProducerIdGiven, ProducerIdWanted
from sim.protocol.events import RequestFailed, RequestReceived, ResponseReceived, TimerFired
from sim.protocol.messages.cluster import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    CreateTopicsRequest,
    NewTopic,
)
from sim.protocol.messages.group import FindCoordinatorRequest
from sim.protocol.messages.metadata import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    MetadataRequest,
    MetadataResponse,
    PartitionMetadata,
)
from sim.protocol.metadata.image import MetadataImage
from sim.units import MS, SECOND, Micros

RETRY_US: Micros = 50 * MS
"""Wait before a producer id block is asked for again."""

TIMEOUT_US: Micros = 30 * SECOND
"""``controller.socket.timeout.ms``."""


@dataclass(frozen=True, slots=True)
class MetadataApiState:
    """Event: what the broker knows now."""

    image: MetadataImage
    controller: NodeId
    broker_epoch: BrokerEpoch


@dataclass(frozen=True, slots=True)
class TransactionalInit:
    """Effect: an InitProducerId for the transaction coordinator."""

    event: RequestReceived


MetadataApiEffect: TypeAlias = (
    fx.Send | fx.Reply | fx.SetTimer | ProducerIdGiven | TransactionalInit
)
"""What the answers from metadata ask of their broker."""


class MetadataApi:
    """Answers metadata, coordinator and producer id requests.

    Args:
        broker: This broker's id.
        state_topic: The topic of transactional ids, as it is created.
    """

    def __init__(self, broker: NodeId, state_topic: NewTopic) -> None:
        self._broker = broker
        self._state_topic = state_topic
        self._image = MetadataImage()
        self._controller: NodeId = NO_LEADER
        self._broker_epoch: BrokerEpoch = -1
        self._next_id = 0
        self._ids_end = 0
        self._waiting: list[int] = []
        self._correlation = 0
        self._asked_as = -1
        self._creating_as = -1

    def handle(
        self,
        event: MetadataApiState
        | RequestReceived
        | ResponseReceived
        | RequestFailed
        | TimerFired
        | ProducerIdWanted,
        now: Micros,
    ) -> list[MetadataApiEffect]:
        """Decide."""
        match event:
            case MetadataApiState():
                self._image = event.image
                self._controller = event.controller
                self._broker_epoch = event.broker_epoch
                return self._ask()
            case RequestReceived():
                return self._request(event)
            case ProducerIdWanted(token):
                # Tokens of the transaction coordinator are told from those of requests by sign.
                self._waiting.append(-token)
                return self._hand_out() or self._ask()
            case ResponseReceived() if event.correlation == self._creating_as:
                self._creating_as = -1
            case ResponseReceived():
                return self._block(event, now)
            case RequestFailed() if event.correlation == self._creating_as:
                self._creating_as = -1
            case RequestFailed() if event.correlation == self._asked_as:
                self._asked_as = -1
                return [fx.SetTimer("producer-ids", now + RETRY_US)]
            case TimerFired():
                return self._ask()
            case _:
                pass
        return []

    def _request(self, event: RequestReceived) -> list[MetadataApiEffect]:
        request = event.request
        match request:
            case MetadataRequest():
                return [fx.Reply(event.token, self._metadata(request.topics))]
            case FindCoordinatorRequest() if request.kind == "transaction":
                found = find_coordinator(self._image, request.key, TRANSACTIONS_TOPIC)
                return [*self._create_state_topic(), fx.Reply(event.token, found)]
            case FindCoordinatorRequest():
                return [fx.Reply(event.token, find_coordinator(self._image, request.key))]
            case InitProducerIdRequest() if request.transactional_id:
                return [TransactionalInit(event)]
            case _:
                self._waiting.append(event.token)
                return self._hand_out() or self._ask()

    def _metadata(self, topics: tuple[str, ...]) -> MetadataResponse:
        image = self._image
        alive = tuple(b for b in sorted(image.brokers) if not image.brokers[b].fenced)
        described = {t: self._partitions(t) for t in topics if t in image.topic_ids}
        racks = {b: image.brokers[b].rack for b in alive if image.brokers[b].rack}
        return MetadataResponse(alive, described, self._controller, racks)

    def _partitions(self, topic: str) -> tuple[PartitionMetadata, ...]:
        described = []
        for number in range(self._image.partition_counts.get(topic, 0)):
            state = self._image.partitions.get(TopicPartition(topic, number))
            if state is None:
                continue  # in ZooKeeper mode a broker may have been told of some partitions only
            described.append(
                PartitionMetadata(
                    number, state.leader, state.leader_epoch, state.replicas, state.in_sync
                )
            )
        return tuple(described)

    # -- producer ids -----------------------------------------------------------------------------

    def _hand_out(self) -> list[MetadataApiEffect]:
        out: list[MetadataApiEffect] = []
        while self._waiting and self._next_id < self._ids_end:
            token = self._waiting.pop(0)
            if token < 0:
                out.append(ProducerIdGiven(-token, self._next_id))
            else:
                response = InitProducerIdResponse(ErrorCode.NONE, self._next_id, 0)
                out.append(fx.Reply(token, response))
            self._next_id += 1
        return out

    def _ask(self) -> list[MetadataApiEffect]:
        asked = self._asked_as >= 0
        if asked or not self._waiting or self._controller < 0 or self._broker_epoch < 0:
            return []
        self._correlation += 1
        self._asked_as = self._correlation
        request = AllocateProducerIdsRequest(self._broker, self._broker_epoch)
        return [fx.Send(self._controller, self._correlation, request, TIMEOUT_US, "metadata_api")]

    def _block(self, event: ResponseReceived, now: Micros) -> list[MetadataApiEffect]:
        response = event.response
        if event.correlation != self._asked_as:
            return []
        assert isinstance(response, AllocateProducerIdsResponse)
        self._asked_as = -1
        if response.error is not ErrorCode.NONE:
            return [fx.SetTimer("producer-ids", now + RETRY_US)]
        self._next_id, self._ids_end = response.first, response.first + response.count
        return self._hand_out()

    # -- the topic of transactional ids -----------------------------------------------------------

    def _create_state_topic(self) -> list[MetadataApiEffect]:
        """Ask for it, unless it exists or has been asked for; producers come again anyway."""
        exists = self._image.partition_counts.get(TRANSACTIONS_TOPIC, 0) > 0
        if exists or self._creating_as >= 0 or self._controller < 0:
            return []
        self._correlation += 1
        self._creating_as = self._correlation
        request = CreateTopicsRequest((self._state_topic,))
        return [fx.Send(self._controller, self._creating_as, request, TIMEOUT_US, "metadata_api")]
