"""The sender looks at queues that have batches alone, and misses none."""

from bisect import insort

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sim.protocol.clients.producer.batch import ProducerBatch
from sim.protocol.clients.producer.partitioner import Loads, load_table
from sim.protocol.clients.producer.queues import Backlog, PartitionQueue

_PARTITIONS = 5


def check(steps: list[tuple[str, int]]) -> None:
    """Compares the backlog with a look at each queue, after steps that put or take a batch."""
    queues = [PartitionQueue(partition, 0) for partition in range(_PARTITIONS)]
    backlog = Backlog(queues)
    for what, partition in steps:
        if what == "look":
            backlog.queues()
        elif what == "put":
            backlog.put(ProducerBatch(partition, 0, 0, 0, 100), 0)
        elif queues[partition].batches:
            queues[partition].batches.popleft()
    found = [queue.partition for queue in backlog.queues()]
    assert found == [queue.partition for queue in queues if queue.batches]


_STEPS = st.lists(
    st.tuples(st.sampled_from(("put", "take", "look")), st.integers(0, _PARTITIONS - 1)),
    max_size=30,
)


@given(_STEPS)
@example([("put", 3), ("take", 3), ("put", 3)])
@example([("put", 3), ("take", 3), ("look", 0), ("put", 3), ("put", 1)])
def test_the_backlog_is_every_queue_with_batches_in_the_order_of_partitions(steps) -> None:
    check(steps)


def test_a_partition_that_is_not_listed_again_is_caught(monkeypatch) -> None:
    def once(self: Backlog, batch: ProducerBatch, place: int) -> None:
        queue = self._all[batch.partition]
        queue.batches.insert(place, batch)
        if queue.next_record == 0:
            queue.next_record = 1
            insort(self._listed, batch.partition)

    monkeypatch.setattr(Backlog, "put", once)
    with pytest.raises(AssertionError):
        check([("put", 3), ("take", 3), ("look", 0), ("put", 3)])


@given(
    st.dictionaries(st.integers(0, _PARTITIONS - 1), st.integers(1, 4)),
    st.lists(st.integers(0, _PARTITIONS - 1), unique=True).map(sorted),
)
def test_loads_count_a_partition_without_batches_as_an_empty_queue(waiting, led) -> None:
    loads = Loads(led, waiting, _PARTITIONS)
    assert loads.table() == load_table([waiting.get(each, 0) for each in led], _PARTITIONS)
