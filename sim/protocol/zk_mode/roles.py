"""A broker's handling of the controller's requests: roles of its replicas, and metadata.

Requests of a deposed controller, and those for a former process, are refused. Replicas are not
here: :class:`LeaderAndIsrApplied` passes their new roles to the broker's process.

Source: ``kafka.server.KafkaApis``, ``ReplicaManager.becomeLeaderOrFollower``, ``stopReplicas``
(3.9); KIP-380.
"""

from sim.error_codes import ErrorCode
from sim.ids import BrokerEpoch, TopicPartition
from sim.protocol.zk_mode.broker_types import (
    LeaderAndIsrApplied,
    MetadataUpdated,
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


class BrokerRoles:
    """Roles and metadata of one broker process, as the controller has sent them."""

    def __init__(self) -> None:
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
            self._lead_or_follow(request.partitions, effects, breaks_off=breaks_off)
        elif isinstance(request, UpdateMetadataRequest):
            for entry in request.partitions:
                self.metadata[entry.partition] = entry
                if entry.state.leader == LEADER_DURING_DELETE:
                    del self.metadata[entry.partition]
            effects.append(MetadataUpdated(request))
        elif isinstance(request, StopReplicaRequest):
            for partition in request.partitions:
                self.replicas.pop(partition, None)
            effects.append(ReplicasStopped(request.partitions, request.deleted))
        return ControlResponse(ErrorCode.NONE)

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
