"""One file of a log directory: a clean part on the platter, a dirty tail in the page cache.

Only appends are cached; the tail is kept as the chunks that were appended, by reference.

Source: Linux page cache; the rest is our own.
"""

from collections.abc import Sequence
from typing import Protocol

from sim.log.store.page_cache import ColdRead, PageCache
from sim.log.store.platter import RealFiles
from sim.units import Bytes


class Platter(Protocol):
    """Port of a file to its store."""

    dirty_bytes: Bytes
    platter_bytes: Bytes
    is_guarded: bool
    lies: bool
    real: RealFiles
    cache: PageCache

    def note_touched(self, file: "StoredFile") -> None:
        """Registers a file written since the last mark."""

    def admit(self, name: str, size: Bytes) -> None:
        """Raises if so many bytes more cannot be taken."""

    def check_readable(self, name: str) -> None:
        """Raises if the disk has failed."""


class Rot:
    """Bytes of a file that are not what was written, and how often they were read since.

    Args:
        start: The first of them.
        end: Behind the last of them.
    """

    __slots__ = ("end", "reads", "start")

    def __init__(self, start: Bytes, end: Bytes) -> None:
        self.start = start
        self.end = end
        self.reads = 0

    def note(self, start: Bytes, end: Bytes) -> None:
        """Counts a read."""
        if start < self.end and self.start < end:
            self.reads += 1


