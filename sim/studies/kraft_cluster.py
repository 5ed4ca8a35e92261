"""A KRaft control plane on the studies' host: quorum, controllers, and brokers as observers.

The machines are those of simulated clusters. A broker keeps no image of its own: all replay the
same records, so only the time is paid, and heartbeats carry each broker's metadata offset.

The metadata log is in memory; the state before the study is in the controllers' image.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

from sim.ids import LeaderEpoch, NodeId, Offset, SnapshotId
from sim.protocol.broker import lifecycle as life
from sim.protocol.controller.controller import CONTROLLER_REQUESTS, Controller
from sim.protocol.controller.types import ControllerConfig, HeartbeatArrived
from sim.protocol.effects import Flush
from sim.protocol.kraft.log import LoggedRecord, SnapshotPart
from sim.protocol.kraft.raft import Quorum
from sim.protocol.kraft.types import (
    AppendMetadata,
    Committed,
    LeadershipChanged,
    PersistQuorumState,
    QuorumStarted,
    QuorumState,
)
from sim.protocol.messages.base import Request
from sim.protocol.messages.cluster import BrokerHeartbeatRequest
from sim.protocol.messages.quorum import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchSnapshotRequest,
    QuorumFetchRequest,
    VoteRequest,
)
from sim.protocol.metadata.image import MetadataImage
from sim.protocol.metadata.records import MetadataRecord, PartitionChangeRecord, Voter
from sim.protocol.ports import NO_EPOCH_END, Batch, EpochEnd
from sim.rng import Streams
from sim.studies.loop import Costs, Loop, Process
from sim.units import NEVER, Bytes, Micros

FIRST_CONTROLLER: NodeId = 3001

RECORD_BYTES: Bytes = 60
"""Approximate size of a partition's change in the log."""

_QUORUM_REQUESTS: tuple[type[Request], ...] = (
    VoteRequest,
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    QuorumFetchRequest,
    FetchSnapshotRequest,
)


class MemoryBatch(NamedTuple):
    """Records of one append; shared by all members' logs."""

    base_offset: Offset
    leader_epoch: LeaderEpoch
    records: tuple[MetadataRecord, ...]

    @property
    def last_offset(self) -> Offset:
        """Offset of the last record, inclusive."""
        return self.base_offset + len(self.records) - 1

    @property
    def size_bytes(self) -> Bytes:
        """Approximate size on disk."""
        return RECORD_BYTES * len(self.records)


class MemoryLog:
    """A metadata log without bytes and snapshots: a ``sim.protocol.kraft.log.MetadataLog``."""

    log_start_offset: Offset = 0
    earliest_snapshot: SnapshotId | None = None
    latest_snapshot: SnapshotId | None = None

    def __init__(self) -> None:
        self.batches: list[MemoryBatch] = []

    @property
    def log_end_offset(self) -> Offset:
        """Offset of the next record."""
        return self.batches[-1].last_offset + 1 if self.batches else 0

    @property
    def latest_epoch(self) -> LeaderEpoch:
        """Epoch of the last batch."""
        return self.batches[-1].leader_epoch if self.batches else 0

    def append_records(
        self,
        records: Sequence[MetadataRecord],
        epoch: LeaderEpoch,
        now_ms: int,  # noqa: ARG002 - nothing is stamped
    ) -> Offset:
        """Appends one batch."""
        self.batches.append(MemoryBatch(self.log_end_offset, epoch, tuple(records)))
        return self.log_end_offset

    def records_bytes(self, records: Sequence[MetadataRecord]) -> Bytes:
        """Approximate size of a batch of the records."""
        return MemoryBatch(0, 0, tuple(records)).size_bytes

    def append_batches(self, batches: Sequence[Batch]) -> None:
        """Appends a leader's batches."""
        for batch in batches:
            assert batch.base_offset == self.log_end_offset
            self.batches.append(cast("MemoryBatch", batch))  # it came from another of these logs

    def read(self, start: Offset, max_bytes: Bytes) -> tuple[Batch, ...]:
        """Whole batches from the offset on."""
        found: list[MemoryBatch] = []
        left = max_bytes
        for batch in self._from(start):
            if found and batch.size_bytes > left:
                break
            left -= batch.size_bytes
            found.append(batch)
        return cast("tuple[Batch, ...]", tuple(found))  # only headers are read

    def records_between(self, start: Offset, end: Offset) -> tuple[LoggedRecord, ...]:
        """Records in [start, end)."""
        return tuple(
            LoggedRecord(batch.base_offset + i, batch.leader_epoch, record)
            for batch in self._from(start)
            if batch.base_offset < end
            for i, record in enumerate(batch.records)
            if start <= batch.base_offset + i < end
        )

    def bytes_between(self, start: Offset, end: Offset) -> Bytes:
        """Approximate size of the batches in [start, end)."""
        return RECORD_BYTES * (end - start)

    def end_offset_for_epoch(self, epoch: LeaderEpoch) -> EpochEnd:
        """Largest epoch not above the given one, and its end."""
        for batch in reversed(self.batches):
            if batch.leader_epoch <= epoch:
                return EpochEnd(batch.leader_epoch, batch.last_offset + 1)
        return NO_EPOCH_END

    def truncate_to(self, offset: Offset) -> None:
        """Drops batches that begin at or after the offset."""
        while self.batches and self.batches[-1].base_offset >= offset:
            self.batches.pop()

    def snapshot_records(self, snapshot: SnapshotId) -> tuple[MetadataRecord, ...]:
        """There are no snapshots."""
        raise AssertionError(f"no {snapshot}")

    def snapshot_voters(self, snapshot: SnapshotId) -> tuple[Voter, ...]:
        """There are no snapshots."""
        raise AssertionError(f"no {snapshot}")

    def snapshot_part(
        self,
        snapshot: SnapshotId,  # noqa: ARG002 - there are none
        position: Bytes,  # noqa: ARG002
        max_bytes: Bytes,  # noqa: ARG002
    ) -> SnapshotPart | None:
        """There are no snapshots."""
        return None

    def install_snapshot(self, snapshot: SnapshotId, data: bytes) -> bool:  # noqa: ARG002
        """There are no snapshots."""
        raise AssertionError(f"no {snapshot}")

    def clean(self, now_ms: int) -> None:
        """Nothing to delete: everything is kept."""

    def _from(self, start: Offset) -> list[MemoryBatch]:
        first = len(self.batches)
        while first and self.batches[first - 1].last_offset >= start:
            first -= 1
        return self.batches[first:]


