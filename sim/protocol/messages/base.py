"""Base of every request and response: a size on the wire, and errors."""

from typing import Final

from sim.error_codes import ErrorCode
from sim.units import Bytes

HEADER_BYTES: Bytes = 50
"""Request or response header with length, api key, correlation id and client id."""

PARTITION_BYTES: Bytes = 40
"""A partition's fixed fields in a produce or fetch message."""


class Response:
    """A server's answer."""

    __slots__ = ()

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return HEADER_BYTES

    def named_errors(self) -> tuple[tuple[str, ErrorCode], ...]:
        """Error of each topic, partition or entity in a response to an administrator."""
        message = f"not a response to an administrator: {type(self).__name__}"
        raise AssertionError(message)


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

    def refused(self, error: ErrorCode) -> Response:  # noqa: ARG002 - those that can be use it
        """Response to this request with only an error, such as NOT_CONTROLLER."""
        message = f"no response of {type(self).__name__} has an error alone"
        raise AssertionError(message)