class StoredFile:
    """One file: its clean part is in the real file, its dirty tail in memory."""

    __slots__ = (
        "_chunks", "_clean", "_deleted", "_number", "_rot", "_store", "_touched", "name", "size",
    )  # fmt: skip

    def __init__(self, store: Platter, name: str, size: Bytes) -> None:
        self._store = store
        self._chunks: list[bytes] = []
        self._clean = size
        self._number = store.cache.new_file()
        self._touched = False
        self._deleted = False
        self._rot: Rot | None = None
        self.name = name
        self.size = size
        store.platter_bytes += size

    @property
    def dirty_bytes(self) -> Bytes:
        """Bytes that only the page cache holds."""
        return self.size - self._clean

    def append(self, data: bytes) -> None:
        """Writes at the end, into the page cache. The bytes are kept by reference.

        Raises:
            DiskFull: If the disk is full.
            DiskFailed: If the disk has failed.
        """
        store = self._store
        size = len(data)
        if store.is_guarded:
            store.admit(self.name, size)
        self._chunks.append(data)
        self.size += size
        store.dirty_bytes += size
        if not self._touched:
            self._touched = True
            store.note_touched(self)

    def read(self, position: Bytes, size: Bytes) -> bytes:
        """Up to ``size`` bytes from the position, fewer at the end of the file.

        Raises:
            DiskFailed: If the disk has failed.
        """
        self._store.check_readable(self.name)
        end = min(position + size, self.size)
        if position >= end:
            return b""
        if self._rot is not None:
            self._rot.note(position, end)
        parts = []
        if position < self._clean:
            parts.append(
                self._store.real.read(self.name, position, min(end, self._clean) - position)
            )
        if end > self._clean:
            start = self._clean
            for chunk in self._chunks:
                stop = start + len(chunk)
                if stop > position and start < end:
                    parts.append(chunk[max(position - start, 0) : end - start])
                elif start >= end:
                    break
                start = stop
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def use(self, start: Bytes, end: Bytes) -> ColdRead | None:
        """Touches [start, end) for reading; returns what was not in memory.

        The caller pays for it. Dirty bytes are always in memory.
        """
        end = min(end, self._clean)
        if start >= end:
            return None
        return self._store.cache.read(self._number, start, end, self._clean)

    def truncate(self, size: Bytes) -> None:
        """Truncates the file; a shorter one stays as it is.

        Raises:
            DiskFailed: If the disk has failed.
        """
        self._store.check_readable(self.name)
        if size >= self.size:
            return
        if size < self._clean:
            self._drop_dirty()
            self._store.real.cut(self.name, size)
            self._store.cache.forget(self._number, self._clean, size)
            self._store.platter_bytes -= self._clean - size
            self._clean = size
        else:
            kept = self._peel(size - self._clean)
            self._drop_dirty()
            self._chunks = kept
            self._store.dirty_bytes += size - self._clean
        self.size = size

    def write_back(self, up_to: Bytes | None = None) -> Bytes:
        """Moves the dirty bytes below position ``up_to`` to the real file; returns how many."""
        target = self.size if up_to is None else min(up_to, self.size)
        moved = target - self._clean
        if moved <= 0:
            return 0
        if target == self.size:
            now, later = self._chunks, []
        else:
            now = self._peel(moved)
            later = self._rest(moved)
        self._store.real.write(self.name, self._clean, now)
        self._chunks = later
        self._store.dirty_bytes -= moved
        self._store.platter_bytes += moved
        self._store.cache.written_back(self._number, self._clean, target)
        self._clean = target
        return moved

    def flush(self) -> Bytes:
        """Makes every byte durable (fsync); returns how many had to be moved.

        On a lying disk the answer is the same and nothing moves.

        Raises:
            DiskFailed: If the disk has failed.
        """
        store = self._store
        store.check_readable(self.name)
        return self.dirty_bytes if store.lies else self.write_back()

    def keep_prefix(self, size: Bytes) -> Bytes:
        """Keeps ``size`` bytes, all on the platter, as a power loss does; returns bytes lost."""
        self.write_back(size)
        lost = self.size - self._clean
        self._drop_dirty()
        self.size = self._clean
        return lost

    def _peel(self, size: Bytes) -> list[bytes]:
        """The first ``size`` dirty bytes, as chunks."""
        kept = []
        for chunk in self._chunks:
            if size <= 0:
                break
            kept.append(chunk if len(chunk) <= size else chunk[:size])
            size -= len(chunk)
        return kept

    def _rest(self, size: Bytes) -> list[bytes]:
        """The dirty bytes after the first ``size``, as chunks."""
        for i, chunk in enumerate(self._chunks):
            if size < len(chunk):
                return [chunk[size:] if size else chunk, *self._chunks[i + 1 :]]
            size -= len(chunk)
        return []

    def _drop_dirty(self) -> None:
        self._store.dirty_bytes -= self.size - self._clean
        self._chunks = []

    # For the store alone.

    def forget(self) -> None:
        """Discards the dirty bytes of a deleted file."""
        self._drop_dirty()
        self._store.cache.forget(self._number, self._clean)
        self._store.platter_bytes -= self._clean
        self._clean = self.size = 0
        self._deleted = True

    def untouch(self) -> Bytes:
        """Enters the file into a mark; returns its size."""
        self._touched = False
        return self.size

    @property
    def clean_bytes(self) -> Bytes:
        """Bytes on the platter, from the first on."""
        return self._clean

    def decay(self, position: Bytes, bits: Sequence[tuple[Bytes, int]]) -> "Rot":
        """Inverts bits on the platter, whose pages are in memory no more; counts their readers.

        Args:
            position: Start of the range.
            bits: Distance of a byte from there, and number of its bit.
        """
        end = position
        for distance, bit in bits:
            at = position + distance
            assert at < self._clean, f"{self.name} has {self._clean} bytes on the platter"
            self.flip(at, bit)
            end = max(end, at + 1)
        self._store.cache.forget(self._number, self._clean, position)
        self._rot = Rot(position, end)
        return self._rot

    def flip(self, position: Bytes, bit: int) -> None:
        """Inverts one bit of the byte at the position, wherever the byte is now."""
        assert 0 <= position < self.size, f"{self.name} has {self.size} bytes"
        (old,) = self._peek(position)
        self.overwrite(position, bytes((old ^ 1 << bit,)))

    def overwrite(self, position: Bytes, data: bytes) -> None:
        """Puts other bytes in the place of some, wherever those are now."""
        end = position + len(data)
        assert 0 <= position <= end <= self.size, f"{self.name} has {self.size} bytes"
        on_platter = data[: max(self._clean - position, 0)]
        if on_platter:
            self._store.real.write(self.name, position, [on_platter])
        if end > self._clean:
            first = max(position - self._clean, 0)
            dirty = bytearray(b"".join(self._chunks))
            dirty[first : end - self._clean] = data[len(on_platter) :]
            self._chunks = [bytes(dirty)]

    def _peek(self, position: Bytes) -> bytes:
        if position < self._clean:
            return self._store.real.read(self.name, position, 1)
        return b"".join(self._chunks)[position - self._clean : position - self._clean + 1]
