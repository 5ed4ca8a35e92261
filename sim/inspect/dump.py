"""Files of a log directory as lines of text, in the form of Kafka's ``kafka-dump-log``.

Simplified: bytes that are not printable are escaped, where Kafka prints them raw.

Source: ``DumpLogSegments``.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from sim.errors import SimulationError
from sim.inspect.dump_checks import (
    MESSAGE_MAX,
    Complaints,
    check_offset_index,
    check_time_index,
    sanity_check,
)
from sim.inspect.dump_records import Decoder, Pair, contents, control
from sim.log.partition.reading import base_offset_of, file_batches, read_transaction_index
from sim.log.producers.snapshot import MalformedSnapshot, decode_snapshot
from sim.units import Bytes
from sim.wire.primitives import MalformedBytes
from sim.wire.record_batch import DELETE_HORIZON, LOG_APPEND_TIME, Record, RecordBatch

_BOOTSTRAP = "bootstrap.checkpoint"
_SNAPSHOT = re.compile(r"(\d{20})-(\d{10})\.checkpoint")


@dataclass(frozen=True, slots=True)
class DumpOptions:
    """The options of ``kafka-dump-log``."""

    print_data: bool = False
    """``--print-data-log``: records with their contents."""
    deep: bool = False
    """``--deep-iteration``: a line for each record."""
    decoder: Decoder | None = None
    """Records decoded; implies ``print_data``."""
    skip_record_metadata: bool = False
    """``--skip-record-metadata``: of a record only its contents, of a control record nothing."""
    max_bytes: Bytes | None = None
    """``--max-bytes``: bytes read of a file of batches."""
    index_sanity_only: bool = False
    """``--index-sanity-check``: of an index only whether a broker would rebuild it."""
    verify_index_only: bool = False
    """``--verify-index-only``: of an index only complaints."""
    max_message_bytes: Bytes = MESSAGE_MAX
    """``--max-message-size``: see :data:`~sim.inspect.dump_checks.MESSAGE_MAX`."""

    @property
    def shows_contents(self) -> bool:
        """True if contents of records are printed."""
        return self.print_data or self.decoder is not None

    @property
    def shows_records(self) -> bool:
        """True if records are printed at all."""
        return self.deep or self.shows_contents


class Shown(NamedTuple):
    """One line about a file: its subject, its text, and its fields for programs."""

    kind: str
    text: str
    fields: Mapping[str, object]


def dump(
    path: Path, *, print_data: bool = False, deep: bool = False, decoder: Decoder | None = None
) -> Iterator[str]:
    """The file's contents, line by line. See :func:`shown`."""
    for each in shown(path, DumpOptions(print_data, deep, decoder), Complaints()):
        yield each.text


def shown(path: Path, options: DumpOptions, complaints: Complaints) -> Iterator[Shown]:
    """A file's contents, line by line.

    Args:
        path: A ``.log``, ``.index``, ``.timeindex``, ``.txnindex`` or ``.snapshot`` file, a
            snapshot of the metadata log (``.checkpoint``), or a text file of a log directory
            (checkpoints, ``meta.properties``, ``partition.metadata``).
        options: What is printed.
        complaints: Get what is wrong with indexes, and gaps in the offsets of records.

    Raises:
        SimulationError: If there is no such file, its name is none of these, or an index cannot be
        checked against its log.
    """
    if not path.is_file():
        raise SimulationError(f"{path}: no such file")
    yield _title(f"Dumping {path}")
    if path.suffix == ".log":
        yield _title(f"Log starting offset: {base_offset_of(path)}")
        yield from _batches(path, options, complaints)
    elif path.suffix == ".checkpoint":
        yield _title(_snapshot_title(path))
        yield from _batches(path, options, complaints)
    elif path.suffix == ".index":
        yield from _offset_index(path, options, complaints)
    elif path.suffix == ".timeindex":
        yield from _time_index(path, options, complaints)
    elif path.suffix in _PRINTERS:
        yield from _PRINTERS[path.suffix](path)
    else:
        raise SimulationError(f"{path}: not a file of a log directory")


def _title(text: str) -> Shown:
    return Shown("title", text, {"text": text})


def _line(kind: str, pairs: list[Pair], *, prefix: str = "") -> Shown:
    text = prefix + " ".join(pair.text for pair in pairs)
    return Shown(kind, text, {pair.name: pair.value for pair in pairs})


def _offset_index(path: Path, options: DumpOptions, complaints: Complaints) -> Iterator[Shown]:
    if path.stat().st_size == 0:
        yield _title(f"{path} is empty.")
    elif options.index_sanity_only:
        sanity_check(path)
        yield _title(f"{path} passed sanity check.")
    else:
        for place in check_offset_index(path, options.max_message_bytes, complaints):
            if not options.verify_index_only:
                pairs = [Pair.of("offset", place.offset), Pair.of("position", place.position)]
                yield _line("offset index entry", pairs)


def _time_index(path: Path, options: DumpOptions, complaints: Complaints) -> Iterator[Shown]:
    if options.index_sanity_only:
        sanity_check(path)
        yield _title(f"{path} passed sanity check.")
        return
    for reached in check_time_index(path, complaints):
        if not options.verify_index_only:
            pairs = [Pair.of("timestamp", reached.timestamp_ms), Pair.of("offset", reached.offset)]
            yield _line("time index entry", pairs)


def _transaction_index(path: Path) -> Iterator[Shown]:
    for aborted in read_transaction_index(path):
        yield _line(
            "aborted transaction",
            [
                Pair.of("version", 0),
                Pair.of("producerId", aborted.producer_id),
                Pair.of("firstOffset", aborted.first_offset),
                Pair.of("lastOffset", aborted.last_offset),
                Pair.of("lastStableOffset", aborted.last_stable_offset),
            ],
        )


