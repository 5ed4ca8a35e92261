"""A log directory: real files are the platter, a simulated page cache lies above them.

Appended bytes stay in the cache, by reference, until a flush or the kernel's write-back moves them
to the real file. Reads see both. Simplified: creating, renaming, deleting and cutting a file, and
atomic replacement, are durable at once; only the contents of appends can be lost. There is no
clock: marks, which the caller sets, determine age.

Sources: Linux page cache (``mm/page-writeback.c``) for write-back by age; ``FileRecords``,
``AtomicMoveWithFallback`` in Kafka for what is done to files.
"""

from collections.abc import Callable
from pathlib import Path

from sim.errors import StorageFailed
from sim.log.store.page_cache import PageCache
from sim.log.store.platter import RealFiles, surviving_sizes
from sim.log.store.stored_file import StoredFile
from sim.units import Bytes


class DiskFailed(StorageFailed):
    """The simulated disk answers EIO, or lost what it held. ``args``: the message."""

    def __init__(self, message: str, root: Path | None = None) -> None:
        super().__init__(message)
        self.root = root
        """The log directory that failed; ``None`` if the error is not about a single one."""


class DiskFull(DiskFailed):
    """The simulated disk answers ENOSPC. Kafka takes the log directory offline for it, too."""


class FileStore:
    """One log directory (an entry of ``log.dirs``) with its page cache.

    Names are paths relative to the root, with ``/``. A real ``OSError`` of the machine below is
    never caught: it is not part of the simulation.
    """

    def __init__(self, root: Path, cache: PageCache | None = None, *, late: bool = False) -> None:
        """Takes over a directory; it is made if missing, files in it are clean and not in memory.

        Args:
            root: The real directory.
            cache: The memory of the machine; its own if none is given.
            late: True if real files may be missing or outdated until :meth:`settle`.
        """
        self.root = root
        self.cache = cache if cache is not None else PageCache()
        """Page cache of the machine."""
        self.dirty_bytes: Bytes = 0
        self.platter_bytes: Bytes = 0
        """Bytes of all files without those that only the page cache holds."""
        self.has_rolled = False
        """True if a log of it may have a flush scheduled by a roll; others are not looked at."""
        self.is_guarded = False
        """True if every write has to be checked: the disk has failed or is full, or may be."""
        self.lies = False
        self.has_descriptors = True
        """False while a fault exhausts the process's file descriptors."""
        self.descriptors_refused = 0
        """Files that could not be made for lack of a descriptor."""
        self.replacements = 0
        """Number of replacements of the disk by an empty one."""
        self.on_refusal: Callable[[], None] | None = None
        """Called before each rejected write: evidence that a failed or full disk took effect."""
        self.awaits_mount = False
        """True if the disk was replaced, and no process has mounted the new one."""
        self._failed = False
        self._full = False
        self._capacity: Bytes = 0
        self._is_short = False
        self._files: dict[str, StoredFile] = {}
        self._directories: dict[str, None] = {}
        self.real = RealFiles(root, late=late)
        """The files below, for the stored files alone."""
        self._touched: list[StoredFile] = []
        self._marks: list[tuple[int, list[tuple[StoredFile, Bytes]]]] = []
        self._next_mark = 0
        self.cache.add(self)
        root.mkdir(parents=True, exist_ok=True)
        self._scan()

    # -- faults, set from outside ------------------------------------------------------------------

    @property
    def failed(self) -> bool:
        """True if every access is answered with EIO: by the disk, or for the disk that was here."""
        return self._failed

    @failed.setter
    def failed(self, value: bool) -> None:
        self._failed = value
        self.awaits_mount = False
        self._guard()

    @property
    def full(self) -> bool:
        """True if the disk answers writes with ENOSPC; reads succeed."""
        return self._full

    @full.setter
    def full(self, value: bool) -> None:
        self._full = value
        self._guard()

    @property
    def capacity(self) -> Bytes:
        """Bytes that all files together may have; 0: as many as are written.

        Directories, names and what a file system rounds up take none of it.
        """
        return self._capacity

    @capacity.setter
    def capacity(self, value: Bytes) -> None:
        self._capacity = value
        self._is_short = False
        self._guard()

    @property
    def used_bytes(self) -> Bytes:
        """Bytes of all files, written back or not."""
        return self.platter_bytes + self.dirty_bytes

    @property
    def refuses_writes(self) -> bool:
        """True if the disk has failed or is full, or lacked space since a process mounted it."""
        return self._failed or self._full or self._is_short

    def _guard(self) -> None:
        self.is_guarded = self._failed or self._full or self._capacity > 0

    def power_loss(self, unit: Callable[[], float]) -> Bytes:
        """Drops the page cache: what was not written back is lost, except for a random prefix.

        Per dirty file, in the order of names, a prefix of its dirty pages reached the platter; the
        last of them is whole half the time, else it may be torn at a sector. Nothing reaches a
        failed disk.

        Args:
            unit: Draws from [0, 1); two draws per dirty file.

        Returns:
            Bytes lost.
        """
        lost = 0
        for name in sorted(self._files):
            file = self._files[name]
            if not file.dirty_bytes:
                continue
            groups = surviving_sizes(file.size - file.dirty_bytes, file.size)
            begun = groups[int(unit() * len(groups))] if not self._failed else groups[0]
            torn = int((2 * unit() - 1) * len(begun))
            lost += file.keep_prefix(begun[max(torn, 0)])
        self._marks.clear()
        return lost

    def wipe(self) -> None:
        """Replaces the disk by an empty one; open files get EIO until a process mounts it."""
        self.replacements += 1
        for file in self._files.values():
            file.forget()
        self._files.clear()
        self._directories.clear()
        self._marks.clear()
        self._touched.clear()
        self.real.clear()
        self.lies = False
        self.full = False
        self.failed = True
        self.awaits_mount = True

    def mount(self) -> None:
        """Mounts the present disk, for a process that starts."""
        self._is_short = False
        if self.awaits_mount:
            self.failed = False

    def overwrite(self, name: str, position: Bytes, data: bytes) -> None:
        """Puts other bytes over those of a file, wherever they are now."""
        self._files[name].overwrite(position, data)

    def flip_bit(self, name: str, position: Bytes, bit: int) -> None:
        """Inverts bit 0..7 of one byte, on the platter or in the cache, wherever it is now."""
        self._files[name].flip(position, bit)

    # -- files -------------------------------------------------------------------------------------

    def create(self, name: str) -> StoredFile:
        """A new empty file; one that exists is cut to nothing.

        Raises:
            DiskFailed: If the disk has failed or is full.
        """
        if self.is_guarded:
            self.admit(name, 0)
        self._take_descriptor(name)
        file = self._files.get(name)
        if file is not None:
            file.truncate(0)
            return file
        self.real.put(name, b"")
        made = StoredFile(self, name, 0)
        self._files[name] = made
        return made

    def open(self, name: str) -> StoredFile | None:
        """The file, or ``None`` if there is none.

        Raises:
            DiskFailed: If the disk has failed.
        """
        self.check_readable(name)
        return self._files.get(name)

    def size_of(self, name: str) -> Bytes | None:
        """A file's size; ``None`` if there is none."""
        file = self._files.get(name)
        return None if file is None else file.size

    @property
    def file_count(self) -> int:
        """Number of files."""
        return len(self._files)

    def exists(self, name: str) -> bool:
        """True if the file exists."""
        return name in self._files

    def names(self, directory: str = "") -> tuple[str, ...]:
        """Names of the files directly in a directory, without its name, sorted."""
        prefix = f"{directory}/" if directory else ""
        rest = (name[len(prefix) :] for name in self._files if name.startswith(prefix))
        return tuple(sorted(name for name in rest if "/" not in name))

    def directories(self) -> tuple[str, ...]:
        """Names of the directories under the root, sorted."""
        return tuple(sorted(self._directories))

    def read_whole(self, name: str) -> bytes | None:
        """A file's contents, ``None`` if there is no such file.

        Raises:
            DiskFailed: If the disk has failed.
        """
        file = self.open(name)
        return None if file is None else file.read(0, file.size)

    def replace(self, name: str, data: bytes) -> None:
        """Writes a whole file atomically and durably.

        Raises:
            DiskFailed: If the disk has failed or is full.
        """
        if self.is_guarded:
            self.admit(name, len(data))
        self._take_descriptor(name)
        self.real.put(name, data)
        old = self._files.get(name)
        if old is not None:
            old.forget()
        self._files[name] = StoredFile(self, name, len(data))

    def delete(self, name: str) -> None:
        """Removes a file if it is there.

        Raises:
            DiskFailed: If the disk has failed.
        """
        self.check_readable(name)
        file = self._files.pop(name, None)
        if file is not None:
            self.real.remove(name)
            file.forget()

    def rename(self, old: str, new: str) -> None:
        """Renames a file, replacing one that has the new name.

        Raises:
            DiskFailed: If the disk has failed.
        """
        self.check_readable(old)
        replaced = self._files.get(new)
        if replaced is not None:
            replaced.forget()
        file = self._files.pop(old)
        self.real.move(old, new)
        file.name = new
        self._files[new] = file

    def make_directory(self, name: str) -> None:
        """Makes a directory under the root if it is missing.

        Raises:
            DiskFailed: If the disk has failed or is full.
        """
        if self.is_guarded:
            self.admit(name, 0)
        if name not in self._directories:
            self.real.make_directory(name)
            self._directories[name] = None

    def rename_directory(self, old: str, new: str) -> None:
        """Moves a directory with all its files to a new name.

        Raises:
            DiskFailed: If the disk has failed.
        """
        self.check_readable(old)
        names = self._under(old)
        self.real.move_directory(old, new, names)
        for name in names:
            file = self._files.pop(name)
            file.name = new + name[len(old) :]
            self._files[file.name] = file
        del self._directories[old]
        self._directories[new] = None

    def delete_directory(self, name: str) -> None:
        """Removes a directory with all its files.

        Raises:
            DiskFailed: If the disk has failed.
        """
        self.check_readable(name)
        for file in self._under(name):
            self.delete(file)
        self.real.remove_directory(name)
        del self._directories[name]

    # -- moving bytes to the platter ---------------------------------------------------------------

    def mark(self) -> int:
        """Marks what of every file is dirty now; returns the mark."""
        self._next_mark += 1
        noted = [(file, file.untouch()) for file in self._touched]
        self._touched = []
        if noted:
            self._marks.append((self._next_mark, noted))
        return self._next_mark

    def write_back(self, mark: int) -> Bytes:
        """Moves everything that was dirty at the mark to the platter; returns how many bytes.

        A failed disk accepts nothing; a full one does, as its blocks were reserved.
        """
        if self._failed:
            return 0
        extents: dict[StoredFile, Bytes] = {}
        while self._marks and self._marks[0][0] <= mark:
            extents.update(self._marks.pop(0)[1])
        return sum(file.write_back(size) for file, size in extents.items())

    def write_back_all(self) -> Bytes:
        """Moves all dirty bytes to the platter; returns how many."""
        self._marks.clear()
        for file in self._touched:
            file.untouch()
        self._touched = []
        return sum(file.write_back() for file in self._files.values() if file.dirty_bytes)

    def flush(self, name: str) -> Bytes:
        """Makes one file durable; returns how many bytes had to be moved."""
        return self._files[name].flush()

    def settle(self) -> None:
        """Makes in the file system what was left for later: real files are as the platter."""
        self.real.settle()

    def close(self) -> None:
        """Closes the real files that are kept open; the store stays usable."""
        self.real.close()

    # -- for StoredFile ----------------------------------------------------------------------------

    def note_touched(self, file: StoredFile) -> None:
        """Registers a file written since the last mark."""
        self._touched.append(file)

    def admit(self, name: str, size: Bytes) -> None:
        """Raises if so many bytes more cannot be taken."""
        self.check_readable(name)
        if self.fits(size):
            return
        self._is_short = not self._full
        self._note_refusal()
        raise DiskFull(f"{self.root / name}: no space left on device", self.root)

    def fits(self, size: Bytes) -> bool:
        """True if so many more bytes fit."""
        return not self._full and (not self._capacity or self.used_bytes + size <= self._capacity)

    def check_readable(self, name: str) -> None:
        """Raises if the disk has failed."""
        if self._failed:
            self._note_refusal()
            raise DiskFailed(f"{self.root / name}: input/output error", self.root)

    def _take_descriptor(self, name: str) -> None:
        if not self.has_descriptors:
            self.descriptors_refused += 1
            raise DiskFailed(f"{self.root / name}: too many open files", self.root)

    def _note_refusal(self) -> None:
        if self.on_refusal is not None:
            self.on_refusal()

    def _under(self, directory: str) -> list[str]:
        return sorted(name for name in self._files if name.startswith(f"{directory}/"))

    def _scan(self) -> None:
        for path in sorted(self.root.rglob("*")):
            name = path.relative_to(self.root).as_posix()
            if path.is_dir():
                self._directories[name] = None
            else:
                self._files[name] = StoredFile(self, name, path.stat().st_size)
                self.real.adopt(name)
