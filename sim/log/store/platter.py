"""Real files under a log directory, and their contents after a power loss.

The most recently used descriptors are kept open. Errors of the machine below are not caught.

Source: Linux page cache, in pages, over a disk that writes sectors whole.
"""

import os
from pathlib import Path

from sim.units import Bytes

PAGE: Bytes = 4096
"""Unit of the page cache."""

SECTOR: Bytes = 512
"""Unit that a disk writes whole."""

_OPEN_FILES = 6
_VECTORS = 512


class RealFiles:
    """Reads and writes files by their names relative to a root."""

    __slots__ = ("_descriptors", "_root")

    def __init__(self, root: Path) -> None:
        self._root = root
        self._descriptors: dict[str, int] = {}

    def read(self, name: str, position: Bytes, size: Bytes) -> bytes:
        """Bytes from a position on."""
        return os.pread(self._descriptor(name), size, position)

    def write(self, name: str, position: Bytes, chunks: list[bytes]) -> None:
        """Writes chunks to a file, one after the other, in as few calls as possible."""
        descriptor = self._descriptor(name)
        try:
            for start in range(0, len(chunks), _VECTORS):
                group = chunks[start : start + _VECTORS]
                size = sum(map(len, group))
                written = os.pwritev(descriptor, group, position)
                while written < size:
                    rest = b"".join(group)[written:]
                    written += os.pwrite(descriptor, rest, position + written)
                position += size
        except OSError as error:
            # An error of a descriptor lacks the name, which a reader of the message needs.
            error.filename = str(self._root / name)
            raise

    def cut(self, name: str, size: Bytes) -> None:
        """Truncates a file."""
        os.ftruncate(self._descriptor(name), size)

    def release(self, name: str) -> None:
        """Closes a file if it is open: it is about to be moved or deleted."""
        descriptor = self._descriptors.pop(name, None)
        if descriptor is not None:
            os.close(descriptor)

    def close(self) -> None:
        """Closes all files; they are opened again when needed."""
        for descriptor in self._descriptors.values():
            os.close(descriptor)
        self._descriptors.clear()

    def _descriptor(self, name: str) -> int:
        descriptor = self._descriptors.pop(name, None)
        if descriptor is None:
            if len(self._descriptors) >= _OPEN_FILES:
                self.release(next(iter(self._descriptors)))
            descriptor = os.open(self._root / name, os.O_RDWR | os.O_CLOEXEC)
        self._descriptors[name] = descriptor
        return descriptor


def surviving_sizes(clean: Bytes, size: Bytes) -> tuple[tuple[Bytes, ...], ...]:
    """Lengths that a file may have after a power loss, grouped by how many dirty pages were begun.

    The first group is the clean length alone. Every other group is one page: whole first, then torn
    after each of its sectors that lies past the clean part.
    """
    groups: list[tuple[Bytes, ...]] = [(clean,)]
    page = clean - clean % PAGE
    while page < size:
        end = min(page + PAGE, size)
        torn = range(page + SECTOR, end, SECTOR)
        groups.append((end, *(at for at in torn if at > clean)))
        page += PAGE
    return tuple(groups)
