"""``ConsumerGroupDescribe`` (KIP-848), which kafka-python does not have, in the form it sends.

Version 0, by this project's own definitions of Kafka's messages.

Source: ``ConsumerGroupDescribeRequest.json``; KIP-482 (headers of flexible versions).
"""

import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final

from sim.importer.live.guard import Foreign
from sim.wire.definitions import Definition, definition
from sim.wire.fields import Reader, Value, Writer

API_KEY: Final = 69
_VERSION: Final = 0
_HEADER: Final = struct.Struct(">hhi")
_SIZE: Final = struct.Struct(">i")
_CORRELATION: Final = 4
_NO_TAGS: Final = b"\x00"


class ConsumerGroupDescribe:
    """A request for the descriptions of groups; kafka-python calls its methods."""

    # kafka-python's names, by which it knows a request.
    API_KEY = API_KEY
    API_VERSION = _VERSION

    def __init__(self, groups: Sequence[str]) -> None:
        self._groups = list(groups)
        self._client = ""
        self.correlation_id = 0
        self.header = self

    def with_header(self, *, correlation_id: int, client_id: str) -> None:
        """Take what the connection numbers the request with."""
        self.correlation_id, self._client = correlation_id, client_id

    def expect_response(self) -> bool:
        """True: it is answered."""
        return True

    def encode(self, *, framed: bool, header: bool) -> bytes:
        """The request's frame, with its header."""
        assert framed
        assert header
        client = self._client.encode()
        head = _HEADER.pack(API_KEY, _VERSION, self.correlation_id)
        head += struct.pack(">h", len(client)) + client + _NO_TAGS
        schema = _defined("ConsumerGroupDescribeRequest").schema
        values: dict[str, Value] = {"groupIds": self._groups, "includeAuthorizedOperations": False}
        body = Writer(schema, _VERSION, flexible=True).structure(schema.fields, values)
        return _SIZE.pack(len(head + body)) + head + body

    def get_response_class(self) -> "type[Described]":
        """The class that decodes the answer."""
        return Described


class Described:
    """An answer: ``groups`` with the fields of Kafka's classes."""

    def __init__(self, groups: Sequence[Mapping[str, Any]]) -> None:
        self.groups = groups
        self.throttle_time_ms = 0

    @classmethod
    def parse_header(cls, data: Foreign) -> "_Numbered":
        """The correlation id; an empty list of tags follows it."""
        (number,) = _SIZE.unpack(data.read(_CORRELATION))
        data.read(len(_NO_TAGS))
        return _Numbered(number)

    @classmethod
    def decode(cls, data: Foreign) -> "Described":
        """The body."""
        schema = _defined("ConsumerGroupDescribeResponse").schema
        reader = Reader(schema, _VERSION, bytes(data.read()), 0, flexible=True)
        groups: Foreign = reader.structure(schema.fields)["groups"]
        return cls(groups)


class _Numbered:
    def __init__(self, correlation_id: int) -> None:
        self.correlation_id = correlation_id


def _defined(name: str) -> Definition:
    found = definition(name)
    assert found is not None, f"{name} is one of Kafka's messages"
    return found
