"""The index of aborted transactions: one entry for each, in the segment that holds its marker.

Source: ``TransactionIndex``, ``AbortedTxn``.
"""

import struct
from collections.abc import Iterable
from typing import NamedTuple

from sim.ids import Offset, ProducerId

ABORTED_ENTRY = struct.Struct(">hqqqq")
"""An entry: version 0, producer id, first, last and last stable offset; 34 bytes."""


class AbortedTxn(NamedTuple):
    """An aborted transaction, as readers of committed records are told of it."""

    producer_id: ProducerId
    first_offset: Offset
    """Of its first record in this partition."""
    last_offset: Offset
    """Of its marker."""
    last_stable_offset: Offset
    """First offset of the earliest other transaction that was open then, else behind the marker."""


def encode_aborted(entries: Iterable[AbortedTxn]) -> bytes:
    """The contents of a ``.txnindex`` file."""
    return b"".join([ABORTED_ENTRY.pack(0, *entry) for entry in entries])


def decode_aborted(data: bytes) -> list[AbortedTxn]:
    """Entries of a ``.txnindex`` file, as far as they are whole."""
    whole = data[: len(data) - len(data) % ABORTED_ENTRY.size]
    return [AbortedTxn(*entry[1:]) for entry in ABORTED_ENTRY.iter_unpack(whole)]
