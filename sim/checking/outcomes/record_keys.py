"""Records of many producers as whole numbers, so that what is there is compared with what is due.

A key has the producer's index, a partition, and a number: of a record, or of an output of one.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.checking.outcomes.history import PartitionHistory
from sim.checking.outcomes.policy import Held, shown

_NUMBER_BITS: Final = 36
_NUMBER_MAX: Final = 1 << _NUMBER_BITS
_PARTITIONS_MAX: Final = 10_000

Keys = NDArray[np.int64]
"""Records, each as one number."""


class Made(NamedTuple):
    """Records in a row, from number ``first`` up to ``stop``; ``key`` is the first one's origin."""

    first: int
    stop: int
    key: int


def key_of(producer: int, partition: int, number: int) -> int:
    """The key of a record, or of an output of one."""
    assert partition < _PARTITIONS_MAX, f"partition {partition}"
    assert number < _NUMBER_MAX, f"number {number} of one partition"
    return (producer * _PARTITIONS_MAX + partition << _NUMBER_BITS) + number


def place_of(key: int) -> tuple[int, int, int]:
    """Producer index, partition and number."""
    producer, partition = divmod(key >> _NUMBER_BITS, _PARTITIONS_MAX)
    return producer, partition, key & (_NUMBER_MAX - 1)


def row_of(first: int, count: int) -> Keys:
    """So many keys from the first one on."""
    return np.arange(first, first + count, dtype=np.int64)


def joined(parts: Iterable[Keys]) -> Keys:
    """All of them, one after the other."""
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts])


def origins(made: list[Made]) -> Keys:
    """By the number of a record, the key of its origin; the last row that has it counts."""
    keys = np.zeros(max((row.stop for row in made), default=0), dtype=np.int64)
    for first, stop, key in made:
        keys[first:stop] = row_of(key, stop - first)
    return keys


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


def visible_keys(history: PartitionHistory, each: int = 1) -> Iterator[Keys]:
    """Keys of visible records, or of ``each`` outputs of each of them."""
    for held in visible(history):
        first = key_of(held.producer_index, history.number, held.first_record * each)
        yield row_of(first, held.record_count * each)


def visible_origins(
    history: PartitionHistory, made: Mapping[tuple[int, int], list[Made]]
) -> Iterator[Keys]:
    """Keys of the origins of visible records, of the producers and partitions that made some."""
    known: dict[int, Keys] = {}
    for held in visible(history):
        keys = known.get(held.producer_index)
        if keys is None:
            rows = made.get((held.producer_index, history.number), [])
            keys = known[held.producer_index] = origins(rows)
        # What others have written has no origin.
        yield keys[held.first_record : held.first_record + held.record_count]


def compare(expected: Keys, present: Keys) -> tuple[Keys, tuple[Keys, Keys, Keys]]:
    """All keys, and for each how often it is missing, there once too often, or not expected."""
    expected_keys, expected_counts = np.unique(expected, return_counts=True)
    found, found_counts = np.unique(present, return_counts=True)
    keys = np.union1d(expected_keys, found)
    due = np.zeros(len(keys), dtype=np.int64)
    have = np.zeros(len(keys), dtype=np.int64)
    due[np.searchsorted(keys, expected_keys)] = expected_counts
    have[np.searchsorted(keys, found)] = found_counts
    again = np.where(due > 0, np.maximum(have - due, 0), 0)
    return keys, (np.maximum(due - have, 0), again, np.where(due == 0, have, 0))
