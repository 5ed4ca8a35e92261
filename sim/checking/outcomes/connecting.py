"""Checks that connectors delivered every record once: actual against expected.

Definitions, for one connector (readers see what markers do not hide):

* A source expects one record for each that its external log has when no more appear; actual are
  visible records of its tasks in the final leaders' logs.
* A sink expects as many rows of a record as are visible in the final leaders' logs of its topics;
  actual are the rows that its tasks wrote to the external system.
* ``missing``: expected, and not there. ``duplicated``: there more often than expected.
  ``orphaned``: rows of records that are not in the log, or not any more.

The trace row of a task's encoding maps its records to external ones.
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
    """State of one connector."""

    topics: tuple[str, ...]
    indices: dict[int, bool] = field(default_factory=dict)
    """Producer indices of a source's tasks; none of a sink."""
    lengths: dict[int, int] = field(default_factory=dict)
    """Records of each partition of a source's external log."""
    made: dict[tuple[int, int], list[tuple[int, int, int]]] = field(default_factory=dict)
    """A source's, by producer index and partition: first number, end, key of the first one."""
    rows: dict[str, list[Keys]] = field(default_factory=dict)
    """A sink's, by topic."""


class Connecting:
    """Listens to rows of connectors' tasks, and judges them at the end of the run."""

    def __init__(self) -> None:
        self._connectors: dict[str, _Connector] = {}
        self._of_index: dict[int, _Connector] = {}

    def task(self, row: ConnectorTasksRow) -> None:
        """Adds a task."""
        name, index = row[ConnectorTasks.CONNECTOR], row[ConnectorTasks.PRODUCER_INDEX]
        connector = self._connectors.get(name)
        if connector is None:
            topics = tuple(row[ConnectorTasks.TOPICS].split(","))
            connector = self._connectors[name] = _Connector(topics)
        if index >= 0:
            connector.indices[index] = True
            self._of_index[index] = connector

    def log(self, row: ExternalLogsRow) -> None:
        """Sets the final length of an external log."""
        connector = self._connectors.get(row[ExternalLogs.CONNECTOR])
        if connector is not None:
            connector.lengths[row[ExternalLogs.SOURCE_PARTITION]] = row[ExternalLogs.RECORDS]

    def sourced(self, row: SourcedRow) -> None:
        """Adds records that a source encoded, again when their batch is renumbered or split."""
        index, first = row[Sourced.PRODUCER_INDEX], row[Sourced.FIRST_RECORD]
        key = _key(0, row[Sourced.SOURCE_PARTITION], row[Sourced.POSITION])
        made = self._of_index[index].made.setdefault((index, row[Sourced.PARTITION]), [])
        made.append((first, first + row[Sourced.RECORD_COUNT], key))

    def written(self, row: ExternalWritesRow) -> None:
        """Adds records that a sink wrote."""
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
        by_name: dict[str, dict[str, int]] = {}
        for name, connector in self._connectors.items():
            counts = dict.fromkeys(COUNTS, 0)
            for topic in connector.topics:
                logs = [history for history in known if history.topic == topic]
                judged = _source if connector.indices else _sink
                for kind, count in zip(COUNTS, judged(connector, topic, logs), strict=True):
                    counts[kind] += count
            by_name[name] = counts
        totals = {kind: sum(counts[kind] for counts in by_name.values()) for kind in COUNTS}
        return {"connecting": {**totals, "connectors": by_name}}


def _source(
    connector: _Connector,
    topic: str,  # noqa: ARG001 - it has one
    logs: list[PartitionHistory],
) -> tuple[int, int, int]:
    expected = _joined(
        np.arange(_key(0, task, 0), _key(0, task, length), dtype=np.int64)
        for task, length in connector.lengths.items()
    )
    return _compare(expected, _joined(keys for log in logs for keys in _made(log, connector)))


def _sink(connector: _Connector, topic: str, logs: list[PartitionHistory]) -> tuple[int, int, int]:
    expected = _joined(keys for log in logs for keys in _held(log))
    return _compare(expected, _joined(connector.rows.get(topic, ())))


def _made(history: PartitionHistory, connector: _Connector) -> Iterator[Keys]:
    known: dict[int, Keys] = {}
    for held in visible(history):
        if held.producer_index not in connector.indices:
            continue
        keys = known.get(held.producer_index)
        if keys is None:
            made = connector.made.get((held.producer_index, history.number), [])
            keys = np.zeros(max((stop for _, stop, _ in made), default=0), dtype=np.int64)
            for first, stop, key in made:
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


def _compare(expected: Keys, present: Keys) -> tuple[int, int, int]:
    """Numbers of missing, duplicated and orphaned ones."""
    expected_keys, expected_counts = np.unique(expected, return_counts=True)
    found, found_counts = np.unique(present, return_counts=True)
    keys = np.union1d(expected_keys, found)
    due = np.zeros(len(keys), dtype=np.int64)
    have = np.zeros(len(keys), dtype=np.int64)
    due[np.searchsorted(keys, expected_keys)] = expected_counts
    have[np.searchsorted(keys, found)] = found_counts
    missing = int(np.maximum(due - have, 0).sum())
    again = int(np.where(due > 0, np.maximum(have - due, 0), 0).sum())
    return missing, again, int(have[due == 0].sum())
