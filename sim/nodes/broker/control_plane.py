"""Port to a broker's control plane, and handlers of its metadata and of failed disks."""

from abc import abstractmethod

from sim.ids import BrokerEpoch, NodeId, TopicPartition
from sim.nodes.broker.directory_moves import DirectoryMoves
from sim.nodes.broker.dynamic_configs import DynamicBrokerConfig
from sim.nodes.broker.logs import BrokerLogs
from sim.nodes.broker.replicas import Replicas
from sim.nodes.broker.settings import BrokerSettings
from sim.nodes.broker.transactions import BrokerTransactions
from sim.nodes.process.dispatcher import Performer
from sim.nodes.process.port import Port
from sim.nodes.process.server import ServerNode
from sim.nodes.storage.log_dirs import LogDirFailureChannel, Storage
from sim.protocol.broker.metadata_api import MetadataApiState
from sim.protocol.broker.replication.events import DirectoryFailed, MetadataApplied
from sim.protocol.events import NotificationReceived, ResponseReceived
from sim.protocol.messages.base import Request
from sim.protocol.metadata.image import MetadataImage


class MetadataPublisher:
    """Publishes each new metadata image to the other parts of one broker process.

    Source: ``kafka.server.metadata.BrokerMetadataPublisher`` (4.1).

    Args:
        server: The broker.
        image: The metadata that it has applied.
        replicas: Its replicas.
        logs: Their logs.
        moves: Moves between log directories.
        transactions: Its transaction coordinator.
        metadata_api: Its metadata API.
        dynamic: Its settings that change.
    """

    def __init__(
        self,
        server: ServerNode,
        image: MetadataImage,
        replicas: Replicas,
        logs: BrokerLogs,
        moves: DirectoryMoves,
        transactions: BrokerTransactions,
        metadata_api: Port,
        dynamic: DynamicBrokerConfig,
    ) -> None:
        self._server = server
        self._dynamic = dynamic
        self._image = image
        self.replicas = replicas
        self._logs = logs
        self._moves = moves
        self._transactions = transactions
        self._metadata_api = metadata_api

    def publish(self, applied: MetadataApplied) -> None:
        """Applies changed metadata to transactions and replicas."""
        self._transactions.published(self._image)
        self._update_quotas()
        self._server.update_acls(self._image.acls.values())
        if self._server.authentication is not None:
            self._server.authentication.update_tokens(self._image.tokens)
        self._dynamic.apply(self._image)
        self.replicas.deliver(applied)

    def _update_quotas(self) -> None:
        server, quotas = self._server, self._image.client_quotas
        if server.throttling is not None:
            server.throttling.quotas.update(quotas)
        if server.acceptor is not None:
            server.acceptor.update(quotas)

    def controller_known(self, controller: NodeId, broker_epoch: BrokerEpoch) -> None:
        """Updates the metadata API after a new image, controller or broker epoch."""
        self._server.deliver(
            self._metadata_api, MetadataApiState(self._image, controller, broker_epoch)
        )

    def put_strays_aside(self) -> None:
        """Puts stray logs aside, once the metadata is known for the first time."""
        strays = self._logs.put_strays_aside(self._image)
        self._moves.put_strays_aside(self._image)
        self._moves.finish_agreed(self._image, self.replicas)
        for partition in strays:
            self.replicas.forget_high_watermark(partition)

    def open_port(self) -> None:
        """Opens the client port: the broker is unfenced."""
        self._server.open_port()


class Control:
    """Control plane of a broker process; it outlives the process, but not its state."""

    def __init__(self) -> None:
        self.performers: dict[type, Performer] = {}
        """Performers of its machines' effects."""
        self.published = False
        """True once this process has applied any metadata."""

    def cordon(self, directories: str) -> None:  # noqa: ARG002 - of KRaft
        """Closes log directories to new replicas: names by commas, or ``*`` (KIP-1066)."""
        raise AssertionError("only brokers under KRaft have cordoned log directories")

    def install(self, settings: BrokerSettings) -> None:  # noqa: ARG002 - of KRaft
        """Takes the settings of another release, for the next process."""
        raise AssertionError("only brokers under KRaft are upgraded")

    @property
    @abstractmethod
    def broker_epoch(self) -> BrokerEpoch:
        """Of the present registration; -1 without one."""

    @abstractmethod
    def open(self, storage: Storage, image: MetadataImage) -> None:
        """Opens its files after the logs of a starting process are open.

        Args:
            storage: The logs.
            image: Image that metadata is applied to.

        Raises:
            StorageFailed: If that cannot be done; the process ends.
        """

    @abstractmethod
    def build(self) -> dict[Port, tuple[type[Request], ...]]:
        """Creates the machines of the process; returns the requests that they answer."""

    @abstractmethod
    def observe(self, publisher: MetadataPublisher) -> None:
        """Begins to follow the metadata, once every machine exists.

        Args:
            publisher: Publishes it.
        """

    @abstractmethod
    def begin(self) -> None:
        """Begins to register, while logs are recovered."""

    @abstractmethod
    def recovered(self) -> None:
        """The logs are recovered."""

    @abstractmethod
    def receive(self, port: Port, event: ResponseReceived) -> bool:
        """True if the response is handled here, at its cost; else it is delivered at once."""

    def notified(self, port: Port, event: NotificationReceived) -> None:
        """Handles a notification of a server that the machine on the port listens to."""
        message = f"{port.name} listens to no server: {event}"
        raise AssertionError(message)

    @abstractmethod
    def directories_failed(self, offline: tuple[TopicPartition, ...]) -> None:
        """Reports failed log directories; others still work.

        Args:
            offline: Every replica that was in one of them.
        """

    @abstractmethod
    def shut_down(self) -> None:
        """Begins the controlled shutdown."""


class LogDirFailureHandler(LogDirFailureChannel):
    """Takes log directories of one broker process offline.

    Source: ``ReplicaManager.LogDirFailureHandler``, ``LogManager.handleLogDirFailure``.

    Args:
        server: The broker.
        storage: Its logs.
        replicas: Its replicas.
        control: Reports to the controller, which elects other leaders.
    """

    def __init__(
        self, server: ServerNode, storage: Storage, replicas: Replicas, control: Control
    ) -> None:
        self._server = server
        self._storage = storage
        self._replicas = replicas
        self._control = control

    def directory_failed(self, number: int, reason: str) -> None:
        """Takes a log directory offline; without that of the metadata, or any, the broker ends."""
        storage = self._storage
        if number in storage.manager.offline:
            return
        closed = storage.take_offline(number, reason)
        if storage.must_halt():
            self._server.halt(reason)
            return
        self._replicas.deliver(DirectoryFailed(closed))
        self._control.directories_failed(self._replicas.offline())
