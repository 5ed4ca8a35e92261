"""Real files under a log directory, and their contents after a power loss.

Files that nobody else reads yet may be made late: with the first bytes that are written to them,
or by :meth:`RealFiles.settle`. Until then one is a name and a page at most in memory, and most
replicas of a large cluster never have more. The most recently used descriptors are kept open.
Errors of the machine below are not caught.

Source: Linux page cache, in pages, over a disk that writes sectors whole.
"""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from sim.units import Bytes

PAGE: Bytes = 4096
"""Unit of the page cache."""

SECTOR: Bytes = 512
"""Unit that a disk writes whole."""

_OPEN_FILES = 6
_VECTORS = 512


class RealFiles:
    """Reads and writes files by their names relative to a root.

    Args:
        root: The real directory.
        late: True if files and directories are made late.
    """

    __slots__ = ("_descriptors", "_late", "_made", "_root", "_unmade", "_unmade_directories")

    def __init__(self, root: Path, *, late: bool = False) -> None:
        self._root = root
        self._late = late
        self._descriptors: dict[str, int] = {}
        self._made: dict[str, None] = {}
        self._unmade: dict[str, bytes] = {}
        self._unmade_directories: dict[str, None] = {}

    def adopt(self, name: str) -> None:
        """Takes over a file that exists."""
        self._made[name] = None

    def put(self, name: str, data: bytes) -> None:
        """Makes a file with these contents, or replaces one."""
        self.release(name)
        self._unmade[name] = data
        if not self._late or len(data) > PAGE:
            os.close(self._make(name))

    def remove(self, name: str) -> None:
        """Removes a file."""
        self.release(name)
        self._unmade.pop(name, None)
        if name in self._made:
            (self._root / name).unlink()
            del self._made[name]

    def move(self, old: str, new: str) -> None:
        """Renames a file; one that has the new name is replaced."""
        self.release(old)
        self.remove(new)
        if old in self._unmade:
            self._unmade[new] = self._unmade.pop(old)
            self.remove(old)
        else:
            (self._root / old).replace(self._root / new)
            del self._made[old]
            self._made[new] = None

    def make_directory(self, name: str) -> None:
        """Makes a directory."""
        self._unmade_directories[name] = None
        if not self._late:
            self._make_directory(name)

    def move_directory(self, old: str, new: str, files: Iterable[str]) -> None:
        """Renames a directory; ``files`` are those in it, by their old names."""
        for name in files:
            self.release(name)
            moved = new + name[len(old) :]
            if name in self._unmade:
                self._unmade[moved] = self._unmade.pop(name)
            if name in self._made:
                del self._made[name]
                self._made[moved] = None
        if old in self._unmade_directories:
            del self._unmade_directories[old]
            self._unmade_directories[new] = None
        else:
            (self._root / old).replace(self._root / new)

    def remove_directory(self, name: str) -> None:
        """Removes a directory whose files have been removed."""
        if name in self._unmade_directories:
            del self._unmade_directories[name]
        else:
            shutil.rmtree(self._root / name)

    def settle(self) -> None:
        """Makes in the file system what is in memory alone."""
        for name in list(self._unmade_directories):
            self._make_directory(name)
        for name in list(self._unmade):
            os.close(self._make(name))

    def clear(self) -> None:
        """Replaces the root by an empty directory."""
        self.close()
        for known in (self._made, self._unmade_directories):
            known.clear()
        self._unmade.clear()
        shutil.rmtree(self._root)
        self._root.mkdir(parents=True)

    def read(self, name: str, position: Bytes, size: Bytes) -> bytes:
        """Bytes from a position on."""
        data = self._unmade.get(name)
        if data is not None:
            return data[position : position + size]
        return os.pread(self._descriptor(name), size, position)

    def write(self, name: str, position: Bytes, chunks: list[bytes]) -> None:
        """Writes chunks to a file, one after the other, in as few calls as possible."""
        self._write(self._descriptor(name), name, position, chunks)

    def _write(self, descriptor: int, name: str, position: Bytes, chunks: list[bytes]) -> None:
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
            if name in self._unmade:
                descriptor = self._make(name)
            else:
                descriptor = os.open(f"{self._root}/{name}", os.O_RDWR | os.O_CLOEXEC)
        self._descriptors[name] = descriptor
        return descriptor

    def _make(self, name: str) -> int:
        """Makes a file as it is in memory; returns its descriptor."""
        self._make_directory(name.rpartition("/")[0])
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        descriptor = os.open(f"{self._root}/{name}", flags, 0o666)
        self._made[name] = None
        self._write(descriptor, name, 0, [self._unmade.pop(name)])
        return descriptor

    def _make_directory(self, name: str) -> None:
        if name in self._unmade_directories:
            (self._root / name).mkdir(exist_ok=True)
            del self._unmade_directories[name]


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
