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

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from sim.checking.outcomes.history import PartitionHistory
from sim.checking.outcomes.record_keys import (
    Keys,
    Made,
    compare,
    joined,
    key_of,
    row_of,
    visible_keys,
    visible_origins,
)
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


@dataclass(slots=True)
class _Connector:
    """State of one connector."""

    topics: tuple[str, ...]
    indices: dict[int, bool] = field(default_factory=dict)
    """Producer indices of a source's tasks; none of a sink."""
    lengths: dict[int, int] = field(default_factory=dict)
    """Records of each partition of a source's external log."""
    made: dict[tuple[int, int], list[Made]] = field(default_factory=dict)
    """A source's, by producer index and partition."""
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
        key = key_of(0, row[Sourced.SOURCE_PARTITION], row[Sourced.POSITION])
        made = self._of_index[index].made.setdefault((index, row[Sourced.PARTITION]), [])
        made.append(Made(first, first + row[Sourced.RECORD_COUNT], key))

    def written(self, row: ExternalWritesRow) -> None:
        """Adds records that a sink wrote."""
        index, partition = row[ExternalWrites.PRODUCER_INDEX], row[ExternalWrites.PARTITION]
        first = key_of(index, partition, row[ExternalWrites.FIRST_RECORD])
        keys = row_of(first, row[ExternalWrites.RECORD_COUNT])
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
) -> list[int]:
    lengths = connector.lengths.items()
    expected = joined(row_of(key_of(0, task, 0), length) for task, length in lengths)
    made = joined(keys for log in logs for keys in visible_origins(log, connector.made))
    return _counts(expected, made)


def _sink(connector: _Connector, topic: str, logs: list[PartitionHistory]) -> list[int]:
    expected = joined(keys for log in logs for keys in visible_keys(log))
    return _counts(expected, joined(connector.rows.get(topic, ())))


def _counts(expected: Keys, present: Keys) -> list[int]:
    """Numbers of missing, duplicated and orphaned ones."""
    return [int(wrong.sum()) for wrong in compare(expected, present)[1]]
