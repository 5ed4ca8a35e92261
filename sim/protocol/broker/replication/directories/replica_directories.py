"""A broker's replicas and its log directories: may a log be opened, and its assignment.

Source: ``kafka.server.ReplicaManager`` and ``org.apache.kafka.server.AssignmentsManager`` (KIP-112,
KIP-858).
"""

from sim.ids import BrokerEpoch, TopicPartition
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
        placement: Directories of logs; ``None``: a single one.
    """

    def __init__(self, hosted: HostedPartitions, placement: Placement | None) -> None:
        self._hosted = hosted
        self._placement = placement
        self._assignments = DirectoryAssignments()

    @property
    def are_assigned(self) -> bool:
        """True if the controller assigns directories; not in ZooKeeper mode."""
        return self._placement is not None

    def is_online(self, partition: TopicPartition, state: PartitionRegistration) -> bool:
        """True if this broker's replica may be opened; one that may not is offline from now on."""
        if partition in self._hosted.offline:
            return False
        if self._placement is None or partition in self._hosted.replicas:
            return True
        if self._placement.may_open(partition, self._registered(state)):
            return True
        self._hosted.offline[partition] = None
        return False

    def forget(self, partition: TopicPartition) -> None:
        """Drops a partition that this broker no longer has."""
        self._hosted.offline.pop(partition, None)
        self._assignments.drop(partition)

    def drop(self, partition: TopicPartition) -> None:
        """Drops the replica's pending assignment."""
        self._assignments.drop(partition)

    def compare(self, partition: TopicPartition, state: PartitionRegistration) -> None:
        """Adds an assignment if the replica's directory differs from the metadata."""
        if self._placement is None:
            return
        directory = self._placement.directory_id_of(partition)
        if directory == self._registered(state):
            self._assignments.drop(partition)
        else:
            self._assignments.add(DirectoryAssignment(partition, state.topic_id, directory))

    def assign(self, partition: TopicPartition, topic_id: str, directory: str) -> None:
        """Adds the assignment of a replica to its present or future directory."""
        self._assignments.add(DirectoryAssignment(partition, topic_id, directory))

    def send(self, now: Micros, out: Effects) -> None:
        """Sends pending assignments to the controller, if possible."""
        hosted = self._hosted
        controller = hosted.controller
        if self._assignments.may_send(controller):
            correlation = hosted.next_correlation()
            self._assignments.send(
                hosted.broker, self._broker_epoch(), controller, correlation, now, out
            )

    def _broker_epoch(self) -> BrokerEpoch:
        """Broker epoch of the assignments: of the process, or of the broker in the metadata.

        So since 3.9 a process that is not registered speaks for the one before it.

        Source: ``AssignmentsManager.sendAssignments`` (3.8, 3.9).
        """
        hosted = self._hosted
        if not hosted.config.assigns_by_image:
            return hosted.broker_epoch
        registration = hosted.image.brokers.get(hosted.broker)
        return -1 if registration is None else registration.epoch

    def answered(
        self, correlation: int, response: AssignReplicasToDirsResponse, now: Micros
    ) -> tuple[DirectoryAssignment, ...]:
        """Handles a response; returns the assigned ones. :meth:`send` sends the rest."""
        return self._assignments.answered(correlation, response, now)

    def failed(self, correlation: int, now: Micros, out: Effects) -> bool:
        """True if the failed request was this machine's; it will be sent again."""
        if not self._assignments.failed(correlation, now):
            return False
        self.send(now, out)
        return True

    def _registered(self, state: PartitionRegistration) -> str:
        """This broker's directory of the replica in the metadata."""
        if not state.directories:
            return UNASSIGNED_DIRECTORY
        return state.directories[state.replicas.index(self._hosted.broker)]
