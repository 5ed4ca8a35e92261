"""Checks that tasks made every output of every input record once: actual against expected.

Definitions, for a group of tasks that share their input (readers see what markers do not hide):

* An input record in the final leader's log that readers of committed data see requires its outputs,
  as often as it is there.
* ``unprocessed``: required outputs without a visible record in the output topic.
* ``reprocessed``: visible outputs of an input record beyond the required ones.
* ``orphaned``: visible outputs of input records that are not in the input's log, or not any more.

The trace row of a task's encoding maps outputs to records.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.checking.outcomes.history import PartitionHistory
from sim.checking.outcomes.policy import Held, shown
from sim.trace.rows.clients import Outputs, OutputsRow, TasksRow

COUNTS: Final = ("unprocessed", "reprocessed", "orphaned")
"""The numbers of the verdict, in its order."""

EXAMPLES: Final = 10

_NUMBER_BITS: Final = 36
_NUMBER_MAX: Final = 1 << _NUMBER_BITS
_PARTITIONS_MAX: Final = 10_000

Keys = NDArray[np.int64]
"""Required outputs, each as one number."""


class _Made(NamedTuple):
    """Outputs in a row, from record ``first`` up to ``stop``, and the key of the first one."""

    first: int
    stop: int
    key: int


@dataclass(slots=True)
class _Group:
    """Tasks with the same input and output."""

    inputs: tuple[str, ...]
    output: str
    each: int
    made: dict[tuple[int, int], list[_Made]]
    """By producer index and partition."""


class Processing:
    """Listens to rows of tasks, and judges them at the end of the run."""

    def __init__(self) -> None:
        self._groups: dict[str, _Group] = {}
        self._group_of: dict[int, _Group] = {}

    def task(self, row: TasksRow) -> None:
        """Adds a task."""
        _at, _task, name, producer, inputs, output, each = row
        group = self._groups.get(name)
        if group is None:
            group = self._groups[name] = _Group(tuple(inputs.split(",")), output, each, {})
        self._group_of[producer] = group

    def outputs(self, row: OutputsRow) -> None:
        """Adds outputs that a task encoded, again when their batch is renumbered or split."""
        producer, first = row[Outputs.PRODUCER_INDEX], row[Outputs.FIRST_RECORD]
        group = self._group_of[producer]
        number = row[Outputs.INPUT_RECORD] * group.each + row[Outputs.ORDINAL]
        key = _key(row[Outputs.INPUT_PRODUCER], row[Outputs.INPUT_PARTITION], number)
        made = group.made.setdefault((producer, row[Outputs.PARTITION]), [])
        made.append(_Made(first, first + row[Outputs.RECORD_COUNT], key))

    def verdict(self, histories: Iterable[PartitionHistory]) -> dict[str, object]:
        """Counts in total and by group, and the first examples; empty without tasks."""
        if not self._groups:
            return {}
        known = list(histories)
        groups: dict[str, dict[str, int]] = {}
        examples: dict[str, list[dict[str, object]]] = {kind: [] for kind in COUNTS}
        for name, group in self._groups.items():
            expected = _joined(
                key for h in known if h.topic in group.inputs for key in _expected(h, group)
            )
            made = _joined(key for h in known if h.topic == group.output for key in _made(h, group))
            found = _compare(expected, made)
            groups[name] = {kind: sum(found[kind].values()) for kind in COUNTS}
            for kind in COUNTS:
                left = EXAMPLES - len(examples[kind])
                examples[kind] += [_example(name, key, group) for key in list(found[kind])[:left]]
        totals = {kind: sum(counts[kind] for counts in groups.values()) for kind in COUNTS}
        return {**totals, "groups": groups, "examples": examples}


def _key(producer: int, partition: int, nth: int) -> int:
    assert partition < _PARTITIONS_MAX, f"partition {partition}"
    assert nth < _NUMBER_MAX, f"output {nth} of one partition"
    return (producer * _PARTITIONS_MAX + partition << _NUMBER_BITS) + nth


def visible(history: PartitionHistory) -> Iterator[Held]:
    """The final leader's log as readers of committed data see it."""
    log = history.logs.get(history.final_leader)
    if log is None:
        return
    runs: Iterable[Held] = log.batches()
    if history.transactions is not None:
        runs = shown(runs, history.transactions.settle(log.batches()).hidden)
    for held in runs:
        if held.producer_index >= 0:
            yield held


def _expected(history: PartitionHistory, group: _Group) -> Iterator[Keys]:
    for held in visible(history):
        first = _key(held.producer_index, history.number, held.first_record * group.each)
        yield np.arange(first, first + held.record_count * group.each, dtype=np.int64)


def _made(history: PartitionHistory, group: _Group) -> Iterator[Keys]:
    known: dict[int, Keys] = {}
    for held in visible(history):
        keys = known.get(held.producer_index)
        if keys is None:
            rows = group.made.get((held.producer_index, history.number), [])
            keys = known[held.producer_index] = _keys_of(rows)
        # Records of other producers are not outputs.
        yield keys[held.first_record : held.first_record + held.record_count]


def _keys_of(rows: list[_Made]) -> Keys:
    keys = np.zeros(max((row.stop for row in rows), default=0), dtype=np.int64)
    for first, stop, key in rows:
        keys[first:stop] = np.arange(key, key + stop - first, dtype=np.int64)
    return keys


def _joined(parts: Iterable[Keys]) -> Keys:
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts])


def _compare(expected: Keys, made: Keys) -> dict[str, dict[int, int]]:
    """Numbers of wrong outputs of each kind, by key."""
    expected_keys, expected_counts = np.unique(expected, return_counts=True)
    present, present_counts = np.unique(made, return_counts=True)
    keys = np.union1d(expected_keys, present)
    due = np.zeros(len(keys), dtype=np.int64)
    have = np.zeros(len(keys), dtype=np.int64)
    due[np.searchsorted(keys, expected_keys)] = expected_counts
    have[np.searchsorted(keys, present)] = present_counts
    wrong = {
        "unprocessed": np.maximum(due - have, 0),
        "reprocessed": np.where(due > 0, np.maximum(have - due, 0), 0),
        "orphaned": np.where(due == 0, have, 0),
    }
    return {
        kind: {int(keys[place]): int(counts[place]) for place in np.flatnonzero(counts)}
        for kind, counts in wrong.items()
    }


def _example(name: str, key: int, group: _Group) -> dict[str, object]:
    producer, partition = divmod(key >> _NUMBER_BITS, _PARTITIONS_MAX)
    record, ordinal = divmod(key & (_NUMBER_MAX - 1), group.each)
    return {
        "group": name,
        "producer_index": producer,
        "partition": partition,
        "record": record,
        "ordinal": ordinal,
    }
