"""Who governs a broker: what its control plane must offer, and which one it is."""

from typing import TYPE_CHECKING, Protocol

from sim.ids import BrokerEpoch
from sim.nodes.broker.kraft import KRaftControl
from sim.nodes.broker.zookeeper import ZkControl
from sim.nodes.process.base import Performer
from sim.nodes.process.port import Port
from sim.protocol.events import ResponseReceived

if TYPE_CHECKING:
    from sim.nodes.broker.node import BrokerNode


class Control(Protocol):
    """A broker process's part of the control plane; it outlives the process, and forgets."""

    performers: dict[type, Performer]
    """For the effects of its machines."""
    published: bool
    """Whether this process has applied any metadata."""

    @property
    def broker_epoch(self) -> BrokerEpoch:
        """Of the present registration; -1 without one."""

    def open(self) -> None:
        """A process starts, its logs are open: open what else is on the disks.

        Raises:
            StorageFailed: If that cannot be done; the process ends.
        """

    def build(self) -> None:
        """Make the machines of the process; the replica manager is there."""

    def observe(self) -> None:
        """Every machine is there: begin to learn of metadata."""

    def begin(self) -> None:
        """Begin to register, while logs are recovered."""

    def recovered(self) -> None:
        """The logs are recovered."""

    def receive(self, port: Port, event: ResponseReceived) -> bool:
        """Whether an answer is taken in here, at its cost; else it is delivered at once."""

    def directories_failed(self) -> None:
        """Log directories have failed; others are left."""

    def shut_down(self) -> None:
        """The process was asked to stop: ask to be let go."""


def control_of(node: "BrokerNode") -> Control:
    """The control plane that a broker's settings want."""
    return KRaftControl(node) if node.settings.zookeeper is None else ZkControl(node)
