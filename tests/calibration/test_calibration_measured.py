"""Latencies out of rows: which records count, reads, moves of leaders, percentiles."""

import pytest

from sim.calibration import measured, plan
from sim.calibration.measured import Rows, Samples
from sim.errors import SimulationError
from sim.trace.rows.clients import Reads
from sim.trace.rows.cluster import PartitionChanges
from sim.trace.rows.log import Appends, ClientBatches

SINGLE, READ, MOVE = plan.by_name("single-round-1"), plan.by_name("read-round-1"), plan.MOVE


def batch(at, producer, latencies, first=0, outcome="ok", index=0, topic="t", partition=0):
    emit = ClientBatches.row(
        producer=producer, producer_index=index, topic=topic, partition=partition,
        first_record=first, record_count=len(latencies), size_bytes=100, acks=1, created_us=0,
        first_sent_us=-1, last_sent_us=-1, attempts=0, outcome=outcome, error="NONE",
        base_offset=first, answered_by=-1, correlation=-1, latency_us=latencies,
    )  # fmt: skip
    return (at, *emit[1])


def test_the_beginning_of_a_window_and_what_was_not_acknowledged_do_not_count():
    begin, later = 1_000, 1_000 + plan.SKIP_US
    rows = Rows(
        client_batches=[
            batch(begin + 70, "single-round-1", [70]),
            batch(later + 50, "single-round-1", [50, 40], first=1),
            batch(later + 90, "single-round-1", [60], first=3, outcome="failed"),
            batch(later + 90, "warm-up", [80], first=3, index=1),
        ]
    )
    assert measured.samples(rows).latencies == {("single", 1): (50, 40)}


def test_a_read_counts_from_the_instant_at_which_its_record_was_due():
    since = 10 + plan.SKIP_US
    read = Reads.row(
        "calibrate-1", group="calibrate", topic="t", partition=0, base_offset=1, last_offset=1,
        leader_epoch=0, producer_index=4, first_record=1, record_count=1, high_watermark=2,
        read_from=1,
    )  # fmt: skip
    rows = Rows(
        client_batches=[
            batch(20, "read-round-2", [10], index=4),
            batch(since + 100, "read-round-2", [100], first=1, index=4),
        ],
        reads=[(since + 130, *read[1])],
    )
    assert measured.samples(rows).latencies == {("read", 2): (130,)}


def test_a_move_counts_from_its_record_to_the_first_acknowledgement_in_the_new_epoch():
    def change(at, leader, epoch):
        emit = PartitionChanges.row(
            3001, "t", 0, leader=leader, leader_epoch=epoch, partition_epoch=epoch,
            in_sync="1,2", eligible="", replicas="1,2", unclean=False,
        )  # fmt: skip
        return (at, *emit[1])

    def append(at, first, epoch):
        emit = Appends.row(
            2, "t", 0, base_offset=first, last_offset=first, leader_epoch=epoch, as_leader=True,
            size_bytes=1, crc=0, producer_index=3, first_record=first, record_count=1,
            producer_id=-1, producer_epoch=-1, base_sequence=-1,
        )  # fmt: skip
        return (at, *emit[1])

    name = f"{MOVE.name}-round-1"
    rows = Rows(
        client_batches=[
            batch(1_090, name, [5], first=7, index=3),
            batch(1_230, name, [200], first=8, index=3),
            batch(1_240, name, [200], first=9, index=3),
        ],
        partition_changes=[change(-5, 1, 0), change(1_000, 2, 1)],
        appends=[append(1_080, 7, 0), append(1_220, 8, 1), append(1_235, 9, 1)],
    )
    found = measured.samples(rows)
    assert found.latencies == {(MOVE.name, 1): (230,)}, "not 90: the old leader answered that"
    assert found.quantiles(MOVE) == {"p50": 230}


def test_percentiles_are_those_of_all_rounds_or_of_some():
    samples = Samples({("single", 1): range(1, 101), ("single", 2): range(1_001, 1_101)})
    assert samples.quantiles(SINGLE) == {"p50": 100, "p90": 1_080, "p99": 1_098}
    assert samples.quantiles(SINGLE, [1]) == {"p50": 50, "p90": 90, "p99": 99}


def test_a_load_with_few_latencies_has_no_percentiles():
    assert Samples({("single", 1): range(19)}).quantiles(SINGLE) == {}
    assert Samples({}).quantiles(MOVE) == {}


def test_rounds_of_a_second_calibration_are_numbered_on():
    one, other = Samples({("single", 1): [1], ("single", 2): [2]}), Samples({("single", 1): [3]})
    assert measured.joined([one, other]).latencies[("single", 3)] == [3]


def test_rows_of_any_other_run_are_refused(tmp_path):
    assert measured.samples(Rows(client_batches=[batch(5_000_000, "shop", [10])])).latencies == {}
    with pytest.raises(SimulationError, match="no record of the plan of logquake calibrate"):
        measured.read(tmp_path)
