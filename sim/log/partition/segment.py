"""One segment: a ``.log`` file and its two indexes.

Index entries follow Kafka's rule to the byte; aborted transactions have an index of their own.

Source: ``LogSegment``; KAFKA-806 for the rule per batch.
"""

from collections.abc import Iterator

from sim.errors import CorruptRecord
from sim.ids import Offset
from sim.log.config import LogConfig
from sim.log.partition.index import NO_TIMESTAMP, OffsetIndex, TimeIndex
from sim.log.producers.transaction_index import TransactionIndex, transaction_index_file
from sim.log.store.files import FileStore
from sim.log.store.stored_file import StoredFile
from sim.units import KIB, Bytes
from sim.wire.primitives import MalformedBytes
from sim.wire.record_batch import LOG_OVERHEAD, RecordBatch, batch_size_at

_CHUNK: Bytes = 512 * KIB
_LARGEST_RELATIVE_OFFSET = (1 << 31) - 1
_NOT_READ = -2


class Segment:
    """Consecutive batches from ``base_offset`` on, in one file."""

    __slots__ = (
        "_bytes_since_index",
        "_first_timestamp_ms",
        "_full",
        "_interval",
        "base_offset",
        "index",
        "jitter_ms",
        "log",
        "lost_aborted",
        "max_timestamp_ms",
        "max_timestamp_offset",
        "modified_ms",
        "start_bytes",
        "time_index",
        "transaction_index",
    )

    def __init__(
        self,
        log: StoredFile,
        index: OffsetIndex,
        time_index: TimeIndex,
        base: Offset,
        interval: Bytes,
        transaction_index: TransactionIndex,
    ) -> None:
        self.log = log
        self.index = index
        self.time_index = time_index
        self.transaction_index = transaction_index
        self.base_offset = base
        self.modified_ms = NO_TIMESTAMP
        """Last modification of the newest source of a cleaned segment."""
        self.start_bytes: Bytes = 0
        """Bytes of all older segments of the log, to count bytes between offsets."""
        self.jitter_ms = 0
        """Time by which it rolls earlier than ``segment.ms``, drawn when it became active."""
        self.lost_aborted = False
        """True if recovery has found markers and must rebuild the index of aborted transactions."""
        self.max_timestamp_ms = NO_TIMESTAMP
        self.max_timestamp_offset: Offset = -1
        self._interval = interval
        self._bytes_since_index = 0
        self._full = index.full or time_index.full
        self._first_timestamp_ms = _NOT_READ if log.size else NO_TIMESTAMP

    @classmethod
    def create(
        cls, store: FileStore, directory: str, base: Offset, config: LogConfig, suffix: str = ""
    ) -> "Segment":
        """A new empty segment; ``suffix`` comes behind the names of its files.

        Raises:
            DiskFailed: If the disk has failed or is full.
        """
        names = segment_files(directory, base)
        log, index, time = (store.create(name + suffix) for name in names)
        return cls._over((log, index, time), store, directory, base, config)

    @classmethod
    def open(cls, store: FileStore, directory: str, base: Offset, config: LogConfig) -> "Segment":
        """A segment that exists; indexes that are missing are made empty.

        Its largest timestamp is unknown until :meth:`read_largest_timestamp` or a recovery.

        Raises:
            DiskFailed: If the disk has failed.
        """
        files = []
        for name in segment_files(directory, base):
            found = store.open(name)
            files.append(found if found is not None else store.create(name))
        return cls._over((files[0], files[1], files[2]), store, directory, base, config)

    def move_to(self, directory: str) -> None:
        """Follows a renaming of the directory that holds its files."""
        self.transaction_index.move_to(transaction_index_file(directory, self.base_offset))

    @property
    def size(self) -> Bytes:
        """Bytes of the ``.log`` file."""
        return self.log.size

    @property
    def dirty_bytes(self) -> Bytes:
        """Bytes that a flush would have to move."""
        indexes = self.index.file.dirty_bytes + self.time_index.file.dirty_bytes
        return self.log.dirty_bytes + indexes + self.transaction_index.dirty_bytes

    def append(self, batch: RecordBatch) -> None:
        """Writes a batch and the index entries it needs.

        Raises:
            DiskFailed: If the disk has failed or is full.
        """
        self.index_batch(self.write(batch), batch)

    def write(self, batch: RecordBatch) -> Bytes:
        """Writes a batch; returns its position, for the index.

        Raises:
            DiskFailed: If the disk has failed or is full; then nothing was written.
        """
        log = self.log
        position = log.size
        log.append(batch.data)
        return position

    def index_batch(self, position: Bytes, batch: RecordBatch) -> None:
        """Takes the timestamp of the batch at the position, and indexes it if an entry is due.

        Raises:
            DiskFailed: If the disk has failed or is full.
        """
        timestamp = batch.max_timestamp_ms
        if position == 0:
            self._first_timestamp_ms = timestamp
        if timestamp > self.max_timestamp_ms:
            self.max_timestamp_ms = timestamp
            self.max_timestamp_offset = batch.last_offset
        if self._bytes_since_index > self._interval:
            self.index.append(batch.last_offset, position)
            self.time_index.maybe_append(self.max_timestamp_ms, self.max_timestamp_offset)
            self._bytes_since_index = 0
            self._full = self.index.full or self.time_index.full
        self._bytes_since_index += batch.size_bytes

    @property
    def is_index_due(self) -> bool:
        """True if the next batch gets an index entry."""
        return self._bytes_since_index > self._interval

    def must_roll(
        self, size: Bytes, max_timestamp_ms: int, last_offset: Offset, config: LogConfig
    ) -> bool:
        """True if a record set of that size belongs into a new segment.

        Record timestamps determine the age; without one the segment does not age.

        Raises:
            CorruptRecord: If the first batch has not been read yet, and its header is damaged.

        Source: ``LogSegment.shouldRoll``.
        """
        present = self.log.size
        if present > config.segment_bytes - size or self._full:
            return True
        if present:
            first = self._first_timestamp_ms
            if first == _NOT_READ:
                try:
                    first = self.first_timestamp_ms
                except MalformedBytes as error:
                    raise CorruptRecord(f"{self.log.name}: {error}") from error
            if max_timestamp_ms - config.segment_ms > first - self.jitter_ms and first >= 0:
                return True
        return last_offset - self.base_offset > _LARGEST_RELATIVE_OFFSET

    @property
    def first_timestamp_ms(self) -> int:
        """Largest timestamp of the first batch, read from the file once; -1 if there is none."""
        if self._first_timestamp_ms == _NOT_READ:
            first = next(self.batches(0), None)
            self._first_timestamp_ms = NO_TIMESTAMP if first is None else first[1].max_timestamp_ms
        return self._first_timestamp_ms

    def largest_timestamp_ms(self) -> int:
        """Largest timestamp of its records, read from the files if need be; -1 if there is none.

        Raises:
            MalformedBytes: If a header on the way is impossible.
        """
        if self.max_timestamp_ms < 0 and self.log.size:
            self.read_largest_timestamp()
        return self.max_timestamp_ms

    def last_modified_ms(self) -> int:
        """Modification time of the segment's file.

        A simulated file has no date: the largest timestamp of its records replaces it, and a
        cleaned segment has its source's date.
        """
        largest = self.largest_timestamp_ms()
        return largest if self.modified_ms < largest else self.modified_ms

    def close_out(self) -> None:
        """Closes the segment for appends: adds the last entry of the time index."""
        self.time_index.maybe_append(self.max_timestamp_ms, self.max_timestamp_offset)

    def flush(self) -> Bytes:
        """Makes log and indexes durable; returns the bytes moved to the platter."""
        moved = self.log.flush() + self.index.file.flush() + self.time_index.file.flush()
        return moved + self.transaction_index.flush()

    def batches(self, position: Bytes) -> Iterator[tuple[Bytes, RecordBatch]]:
        """Every whole batch from a batch's position on, each with its position.

        Raises:
            MalformedBytes: If a header is impossible. A partial batch at the end just ends it.
        """
        log = self.log
        while position < log.size:
            buffer = log.read(position, _CHUNK)
            at = 0
            while at + LOG_OVERHEAD <= len(buffer):
                size = batch_size_at(buffer, at)
                if at + size > len(buffer):
                    break
                yield position + at, RecordBatch(buffer[at : at + size])
                at += size
            if at == 0:
                if len(buffer) < LOG_OVERHEAD:
                    return
                size = batch_size_at(buffer, 0)
                if position + size > log.size:
                    return
                yield position, RecordBatch(log.read(position, size))
                at = size
            position += at

    def find(self, offset: Offset) -> tuple[Bytes, RecordBatch] | None:
        """The first batch whose last offset is not below the given one, with its position."""
        place = self.index.lookup(offset)
        for position, batch in self.batches(place.position):
            if batch.last_offset >= offset:
                return position, batch
        return None

    def next_offset(self) -> Offset:
        """The offset after the last whole batch; the base offset of an empty segment.

        Raises:
            MalformedBytes: If a header on the way is impossible.
        """
        last = self.index.last()
        end = self.base_offset
        for _, batch in self.batches(last.position if last else 0):
            end = batch.last_offset + 1
        return end

    def is_whole(self) -> bool:
        """True if the file ends with a whole batch, by the headers."""
        last = self.index.last()
        end = last.position if last else 0
        try:
            for position, batch in self.batches(end):
                end = position + batch.size_bytes
        except MalformedBytes:
            return False
        return end == self.log.size

    def truncate_to(self, offset: Offset, *, overlap: bool = False) -> Offset:
        """Drops the batch that holds the offset and all later ones.

        Its largest timestamp is to be read again after that.

        Args:
            offset: Where to cut.
            overlap: Whether a batch may begin within the one before it, as before 0.11.

        Returns:
            The log end offset that is left: the one given where nothing was dropped, because it
            lies in a gap, compacted or not.

        Raises:
            MalformedBytes: If a header on the way is impossible; then nothing is dropped.
        """
        found = self.find(offset)
        below = self.base_offset
        if overlap:  # what is dropped may have begun further down
            for position, batch in self.batches(0):
                if found is None or position < found[0]:
                    below = batch.last_offset + 1
        if found is None:
            return min(below, offset) if overlap else offset
        position, batch = found
        left = min(max(below, batch.base_offset), offset)
        self.index.truncate_to(left)
        self.time_index.truncate_to(left)
        self.transaction_index.truncate_to(left)
        self.log.truncate(position)
        self._bytes_since_index = 0
        self._full = self.index.full or self.time_index.full
        return left

    def reset(self) -> None:
        """Clears indexes and timestamps for recovery, keeps the batches."""
        self.index.file.truncate(0)
        self.time_index.file.truncate(0)
        self.transaction_index.truncate_to(0)
        self.time_index.last_timestamp_ms = NO_TIMESTAMP
        self.max_timestamp_ms = NO_TIMESTAMP
        self.max_timestamp_offset = -1
        self._bytes_since_index = 0
        self._full = False
        self._first_timestamp_ms = NO_TIMESTAMP

    def read_largest_timestamp(self) -> None:
        """Takes the largest timestamp from the time index and the batches behind it.

        Raises:
            MalformedBytes: If a header on the way is impossible.

        Source: ``LogSegment.readLargestTimestamp``.
        """
        last = self.time_index.last()
        self.max_timestamp_ms = NO_TIMESTAMP if last is None else last.timestamp_ms
        self.max_timestamp_offset = self.base_offset if last is None else last.offset
        self._first_timestamp_ms = _NOT_READ if self.log.size else NO_TIMESTAMP
        place = self.index.lookup(self.max_timestamp_offset)
        for _, batch in self.batches(place.position):
            if batch.max_timestamp_ms > self.max_timestamp_ms:
                self.max_timestamp_ms = batch.max_timestamp_ms
                self.max_timestamp_offset = batch.last_offset

    @classmethod
    def _over(
        cls,
        files: tuple[StoredFile, StoredFile, StoredFile],
        store: FileStore,
        directory: str,
        base: Offset,
        config: LogConfig,
    ) -> "Segment":
        log, index, time = files
        limit = config.segment_index_bytes
        return cls(
            log,
            OffsetIndex(index, base, limit),
            TimeIndex(time, base, limit),
            base,
            config.index_interval_bytes,
            TransactionIndex(store, transaction_index_file(directory, base)),
        )


def all_segment_files(directory: str, base: Offset) -> tuple[str, ...]:
    """Names of a segment's files and of the index of aborted transactions that it may have."""
    return *segment_files(directory, base), transaction_index_file(directory, base)


def segment_files(directory: str, base: Offset) -> tuple[str, str, str]:
    """Names of a segment's log, offset index and time index."""
    stem = f"{directory}/{base:020d}"
    return f"{stem}.log", f"{stem}.index", f"{stem}.timeindex"


def base_of(segment: Segment) -> Offset:
    """Its base offset, as the key of a search."""
    return segment.base_offset
