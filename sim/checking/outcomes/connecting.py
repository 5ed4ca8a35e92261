"""Whether connectors delivered every record once: what is there, and what should be.

Definitions, for one connector (readers see what markers do not hide):

* A source asks for one record for each that its external log has when no more appear; what there
  is are visible records of its tasks in the final leaders' logs.
* A sink asks for as many rows of a record as stand visibly in the final leaders' logs of its
  topics; what there is are the rows that its tasks wrote to the external system.
* ``missing``: asked for, and not there. ``duplicated``: there more often than asked for.
  ``orphaned``: rows of records that are not in the log, or not any more.

Which record comes of which external one is what the task told when it encoded it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sim.checking.outcomes.history import PartitionHistory
from sim.checking.outcomes.processing import visible
from sim.trace.rows.connectors import (
    ConnectorTasks,
    ConnectorTasksRow,
    ExternalLogs,
    ExternalLogsRow,
    ExternalWrites,
    ExternalWritesRow,
    Sourced,
    SourcedRow,
)

COUNTS: Final = ("missing", "duplicated", "orphaned")
"""The numbers of the verdict, in its order."""

_NUMBER_BITS: Final = 36
_PARTITIONS_MAX: Final = 10_000

Keys = NDArray[np.int64]
"""Records, each as one number."""


@dataclass(slots=True)
class _Connector:
    """What one connector told."""

    topics: tuple[str, ...]
    indices: dict[int, bool] = field(default_factory=dict)
    """Producer indices of a source's tasks; none of a sink."""
    lengths: dict[int, int] = field(default_factory=dict)
    """Records of each partition of a source's external log."""
    made: dict[tuple[int, int], list[tuple[int, int, int]]] = field(default_factory=dict)
    """Of a source, by producer index and partition: first number, end, key of the first one."""
    rows: dict[str, list[Keys]] = field(default_factory=dict)
    """Of a sink, by topic."""


class Connecting:
    """Listens to what connectors' tasks tell, and judges it when the run is over."""

    def __init__(self) -> None:
        self._connectors: dict[str, _Connector] = {}
        self._of_index: dict[int, _Connector] = {}

    def task(self, row: ConnectorTasksRow) -> None:
        """A task began."""
        name, index = row[ConnectorTasks.CONNECTOR], row[ConnectorTasks.PRODUCER_INDEX]
        connector = self._connectors.get(name)
        if connector is None:
            topics = tuple(row[ConnectorTasks.TOPICS].split(","))
            connector = self._connectors[name] = _Connector(topics)
        if index >= 0:
            connector.indices[index] = True
            self._of_index[index] = connector

    def log(self, row: ExternalLogsRow) -> None:
        """An external log has all its records."""
        connector = self._connectors.get(row[ExternalLogs.CONNECTOR])
        if connector is not None:
            connector.lengths[row[ExternalLogs.SOURCE_PARTITION]] = row[ExternalLogs.RECORDS]

    def sourced(self, row: SourcedRow) -> None:
        """A source encoded records; the same again when their batch is numbered anew, or split."""
        index, first = row[Sourced.PRODUCER_INDEX], row[Sourced.FIRST_RECORD]
        key = _key(0, row[Sourced.SOURCE_PARTITION], row[Sourced.POSITION])
        made = self._of_index[index].made.setdefault((index, row[Sourced.PARTITION]), [])
        made.append((first, first + row[Sourced.RECORD_COUNT], key))

    def written(self, row: ExternalWritesRow) -> None:
        """A sink wrote records."""
        index, partition = row[ExternalWrites.PRODUCER_INDEX], row[ExternalWrites.PARTITION]
        first = _key(index, partition, row[ExternalWrites.FIRST_RECORD])
        keys = np.arange(first, first + row[ExternalWrites.RECORD_COUNT], dtype=np.int64)
        connector = self._connectors[row[ExternalWrites.CONNECTOR]]
        connector.rows.setdefault(row[ExternalWrites.TOPIC], []).append(keys)

    def verdict(self, histories: Iterable[PartitionHistory]) -> dict[str, object]:
        """Counts in total and by connector, under ``connecting``; nothing without connectors."""
        if not self._connectors:
            return {}
        known = list(histories)
        told: dict[str, dict[str, int]] = {}
        for name, connector in self._connectors.items():
            counts = dict.fromkeys(COUNTS, 0)
            for topic in connector.topics:
                logs = [history for history in known if history.topic == topic]
                judged = _source if connector.indices else _sink
                for kind, count in zip(COUNTS, judged(connector, topic, logs), strict=True):
                    counts[kind] += count
            told[name] = counts
        totals = {kind: sum(counts[kind] for counts in told.values()) for kind in COUNTS}
        return {"connecting": {**totals, "connectors": told}}


def _source(
    connector: _Connector,
    topic: str,  # noqa: ARG001 - it has one
    logs: list[PartitionHistory],
) -> tuple[int, int, int]:
    asked = _joined(
        np.arange(_key(0, task, 0), _key(0, task, length), dtype=np.int64)
        for task, length in connector.lengths.items()
    )
    return _compare(asked, _joined(keys for log in logs for keys in _made(log, connector)))


def _sink(connector: _Connector, topic: str, logs: list[PartitionHistory]) -> tuple[int, int, int]:
    asked = _joined(keys for log in logs for keys in _held(log))
    return _compare(asked, _joined(connector.rows.get(topic, ())))


def _made(history: PartitionHistory, connector: _Connector) -> Iterator[Keys]:
    known: dict[int, Keys] = {}
    for held in visible(history):
        if held.producer_index not in connector.indices:
            continue
        keys = known.get(held.producer_index)
        if keys is None:
            told = connector.made.get((held.producer_index, history.number), [])
            keys = np.zeros(max((stop for _, stop, _ in told), default=0), dtype=np.int64)
            for first, stop, key in told:
                keys[first:stop] = np.arange(key, key + stop - first, dtype=np.int64)
            known[held.producer_index] = keys
        yield keys[held.first_record : held.first_record + held.record_count]


def _held(history: PartitionHistory) -> Iterator[Keys]:
    for held in visible(history):
        first = _key(held.producer_index, history.number, held.first_record)
        yield np.arange(first, first + held.record_count, dtype=np.int64)


def _key(producer: int, partition: int, nth: int) -> int:
    assert partition < _PARTITIONS_MAX, f"partition {partition}"
    assert nth < 1 << _NUMBER_BITS, f"record {nth} of one partition"
    return (producer * _PARTITIONS_MAX + partition << _NUMBER_BITS) + nth


def _joined(parts: Iterable[Keys]) -> Keys:
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts])


def _compare(asked: Keys, present: Keys) -> tuple[int, int, int]:
    """How many are missing, there too often, and there unasked."""
    wanted, wanted_counts = np.unique(asked, return_counts=True)
    found, found_counts = np.unique(present, return_counts=True)
    keys = np.union1d(wanted, found)
    want = np.zeros(len(keys), dtype=np.int64)
    have = np.zeros(len(keys), dtype=np.int64)
    want[np.searchsorted(keys, wanted)] = wanted_counts
    have[np.searchsorted(keys, found)] = found_counts
    missing = int(np.maximum(want - have, 0).sum())
    again = int(np.where(want > 0, np.maximum(have - want, 0), 0).sum())
    return missing, again, int(have[want == 0].sum())
