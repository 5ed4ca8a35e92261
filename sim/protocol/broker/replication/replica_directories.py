"""A broker's replicas and its log directories: which may be opened, and where each one lies.

Source: ``kafka.server.ReplicaManager`` and ``org.apache.kafka.server.AssignmentsManager`` (KIP-112,
KIP-858).
"""

from typing import TYPE_CHECKING

from sim.ids import TopicPartition
from sim.protocol.broker.replication.directory_assignments import DirectoryAssignments, Placement
from sim.protocol.broker.replication.events import LeadershipApplied
from sim.protocol.messages import AssignReplicasToDirsResponse, DirectoryAssignment
from sim.protocol.metadata.image import PartitionRegistration
from sim.protocol.metadata.records import UNASSIGNED_DIRECTORY
from sim.units import Micros

if TYPE_CHECKING:
    from sim.protocol.broker.replication.replica_manager import ReplicaManager


class ReplicaDirectories:
    """The log directories below one replica manager.

    Args:
        manager: Whose replicas they hold.
        placement: Where logs lie; ``None``: one directory, which nobody asks about.
    """

    def __init__(self, manager: "ReplicaManager", placement: Placement | None) -> None:
        self._manager = manager
        self._placement = placement
        self._assignments = DirectoryAssignments()
        self.offline: dict[TopicPartition, None] = {}
        """Replicas in log directories that have failed, oldest first; never to be opened again."""

    def is_online(self, partition: TopicPartition, state: PartitionRegistration) -> bool:
        """Whether this broker's replica may be taken up; one that may not is offline from now."""
        if partition in self.offline:
            return False
        if self._placement is None or partition in self._manager.replicas:
            return True
        if self._placement.may_open(partition, self._registered(state)):
            return True
        self.offline[partition] = None
        return False

    def forget(self, partition: TopicPartition) -> None:
        """The partition is no business of this broker any more."""
        self.offline.pop(partition, None)
        self._assignments.drop(partition)

    def take_offline(self, partition: TopicPartition, now: Micros, out: list[object]) -> None:
        """Let a replica go whose log directory has failed; who waits for it is told.

        Source: ``ReplicaManager.handleLogDirFailure``.
        """
        manager = self._manager
        self.offline[partition] = None
        self._assignments.drop(partition)
        manager.follower.stop(partition)
        replica = manager.replicas.pop(partition, None)
        if replica is None:
            return
        if replica.is_leader:
            replica.is_leader = False
            manager.produce.leadership_lost(partition, now, out)
            epoch = replica.leader_epoch
            out.append(LeadershipApplied(partition, is_leader=False, leader_epoch=epoch))
        manager.fetch.leadership_changed(partition)
        manager.note_leadership(replica, "offline", out)

    def compare(self, partition: TopicPartition, state: PartitionRegistration) -> None:
        """Note to tell the controller if the replica lies elsewhere than it knows."""
        if self._placement is None:
            return
        directory = self._placement.directory_id_of(partition)
        if directory == self._registered(state):
            self._assignments.drop(partition)
        else:
            self._assignments.add(DirectoryAssignment(partition, state.topic_id, directory))

    def assign(self, partition: TopicPartition, topic_id: str, directory: str) -> None:
        """Note to tell the controller that a replica lies, or shall lie, in a directory."""
        self._assignments.add(DirectoryAssignment(partition, topic_id, directory))

    def tell(self, now: Micros, out: list[object]) -> None:
        """Send the controller what waits to be told, if it may be sent."""
        manager = self._manager
        controller = manager.isr.controller
        if self._assignments.may_send(controller):
            correlation = manager.next_correlation()
            self._assignments.send(
                manager.broker, manager.broker_epoch, controller, correlation, now, out
            )

    def answered(
        self,
        correlation: int,
        response: AssignReplicasToDirsResponse,
        now: Micros,
        out: list[object],
    ) -> None:
        """The controller has answered."""
        for noted in self._assignments.answered(correlation, response, now):
            self._manager.moves.accepted(noted.partition, noted.directory)
        self.tell(now, out)

    def failed(self, correlation: int, now: Micros, out: list[object]) -> bool:
        """Whether the request that failed was this machine's; it will be sent again."""
        if not self._assignments.failed(correlation, now):
            return False
        self.tell(now, out)
        return True

    def _registered(self, state: PartitionRegistration) -> str:
        """Where the controller believes this broker's replica to be."""
        if not state.directories:
            return UNASSIGNED_DIRECTORY
        return state.directories[state.replicas.index(self._manager.broker)]
