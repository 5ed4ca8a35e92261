"""A broker's transaction coordinator, and how it is joined to the other minds of the process.

Producer ids come from the desk, which has the controller's blocks; an InitProducerId with a
transactional id comes by way of the desk, too. Markers that end transactions in the offsets topic
are told to the group coordinator.

Source: ``BrokerServer``, ``KafkaApis.handleInitProducerIdRequest``.
"""

from typing import TYPE_CHECKING

from sim.ids import TRANSACTIONS_TOPIC
from sim.nodes.broker.coordinators import CoordinatorShell
from sim.nodes.process.port import Port
from sim.protocol.broker.metadata_api import TransactionalInit
from sim.protocol.coordinator.group.records import TransactionEnded
from sim.protocol.coordinator.transaction.coordinator import (
    TRANSACTION_REQUESTS,
    TransactionCoordinator,
)
from sim.protocol.coordinator.transaction.records import (
    MetadataPublished,
    ProducerIdGiven,
    ProducerIdWanted,
)
from sim.records.transaction_state import batch_for, records_in

if TYPE_CHECKING:
    from sim.nodes.broker.node import BrokerNode


class BrokerTransactions:
    """The transactional part of one broker process; built anew at each start.

    Args:
        node: The broker.
        desk: Its client desk.
        groups: Its group coordinator.
    """

    def __init__(self, node: "BrokerNode", desk: Port, groups: Port) -> None:
        self._node = node
        self._desk = desk
        self._groups = groups
        self.machine = TransactionCoordinator(node.node_id, node.now(), node.settings.transaction)
        self._port = node.add_machine("transactions", self.machine)
        self.shell = CoordinatorShell(node, self._port, TRANSACTIONS_TOPIC, batch_for, records_in)
        node.route(self._port, *TRANSACTION_REQUESTS)
        node.performers |= {
            ProducerIdWanted: self._id_wanted,
            ProducerIdGiven: self._id_given,
            TransactionalInit: self._init,
            TransactionEnded: self._ended,
        }

    def published(self) -> None:
        """The broker's image has moved on."""
        self._node.deliver(self._port, MetadataPublished(self._node.image))

    def _id_wanted(self, _port: Port, effect: ProducerIdWanted) -> None:
        self._node.deliver(self._desk, effect)

    def _id_given(self, _port: Port, effect: ProducerIdGiven) -> None:
        self._node.deliver(self._port, effect)

    def _init(self, _port: Port, effect: TransactionalInit) -> None:
        self._node.deliver(self._port, effect.event)

    def _ended(self, _port: Port, effect: TransactionEnded) -> None:
        self._node.deliver(self._groups, effect)
