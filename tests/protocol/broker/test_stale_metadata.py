"""Metadata from a broker that is behind: a client ignores them, or goes back (KIP-232)."""

import pytest

from sim.ids import NO_EPOCH, TopicPartition
from sim.protocol.clients.producer.config import ProducerConfig
from sim.protocol.clients.producer.metadata import Backoff, ProducerMetadata
from sim.protocol.messages.data import FetchRequest, ListOffsetsRequest
from sim.protocol.messages.metadata import MetadataResponse, PartitionMetadata
from sim.trace.rows.clients import Positions
from sim.units import SECOND
from tests.protocol.coordinator.group_bench import Bench, FakeBatch

P0 = TopicPartition("orders", 0)
MOVED, BEHIND, HEARD = 2 * SECOND, 4 * SECOND, 6 * SECOND
"""When broker 2 leads, when whoever is asked has not heard of it, and when they have."""


def reader(**settings):
    """One that has read 0..14, the last five of broker 2, when it is told of broker 1 again."""
    bench = Bench({"orders": 1})
    told = {"group_id": "", "auto_offset_reset": "earliest", "metadata_age_us_max": SECOND}
    bench.consumer("a", **(told | settings))
    old, new = FakeBatch(0, 10), FakeBatch(10, 5, leader_epoch=1, first_record=10)
    bench.data[P0] = [old]
    bench.run(MOVED)
    bench.data[P0] = [old, new]
    bench.leaders[P0], bench.epochs[P0] = 2, 1
    bench.run(BEHIND)
    bench.data[P0] = [old]
    bench.leaders[P0], bench.epochs[P0] = 1, 0
    bench.run(HEARD)
    bench.data[P0] = [old, new]
    bench.leaders[P0], bench.epochs[P0] = 2, 1
    bench.run(8 * SECOND)
    return bench


def offsets(bench, after=0):
    return [
        offset
        for at, _, part in bench.delivered
        if at > after
        for offset in range(part.base_offset, part.last_offset + 1)
    ]


def epochs_asked(bench):
    fetched = [
        item.leader_epoch
        for _, _, request in bench.requests
        if isinstance(request, FetchRequest)
        for item in request.partitions
    ]
    listed = [r.leader_epoch for _, _, r in bench.requests if isinstance(r, ListOffsetsRequest)]
    return set(fetched + listed)


def test_a_reader_ignores_an_older_epoch_and_reads_every_record_once():
    bench = reader()
    assert offsets(bench) == list(range(15))
    assert epochs_asked(bench) == {0, 1}


def test_a_reader_without_epochs_goes_back_to_the_old_leader_and_begins_anew():
    """Catalogue: stale-metadata-spurious-offset-reset. What was until 2.1."""
    bench = reader(tracks_epochs=False)
    assert offsets(bench)[:15] == list(range(15))
    assert offsets(bench, BEHIND) == list(range(15)), "all again, although nothing was truncated"
    assert [row[Positions.REASON] for row in bench.table("positions")] == ["reset", "reset"]
    assert epochs_asked(bench) == {NO_EPOCH}


@pytest.mark.parametrize(("tracks", "leader"), [(True, 2), (False, 1)])
def test_a_producer_goes_back_to_an_older_leader_only_without_epochs(tracks, leader):
    config = ProducerConfig(tracks_epochs=tracks)
    metadata = ProducerMetadata("orders", (1, 2), config, Backoff(1, 1, lambda: 0.5))
    for node, epoch in ((1, 0), (2, 1), (1, 0)):
        described = (PartitionMetadata(0, node, epoch, (1, 2), (1, 2)),)
        metadata.on_response(MetadataResponse((1, 2), {"orders": described}), 0)
    assert metadata.leaders == [leader]
    assert metadata.on_hint(0, 3 - leader, 9) is tracks, "without epochs there are no hints"
