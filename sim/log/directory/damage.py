"""Faults in the files of one partition while no process has them open.

Source: the failure catalogue B8, B9, D3; Bairavasundaram et al., "An Analysis of Data Corruption
in the Storage Stack" (FAST 2008), for bits that flip and writes that end up elsewhere.
"""

from collections.abc import Callable
from struct import Struct
from typing import Final

from sim.ids import Offset, TopicPartition
from sim.log.store.checkpoints import LOG_STARTS, RECOVERY_POINTS
from sim.log.store.files import FileStore
from sim.log.store.platter import PAGE
from sim.log.store.stored_file import Rot
from sim.units import Bytes

Chance = Callable[[], float]
"""Draws from [0, 1)."""

_FRAME: Final = Struct(">qi")
_LAST_OFFSET_DELTA: Final = Struct(">i")
_LAST_OFFSET_DELTA_AT: Final[Bytes] = 23
_BATCH_HEAD: Final[Bytes] = _LAST_OFFSET_DELTA_AT + _LAST_OFFSET_DELTA.size


def remove_replica(store: FileStore, partition: TopicPartition) -> bool:
    """Deletes the files of a partition; returns True if there were any."""
    if str(partition) not in store.directories():
        return False
    store.delete_directory(str(partition))
    return True


def flip_a_bit(store: FileStore, partition: TopicPartition, unit: Chance) -> bool:
    """Flips a bit of the newest segment of a partition; returns True if it has a byte.

    The newest segment is read whole when a process starts uncleanly, so the flip is found then.
    """
    newest = _newest(store, partition)
    if newest is None:
        return False
    name, size = newest
    store.flip_bit(name, int(unit() * size), int(unit() * 8))
    return True


def tear_a_write(store: FileStore, partition: TopicPartition, unit: Chance) -> bool:
    """Appends the beginning of a batch, as a process killed while it writes does.

    The batch was never acknowledged. Its bytes are those of the last batch, at the next offset.

    Returns:
        True if there was a batch to copy, and space on the disk.
    """
    newest = _newest(store, partition)
    if newest is None:
        return False
    name, _ = newest
    data = store.read_whole(name)
    assert data is not None, "it was there"
    position = _last_batch(data)
    if position is None:
        return False
    base, _ = _FRAME.unpack_from(data, position)
    (delta,) = _LAST_OFFSET_DELTA.unpack_from(data, position + _LAST_OFFSET_DELTA_AT)
    batch = (base + delta + 1).to_bytes(8, "big") + data[position + 8 :]
    if not store.fits(len(batch)):
        return False
    file = store.open(name)
    assert file is not None, "it was there"
    file.append(batch[: 1 + int(unit() * (len(batch) - 1))])
    return True


def misdirect_a_write(
    store: FileStore, partition: TopicPartition, unit: Chance
) -> tuple[Offset, Offset] | None:
    """Puts a page of another log of this disk over a page of the newest segment of a partition.

    Without another log, it is another page of the same one.

    Returns:
        First offset that may be overwritten now, and the former log end; ``None`` if nothing has
        changed.
    """
    newest = _newest(store, partition)
    if newest is None:
        return None
    name, size = newest
    others = [
        log
        for directory in store.directories()
        for log in _logs(store, directory)
        if log != name and (store.size_of(log) or 0) > 0
    ]
    source = others[int(unit() * len(others))] if others else name
    page = _page(store, source, unit)
    at = _place(size, unit)
    was = store.open(name)
    assert was is not None, "it was there"
    length = min(PAGE, size - at, len(page))
    if was.read(at, length) == page[:length]:
        return None
    data = was.read(0, size)
    store.overwrite(name, at, page[:length])
    return _first_from(data, at), _first_from(data, size)


CUT_FILES: Final[dict[str, str]] = {
    "log": ".log", "index": ".index", "timeindex": ".timeindex", "snapshot": ".snapshot",
}  # fmt: skip
"""Endings of a replica's files, of which the newest is cut."""