def _text(path: Path) -> Iterator[Shown]:
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        yield Shown("text", line, {"text": line})


def _snapshot_title(path: Path) -> str:
    if path.name == _BOOTSTRAP:
        return "KRaft bootstrap snapshot"
    found = _SNAPSHOT.fullmatch(path.name)
    if found is None:
        raise SimulationError(
            f"{path}: a snapshot of the metadata log is named by end offset and epoch, "
            f"as 00000000000000000040-0000000003.checkpoint, or {_BOOTSTRAP}"
        )
    return f"Snapshot end offset: {int(found[1])}, epoch: {int(found[2])}"


def _batches(path: Path, options: DumpOptions, complaints: Complaints) -> Iterator[Shown]:
    size = path.stat().st_size
    limit = size if options.max_bytes is None else min(size, options.max_bytes)
    end = 0
    gaps: list[tuple[int, int]] = []
    previous = -1
    try:
        for position, batch in file_batches(path):
            if position + batch.size_bytes > limit:
                break
            yield _line("batch", batch_pairs(position, batch))
            end = position
            if not options.shows_records:
                end += batch.size_bytes
                continue
            for record in batch.records():
                if previous >= 0 and record.offset != previous + 1:
                    gaps.append((previous, record.offset))
                previous = record.offset
                yield _record(batch, record, options)
            end += batch.size_bytes
    except MalformedBytes as error:
        yield _title(f"Error at position {end}: {error}")
    if end < size and options.max_bytes is None:
        yield _title(f"Found {size - end} invalid bytes at the end of {path.name}")
    complaints.gaps(path, gaps)


def batch_pairs(position: int, batch: RecordBatch) -> list[Pair]:
    """Everything about a batch but its records."""
    last_sequence = -1
    if batch.base_sequence >= 0:
        last_sequence = (batch.base_sequence + batch.last_offset_delta) % (1 << 31)
    horizon = batch.base_timestamp_ms if batch.attributes & DELETE_HORIZON else None
    return [
        Pair.of("baseOffset", batch.base_offset),
        Pair.of("lastOffset", batch.last_offset),
        Pair.of("count", batch.record_count),
        Pair.of("baseSequence", batch.base_sequence),
        Pair.of("lastSequence", last_sequence),
        Pair.of("producerId", batch.producer_id),
        Pair.of("producerEpoch", batch.producer_epoch),
        Pair.of("partitionLeaderEpoch", batch.leader_epoch),
        Pair.of("isTransactional", batch.is_transactional),
        Pair.of("isControl", batch.is_control),
        _optional("deleteHorizonMs", horizon),
        Pair.of("position", position),
        Pair.of(_time_type(batch), batch.max_timestamp_ms),
        Pair.of("size", batch.size_bytes),
        Pair.of("magic", 2),
        Pair.of("compresscodec", batch.codec),
        Pair.of("crc", batch.crc),
        Pair.of("isvalid", batch.valid()),
    ]


def _record(batch: RecordBatch, record: Record, options: DumpOptions) -> Shown:
    """One line about a record."""
    pairs: list[Pair] = []
    if not options.skip_record_metadata:
        pairs += _record_pairs(batch, record)
        if batch.is_control:
            pairs += control(record)
    if options.shows_contents and not batch.is_control:
        pairs += contents(record, options.decoder)
    return _line("record", pairs, prefix="| " if pairs else "")


def _record_pairs(batch: RecordBatch, record: Record) -> list[Pair]:
    sequence = -1
    if batch.base_sequence >= 0:
        sequence = (batch.base_sequence + record.offset - batch.base_offset) % (1 << 31)
    keys = [header.key for header in record.headers]
    return [
        Pair.of("offset", record.offset),
        Pair.of(_time_type(batch), record.timestamp_ms),
        Pair.of("keySize", -1 if record.key is None else len(record.key)),
        Pair.of("valueSize", -1 if record.value is None else len(record.value)),
        Pair.of("sequence", sequence),
        Pair("headerKeys", f"headerKeys: [{','.join(keys)}]", keys),
    ]


def _producer_snapshot(path: Path) -> Iterator[Shown]:
    try:
        entries = decode_snapshot(path.read_bytes())
    except MalformedSnapshot as error:
        yield _title(f"Error: {error}")
        return
    for producer, entry in entries:
        pairs = [
            Pair.of("producerId", producer),
            Pair.of("producerEpoch", entry.epoch),
            Pair.of("coordinatorEpoch", entry.coordinator_epoch),
            _optional(
                "currentTxnFirstOffset",
                entry.transaction_start if entry.transaction_start >= 0 else None,
            ),
            Pair.of("lastTimestamp", entry.timestamp_ms),
        ]
        for seen in list(entry.batches)[-1:]:
            pairs += [
                Pair.of("firstSequence", seen.first_sequence),
                Pair.of("lastSequence", seen.last_sequence),
                Pair.of("lastOffset", seen.last_offset),
                Pair.of("offsetDelta", seen.offset_delta),
                Pair.of("timestamp", seen.timestamp_ms),
            ]
        yield _line("producer", pairs)


_PRINTERS: Mapping[str, Callable[[Path], Iterator[Shown]]] = {
    ".txnindex": _transaction_index,
    ".snapshot": _producer_snapshot,
    "": _text,
    ".properties": _text,
    ".metadata": _text,
}


def _optional(name: str, value: int | None) -> Pair:
    """A number that may be missing, as Java prints it."""
    text = "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"
    return Pair(name, f"{name}: {text}", value)


def _time_type(batch: RecordBatch) -> str:
    return "LogAppendTime" if batch.attributes & LOG_APPEND_TIME else "CreateTime"
