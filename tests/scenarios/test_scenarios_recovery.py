"""A broker that comes back: with which settings its logs are loaded."""

import pytest

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
