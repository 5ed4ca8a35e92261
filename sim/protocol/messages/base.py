"""Base of every request and response: a size on the wire."""

from sim.units import Bytes

HEADER_BYTES: Bytes = 50
"""Request or response header with length, api key, correlation id and client id."""

PARTITION_BYTES: Bytes = 40
"""A partition's fixed fields in a produce or fetch message."""


class Request:
    """Something a node asks of a server."""

    __slots__ = ()

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return HEADER_BYTES


class Response:
    """A server's answer."""

    __slots__ = ()

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return HEADER_BYTES
