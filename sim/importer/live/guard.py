"""Requests that may be sent to a cluster that is read; every other one is refused unsent.

The gate looks twice. A request that the client routes is looked at as an object, with those fields
that could make an allowed request change something. Bytes on their way to a socket are looked at
once more, frame by frame, so that also what a connection sends by its own is of these kinds.

Not allowed although they sound harmless: ``FindCoordinator`` (a broker creates a missing
``__consumer_offsets`` to answer it), and ``Metadata`` that may create the topics that it names.

Source: ``ApiKeys``; KIP-4 (automatic creation of topics).
"""

import struct
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from sim.errors import DefectFound

Foreign: TypeAlias = Any
"""An object of kafka-python, which declares no types."""

ALLOWED: Final[Mapping[int, str]] = {
    2: "ListOffsets",
    3: "Metadata",
    9: "OffsetFetch",
    15: "DescribeGroups",
    16: "ListGroups",
    17: "SaslHandshake",
    18: "ApiVersions",
    32: "DescribeConfigs",
    35: "DescribeLogDirs",
    36: "SaslAuthenticate",
    46: "ListPartitionReassignments",
    48: "DescribeClientQuotas",
    55: "DescribeQuorum",
    60: "DescribeCluster",
    69: "ConsumerGroupDescribe",
}
"""Api keys of requests that change nothing, and their names."""

_METADATA: Final = 3
_FRAME: Final = struct.Struct(">ih")
_SIZE: Final = 4


class WriteRefused(DefectFound):
    """A request that is not on the list; it was not sent."""


class Gate:
    """Lets requests pass that read, and counts them."""

    def __init__(self) -> None:
        self.sent: Counter[int] = Counter()
        """Frames that passed, by api key."""

    def check_request(self, request: Foreign) -> None:
        """Check a request before it is encoded.

        Raises:
            WriteRefused: If its api key is not on the list, or it could create a topic.
        """
        self._check(request.API_KEY)
        if request.API_KEY == _METADATA and request.topics and request.allow_auto_topic_creation:
            raise WriteRefused("Metadata that may create topics: refused, nothing was sent")

    def check_frames(self, data: bytes) -> None:
        """Check whole frames (size, api key, ...) before they are written to a socket.

        Raises:
            WriteRefused: If one is of another kind, or these are no frames.
        """
        at = 0
        while at < len(data):
            if len(data) - at < _FRAME.size:
                raise WriteRefused("bytes that are no request: refused, nothing was sent")
            size, key = _FRAME.unpack_from(data, at)
            self._check(key)
            self.sent[key] += 1
            at += _SIZE + size
            if size < 0 or at > len(data):
                raise WriteRefused("a part of a request: refused, nothing was sent")

    def _check(self, key: int) -> None:
        if key not in ALLOWED:
            raise WriteRefused(
                f"api key {key} is not one that only reads: refused, nothing was sent"
            )
