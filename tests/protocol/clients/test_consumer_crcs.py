"""``check.crcs``: a batch that is damaged on the way to the application is an error of its poll."""

import pytest

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition
from sim.units import SECOND
from tests.protocol.coordinator.group_bench import Bench, FakeBatch

P0 = TopicPartition("orders", 0)


def reader(*batches, **config):
    bench = Bench({"orders": 1})
    bench.consumer("a", **{"group_id": "", "auto_offset_reset": "earliest"} | config)
    bench.data[P0] = list(batches)
    bench.run(2 * SECOND)
    returned = [
        n for _, _, part in bench.delivered for n in range(part.base_offset, part.last_offset + 1)
    ]
    return bench, returned


WHOLE = FakeBatch(0, 4)
DAMAGED = FakeBatch(4, 3, first_record=4, damaged=True)
BEHIND = FakeBatch(7, 2, first_record=7)


def test_what_lies_before_a_damaged_batch_is_returned_and_the_next_poll_raises():
    """Source: ``CompletedFetch.fetchRecords``: the exception waits until nothing is returned."""
    bench, returned = reader(WHOLE, DAMAGED, BEHIND)
    assert returned == [0, 1, 2, 3]
    assert bench.stopped == {"a": ErrorCode.CORRUPT_MESSAGE}


@pytest.mark.parametrize("config", [{}, {"isolation_level": "read_committed"}])
def test_a_damaged_batch_at_its_position_ends_a_reader(config):
    bench, returned = reader(FakeBatch(0, 3, damaged=True), **config)
    assert returned == []
    assert bench.stopped == {"a": ErrorCode.CORRUPT_MESSAGE}


def test_a_damaged_control_batch_is_checked_too():
    bench, returned = reader(WHOLE, FakeBatch(4, 1, is_control=True, damaged=True))
    assert returned == [0, 1, 2, 3]
    assert bench.stopped == {"a": ErrorCode.CORRUPT_MESSAGE}


def test_without_the_check_damaged_records_are_returned():
    bench, returned = reader(WHOLE, DAMAGED, BEHIND, check_crcs=False)
    assert returned == list(range(9))
    assert bench.stopped == {}
