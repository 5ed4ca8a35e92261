"""Base of every request and response: a size on the wire, and errors."""

from dataclasses import dataclass, field, replace
from typing import Final

from sim.error_codes import ErrorCode
from sim.units import Bytes

HEADER_BYTES: Bytes = 50
"""Estimate of a message that is not Kafka's, or not in Kafka 4, without its partitions."""

PARTITION_BYTES: Bytes = 40
"""Estimate of a partition in such a message."""

CLUSTER_ID: Final = "MkU3OEVBNTcwNTJENDM2Qk"
"""``cluster.id`` in messages: all are as long."""

LISTENER: Final = "PLAINTEXT"
"""Name of a broker's listener in messages."""

CONTROLLER_LISTENER: Final = "CONTROLLER"
"""Name of a controller's."""

ANSWERS: Final = "a server has paired the response with its request"


NOTIFICATION: Final = -1
"""Correlation id of every notification (ZooKeeper's ``NOTIFICATION_XID``), and of no request."""


class Notification:
    """Something a server sends unrequested, in order with its responses on the connection."""

    __slots__ = ()

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return HEADER_BYTES


class Request:
    """Something a node asks of a server."""

    __slots__ = ()

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return HEADER_BYTES

    def refused(self, error: ErrorCode) -> "Response":  # noqa: ARG002 - those that can be use it
        """Response to this request with only an error, such as NOT_CONTROLLER."""
        message = f"no response of {type(self).__name__} has an error alone"
        raise AssertionError(message)


class Response:
    """A server's answer."""

    __slots__ = ()

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return HEADER_BYTES

    def answering(self, request: Request) -> "Response":  # noqa: ARG002 - an echo uses it
        """Response as it is sent, with what it repeats of its request."""
        return self

    def named_errors(self) -> tuple[tuple[str, ErrorCode], ...]:
        """Error of each topic, partition or entity in a response to an administrator."""
        message = f"not a response to an administrator: {type(self).__name__}"
        raise AssertionError(message)


@dataclass(frozen=True, slots=True)
class Echo(Response):
    """A response in which Kafka repeats names of the request: its size needs them, nothing else."""

    request: Request | None = field(default=None, kw_only=True, compare=False, repr=False)

    def answering(self, request: Request) -> Response:
        """Response as it is sent, with its request."""
        return replace(self, request=request)
