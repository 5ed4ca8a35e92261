"""A broker that comes back: with which settings its logs are loaded."""

import pytest

from sim.log.partition.reading import file_batches
from tests.scenarios.run_kit import go


@pytest.mark.parametrize("governed", [(), {"zookeeper": {"servers": 1}}])
def test_logs_are_recovered_with_the_settings_of_their_topic(tmp_path, governed):
    """An entry for every batch but the first: the index is made anew after the crash."""
    ran = go(
        tmp_path,
        cluster=governed,
        topic={"partitions": 1, "config": {"index.interval.bytes": 0}},
        faults=[{"at": "3s", "do": "crash", "target": "broker-1", "for": "1s"}],
        lasts="14s",
    )
    (recovered,) = ran.rows("recoveries", topic="orders", broker=1)
    before = [r for r in ran.rows("appends", broker=1, topic="orders") if r["t_us"] <= 3_000_000]
    assert recovered["scanned_bytes"] > 0
    (index,) = ran.directory.glob("disks/broker-1/*/orders-0/*.index")
    written = len(ran.rows("appends", broker=1, topic="orders"))
    assert len(before) > 100
    assert index.stat().st_size // 8 == written - 1


def test_what_a_broker_that_stays_down_has_lost_is_told_at_the_end_and_its_files_stay(tmp_path):
    alone = {"replication.factor": 1, "config": {}}
    down = [{"at": "4s", "do": "power-loss", "target": "all brokers"}]
    ran = go(tmp_path, topic=alone, faults=down, then="stop")
    lost = ran.rows("truncations", topic="orders", reason="unrecovered")
    assert sum(row["from_offset"] - row["to_offset"] for row in lost) == ran.records["lost_acked"]
    assert len(lost) == 3
    torn = 0
    for row in lost:
        (log,) = ran.directory.glob(f"disks/broker-*/*/orders-{row['partition']}/*.log")
        whole = list(file_batches(log))
        assert row["to_offset"] == (whole[-1][1].last_offset + 1 if whole else 0)
        torn += log.stat().st_size > sum(batch.size_bytes for _, batch in whole)
    assert torn > 0, "what recovery would cut is there, for whoever looks"
    assert ran.rows("recoveries") == []


def test_a_broker_that_is_down_when_the_run_stops_has_lost_nothing_if_its_host_has_power(tmp_path):
    alone = {"replication.factor": 1, "config": {}}
    down = [{"at": "4s", "do": "crash", "target": "all brokers"}]
    ran = go(tmp_path, topic=alone, faults=down, then="stop")
    assert ran.rows("truncations") == []
    assert ran.records["lost_acked"] == 0
    assert ran.records["survived"] >= ran.records["acked"] > 1_000
