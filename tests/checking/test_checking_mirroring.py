"""What a mirror was worth is counted against the source: each planted defect has its own number.

Source: our own definitions (``sim.checking.outcomes.mirroring``).
"""

import pytest

from sim.checking.durability import Judge
from sim.checking.outcomes.mirroring import Mirroring
from sim.trace.schema import BY_NAME
from sim.trace.writer import Trace

S = 1_000_000


@pytest.fixture
def traces(tmp_path):
    made = Trace(tmp_path / "us"), Trace(tmp_path / "dr")
    yield made
    for trace in made:
        trace.close()


class World:
    """Producer 0 writes ``orders`` in one cluster, mirror 3 ``us.orders`` in the other."""

    def __init__(self, traces):
        self.us, self.dr = traces
        self.judges = Judge(self.us), Judge(self.dr)
        self.mirror = Mirroring(3, "orders", "us.orders", ("billing",))
        listeners = (
            (self.dr, "mirrored", self.mirror.mirrored),
            (self.us, "reads", self.mirror.read_source),
            (self.dr, "reads", self.mirror.read_target),
            (self.dr, "positions", self.mirror.position),
        )
        for trace, table, listener in listeners:
            trace.table(table).listeners.append(listener)
        self.end = 0

    def add(self, trace, table, *row):
        assert len(row) == len(BY_NAME[table].columns), table
        trace.table(table).add(row)

    def ack(self, first, count):
        told = (0, "shop", 0, "orders", 0, first, count, 100, -1, 0, 0, 0, 1, "ok", "NONE", first)
        self.add(self.us, "client_batches", *told, 1, 0, ())

    def copy(self, number, count, record):
        """Copies ``number`` and on, of records from ``record`` on."""
        made = (0, "mm2", 3, "us.orders", 0, number, count, "orders", 0, 0, record, record)
        self.add(self.dr, "mirrored", *made)
        base, self.end = self.end, self.end + count
        where = (0, 1, "us.orders", 0, base, base + count - 1, 0, True, 100, base)
        self.add(self.dr, "appends", *where, 3, number, count, -1, -1, -1)

    def read(self, trace, topic, producer, first, count, at=0, offset=None):
        base = first if offset is None else offset
        span = (topic, 0, base, base + count - 1, 0)
        row = (at, "billing", "billing", *span, producer, first, count, base + count, 1)
        self.add(trace, "reads", *row)

    def told(self):
        source = self.judges[0].histories("orders")
        return self.mirror.verdict(source, self.judges[1].histories("us.orders"))

    def counts(self):
        found = self.told()
        return tuple(found[name] for name in ("missing", "duplicated", "skipped", "reread"))


@pytest.fixture
def world(traces):
    made = World(traces)
    made.ack(0, 100)
    return made


def test_every_record_once_is_nothing_wrong(world):
    world.copy(0, 100, 0)
    assert world.counts() == (0, 0, 0, 0)


def test_what_was_acknowledged_and_not_copied_is_missing_and_named(world):
    world.copy(0, 90, 0)
    found = world.told()
    assert found["missing"] == 10
    assert found["examples"]["missing"][0] == {"producer_index": 0, "partition": 0, "record": 90}


def test_a_copy_that_lost_its_log_counts_as_missing(world):
    world.copy(0, 80, 0)
    world.copy(80, 20, 80)
    row = (1, 1, "us.orders", 0, 100, 80, 80, 1, "planted")
    world.add(world.dr, "truncations", *row)
    assert world.told()["missing"] == 20


def test_a_second_copy_is_a_duplicate(world):
    world.copy(0, 100, 0)
    world.copy(100, 30, 70)
    assert world.counts()[:2] == (0, 30)


def test_a_batch_that_is_encoded_anew_is_no_second_copy(world):
    world.copy(0, 100, 0)
    made = (0, "mm2", 3, "us.orders", 0, 0, 100, "orders", 0, 0, 0, 0)
    world.add(world.dr, "mirrored", *made)
    assert world.counts() == (0, 0, 0, 0)


def test_what_the_group_got_in_neither_cluster_is_skipped_and_no_more(world):
    world.copy(0, 100, 0)
    world.read(world.us, "orders", 0, 0, 40)
    world.read(world.dr, "us.orders", 3, 60, 30)
    assert world.counts() == (0, 0, 20, 0), "the last ten are its lag"


def test_a_group_that_begins_behind_everything_skips_all_that_it_has_not_got(world):
    world.copy(0, 100, 0)
    world.read(world.us, "orders", 0, 0, 40)
    world.add(world.dr, "positions", 0, "billing", "billing", "us.orders", 0, -1, 100, "reset")
    assert world.counts() == (0, 0, 60, 0)


def test_a_delivery_in_the_other_cluster_of_what_it_had_is_reread(world):
    world.copy(0, 100, 0)
    world.read(world.us, "orders", 0, 0, 40)
    world.read(world.dr, "us.orders", 3, 25, 75)
    assert world.counts() == (0, 0, 0, 15)


def test_time_without_records_is_told_for_a_group_that_read_in_both(world):
    world.copy(0, 100, 0)
    world.read(world.us, "orders", 0, 0, 40, at=2 * S)
    assert "away_max_us" not in world.told()
    world.read(world.dr, "us.orders", 3, 40, 60, at=9 * S)
    assert world.told()["away_max_us"] == 7 * S


def test_other_groups_and_other_producers_are_not_looked_at(world):
    world.copy(0, 100, 0)
    row = (0, "audit", "audit", "orders", 0, 0, 9, 0, 0, 0, 10, 10, 1)
    world.add(world.us, "reads", *row)
    world.add(world.us, "reads", *row)
    other = (0, 1, "us.orders", 0, 100, 109, 0, True, 100, 7, 5, 0, 10, -1, -1, -1)
    world.add(world.dr, "appends", *other)
    assert world.counts() == (0, 0, 0, 0)
