"""Reader of a closed segment file, batch by batch, without a store.

For tools that look at a run's directory: no page cache, read-only.

Source: ``FileRecords``.
"""

import mmap
import re
from collections.abc import Iterator
from pathlib import Path

from sim.errors import SimulationError
from sim.ids import Offset
from sim.log.partition.index import OFFSET_ENTRY, TIME_ENTRY, Place, Reached
from sim.log.producers.transaction_index import AbortedTxn, decode_aborted
from sim.units import Bytes
from sim.wire.record_batch import LOG_OVERHEAD, RecordBatch, batch_size_at

_BASE_OFFSET = re.compile(r"[0-9]{1,19}|0[0-9]{19}")


def file_batches(path: Path) -> Iterator[tuple[Bytes, RecordBatch]]:
    """Every whole batch of a ``.log`` file with its position; a partial one at the end is left out.

    Raises:
        MalformedBytes: If a header is impossible.
    """
    size = path.stat().st_size
    if not size:
        return
    # Closed before anything is yielded: a compiled generator that is left early closes nothing.
    with path.open("rb") as file:
        view = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    position = 0
    while position + LOG_OVERHEAD <= size:
        length = batch_size_at(view[position : position + LOG_OVERHEAD], 0)
        if position + length > size:
            return
        yield position, RecordBatch(view[position : position + length])
        position += length


def base_offset_of(path: Path) -> Offset:
    """The base offset in the name of a segment's file.

    Raises:
        SimulationError: If the name does not begin with one, as no file of a segment's does.
    """
    digits = path.name.partition(".")[0]
    if _BASE_OFFSET.fullmatch(digits) is None:
        raise SimulationError(
            f"{path}: not named by a base offset, as 00000000000000000000{path.suffix} is"
        )
    return int(digits)


def segments(directory: Path) -> tuple[list[Path], list[Path]]:
    """The ``.log`` files named by base offsets, in their order, and the others.

    A broker stops at one of the others: ``LogLoader`` takes each for a segment
    (``NumberFormatException``).
    """
    found = sorted(path for path in directory.glob("*.log") if path.is_file())
    good = [path for path in found if _BASE_OFFSET.fullmatch(path.stem) is not None]
    return good, [path for path in found if path not in good]


def read_offset_index(path: Path) -> list[Place]:
    """Entries of an ``.index`` file, as far as they are whole."""
    base, data = base_offset_of(path), path.read_bytes()
    whole = data[: len(data) - len(data) % OFFSET_ENTRY.size]
    return [Place(base + offset, position) for offset, position in OFFSET_ENTRY.iter_unpack(whole)]


def read_time_index(path: Path) -> list[Reached]:
    """Entries of a ``.timeindex`` file, as far as they are whole."""
    base, data = base_offset_of(path), path.read_bytes()
    whole = data[: len(data) - len(data) % TIME_ENTRY.size]
    return [
        Reached(timestamp, base + offset) for timestamp, offset in TIME_ENTRY.iter_unpack(whole)
    ]


def read_transaction_index(path: Path) -> list[AbortedTxn]:
    """Entries of a ``.txnindex`` file, as far as they are whole."""
    return decode_aborted(path.read_bytes())
