"""Whether tasks made every output of every input record once: what is there, and what should be.

Definitions, for a group of tasks that share their input (readers see what markers do not hide):

* An input record in the final leader's log that readers of committed data see asks for its outputs,
  as often as it stands there.
* ``unprocessed``: outputs asked for that no visible record of the output topic is.
* ``reprocessed``: visible outputs of an input record beyond those that it asks for.
* ``orphaned``: visible outputs of input records that are not in the input's log, or not any more.

Which output comes of which record is what the task told when it encoded it.
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
"""Outputs that an input record asks for, each as one number."""


class _Made(NamedTuple):
    """Outputs in a row, from record ``first`` up to ``stop``, and the key of the first one."""

    first: int
    stop: int
    key: int


@dataclass(slots=True)
class _Group:
    """Tasks alike."""

    inputs: tuple[str, ...]
    output: str
    each: int
    made: dict[tuple[int, int], list[_Made]]
    """By producer index and partition."""


class Processing:
    """Listens to what tasks tell, and judges it when the run is over."""

    def __init__(self) -> None:
        self._groups: dict[str, _Group] = {}
        self._group_of: dict[int, _Group] = {}

    def task(self, row: TasksRow) -> None:
        """A task began."""
        _at, _task, name, producer, inputs, output, each = row
        group = self._groups.get(name)
        if group is None:
            group = self._groups[name] = _Group(tuple(inputs.split(",")), output, each, {})
        self._group_of[producer] = group

    def outputs(self, row: OutputsRow) -> None:
        """A task encoded outputs; the same again when their batch is numbered anew, or split."""
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
            asked = _joined(
                key for h in known if h.topic in group.inputs for key in _asked(h, group)
            )
            made = _joined(key for h in known if h.topic == group.output for key in _made(h, group))
            found = _compare(asked, made)
            groups[name] = {kind: sum(found[kind].values()) for kind in COUNTS}
            for kind in COUNTS:
                room = EXAMPLES - len(examples[kind])
                examples[kind] += [_example(name, key, group) for key in list(found[kind])[:room]]
        totals = {kind: sum(counts[kind] for counts in groups.values()) for kind in COUNTS}
        return {**totals, "groups": groups, "examples": examples}


def _key(producer: int, partition: int, nth: int) -> int:
    assert partition < _PARTITIONS_MAX, f"partition {partition}"
    assert nth < _NUMBER_MAX, f"output {nth} of one partition"
    return (producer * _PARTITIONS_MAX + partition << _NUMBER_BITS) + nth


def visible(history: PartitionHistory) -> Iterator[Held]:
    """What readers of committed data see of the final leader's log."""
    log = history.logs.get(history.final_leader)
    if log is None:
        return
    runs: Iterable[Held] = log.batches()
    if history.transactions is not None:
        runs = shown(runs, history.transactions.settle(log.batches()).hidden)
    for held in runs:
        if held.producer_index >= 0:
            yield held


def _asked(history: PartitionHistory, group: _Group) -> Iterator[Keys]:
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
        # What another producer of the topic made is nobody's output.
        yield keys[held.first_record : held.first_record + held.record_count]


def _keys_of(rows: list[_Made]) -> Keys:
    keys = np.zeros(max((row.stop for row in rows), default=0), dtype=np.int64)
    for first, stop, key in rows:
        keys[first:stop] = np.arange(key, key + stop - first, dtype=np.int64)
    return keys


def _joined(parts: Iterable[Keys]) -> Keys:
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts])


def _compare(asked: Keys, made: Keys) -> dict[str, dict[int, int]]:
    """How many outputs are wrong in each way, by key."""
    wanted, wanted_counts = np.unique(asked, return_counts=True)
    present, present_counts = np.unique(made, return_counts=True)
    keys = np.union1d(wanted, present)
    want = np.zeros(len(keys), dtype=np.int64)
    have = np.zeros(len(keys), dtype=np.int64)
    want[np.searchsorted(keys, wanted)] = wanted_counts
    have[np.searchsorted(keys, present)] = present_counts
    wrong = {
        "unprocessed": np.maximum(want - have, 0),
        "reprocessed": np.where(want > 0, np.maximum(have - want, 0), 0),
        "orphaned": np.where(want == 0, have, 0),
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
