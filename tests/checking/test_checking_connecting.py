"""What connectors delivered is counted: each planted defect has its own number.

Source: our own definitions (``sim.checking.outcomes.connecting``).
"""

import pytest

from sim.checking.durability import Judge
from sim.trace.schema import BY_NAME
from sim.trace.writer import Trace


class World:
    """Source ``crm`` writes ``orders`` as producer 1; sink ``lake`` reads what is there."""

    def __init__(self, trace):
        self.trace = trace
        self.judge = Judge(trace)
        self.end = 0
        self.add("connector_tasks", 0, "crm", "source", "crm", 0, 1, "orders")
        self.add("connector_tasks", 0, "lake", "sink", "lake", 0, -1, "orders")
        self.add("external_logs", 0, "crm", 0, 100)

    def add(self, table, *row):
        assert len(row) == len(BY_NAME[table].columns), table
        self.trace.table(table).add(row)

    def encode(self, number, count, position):
        self.add("sourced", 0, "crm", 1, "orders", 0, number, count, 0, position)

    def append(self, number, count, producer=1):
        base, self.end = self.end, self.end + count
        where = (0, 1, "orders", 0, base, base + count - 1, 0, True, 100, base)
        self.add("appends", *where, producer, number, count, -1, -1, -1)

    def send(self, number, count, position):
        self.encode(number, count, position)
        self.append(number, count)

    def write(self, number, count, producer=1):
        self.add("external_writes", 0, "lake", "lake", "orders", 0, number, producer, number, count)

    def counts(self, name="crm"):
        found = self.judge.verdict(0)["connecting"]["connectors"][name]
        return tuple(found[kind] for kind in ("missing", "duplicated", "orphaned"))


@pytest.fixture
def world(tmp_path):
    trace = Trace(tmp_path)
    yield World(trace)
    trace.close()


def test_every_record_once_is_nothing_wrong(world):
    world.send(0, 60, 0)
    world.send(60, 40, 60)
    world.write(0, 100)
    assert world.counts("crm") == world.counts("lake") == (0, 0, 0)


def test_an_external_record_that_no_log_has_is_missing(world):
    world.send(0, 60, 0)
    world.encode(60, 40, 60)
    assert world.counts() == (40, 0, 0)


def test_an_external_record_under_two_numbers_is_duplicated(world):
    world.send(0, 60, 0)
    world.send(60, 70, 30)
    assert world.counts() == (0, 30, 0)


def test_a_batch_that_is_encoded_anew_is_no_second_record(world):
    world.send(0, 100, 0)
    world.encode(0, 100, 0)
    assert world.counts() == (0, 0, 0)


def test_a_batch_that_the_log_has_twice_is_duplicated_for_both(world):
    """As by a producer that is not idempotent; the sink that wrote each once lacks the others."""
    world.send(0, 100, 0)
    world.append(0, 100)
    world.write(0, 100)
    assert world.counts("crm") == (0, 100, 0)
    assert world.counts("lake") == (100, 0, 0)


def test_a_row_too_few_is_missing_and_one_too_many_duplicated(world):
    world.send(0, 100, 0)
    world.write(0, 90)
    world.write(50, 20)
    assert world.counts("lake") == (10, 20, 0)


def test_a_row_of_a_record_that_no_log_has_is_orphaned(world):
    world.send(0, 100, 0)
    world.write(0, 100)
    world.write(7, 3, producer=2)
    assert world.counts("lake") == (0, 0, 3)


def test_records_of_others_are_not_the_source_s_and_are_the_sink_s(world):
    world.send(0, 100, 0)
    world.append(0, 10, producer=0)
    world.write(0, 100)
    assert world.counts("crm") == (0, 0, 0)
    assert world.counts("lake") == (10, 0, 0)


def test_without_connectors_nothing_is_said(tmp_path):
    trace = Trace(tmp_path)
    assert "connecting" not in Judge(trace).verdict(0)
    trace.close()
