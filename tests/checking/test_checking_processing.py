"""Outputs of tasks are counted against the input: each planted defect has its own number.

Source: our own definitions (``sim.checking.outcomes.processing``).
"""

import pytest

from sim.checking.durability import Judge
from sim.trace.schema import BY_NAME
from sim.trace.writer import Trace


@pytest.fixture
def trace(tmp_path):
    made = Trace(tmp_path / "trace")
    yield made
    made.close()


class World:
    """One broker with a log of input and one of outputs; task ``copy`` is producer 1."""

    def __init__(self, trace):
        self.trace = trace
        self.judge = Judge(trace)
        self.ends = {"orders": 0, "bills": 0}
        trace.table("tasks").add((0, "copy", "copy", 1, "orders", "bills", 2))

    def append(self, topic, producer, first, count):
        base = self.ends[topic]
        self.ends[topic] += count
        row = (0, 1, topic, 0, base, base + count - 1, 0, True, 100, base, producer, first, count,
               -1, -1, -1)  # fmt: skip
        assert len(row) == len(BY_NAME["appends"].columns)
        self.trace.table("appends").add(row)

    def make(self, first, count, record, ordinal=0):
        """Outputs ``first`` and on, of input records from ``record`` on."""
        row = (0, "copy", 1, "bills", 0, first, count, "orders", 0, 0, record, ordinal, 2)
        assert len(row) == len(BY_NAME["outputs"].columns)
        self.trace.table("outputs").add(row)
        self.append("bills", 1, first, count)

    def told(self):
        found = self.judge.verdict(1)["processing"]
        return found["unprocessed"], found["reprocessed"], found["orphaned"]


def test_each_output_once_is_nothing_wrong(trace):
    world = World(trace)
    world.append("orders", 0, 0, 5)
    world.make(0, 4, record=0)
    world.make(4, 6, record=2)
    assert world.told() == (0, 0, 0)


def test_planted_an_output_that_is_missing_is_unprocessed(trace):
    world = World(trace)
    world.append("orders", 0, 0, 5)
    world.make(0, 4, record=0)
    world.make(4, 5, record=2, ordinal=1)
    assert world.told() == (1, 0, 0)
    (example,) = world.judge.verdict(1)["processing"]["examples"]["unprocessed"]
    assert (example["record"], example["ordinal"]) == (2, 0)


def test_planted_a_record_that_is_processed_again_is_reprocessed(trace):
    world = World(trace)
    world.append("orders", 0, 0, 5)
    world.make(0, 10, record=0)
    world.make(10, 2, record=3)
    assert world.told() == (0, 2, 0)


def test_planted_an_output_of_a_record_that_is_not_there_is_orphaned(trace):
    world = World(trace)
    world.append("orders", 0, 0, 5)
    world.make(0, 10, record=0)
    world.make(10, 3, record=70)
    assert world.told() == (0, 0, 3)


def test_an_input_record_that_is_there_twice_asks_for_its_outputs_twice(trace):
    world = World(trace)
    world.append("orders", 0, 0, 1)
    world.append("orders", 0, 0, 1)
    world.make(0, 2, record=0)
    assert world.told() == (2, 0, 0)
    world.make(2, 2, record=0)
    assert world.told() == (0, 0, 0)


def test_without_tasks_nothing_is_said_of_them(trace):
    assert Judge(trace).verdict(1)["processing"] == {}
