"""Control plane of a KRaft broker: an observer of the quorum, registration, heartbeats.

Committed metadata is applied to the broker's image, and published to the other machines of the
process. That takes time: a pass loads the records committed when it begins, publishes them, and is
followed by the next one with all that were committed meanwhile. No part sees the image before, and
heartbeats name no later offset than the published one.

The first image is published once the logs are loaded and the metadata log is read up to the high
watermark: since 3.5 this waits for no registration, so that a broker whose former session still
lasts leads and follows in its own view before the controller knows its process. Until 3.4 the
controller had to acknowledge first that a registered broker has caught up.

Source: ``kafka.server.{BrokerServer,BrokerLifecycleManager}``,
``org.apache.kafka.image.loader.MetadataLoader``, ``kafka.server.metadata.BrokerMetadataPublisher``
(4.1); ``kafka.server.metadata.BrokerMetadataListener`` (3.4).
"""

from collections.abc import Sequence

from sim.ids import NO_LEADER, BrokerEpoch, NodeId, Offset, TopicPartition, uuid_text
from sim.nodes.broker.control_plane import Control, MetadataPublisher
from sim.nodes.broker.settings import BrokerSettings
from sim.nodes.controller.snapshots import write_snapshot
from sim.nodes.process.cpu import CpuSpec
from sim.nodes.process.dispatcher import Dispatcher
from sim.nodes.process.port import Port
from sim.nodes.storage.log_dirs import METADATA_DIRECTORY, Storage
from sim.nodes.storage.metadata_log import FileMetadataLog
from sim.protocol.broker import lifecycle as life
from sim.protocol.broker.replication.events import (
    ControllerChanged,
    MetadataApplied,
    RegisteredWithEpoch,
)
from sim.protocol.events import ResponseReceived
from sim.protocol.kraft.metadata_snapshot import SnapshotGenerator, WriteSnapshot
from sim.protocol.kraft.raft import Quorum
from sim.protocol.kraft.types import (
    Committed,
    LeadershipChanged,
    PersistQuorumState,
    QuorumStarted,
    QuorumState,
    SnapshotLoaded,
)
from sim.protocol.messages.base import Request
from sim.protocol.metadata.image import MetadataImage
from sim.protocol.metadata.records import (
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
)
from sim.substrate.distributions import Delays
from sim.units import Micros