CUT_CHECKPOINTS: Final[dict[str, str]] = {
    "recovery-points": RECOVERY_POINTS, "log-starts": LOG_STARTS,
}  # fmt: skip
"""Files of a log directory that can be cut."""


def cut_file(store: FileStore, partition: TopicPartition, file: str, size: Bytes) -> str:
    """Cuts the last bytes of the newest file of a kind, all of them if it has fewer.

    Returns:
        Name of the file and bytes that were cut, as text; empty if there was nothing to cut.
    """
    directory = str(partition)
    if directory not in store.directories():
        return ""
    if file in CUT_CHECKPOINTS:
        name = CUT_CHECKPOINTS[file]
    else:
        ending = CUT_FILES[file]
        found = [each for each in store.names(directory) if each.endswith(ending)]
        name = f"{directory}/{found[-1]}" if found else ""
    before = store.size_of(name) or 0
    if not before:
        return ""
    opened = store.open(name)
    assert opened is not None, "it was there"
    opened.truncate(max(before - size, 0))
    return f"{min(size, before)} bytes of {name}"


def let_rot(
    store: FileStore, partition: TopicPartition, which: str, bits: int, unit: Chance
) -> tuple[str, Rot] | None:
    """Flips bits within a page of a segment on the platter.

    Args:
        store: The log directory.
        partition: The log.
        which: ``oldest``, ``newest`` or ``any`` segment that has bytes on the platter.
        bits: How many, in one page.
        unit: Chance.

    Returns:
        The file's name and the bytes; ``None`` if no byte of the log is on the platter.
    """
    opened = [store.open(name) for name in _logs(store, str(partition))]
    files = [file for file in opened if file is not None and file.clean_bytes]
    if not files:
        return None
    chosen = {"oldest": 0, "newest": -1}.get(which)
    file = files[int(unit() * len(files)) if chosen is None else chosen]
    at = _place(file.clean_bytes, unit)
    length = min(PAGE, file.clean_bytes - at)
    flips = [(int(unit() * length), int(unit() * 8)) for _ in range(bits)]
    return file.name, file.decay(at, list(dict.fromkeys(flips)))


def _first_from(data: bytes, position: Bytes) -> Offset:
    """Base offset of the batch that holds the byte; at the end, the offset after the last batch."""
    at, end = 0, 0
    while at + _BATCH_HEAD <= len(data):
        base, length = _FRAME.unpack_from(data, at)
        if length <= 0 or at + _FRAME.size + length > position:
            return int(base)
        (delta,) = _LAST_OFFSET_DELTA.unpack_from(data, at + _LAST_OFFSET_DELTA_AT)
        end = int(base) + int(delta) + 1
        at += _FRAME.size + length
    return end


def _page(store: FileStore, name: str, unit: Chance) -> bytes:
    file = store.open(name)
    assert file is not None, "it was listed"
    return file.read(_place(file.size, unit), PAGE)


def _place(size: Bytes, unit: Chance) -> Bytes:
    """Start of a random page of a file."""
    return int(unit() * -(-size // PAGE)) * PAGE


def _newest(store: FileStore, partition: TopicPartition) -> tuple[str, Bytes] | None:
    """The newest segment's log and its size; ``None`` if there is no byte in it."""
    logs = _logs(store, str(partition))
    if not logs:
        return None
    size = store.size_of(logs[-1])
    return (logs[-1], size) if size else None


def _logs(store: FileStore, directory: str) -> list[str]:
    """Every segment's log in a directory, the newest last."""
    return [f"{directory}/{name}" for name in store.names(directory) if name.endswith(".log")]


def _last_batch(data: bytes) -> Bytes | None:
    """Position of the last whole batch; ``None`` without one."""
    found = None
    position = 0
    while position + _FRAME.size <= len(data):
        _, length = _FRAME.unpack_from(data, position)
        end = position + _FRAME.size + length
        if length <= 0 or end > len(data):
            break
        if end == len(data):
            return position
        found, position = position, end
    return found
