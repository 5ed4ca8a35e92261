"""A broker's transaction coordinator, and its connections to the other machines of the process.

Producer ids come from the metadata API, which has the controller's blocks and routes InitProducerId
with a transactional id here. Markers that end transactions in the offsets topic are passed to the
group coordinator.

Source: ``BrokerServer``, ``KafkaApis.handleInitProducerIdRequest``.
"""

from sim.nodes.process.dispatcher import Dispatcher, Performer
from sim.nodes.process.port import Port
from sim.protocol.broker.metadata_api import TransactionalInit
from sim.protocol.coordinator.group.records import TransactionEnded
from sim.protocol.coordinator.transaction.coordinator import TransactionCoordinator
from sim.protocol.coordinator.transaction.records import (
    MetadataPublished,
    ProducerIdAllocated,
    ProducerIdRequested,
)
from sim.protocol.metadata.image import MetadataImage


class BrokerTransactions:
    """Transactions in one broker process; each start of the process has its own.

    Args:
        process: The broker.
        machine: Its transaction coordinator.
        metadata_api: Its metadata API.
        groups: Its group coordinator.
    """

    def __init__(
        self, process: Dispatcher, machine: TransactionCoordinator, metadata_api: Port, groups: Port
    ) -> None:
        self._process = process
        self._metadata_api = metadata_api
        self._groups = groups
        self.port = process.add_machine("transactions", machine)
        self.performers: dict[type, Performer] = {
            ProducerIdRequested: self._id_requested,
            ProducerIdAllocated: self._id_allocated,
            TransactionalInit: self._init,
            TransactionEnded: self._ended,
        }

    def published(self, image: MetadataImage) -> None:
        """Applies a new metadata image."""
        self._process.deliver(self.port, MetadataPublished(image))

    def _id_requested(self, _port: Port, effect: ProducerIdRequested) -> None:
        self._process.deliver(self._metadata_api, effect)

    def _id_allocated(self, _port: Port, effect: ProducerIdAllocated) -> None:
        self._process.deliver(self.port, effect)

    def _init(self, _port: Port, effect: TransactionalInit) -> None:
        self._process.deliver(self.port, effect.event)

    def _ended(self, _port: Port, effect: TransactionEnded) -> None:
        self._process.deliver(self._groups, effect)
