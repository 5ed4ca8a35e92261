"""The replicas of one broker process, as used by its other parts.

Source: ``kafka.server.ReplicaManager``, as ``LogManager`` and ``KafkaApis`` use it.
"""

from sim.ids import Offset, TopicPartition
from sim.nodes.process.cold_reads import ReadObserver
from sim.nodes.process.dispatcher import Dispatcher
from sim.protocol.broker.replication.events import FollowerRead, ReplicaManagerEvent
from sim.protocol.broker.replication.replica_manager import ReplicaManager
from sim.protocol.messages.data import FetchRequest, FetchResponse


class Replicas:
    """The replica manager of a process.

    Args:
        process: The broker.
        manager: The machine.
    """

    def __init__(self, process: Dispatcher, manager: ReplicaManager) -> None:
        self.manager = manager
        self.port = process.add_machine("replicas", manager)
        self._process = process

    def deliver(self, event: ReplicaManagerEvent) -> None:
        """Lets the machine handle an event."""
        self._process.deliver(self.port, event)

    # -- offsets ----------------------------------------------------------------------------------

    def high_watermark(self, partition: TopicPartition) -> Offset:
        """A replica's high watermark; -1 if it is not on this broker."""
        replica = self.manager.replicas.get(partition)
        return replica.high_watermark if replica is not None else -1

    def future_watermark(self, partition: TopicPartition) -> Offset | None:
        """The high watermark of a replica's future log; ``None`` if it is not being moved."""
        move = self.manager.moves.moves.get(partition)
        return None if move is None else move.high_watermark

    def committed_range(self, partition: TopicPartition) -> tuple[Offset, Offset] | None:
        """First offset and high watermark of a partition that it leads; ``None`` if it does not."""
        replica = self.manager.replicas.get(partition)
        if replica is None or not replica.is_leader:
            return None
        return replica.log.log_start_offset, replica.high_watermark

    def last_stable_offset(self, partition: TopicPartition) -> Offset:
        """A replica's last stable offset; -1 if it is not on this broker."""
        replica = self.manager.replicas.get(partition)
        if replica is None:
            return -1
        return replica.log.transactions.last_stable_offset(replica.high_watermark)

    def offline(self) -> tuple[TopicPartition, ...]:
        """Replicas in log directories that have failed, oldest first."""
        return tuple(self.manager.hosted.offline)

    # -- checkpointed high watermarks -------------------------------------------------------------

    def high_watermarks(self) -> dict[TopicPartition, Offset]:
        """High watermarks for the checkpoints of current logs."""
        return self.manager.high_watermarks()

    def future_watermarks(self) -> dict[TopicPartition, Offset]:
        """High watermarks for the checkpoints of future logs."""
        return self.manager.moves.high_watermarks()

    def note_high_watermark(self, partition: TopicPartition, watermark: Offset) -> None:
        """Stores the high watermark of a log that has replaced another one."""
        self.manager.note_high_watermark(partition, watermark)

    def forget_high_watermark(self, partition: TopicPartition) -> None:
        """Drops the high watermark of a log that is no longer on this broker."""
        self.manager.forget_high_watermark(partition)


class FollowerReads(ReadObserver):
    """Lets the replica manager know of followers' fetches that wait for the disk.

    Args:
        replicas: The replicas of the process.

    Source: KIP-501, which counts a fetch from the time that the replica manager has it.
    """

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas

    def begun(self, request: FetchRequest, response: FetchResponse) -> None:
        """A response waits for its cold reads."""
        if request.replica_id >= 0:
            self._replicas.deliver(FollowerRead(response.session_id, begins=True))

    def done(self, request: FetchRequest, response: FetchResponse) -> None:
        """Its records are read."""
        if request.replica_id >= 0:
            self._replicas.deliver(FollowerRead(response.session_id, begins=False))