class KraftCluster:
    """Dedicated controllers, and brokers numbered from 1."""

    def __init__(
        self,
        loop: Loop,
        image: MetadataImage,
        brokers: int,
        controllers: int,
        streams: Streams,
        *,
        controller_costs: Costs,
        broker_costs: Costs,
        replay_us: Micros,
        config: ControllerConfig,
    ) -> None:
        """Starts all processes.

        Args:
            loop: The host.
            image: The controllers' state at the start: topics, partitions, features.
            brokers: Number of brokers.
            controllers: Number of controllers; all are voters.
            streams: Random streams of elections.
            controller_costs: Costs of controllers' threads.
            broker_costs: Costs of brokers' threads.
            replay_us: Time of a broker for a partition's change, until its replicas follow it.
            config: Of the controllers.
        """
        self.loop = loop
        self.replay_us = replay_us
        self.voters = tuple(FIRST_CONTROLLER + i for i in range(controllers))
        self.controllers: dict[NodeId, Controller] = {}
        self.applied: dict[NodeId, Offset] = {}
        self.applied_at: dict[NodeId, Micros] = {}
        """Time at which each broker last applied changes of partitions."""
        self.decided_at: Micros = -1
        """Time of a controller's last decision on partitions."""
        self.granted: dict[NodeId, Micros] = {}
        """Ends of controlled shutdowns."""
        self._appended_at: dict[NodeId, Micros] = {}
        """Time of each controller's last append."""
        self._last_change: Offset = -1
        """Offset of the last decision on partitions."""
        self._streams = streams
        for voter in self.voters:
            process = loop.add(voter, controller_costs)
            process.routes = dict.fromkeys(_QUORUM_REQUESTS, "quorum")
            process.routes |= dict.fromkeys(CONTROLLER_REQUESTS, "controller")
            process.performers = {
                Committed: self._to_controller,
                LeadershipChanged: self._to_controller,
                AppendMetadata: self._append,
            }
            process.on_arrival = self._heard(voter)
            controller = Controller(voter, streams.named(f"controller/{voter}").unit, config)
            controller.committed = image.copy()
            self.controllers[voter] = controller
            self._start(process, {"controller": controller})
        for node in range(1, brokers + 1):
            process = loop.add(node, broker_costs)
            process.performers = {
                Committed: self._replay,
                LeadershipChanged: self._pass_to_lifecycle,
                life.CaughtUp: self._ready,
                life.ShutDownGranted: self._granted,
            }
            self.applied[node] = -1
            who = life.Introduction(node, f"incarnation-{node}", "", (), -1)
            lifecycle = life.BrokerLifecycle(who, self.voters, self._applied_by(node), _PATIENT)
            self._start(process, {"lifecycle": lifecycle})
            process.deliver("lifecycle", life.LifecycleStarted())

    def _start(
        self, process: Process, machines: dict[str, Controller | life.BrokerLifecycle]
    ) -> None:
        unit = self._streams.named(f"quorum/{process.node}").unit
        quorum = Quorum(process.node, self.voters, MemoryLog(), unit, state=QuorumState())
        process.start({"quorum": quorum, **machines})
        process.deliver("quorum", QuorumStarted())

    def _applied_by(self, node: NodeId) -> Callable[[], Offset]:
        return lambda: self.applied[node]

    def _heard(self, voter: NodeId) -> Callable[[Request], None]:
        """Counts a heartbeat from its arrival on, even if the controller is busy."""

        def note(request: Request) -> None:
            if isinstance(request, BrokerHeartbeatRequest):
                arrived = HeartbeatArrived(request.broker, request.broker_epoch)
                self.controllers[voter].handle(arrived, self.loop.now)

        return note

    def active(self) -> Controller | None:
        """The active controller."""
        for voter in self.voters:
            if self.loop.processes[voter].running and self.controllers[voter].is_active:
                return self.controllers[voter]
        return None

    def is_settled(self) -> bool:
        """True if each broker has applied every decision on partitions."""
        return all(offset >= self._last_change for offset in self.applied.values())

    def stop(self, node: NodeId) -> None:
        """Begins a controlled shutdown."""
        self.loop.processes[node].deliver("lifecycle", life.ControlledShutdownRequested())

    # -- effects ----------------------------------------------------------------------------------

    @staticmethod
    def _to_controller(process: Process, machine: str, effect: object, at: Micros) -> None:  # noqa: ARG004 - a performer's form
        process.deliver("controller", effect)

    def _append(self, process: Process, machine: str, effect: object, at: Micros) -> None:  # noqa: ARG002 - a performer's form
        assert isinstance(effect, AppendMetadata)
        if any(isinstance(record, PartitionChangeRecord) for record in effect.records):
            self.decided_at = self.loop.now
            self._last_change = effect.base_offset + len(effect.records) - 1
        # One without a cost, of a timer, does not overtake those that the thread is still at.
        at = self._appended_at[process.node] = max(at, self._appended_at.get(process.node, at))
        self.loop.call_at(at, process.deliver, "quorum", effect)

    def _replay(self, process: Process, machine: str, effect: object, at: Micros) -> None:  # noqa: ARG002 - a performer's form
        """Pays for the records, on the metadata thread."""
        assert isinstance(effect, Committed)
        changes = sum(isinstance(r.record, PartitionChangeRecord) for r in effect.records)
        lane = _LOADER_LANE
        done = max(at, process.free_at[lane]) + changes * self.replay_us
        process.free_at[lane] = done
        self.loop.call_at(done, self._replayed, process, effect.end_offset - 1, changes)

    def _replayed(self, process: Process, offset: Offset, changes: int) -> None:
        if process.running:
            self.applied[process.node] = offset
            if changes:
                self.applied_at[process.node] = self.loop.now

    @staticmethod
    def _pass_to_lifecycle(process: Process, machine: str, effect: object, at: Micros) -> None:  # noqa: ARG004 - a performer's form
        assert isinstance(effect, LeadershipChanged)
        process.deliver("lifecycle", life.ControllerKnown(effect.leader))

    @staticmethod
    def _ready(process: Process, machine: str, effect: object, at: Micros) -> None:  # noqa: ARG004 - a performer's form
        process.deliver("lifecycle", life.ReadyToUnfence())

    def _granted(self, process: Process, machine: str, effect: object, at: Micros) -> None:  # noqa: ARG002 - a performer's form
        self.granted[process.node] = at


_LOADER_LANE = 2

# All brokers of a large cluster register with a controller that is minutes behind then; what is
# measured begins when they are in service.
_PATIENT = life.LifecycleConfig(registration_timeout_us=NEVER)


class KraftCosts(Costs):
    """Costs of threads: forcing the log to disk, and the controller's per partition change."""

    def __init__(self, fsync_us: Micros, record_us: Micros) -> None:
        self.fsync_us = fsync_us
        self.record_us = record_us

    def lane(self, machine: str, event: object) -> int:  # noqa: ARG002 - threads belong to machines
        """The raft thread, and the controller's or the lifecycle's."""
        return 0 if machine == "quorum" else 1

    def effect_us(self, effect: object) -> Micros:
        """Cost of an fsync, or of a decision about partitions."""
        if isinstance(effect, Flush | PersistQuorumState):
            return self.fsync_us
        if isinstance(effect, AppendMetadata):
            changes = sum(isinstance(r, PartitionChangeRecord) for r in effect.records)
            return changes * self.record_us
        return 0