class KRaftControl(Control):
    """The control plane of one broker under KRaft.

    Args:
        process: The broker.
        node_id: Its id.
        cpu: Costs of metadata.
        settings: Of the broker.
    """

    def __init__(
        self,
        process: Dispatcher,
        node_id: NodeId,
        cpu: CpuSpec,
        settings: BrokerSettings,
    ) -> None:
        super().__init__()
        self._process = process
        self._node_id = node_id
        self._cpu = cpu
        self._settings = settings
        self._controller: NodeId = NO_LEADER
        unit = process.streams.named(f"metadata/{process.name}").unit
        self._load_delays = Delays(cpu.metadata_load, unit)
        self._publish_delays = Delays(cpu.metadata_publish, unit)
        self._forget()
        self.performers = {
            PersistQuorumState: self._no_vote,
            Committed: self._committed,
            SnapshotLoaded: self._snapshot_loaded,
            WriteSnapshot: self._write_snapshot,
            LeadershipChanged: self._controller_known,
            life.Registered: self._registered,
            life.CaughtUp: self._caught_up,
            life.Unfenced: self._unfenced,
        }

    def _forget(self) -> None:
        self.published = False
        self._is_read = False
        self._is_caught_up = False
        self._is_ready = False
        self._is_recovered = False
        self._changed: list[TopicPartition] = []
        self._reconfigured: list[str] = []
        self._waiting: list[Committed | SnapshotLoaded] = []
        self._is_loading = False
        self._controller = NO_LEADER

    # -- life -------------------------------------------------------------------------------------

    def install(self, settings: BrokerSettings) -> None:
        """Takes the settings of another release, for the next process."""
        self._settings = settings

    @property
    def broker_epoch(self) -> BrokerEpoch:
        """Of the present registration; -1 without one."""
        return self._lifecycle_machine().broker_epoch

    def open(self, storage: Storage, image: MetadataImage) -> None:
        """Opens the metadata log.

        Args:
            storage: The logs.
            image: Image that metadata is applied to.

        Raises:
            DiskFailed: If its log directory has failed, or the log has no beginning.
        """
        self._forget()
        self._storage = storage
        self._image = image
        config = self._settings.metadata_log
        self._metadata_log = FileMetadataLog.open(storage.manager, config)

    def build(self) -> dict[Port, tuple[type[Request], ...]]:
        """Creates the machines of this process; they answer no requests."""
        process, image = self._process, self._image
        settings, storage = self._settings, self._storage
        self.observer = process.add_machine(
            "quorum",
            Quorum(
                self._node_id,
                () if settings.dynamic_quorum else settings.voters,
                self._metadata_log,
                process.streams.named(f"quorum/{process.name}").unit,
                config=settings.quorum,
                state=self._vote(),
                dynamic=settings.observer(storage.manager.directory_ids[METADATA_DIRECTORY]),
            ),
            serial=True,
        )
        self._snapshots = process.add_machine(
            "snapshots",
            SnapshotGenerator(lambda: image, settings.metadata_log.snapshots, process.now()),
        )
        introduction = life.Introduction(
            self._node_id,
            uuid_text(f"{process.name}/incarnation/{process.incarnation}"),
            process.host.rack,
            storage.online_ids,
            storage.manager.previous_broker_epoch,
            settings.metadata_log.supported,
        )
        lifecycle = life.BrokerLifecycle(
            introduction,
            settings.voters,
            self._applied_offset,
            settings.lifecycle,
            self._first_wait_us(),
            process.streams.named(f"resend/{process.name}").unit,
        )
        self._lifecycle = process.add_machine("lifecycle", lifecycle)
        return {}

    def _applied_offset(self) -> Offset:
        """Offset that heartbeats report; -1 while nothing could be published.

        Source: ``MetadataLoader.maybePublishMetadata``, ``BrokerMetadataListener._highestOffset``.
        """
        is_early = self._settings.publishes_unregistered
        return -1 if is_early and not self._is_read else self._image.offset - 1

    def _first_wait_us(self) -> Micros | None:
        """Before zero the boot represents a long history: any heartbeat phase is as likely."""
        process = self._process
        if process.kernel.time >= 0:
            return None
        unit = process.streams.named(f"heartbeat/{process.name}").unit()
        return int(unit * self._settings.lifecycle.heartbeat_interval_us)

    def observe(self, publisher: MetadataPublisher) -> None:
        """Begins to follow the metadata log."""
        self._publisher = publisher
        self._process.deliver(self.observer, QuorumStarted())

    def begin(self) -> None:
        """Begins to register, while the logs are recovered."""
        self._process.deliver(self._lifecycle, life.LifecycleStarted())

    def recovered(self) -> None:
        """The logs are loaded."""
        self._is_recovered = True
        self._publish_first()

    def receive(self, port: Port, event: ResponseReceived) -> bool:  # noqa: ARG002 - nothing is paid
        """Responses of controllers have no further cost."""
        return False

    def directories_failed(self, offline: tuple[TopicPartition, ...]) -> None:  # noqa: ARG002 - the interface
        """Reports failed log directories to the controller."""
        failed = life.DirectoriesFailed(self._storage.offline_ids)
        self._process.deliver(self._lifecycle, failed)

    def cordon(self, directories: str) -> None:
        """Closes log directories to new replicas, and reports that to the controller."""
        manager = self._storage.manager
        manager.cordon(directories)
        ids = tuple(manager.directory_ids[number] for number in manager.cordoned)
        self._process.deliver(self._lifecycle, life.DirectoriesCordoned(ids))

    def shut_down(self) -> None:
        """Asks the controller for a controlled shutdown."""
        self._process.deliver(self._lifecycle, life.ControlledShutdownRequested())

    def _lifecycle_machine(self) -> life.BrokerLifecycle:
        machine = self._lifecycle.machine
        assert isinstance(machine, life.BrokerLifecycle)
        return machine

    # -- coming into service ----------------------------------------------------------------------

    def _registered(self, _port: Port, effect: life.Registered) -> None:
        self._publisher.replicas.deliver(RegisteredWithEpoch(effect.broker_epoch))
        self._publisher.controller_known(self._controller, self.broker_epoch)

    def _caught_up(self, _port: Port, _effect: object) -> None:
        self._is_caught_up = True
        self._publish_first()

    def _publish_first(self) -> None:
        """Applies the first image once metadata and logs are there.

        Asks to be unfenced when the controller has acknowledged that the broker has caught up, too.

        Source: ``BrokerServer.startup`` (3.4, 4.3), ``MetadataLoader.stillNeedToCatchUp``.
        """
        is_early = self._settings.publishes_unregistered
        has_metadata = self._is_read if is_early else self._is_caught_up
        if not self.published and has_metadata and self._is_recovered:
            self.published = True
            self._publisher.put_strays_aside()
            self._publish()
        if self.published and self._is_caught_up and not self._is_ready:
            self._is_ready = True
            self._process.deliver(self._lifecycle, life.ReadyToUnfence())

    def _unfenced(self, _port: Port, _effect: object) -> None:
        self._publisher.open_port()

    # -- metadata ---------------------------------------------------------------------------------

    def _committed(self, _port: Port, effect: Committed) -> None:
        """Queues committed records for the loader."""
        self._load_soon(effect)

    def _snapshot_loaded(self, _port: Port, effect: SnapshotLoaded) -> None:
        """Queues a snapshot for the loader; the observer begins with it."""
        self._load_soon(effect)

    def _load_soon(self, effect: Committed | SnapshotLoaded) -> None:
        self._waiting.append(effect)
        if not self._is_loading:
            self._load()

    def _load(self) -> None:
        """Begins a pass with everything that is queued."""
        process = self._process
        self._is_loading = True
        loaded, self._waiting = self._waiting, []
        known = self._quorum().high_watermark
        process.call_at(process.kernel.time + self._cost_of(loaded), self._loaded, loaded, known)

    def _cost_of(self, loaded: list[Committed | SnapshotLoaded]) -> Micros:
        """Duration of a pass: records that change nothing need no publishing."""
        cost = self._load_delays.draw()
        changes = False
        partitions = 0
        for effect in loaded:
            records: Sequence[MetadataRecord] = (
                [logged.record for logged in effect.records]
                if isinstance(effect, Committed)
                else effect.records
            )
            for record in records:
                changes = changes or not isinstance(record, NoOpRecord)
                partitions += isinstance(record, PartitionRecord | PartitionChangeRecord)
        if changes:
            cost += self._publish_delays.draw()
        return cost + self._cpu.metadata_partition_us * partitions

    def _loaded(self, loaded: list[Committed | SnapshotLoaded], known: Offset) -> None:
        """Applies the records of the pass, then begins the next one with those queued meanwhile.

        Args:
            loaded: The records.
            known: High watermark of the metadata log when the pass began.
        """
        process, image = self._process, self._image
        for effect in loaded:
            if isinstance(effect, Committed):
                for logged in effect.records:
                    image.replay(logged.offset, logged.epoch, logged.record)
            else:
                image.load(effect.snapshot.offset, effect.snapshot.epoch, effect.records)
            process.deliver(self._snapshots, effect)
            self._changed += image.take_changed()
            self._reconfigured += image.take_reconfigured()
        if self.published:
            self._publish()
        elif image.offset >= known:
            self._is_read = True
            self._publish_first()
        self._is_loading = False
        if self._waiting:
            self._load()

    def _write_snapshot(self, _port: Port, effect: WriteSnapshot) -> None:
        voters = self._quorum().voters_at(effect.snapshot.offset)
        write_snapshot(self._process, self._metadata_log, effect, voters)

    def _quorum(self) -> Quorum:
        machine = self.observer.machine
        assert isinstance(machine, Quorum)
        return machine

    def _publish(self) -> None:
        changed = tuple(dict.fromkeys(self._changed))
        self._changed.clear()
        reconfigured = tuple(dict.fromkeys(self._reconfigured))
        self._reconfigured.clear()
        publisher = self._publisher
        publisher.publish(MetadataApplied(self._image, changed, reconfigured))
        publisher.controller_known(self._controller, self.broker_epoch)

    def _controller_known(self, _port: Port, effect: LeadershipChanged) -> None:
        self._controller = effect.leader
        self._process.deliver(self._lifecycle, life.ControllerKnown(effect.leader))
        self._publisher.replicas.deliver(ControllerChanged(effect.leader))
        self._publisher.controller_known(self._controller, self.broker_epoch)

    def _vote(self) -> QuorumState:
        """Vote of this process: observers have none; a combined broker's controller keeps it."""
        return QuorumState()

    def _no_vote(self, _port: Port, _effect: PersistQuorumState) -> None:
        """Observers do not vote: they learn the quorum's state again after a restart."""
