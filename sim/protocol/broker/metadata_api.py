"""Requests that a broker answers from its metadata image: metadata, coordinators, producer ids.

The image may be behind. Producer ids come in blocks of 1,000 from the controller; requests wait
while a block is on its way. The topic of transactional ids is created when a first producer looks
for its coordinator.

Source: ``kafka.server.KafkaApis``, ``RPCProducerIdManager``, ``AutoTopicCreationManager``.
"""

from dataclasses import dataclass
from typing import TypeAlias

from sim.error_codes import ErrorCode
from sim.ids import NO_LEADER, TRANSACTIONS_TOPIC, BrokerEpoch, NodeId, TopicPartition
from sim.protocol import effects as fx
from sim.protocol.broker.controller_channel import SOCKET_TIMEOUT_US
from sim.protocol.coordinator.lookup import find_coordinator
from sim.protocol.coordinator.transaction.records import ProducerIdAllocated, ProducerIdRequested
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
from sim.units import MS, Micros

RETRY_US: Micros = 50 * MS
"""Wait before a producer id block is requested again."""


@dataclass(frozen=True, slots=True)
class MetadataApiState:
    """Event: the broker's present image, controller and epoch."""

    image: MetadataImage
    controller: NodeId
    broker_epoch: BrokerEpoch


@dataclass(frozen=True, slots=True)
class TransactionalInit:
    """Effect: an InitProducerId for the transaction coordinator."""

    event: RequestReceived


MetadataApiEffect: TypeAlias = (
    fx.Send | fx.Reply | fx.SetTimer | ProducerIdAllocated | TransactionalInit
)
"""Effects of the metadata API."""


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
        self._block_correlation = -1
        self._creating_as = -1

    def handle(
        self,
        event: MetadataApiState
        | RequestReceived
        | ResponseReceived
        | RequestFailed
        | TimerFired
        | ProducerIdRequested,
        now: Micros,
    ) -> list[MetadataApiEffect]:
        """Handles an event; returns effects in order."""
        match event:
            case MetadataApiState():
                self._image = event.image
                self._controller = event.controller
                self._broker_epoch = event.broker_epoch
                return self._request_block()
            case RequestReceived():
                return self._request(event)
            case ProducerIdRequested(token):
                # Tokens of the transaction coordinator are negative, those of requests are not.
                self._waiting.append(-token)
                return self._allocate_ids() or self._request_block()
            case ResponseReceived() if event.correlation == self._creating_as:
                self._creating_as = -1
            case ResponseReceived():
                return self._block(event, now)
            case RequestFailed() if event.correlation == self._creating_as:
                self._creating_as = -1
            case RequestFailed() if event.correlation == self._block_correlation:
                self._block_correlation = -1
                return [fx.SetTimer("producer-ids", now + RETRY_US)]
            case TimerFired():
                return self._request_block()
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
                return self._allocate_ids() or self._request_block()

    def _metadata(self, topics: tuple[str, ...] | None) -> MetadataResponse:
        image = self._image
        alive = tuple(b for b in sorted(image.brokers) if not image.brokers[b].fenced)
        named = tuple(image.topic_ids) if topics is None else topics
        described = {t: self._partitions(t) for t in named if t in image.topic_ids}
        racks = {b: image.brokers[b].rack for b in alive if image.brokers[b].rack}
        return MetadataResponse(alive, described, self._controller, racks)

    def _partitions(self, topic: str) -> tuple[PartitionMetadata, ...]:
        described = []
        for number in range(self._image.partition_counts.get(topic, 0)):
            state = self._image.partitions.get(TopicPartition(topic, number))
            if state is None:
                continue  # in ZooKeeper mode a broker may know only some partitions
            described.append(
                PartitionMetadata(
                    number, state.leader, state.leader_epoch, state.replicas, state.in_sync
                )
            )
        return tuple(described)

    # -- producer ids -----------------------------------------------------------------------------

    def _allocate_ids(self) -> list[MetadataApiEffect]:
        out: list[MetadataApiEffect] = []
        while self._waiting and self._next_id < self._ids_end:
            token = self._waiting.pop(0)
            if token < 0:
                out.append(ProducerIdAllocated(-token, self._next_id))
            else:
                response = InitProducerIdResponse(ErrorCode.NONE, self._next_id, 0)
                out.append(fx.Reply(token, response))
            self._next_id += 1
        return out

    def _request_block(self) -> list[MetadataApiEffect]:
        in_flight = self._block_correlation >= 0
        if in_flight or not self._waiting or self._controller < 0 or self._broker_epoch < 0:
            return []
        self._correlation += 1
        self._block_correlation = self._correlation
        request = AllocateProducerIdsRequest(self._broker, self._broker_epoch)
        return [
            fx.Send(self._controller, self._correlation, request, SOCKET_TIMEOUT_US, "metadata_api")
        ]

    def _block(self, event: ResponseReceived, now: Micros) -> list[MetadataApiEffect]:
        response = event.response
        if event.correlation != self._block_correlation:
            return []
        assert isinstance(response, AllocateProducerIdsResponse)
        self._block_correlation = -1
        if response.error is not ErrorCode.NONE:
            return [fx.SetTimer("producer-ids", now + RETRY_US)]
        self._next_id, self._ids_end = response.first, response.first + response.count
        return self._allocate_ids()

    # -- the topic of transactional ids -----------------------------------------------------------

    def _create_state_topic(self) -> list[MetadataApiEffect]:
        """Requests the topic, unless it exists or is requested already; producers retry anyway."""
        exists = self._image.partition_counts.get(TRANSACTIONS_TOPIC, 0) > 0
        if exists or self._creating_as >= 0 or self._controller < 0:
            return []
        self._correlation += 1
        self._creating_as = self._correlation
        request = CreateTopicsRequest((self._state_topic,))
        return [
            fx.Send(self._controller, self._creating_as, request, SOCKET_TIMEOUT_US, "metadata_api")
        ]
