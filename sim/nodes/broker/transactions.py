"""A broker's transaction coordinator, and how it is joined to the other minds of the process.

Producer ids come from the metadata API, which has the controller's blocks; an InitProducerId with
a transactional id comes by way of it, too. Markers that end transactions in the offsets topic go to
the group coordinator.

Source: ``BrokerServer``, ``KafkaApis.handleInitProducerIdRequest``.
"""

from sim.nodes.process.dispatcher import Dispatcher, Performer
from sim.nodes.process.port import Port
from sim.protocol.broker.metadata_api import TransactionalInit
from sim.protocol.coordinator.group.records import TransactionEnded
from sim.protocol.coordinator.transaction.coordinator import TransactionCoordinator
from sim.protocol.coordinator.transaction.records import (
    MetadataPublished,
    ProducerIdGiven,
    ProducerIdWanted,
)
from sim.protocol.metadata.image import MetadataImage


class BrokerTransactions:
    """The transactional part of one broker process; each start of the process has its own.

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
            ProducerIdWanted: self._id_wanted,
            ProducerIdGiven: self._id_given,
            TransactionalInit: self._init,
            TransactionEnded: self._ended,
        }

    def published(self, image: MetadataImage) -> None:
        """The broker's image has moved on."""
        self._process.deliver(self.port, MetadataPublished(image))

    def _id_wanted(self, _port: Port, effect: ProducerIdWanted) -> None:
        self._process.deliver(self._metadata_api, effect)

    def _id_given(self, _port: Port, effect: ProducerIdGiven) -> None:
        self._process.deliver(self.port, effect)

    def _init(self, _port: Port, effect: TransactionalInit) -> None:
        self._process.deliver(self.port, effect.event)

    def _ended(self, _port: Port, effect: TransactionEnded) -> None:
        self._process.deliver(self._groups, effect)
