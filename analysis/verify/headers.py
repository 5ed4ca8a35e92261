"""Headers of the replicas' batches: ends of logs, damage, order, differences.

Spark is not involved: passes over a few columns of the survivors' table with numpy, many rows at a
time. What is rare is only noticed here, with no doubt left in its absence: whether logs differ or
are out of order is a question to the whole run, and only if the answer is yes Spark lists the
offsets (:mod:`analysis.verify.durability`, which has the definitions).

Logs are compared by two sums of 64 bits over their batches, each mixed from base offset, last
offset, leader epoch and CRC, so the order in which the table has the batches does not matter.
Different logs have equal sums with a chance of 2^-128.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analysis.verify.places import NUMBER_BITS, Levels, Numbers, Offsets, Records
from analysis.verify.segments import OK
from analysis.verify.survivors import FIELDS

_ROWS: Final = 1 << 20
_LOG: Final = ["broker", "topic", "partition"]
_PARTITION: Final = ["topic", "partition"]
_HEADER: Final = ("base_offset", "last_offset", "leader_epoch", "crc")
_RUN: Final = ("base_offset", "producer_index", "first_record", "record_count", "status")
_MIXES: Final = ((0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9), (0xD1B54A32D192ED03, 0x94D049BB133111EB))
"""First value and odd factor of each sum: constants of SplitMix64 (Steele, Lea, Flood 2014)."""


@dataclass(frozen=True, slots=True)
class Headers:
    """The decoded survivors of a run.

    Attributes:
        place: Directory of the table that :func:`analysis.verify.survivors.table` made.
        starts: Rows of :func:`analysis.verify.policy.starts`.
    """

    place: Path
    starts: pd.DataFrame

    def unreadable(self) -> pd.DataFrame:
        """Batches that no reader accepts: a wrong checksum, malformed records, torn bytes.

        Returns:
            ``[broker, topic, partition, status, batches, size_bytes]``, in this order.
        """
        by = [*_LOG, "status"]
        rows = self._rows((*by, "size_bytes"))
        bad = pa.concat_tables(each.filter(pc.not_equal(each["status"], OK)) for each in rows)
        sizes = bad.to_pandas().astype({"topic": object, "status": object}).groupby(by)
        sums = sizes["size_bytes"].agg(batches="count", size_bytes="sum")
        found: pd.DataFrame = sums.reset_index().sort_values(by, ignore_index=True)
        return found

    def leaders(self, partition_changes: pd.DataFrame) -> pd.DataFrame:
        """The replica of each partition whose log determines the survivors.

        Args:
            partition_changes: Trace table.

        Returns:
            ``[topic, partition, leader]``, one row per partition of the trace or the disks.
        """
        led = partition_changes[partition_changes["leader"] >= 0]
        committed = led.sort_values(["t_us", "partition_epoch"])[[*_PARTITION, "leader"]]
        rank = ["leader_epoch", "last_offset", "broker"]
        longest = self._ends().sort_values(rank, ascending=[True, True, False])
        named = longest.rename(columns={"broker": "leader"})[[*_PARTITION, "leader"]]
        # The last row of a partition counts: what was committed goes before what is longest.
        every = pd.concat([named, committed]).drop_duplicates(_PARTITION, keep="last")
        kinds = {"topic": object, "partition": np.int32, "leader": np.int32}
        return every.astype(kinds).sort_values(_PARTITION, ignore_index=True)

    def do_logs_differ(self) -> bool:
        """True if two replicas of a partition differ where both should have batches."""
        logs, parts = Offsets(), []
        shared = self._shared()
        for rows in self._rows((*_LOG, *_HEADER)):
            log = logs.logs(rows)
            low, high = (_by_log(logs, shared, name) for name in ("low", "high"))
            base, last, *_ = header = [rows[name].to_numpy() for name in _HEADER]
            counts = (base >= 0) & (last >= low[log]) & (base < high[log])
            parts.append(np.zeros((len(low), len(_MIXES)), np.uint64))
            for number, mix in enumerate(_MIXES):
                mixed = _mixed([column[counts] for column in header], *mix)
                np.add.at(parts[-1][:, number], log[counts], mixed)
        sums = np.zeros_like(parts[-1])
        for part in parts:
            sums[: len(part)] += part
        known = {owner: tuple(each) for owner, each in zip(logs.owners(), sums, strict=True)}
        found: dict[tuple[str, int], set[tuple[int, ...]]] = {}
        for broker, topic, partition in shared[_LOG].itertuples(index=False):
            found.setdefault((topic, partition), set()).add(known[topic, partition, broker])
        return any(len(different) > 1 for different in found.values())

    def led(self, leaders: pd.DataFrame, records: Records) -> tuple[Levels, bool]:
        """Readable records of producers in the final leaders' logs, aborted ones included.

        Args:
            leaders: Rows of :meth:`leaders`.
            records: Places of records.

        Returns:
            The numbers of batches that hold each record; and true if some batch begins below the
            numbers of its producer that lie before it.
        """
        logs, found = Offsets(), Levels()
        parts: list[tuple[Numbers, Numbers, Numbers]] = []
        leads = leaders.rename(columns={"leader": "broker"}).assign(leads=1)
        for rows in self._rows((*_LOG, *_RUN)):
            log = logs.logs(rows)
            is_led = _by_log(logs, leads, "leads")[log] > 0
            is_led &= pc.equal(rows["status"], OK).to_numpy()
            is_led &= rows["producer_index"].to_numpy() >= 0
            base = rows["base_offset"].to_numpy()[is_led]
            count = rows["record_count"].to_numpy()[is_led]
            skipped = np.maximum(_by_log(logs, self.starts, "start")[log][is_led] - base, 0)
            begin = records.placed(rows.filter(pa.array(is_led))) + skipped
            found.add(begin, count - skipped)
            there = skipped < count
            parts.append(((base + skipped)[there], begin[there], (count - skipped)[there]))
        base, begin, count = (np.concatenate(each) for each in zip(*parts, strict=True))
        order = np.lexsort((base, begin >> NUMBER_BITS))
        # Places of another producer, or partition, are all larger or all smaller.
        highest = np.maximum.accumulate((begin + count)[order] - 1)[:-1]
        behind = begin[order][1:]
        is_same = behind >> NUMBER_BITS == begin[order][:-1] >> NUMBER_BITS
        return found, bool((is_same & (behind < highest)).any())

    def _ends(self) -> pd.DataFrame:
        """``[broker, topic, partition, leader_epoch, last_offset]``: the largest of each log."""
        ends = ["leader_epoch", "last_offset"]
        whole = pa.schema([FIELDS.field(name) for name in (*_LOG, *ends)]).empty_table()
        for rows in self._rows((*_LOG, *ends)):
            more = pa.concat_tables([whole, rows.cast(whole.schema)])
            most = more.group_by(_LOG).aggregate([(each, "max") for each in ends])
            whole = most.rename_columns([*_LOG, *ends])
        frame: pd.DataFrame = whole.to_pandas().astype({"topic": object})
        return frame

    def _shared(self) -> pd.DataFrame:
        """``[broker, topic, partition, low, high]``: offsets of which all replicas have batches.

        Logs without readable headers at or above their start are left out.
        """
        ends = self._ends().merge(self.starts, on=_LOG, how="left").fillna({"start": 0})
        logs = ends[(ends["last_offset"] >= 0) & (ends["last_offset"] >= ends["start"])]
        both = logs.groupby(_PARTITION)
        low, high = both["start"].transform("max"), both["last_offset"].transform("min") + 1
        return logs.assign(low=low.astype(np.int64), high=high.astype(np.int64))

    def _rows(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        texts = [name for name in columns if pa.types.is_string(FIELDS.field(name).type)]
        code = pa.dictionary(pa.int32(), pa.string())
        kinds = [(name, code if name in texts else FIELDS.field(name).type) for name in columns]
        yield pa.schema(kinds).empty_table()
        for part in sorted(self.place.glob("*.parquet")):
            file = pq.ParquetFile(part, read_dictionary=texts)
            for rows in file.iter_batches(_ROWS, columns=list(columns)):
                yield pa.Table.from_batches([rows]).select(columns)


def _by_log(logs: Offsets, rows: pd.DataFrame, value: str) -> Numbers:
    """A value of each log that has a number so far, 0 of those without a row."""
    columns = rows["topic"], rows["partition"], rows["broker"], rows[value]
    known = {tuple(owner): number for *owner, number in zip(*columns, strict=True)}
    return np.array([known.get(owner, 0) for owner in logs.owners()], np.int64)


def _mixed(
    columns: Sequence[npt.NDArray[np.integer]], first: int, factor: int
) -> npt.NDArray[np.uint64]:
    """One number of 64 bits for each row."""
    found = np.full(len(columns[0]), first, np.uint64)
    for column in columns:
        found = (found ^ column.astype(np.uint64)) * np.uint64(factor)
        found ^= found >> np.uint64(31)
    found *= np.uint64(factor)
    found ^= found >> np.uint64(29)
    return found
