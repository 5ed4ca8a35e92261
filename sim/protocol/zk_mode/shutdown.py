"""A broker's controlled shutdown in ZooKeeper mode: its requests, and their retries.

Source: ``kafka.server.KafkaServer.controlledShutdown`` (3.9).
"""

from collections.abc import Callable

from sim.error_codes import ErrorCode
from sim.ids import NO_LEADER, BrokerEpoch, NodeId
from sim.protocol import effects as fx
from sim.protocol.messages.base import Response
from sim.protocol.zk_mode.broker_types import ShutDownGranted, ZkBrokerConfig
from sim.protocol.zk_mode.effects import Effects
from sim.protocol.zk_mode.znodes import ControlledShutdownRequest, ControlledShutdownResponse
from sim.units import Micros

TIMER = "shutdown"


class ControlledShutdown:
    """Requests of one broker before it stops; it stops after the last retry, too.

    Args:
        node: ``broker.id``.
        config: Settings.
        correlate: Numbers for requests, unique among the owner's.
    """

    def __init__(self, node: NodeId, config: ZkBrokerConfig, correlate: Callable[[], int]) -> None:
        self._node = node
        self._config = config
        self._correlate = correlate
        self._tries = -1
        self._correlation = -1

    def owns(self, correlation: int) -> bool:
        """True if a request is this part's."""
        return correlation == self._correlation

    def begin(self, to: NodeId, epoch: BrokerEpoch, now: Micros, out: Effects) -> None:
        """Sends the first request to the controller."""
        self._tries = self._config.shutdown_retries
        self.send(to, epoch, now, out)

    def send(self, to: NodeId, epoch: BrokerEpoch, now: Micros, out: Effects) -> None:
        """Sends a request; waits where no controller is known."""
        if to == NO_LEADER:
            self.failed(now, out)
            return
        self._correlation = self._correlate()
        request = ControlledShutdownRequest(self._node, epoch)
        timeout = self._config.shutdown_timeout_us
        out.append(fx.Send(to, self._correlation, request, timeout, "shutdown"))

    def answered(self, response: Response, now: Micros, out: Effects) -> None:
        """Handles the controller's response."""
        assert isinstance(response, ControlledShutdownResponse)
        if response.error is ErrorCode.NONE and response.remaining == 0:
            out.append(ShutDownGranted(0))
        else:
            self.failed(now, out, response.remaining)

    def failed(self, now: Micros, out: Effects, remaining: int = -1) -> None:
        """Tries again later, unless there were enough tries."""
        self._tries -= 1
        if self._tries > 0:
            out.append(fx.SetTimer(TIMER, now + self._config.shutdown_backoff_us))
        else:
            out.append(ShutDownGranted(remaining))
