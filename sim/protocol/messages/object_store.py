"""Requests of brokers to the object store of tiered storage: one object each, as over HTTP.

Source: ``RemoteStorageManager``, whose plugins speak such a protocol; no messages of Kafka's.
"""

from dataclasses import dataclass
from typing import Final

from sim.protocol.messages.base import HEADER_BYTES, Request, Response
from sim.units import Bytes

OK: Final = 200
NOT_FOUND: Final = 404
SLOW_DOWN: Final = 503

WHOLE: Final = 1 << 62
"""Length of a read up to the object's end."""


@dataclass(frozen=True, slots=True)
class PutObject(Request):
    """Writes an object; it is there, whole, when it is answered."""

    name: str
    data: bytes

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return HEADER_BYTES + len(self.data)


@dataclass(frozen=True, slots=True)
class GetObject(Request):
    """Reads a range of an object."""

    name: str
    position: Bytes = 0
    length: Bytes = WHOLE


@dataclass(frozen=True, slots=True)
class DeleteObject(Request):
    """Deletes an object; one that is not there is none either."""

    name: str


@dataclass(frozen=True, slots=True)
class ObjectResponse(Response):
    """An HTTP status, and the bytes that were read."""

    status: int
    data: bytes = b""

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return HEADER_BYTES + len(self.data)


OBJECT_REQUESTS: Final[tuple[type[Request], ...]] = (PutObject, GetObject, DeleteObject)
"""Requests that an object store answers."""
