"""A broker's replicas and its log directories: which may be opened, and where each one lies.

Source: ``kafka.server.ReplicaManager`` and ``org.apache.kafka.server.AssignmentsManager`` (KIP-112,
KIP-858).
"""

from sim.ids import TopicPartition
from sim.protocol.broker.replication.directories.assignments import DirectoryAssignments, Placement
from sim.protocol.broker.replication.effects import Effects
from sim.protocol.broker.replication.hosted import HostedPartitions
from sim.protocol.messages.cluster import AssignReplicasToDirsResponse, DirectoryAssignment
from sim.protocol.metadata.image import PartitionRegistration
from sim.protocol.metadata.records import UNASSIGNED_DIRECTORY
from sim.units import Micros


class ReplicaDirectories:
    """The log directories of one broker.

    Args:
        hosted: The broker's partitions.
        placement: Where logs lie; ``None``: one directory, which nobody asks about.
    """

    def __init__(self, hosted: HostedPartitions, placement: Placement | None) -> None:
        self._hosted = hosted
        self._placement = placement
        self._assignments = DirectoryAssignments()

    def is_online(self, partition: TopicPartition, state: PartitionRegistration) -> bool:
        """Whether this broker's replica may be taken up; one that may not is offline from now."""
        if partition in self._hosted.offline:
            return False
        if self._placement is None or partition in self._hosted.replicas:
            return True
        if self._placement.may_open(partition, self._registered(state)):
            return True
        self._hosted.offline[partition] = None
        return False

    def forget(self, partition: TopicPartition) -> None:
        """The partition is no business of this broker any more."""
        self._hosted.offline.pop(partition, None)
        self._assignments.drop(partition)

    def drop(self, partition: TopicPartition) -> None:
        """The controller need not be told where the replica lies."""
        self._assignments.drop(partition)

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

    def tell(self, now: Micros, out: Effects) -> None:
        """Send the controller what waits to be told, if it may be sent."""
        hosted = self._hosted
        controller = hosted.controller
        if self._assignments.may_send(controller):
            correlation = hosted.next_correlation()
            self._assignments.send(
                hosted.broker, hosted.broker_epoch, controller, correlation, now, out
            )

    def answered(
        self, correlation: int, response: AssignReplicasToDirsResponse, now: Micros
    ) -> tuple[DirectoryAssignment, ...]:
        """The controller has answered; returns what it has noted. :meth:`tell` sends the rest."""
        return self._assignments.answered(correlation, response, now)

    def failed(self, correlation: int, now: Micros, out: Effects) -> bool:
        """Whether the request that failed was this machine's; it will be sent again."""
        if not self._assignments.failed(correlation, now):
            return False
        self.tell(now, out)
        return True

    def _registered(self, state: PartitionRegistration) -> str:
        """Where the controller believes this broker's replica to be."""
        if not state.directories:
            return UNASSIGNED_DIRECTORY
        return state.directories[state.replicas.index(self._hosted.broker)]
