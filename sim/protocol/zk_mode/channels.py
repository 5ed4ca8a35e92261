"""The controller's requests to brokers: batched for a change, then sent in order to each broker.

One thread and one request in flight for each broker; failed requests are sent again after 100 ms,
until the broker is no longer live.

Source: ``kafka.controller.{ControllerChannelManager,AbstractControllerBrokerRequestBatch}`` (3.9).
"""

from collections import deque
from collections.abc import Callable, Iterable

from sim.ids import BrokerEpoch, NodeId, TopicPartition
from sim.protocol import effects as fx
from sim.protocol.zk_mode.effects import Effects
from sim.protocol.zk_mode.znodes import (
    BrokerInfo,
    ControlRequest,
    LeaderAndIsrRequest,
    PartitionEntry,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from sim.units import MS, SECOND, Micros

CHANNEL = "controller"
TIMER = "channel/"
"""Prefix of the names of retry timers; the broker's id follows."""

RETRY_US: Micros = 100 * MS
TIMEOUT_US: Micros = 30 * SECOND
"""``controller.socket.timeout.ms``."""


class _Channel:
    """Requests to one broker process."""

    __slots__ = ("backs_off", "epoch", "in_flight", "queue")

    def __init__(self, epoch: BrokerEpoch) -> None:
        self.epoch = epoch
        self.queue: deque[ControlRequest] = deque()
        self.in_flight = -1
        self.backs_off = False


class ControllerChannels:
    """Channels to the live brokers, and the open batch."""

    def __init__(self, node: NodeId, correlate: Callable[[], int], *, broker_epochs: bool) -> None:
        """Begins without channels.

        Args:
            node: The controller's own number.
            correlate: Numbers for requests, unique among the owner's.
            broker_epochs: True if requests carry broker epochs (KIP-380).
        """
        self._node = node
        self._correlate = correlate
        self._broker_epochs = broker_epochs
        self._channels: dict[NodeId, _Channel] = {}
        self._waiting: dict[int, NodeId] = {}
        self._leader_and_isr: dict[NodeId, list[PartitionEntry]] = {}
        self._stop: dict[NodeId, dict[TopicPartition, bool]] = {}
        self._metadata: list[PartitionEntry] = []
        self._metadata_to: dict[NodeId, None] = {}
        self._to_all = False

    @property
    def idle(self) -> bool:
        """True if every broker has answered every request."""
        return not any(c.queue or c.in_flight >= 0 for c in self._channels.values())

    def add(self, broker: NodeId, epoch: BrokerEpoch) -> None:
        """Adds a broker process."""
        self._channels[broker] = _Channel(epoch)

    def remove(self, broker: NodeId) -> None:
        """Removes a broker and its queued requests."""
        self._channels.pop(broker, None)
        self._waiting = {c: b for c, b in self._waiting.items() if b != broker}

    def clear(self) -> None:
        """Drops everything: another broker is the controller."""
        self._channels = {}
        self._waiting = {}
        self._leader_and_isr = {}
        self._stop = {}
        self._metadata = []
        self._metadata_to = {}
        self._to_all = False

    # -- batching ----------------------------------------------------------------------------------

    def lead_or_follow(self, brokers: Iterable[NodeId], entry: PartitionEntry) -> None:
        """Adds the partition to LeaderAndIsr of these brokers, and to UpdateMetadata of all."""
        for broker in brokers:
            if broker in self._channels:
                self._leader_and_isr.setdefault(broker, []).append(entry)
        self._metadata.append(entry)
        self._to_all = True

    def stop(self, broker: NodeId, partition: TopicPartition, *, delete: bool = False) -> None:
        """Adds the partition to the broker's StopReplica; ``delete``: its log is to be deleted."""
        if broker in self._channels:
            stopped = self._stop.setdefault(broker, {})
            stopped[partition] = delete or stopped.get(partition, False)

    def update_metadata(
        self, brokers: Iterable[NodeId], entries: Iterable[PartitionEntry] = ()
    ) -> None:
        """Adds partitions and live brokers to these brokers' UpdateMetadata."""
        self._metadata.extend(entries)
        self._metadata_to.update(dict.fromkeys(b for b in brokers if b in self._channels))

    def flush(self, controller_epoch: int, live: tuple[BrokerInfo, ...], out: Effects) -> None:
        """Queues the batch; LeaderAndIsr first, then UpdateMetadata, then StopReplica."""
        node = self._node
        gathered, self._leader_and_isr = self._leader_and_isr, {}
        for broker, entries in gathered.items():
            request = LeaderAndIsrRequest(
                node, controller_epoch, self._epoch_of(broker), tuple(entries)
            )
            self._queue(broker, request, out)
        metadata, self._metadata = tuple(self._metadata), []
        to, self._metadata_to = self._metadata_to, {}
        if self._to_all:
            to = dict.fromkeys(self._channels)
            self._to_all = False
        for broker in to:
            update = UpdateMetadataRequest(
                node, controller_epoch, self._epoch_of(broker), metadata, live
            )
            self._queue(broker, update, out)
        stopped, self._stop = self._stop, {}
        for broker, partitions in stopped.items():
            deleted = tuple(p for p, is_deleted in partitions.items() if is_deleted)
            stop = StopReplicaRequest(
                node, controller_epoch, self._epoch_of(broker), tuple(partitions), deleted
            )
            self._queue(broker, stop, out)

    def _epoch_of(self, broker: NodeId) -> BrokerEpoch:
        channel = self._channels.get(broker)
        return channel.epoch if channel is not None and self._broker_epochs else -1

    # -- sending ----------------------------------------------------------------------------------

    def _queue(self, broker: NodeId, request: ControlRequest, out: Effects) -> None:
        channel = self._channels.get(broker)
        if channel is not None:
            channel.queue.append(request)
            self._send(broker, channel, out)

    def _send(self, broker: NodeId, channel: _Channel, out: Effects) -> None:
        if channel.in_flight >= 0 or channel.backs_off or not channel.queue:
            return
        channel.in_flight = self._correlate()
        self._waiting[channel.in_flight] = broker
        out.append(fx.Send(broker, channel.in_flight, channel.queue[0], TIMEOUT_US, CHANNEL))

    def owns(self, correlation: int) -> bool:
        """True if a request is one of these."""
        return correlation in self._waiting

    def answered(self, correlation: int, out: Effects) -> tuple[NodeId, ControlRequest]:
        """Handles a broker's response; a request with an error is not repeated.

        Returns the broker and the request.
        """
        broker = self._waiting.pop(correlation)
        channel = self._channels[broker]
        channel.in_flight = -1
        request = channel.queue.popleft()
        self._send(broker, channel, out)
        return broker, request

    def failed(self, correlation: int, now: Micros, out: Effects) -> None:
        """No response: waits, then sends the same request again."""
        broker = self._waiting.pop(correlation)
        channel = self._channels[broker]
        channel.in_flight, channel.backs_off = -1, True
        out.append(fx.SetTimer(f"{TIMER}{broker}", now + RETRY_US))

    def retry(self, name: str, out: Effects) -> None:
        """A retry timer fired."""
        broker = int(name.removeprefix(TIMER))
        channel = self._channels.get(broker)
        if channel is not None:
            channel.backs_off = False
            self._send(broker, channel, out)
