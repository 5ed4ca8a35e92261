"""A broker's handling of the controller's requests: roles of its replicas, and metadata.

Requests of a deposed controller, and those for a former process, are refused. Replicas are not
here: :class:`LeaderAndIsrApplied` passes their new roles to the broker's process.

Source: ``kafka.server.KafkaApis``, ``ReplicaManager.becomeLeaderOrFollower``, ``stopReplicas``
(3.9); KIP-380.
"""

from collections.abc import Iterable

from sim.error_codes import ErrorCode
from sim.ids import BrokerEpoch, NodeId, TopicPartition
from sim.protocol.zk_mode.broker_types import (
    LeaderAndIsrApplied,
    MetadataUpdated,
    ReplicasOffline,
    ReplicasStopped,
)
from sim.protocol.zk_mode.effects import Effects
from sim.protocol.zk_mode.znodes import (
    LEADER_DURING_DELETE,
    ControlRequest,
    ControlResponse,
    LeaderAndIsrRequest,
    PartitionEntry,
    StopReplicaRequest,
    UpdateMetadataRequest,
)


def _answer(offline: Iterable[TopicPartition]) -> ControlResponse:
    storage = ErrorCode.KAFKA_STORAGE_ERROR
    return ControlResponse(ErrorCode.NONE, tuple((p, storage) for p in offline))


class BrokerRoles:
    """Roles and metadata of one broker process, as the controller has sent them."""

    def __init__(self, node: NodeId) -> None:
        self._node = node
        self.offline: dict[TopicPartition, None] = {}
        """Replicas in log directories that have failed."""
        self.found: dict[TopicPartition, None] | None = None
        """Logs found at the start, if a directory had failed by then; ``None``: none had."""
        self.controller_epoch = 0
        """Largest controller epoch of a request."""
        self.replicas: dict[TopicPartition, PartitionEntry] = {}
        """Partitions that it leads and follows, with cached versions."""
        self.metadata: dict[TopicPartition, PartitionEntry] = {}
        """Metadata for clients."""

    def handle(
        self,
        request: ControlRequest,
        broker_epoch: BrokerEpoch,
        effects: Effects,
        *,
        breaks_off: bool,
    ) -> ControlResponse:
        """Handles a request, unless it is stale.

        Args:
            request: The request.
            broker_epoch: Of the present registration.
            effects: Receives effects.
            breaks_off: True if a change of roles fails half-way.
        """
        if request.controller_epoch < self.controller_epoch:
            return ControlResponse(ErrorCode.STALE_CONTROLLER_EPOCH)
        if 0 <= request.broker_epoch < broker_epoch:
            return ControlResponse(ErrorCode.STALE_BROKER_EPOCH)
        self.controller_epoch = request.controller_epoch
        if isinstance(request, LeaderAndIsrRequest):
            lost = self._offline_of(request.partitions, effects)
            left = tuple(e for e in request.partitions if e.partition not in lost)
            self._lead_or_follow(left, effects, breaks_off=breaks_off)
            return _answer(lost)
        if isinstance(request, UpdateMetadataRequest):
            for entry in request.partitions:
                self.metadata[entry.partition] = entry
                if entry.state.leader == LEADER_DURING_DELETE:
                    del self.metadata[entry.partition]
            effects.append(MetadataUpdated(request))
        elif isinstance(request, StopReplicaRequest):
            lost = {p: None for p in request.partitions if p in self.offline}
            for partition in request.partitions:
                self.replicas.pop(partition, None)
            effects.append(
                ReplicasStopped(
                    tuple(p for p in request.partitions if p not in lost),
                    tuple(p for p in request.deleted if p not in lost),
                )
            )
            return _answer(lost)
        return ControlResponse(ErrorCode.NONE)

    def _offline_of(
        self, entries: tuple[PartitionEntry, ...], effects: Effects
    ) -> dict[TopicPartition, None]:
        """Partitions of a request that are in a failed directory, or may be.

        A replica that is not new and has no log may be in a directory that has failed before.

        Source: ``LogManager.getOrCreateLog``.
        """
        new: dict[TopicPartition, None] = {}
        for entry in entries:
            partition = entry.partition
            if self.found is None or partition in self.found or partition in self.replicas:
                continue
            if partition in self.offline or entry.version == 0 or self._node in entry.move.adding:
                continue
            new[partition] = None
        if new:
            self.offline.update(new)
            effects.append(ReplicasOffline(tuple(new)))
        return {e.partition: None for e in entries if e.partition in self.offline}

    def _lead_or_follow(
        self, entries: tuple[PartitionEntry, ...], effects: Effects, *, breaks_off: bool
    ) -> None:
        """Takes entries with a newer leader epoch."""
        taken: list[PartitionEntry] = []
        for entry in entries:
            old = self.replicas.get(entry.partition)
            if old is None or entry.state.leader_epoch > old.state.leader_epoch:
                self.replicas[entry.partition] = entry
                taken.append(entry)
        if taken:
            effects.append(LeaderAndIsrApplied(tuple(taken), breaks_off))
