"""Checks that tasks made every output of every input record once: actual against expected.

Definitions, for a group of tasks that share their input (readers see what markers do not hide):

* An input record in the final leader's log that readers of committed data see requires its outputs,
  as often as it is there.
* ``unprocessed``: required outputs without a visible record in the output topic.
* ``reprocessed``: visible outputs of an input record beyond the required ones.
* ``orphaned``: visible outputs of input records that are not in the input's log, or not any more.

The trace row of a task's encoding maps outputs to records.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from sim.checking.outcomes.history import PartitionHistory
from sim.checking.outcomes.record_keys import (
    Keys,
    Made,
    compare,
    joined,
    key_of,
    place_of,
    visible_keys,
    visible_origins,
)
from sim.trace.rows.clients import Outputs, OutputsRow, TasksRow

COUNTS: Final = ("unprocessed", "reprocessed", "orphaned")
"""The numbers of the verdict, in its order."""

EXAMPLES: Final = 10


@dataclass(slots=True)
class _Group:
    """Tasks with the same input and output."""

    inputs: tuple[str, ...]
    output: str
    each: int
    made: dict[tuple[int, int], list[Made]]
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
        key = key_of(row[Outputs.INPUT_PRODUCER], row[Outputs.INPUT_PARTITION], number)
        made = group.made.setdefault((producer, row[Outputs.PARTITION]), [])
        made.append(Made(first, first + row[Outputs.RECORD_COUNT], key))

    def verdict(self, histories: Iterable[PartitionHistory]) -> dict[str, object]:
        """Counts in total and by group, and the first examples; empty without tasks."""
        if not self._groups:
            return {}
        known = list(histories)
        groups: dict[str, dict[str, int]] = {}
        examples: dict[str, list[dict[str, object]]] = {kind: [] for kind in COUNTS}
        for name, group in self._groups.items():
            inputs = (h for h in known if h.topic in group.inputs)
            expected = joined(keys for h in inputs for keys in visible_keys(h, group.each))
            outputs = (h for h in known if h.topic == group.output)
            made = joined(keys for h in outputs for keys in visible_origins(h, group.made))
            found = _wrong(expected, made)
            groups[name] = {kind: sum(found[kind].values()) for kind in COUNTS}
            for kind in COUNTS:
                left = EXAMPLES - len(examples[kind])
                examples[kind] += [_example(name, key, group) for key in list(found[kind])[:left]]
        totals = {kind: sum(counts[kind] for counts in groups.values()) for kind in COUNTS}
        return {**totals, "groups": groups, "examples": examples}


def _wrong(expected: Keys, made: Keys) -> dict[str, dict[int, int]]:
    """Numbers of wrong outputs of each kind, by key."""
    keys, counts = compare(expected, made)
    return {
        kind: {int(keys[place]): int(wrong[place]) for place in np.flatnonzero(wrong)}
        for kind, wrong in zip(COUNTS, counts, strict=True)
    }


def _example(name: str, key: int, group: _Group) -> dict[str, object]:
    producer, partition, number = place_of(key)
    record, ordinal = divmod(number, group.each)
    return {
        "group": name,
        "producer_index": producer,
        "partition": partition,
        "record": record,
        "ordinal": ordinal,
    }
