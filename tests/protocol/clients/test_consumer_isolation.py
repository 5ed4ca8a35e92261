"""A reader of committed data: what it leaves out, and where it stands behind it."""

import pytest

from sim.ids import TopicPartition
from sim.protocol.clients.consumer.isolation import CommittedOnly
from sim.protocol.messages.data import AbortedTransaction
from sim.protocol.messages.group import OffsetFetchRequest
from sim.units import MS, SECOND
from tests.protocol.coordinator.group_bench import Bench

P0 = TopicPartition("orders", 0)
TXN = {"is_transactional": True}


def reader(**settings):
    bench = Bench({"orders": 1})
    told = {"group_id": "", "auto_offset_reset": "earliest", "isolation_level": "read_committed"}
    bench.consumer("a", **(told | settings))
    return bench


def marker(bench, producer, *, abort):
    return bench.produce(
        P0,
        1,
        producer_index=-1,
        producer_id=producer,
        is_control=True,
        is_abort_marker=abort,
        **TXN,
    )


def transaction(bench, producer, *sizes, abort):
    """A transaction's data and marker, alone in its part of the log."""
    first = bench.end_of(P0)
    for size in sizes:
        bench.produce(P0, size, producer_id=producer, **TXN)
    marker(bench, producer, abort=abort)
    if abort:
        known = bench.aborted.get(P0, ())
        bench.aborted[P0] = (*known, AbortedTransaction(producer, first))


def offsets(bench):
    return [
        offset
        for _, _, part in bench.delivered
        for offset in range(part.base_offset, part.last_offset + 1)
    ]


def position(bench):
    return bench.consumers["a"].machine.position(P0)


def test_committed_records_are_returned_and_markers_are_not():
    bench = reader()
    transaction(bench, 7, 3, 2, abort=False)
    bench.run(SECOND)
    assert offsets(bench) == [0, 1, 2, 3, 4]
    assert position(bench) == 6


def test_aborted_records_are_not_returned_and_the_position_passes_them():
    bench = reader()
    transaction(bench, 7, 3, abort=True)
    transaction(bench, 7, 2, abort=False)
    transaction(bench, 7, 4, abort=True)
    bench.run(SECOND)
    assert offsets(bench) == [4, 5]
    assert position(bench) == bench.end_of(P0)


def test_a_reader_of_uncommitted_data_gets_them_all():
    bench = reader(isolation_level="read_uncommitted")
    transaction(bench, 7, 3, abort=True)
    transaction(bench, 7, 2, abort=False)
    bench.run(SECOND)
    assert offsets(bench) == [0, 1, 2, 4, 5]


def test_only_the_aborted_producer_is_left_out_where_transactions_overlap():
    bench = reader()
    bench.produce(P0, 2, producer_id=7, **TXN)  # 0, 1: aborted
    bench.produce(P0, 2, producer_id=8, **TXN)  # 2, 3: committed
    bench.produce(P0, 1)  # 4: without a transaction
    bench.produce(P0, 1, producer_id=7)  # 5: of the same producer id, without one
    bench.produce(P0, 2, producer_id=7, **TXN)  # 6, 7: aborted
    marker(bench, 8, abort=False)
    marker(bench, 7, abort=True)
    bench.produce(P0, 2, producer_id=7, **TXN)  # 10, 11: the next, committed
    marker(bench, 7, abort=False)
    bench.aborted[P0] = (AbortedTransaction(7, 0),)
    bench.run(SECOND)
    assert offsets(bench) == [2, 3, 4, 5, 10, 11]


def test_nothing_beyond_the_last_stable_offset_is_read_until_it_moves():
    bench = reader()
    transaction(bench, 7, 3, abort=False)
    bench.produce(P0, 5, producer_id=7, **TXN)
    bench.produce(P0, 1)
    bench.stable[P0] = 4
    bench.run(SECOND)
    assert offsets(bench) == [0, 1, 2]
    assert position(bench) == 4
    marker(bench, 7, abort=False)
    del bench.stable[P0]
    bench.run(2 * SECOND)
    assert offsets(bench) == [0, 1, 2, *range(4, 10)]


def test_a_poll_that_ends_within_a_batch_goes_on_there():
    bench = reader(poll_records_max=2, processing_us=MS)
    transaction(bench, 7, 5, abort=False)
    transaction(bench, 8, 5, abort=True)
    transaction(bench, 7, 3, abort=False)
    bench.run(SECOND)
    assert offsets(bench) == [0, 1, 2, 3, 4, 12, 13, 14]


def test_the_latest_offset_is_the_last_stable_one():
    bench = reader(auto_offset_reset="latest")
    bench.produce(P0, 4)
    bench.produce(P0, 4, producer_id=7, **TXN)
    bench.stable[P0] = 4
    bench.run(100 * MS)
    assert position(bench) == 4


@pytest.mark.parametrize("isolation_level", ["read_uncommitted", "read_committed"])
def test_the_requests_say_what_is_wanted(isolation_level):
    bench = reader(isolation_level=isolation_level)
    bench.produce(P0, 1)
    bench.run(100 * MS)
    asked = {r.isolation_level for _, _, r in bench.requests if hasattr(r, "isolation_level")}
    assert asked == {isolation_level}


def test_a_member_begins_only_where_no_transaction_holds_an_offset():
    bench = Bench({"orders": 1})
    bench.consumer("a", start_at=50 * MS, auto_offset_reset="earliest")
    bench.elect(1)
    bench.run(5 * SECOND)
    asked = [r for _, _, r in bench.requests if isinstance(r, OffsetFetchRequest)]
    assert asked
    assert all(request.require_stable for request in asked)


def test_forgetting_that_an_abort_ends_with_its_marker_is_caught(monkeypatch):
    hides = CommittedOnly.hides

    def forgetful(self, batch):
        before = dict(self._aborting)
        hidden = hides(self, batch)
        self._aborting.update(before)
        return hidden or (batch.is_transactional and batch.producer_id in self._aborting)

    monkeypatch.setattr(CommittedOnly, "hides", forgetful)
    bench = reader()
    transaction(bench, 7, 3, abort=True)
    transaction(bench, 7, 2, abort=False)
    bench.run(SECOND)
    assert offsets(bench) != [4, 5]
