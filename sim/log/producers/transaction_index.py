"""The index of aborted transactions: one entry for each, in the segment that holds its marker.

The file is made with its first entry and grows by appends; readers of committed data find in it
what they have to skip.

Source: ``TransactionIndex``, ``AbortedTxn``.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sim.ids import Offset, ProducerId
from sim.log.store.files import FileStore
from sim.units import Bytes

ABORTED_ENTRY = struct.Struct(">hqqqq")
"""An entry: version 0, producer id, first, last and last stable offset; 34 bytes."""

_VERSION = 0


class AbortedTxn(NamedTuple):
    """An aborted transaction, as read_committed fetch responses list it."""

    producer_id: ProducerId
    first_offset: Offset
    """Offset of its first record in this partition."""
    last_offset: Offset
    """Offset of its marker."""
    last_stable_offset: Offset
    """First offset of the earliest other transaction that was open then, else behind the marker."""


class TransactionIndex:
    """One segment's aborted transactions, in the order of their markers.

    Args:
        store: The log directory.
        name: Of the file, which need not exist.
    """

    __slots__ = ("_name", "_store")

    def __init__(self, store: FileStore, name: str) -> None:
        self._store = store
        self._name = name

    @property
    def dirty_bytes(self) -> Bytes:
        """Bytes that a flush would move."""
        store = self._store
        if not store.exists(self._name):
            return 0
        file = store.open(self._name)
        return 0 if file is None else file.dirty_bytes

    def move_to(self, name: str) -> None:
        """Follows a renaming of its directory."""
        self._name = name

    def append(self, aborted: AbortedTxn) -> None:
        """Adds an entry; markers come in order.

        Raises:
            DiskFailed: If the disk has failed or is full.
        """
        store = self._store
        file = store.open(self._name)
        if file is None:
            file = store.create(self._name)
        file.append(ABORTED_ENTRY.pack(_VERSION, *aborted))

    def entries(self, from_offset: Offset = 0) -> Iterator[AbortedTxn]:
        """Whole entries whose markers are not below the offset, in order.

        Raises:
            DiskFailed: If the disk has failed.
        """
        if not self._store.exists(self._name):
            return
        file = self._store.open(self._name)
        assert file is not None, "it exists"
        size = ABORTED_ENTRY.size
        low, count = 0, file.size // size
        high = count
        while low < high:
            middle = (low + high) // 2
            if decode_aborted(file.read(middle * size, size))[0].last_offset < from_offset:
                low = middle + 1
            else:
                high = middle
        for number in range(low, count):
            yield decode_aborted(file.read(number * size, size))[0]

    def truncate_to(self, offset: Offset) -> None:
        """Keeps the entries whose markers are below the offset; a partial entry is dropped, too.

        Raises:
            DiskFailed: If the disk has failed.
        """
        store = self._store
        if not store.exists(self._name):
            return
        file = store.open(self._name)
        assert file is not None, "it exists"
        dropped = sum(1 for _ in self.entries(offset))
        file.truncate((file.size // ABORTED_ENTRY.size - dropped) * ABORTED_ENTRY.size)

    def flush(self) -> Bytes:
        """Makes it durable; returns the bytes moved."""
        return self._store.flush(self._name) if self._store.exists(self._name) else 0

    def delete(self) -> None:
        """Removes the file, if there is one.

        Raises:
            DiskFailed: If the disk has failed.
        """
        self._store.delete(self._name)


def transaction_index_file(directory: str, base: Offset) -> str:
    """Name of a segment's index of aborted transactions."""
    return f"{directory}/{base:020d}.txnindex"


def encode_aborted(entries: Iterable[AbortedTxn]) -> bytes:
    """The contents of a ``.txnindex`` file."""
    return b"".join([ABORTED_ENTRY.pack(0, *entry) for entry in entries])


def decode_aborted(data: bytes) -> list[AbortedTxn]:
    """Entries of a ``.txnindex`` file, as far as they are whole."""
    whole = data[: len(data) - len(data) % ABORTED_ENTRY.size]
    return [AbortedTxn(*entry[1:]) for entry in ABORTED_ENTRY.iter_unpack(whole)]
