"""What a cluster's hardware does to a run: each part of it, of all servers and of one."""

import pytest

from tests.scenarios.run_kit import go

ONE = {"partitions": 1, "replication.factor": 1, "config": {"min.insync.replicas": 1}}
FLUSHED = {"config": {"min.insync.replicas": 1, "flush.messages": 1}}
AT_ONCE = {"rate": "20/s", "config": {"acks": "all", "linger.ms": 0}}
SLOW_CPU = {"handler.request": "1ms", "wakeup": {"p50": "0us", "p99": "0us"}}


def p50(directory, hardware, *, racks=False, topic=ONE, cluster=(), **more):
    servers = {"hardware": hardware, **dict(cluster)}
    if racks:
        servers |= {"racks": {"a": 1, "b": 1, "c": 1}, "brokers": None}
    ran = go(directory, cluster=servers, topic=topic, **{"lasts": "3s"} | more)
    return ran.verdict["latency_us"]["produce"]["p50"]


@pytest.mark.parametrize(
    ("preset", "low_us", "high_us"),
    [("nvme", 100, 1_000), ("gp3", 2_000, 5_000), ("hdd", 12_000, 20_000)],
)
def test_a_producer_waits_for_the_fsync_of_the_disk_that_the_cluster_has(
    preset, low_us, high_us, tmp_path
):
    found = p50(tmp_path, {"disk": preset}, topic=ONE | FLUSHED, producer=AT_ONCE)
    assert low_us <= found <= high_us


def test_one_broker_may_have_another_disk(tmp_path):
    hardware = {"disk": "nvme", "servers": {"broker-1": {"disk": "hdd"}}}
    found = [
        p50(
            tmp_path,
            hardware,
            topic=ONE | FLUSHED | {"replicas": [[name]]},
            producer=AT_ONCE,
        )
        for name in ("broker-1", "broker-2")
    ]
    assert found[1] < 1_000 < 12_000 < found[0]


def test_large_batches_take_the_time_of_the_line(tmp_path):
    large = {"rate": "20/s", "record.size": "900KiB"}
    found = [p50(tmp_path, {"network": name}, producer=large) for name in ("1gbit", "25gbit")]
    line_us = [900 * 1_024 * 8 // (gbit * 1_000) for gbit in (1, 25)]
    assert found[0] - found[1] == pytest.approx(line_us[0] - line_us[1], rel=0.1)


def test_a_broker_behind_a_slow_interface_is_slow_to_receive(tmp_path):
    hardware = {"servers": {"broker-1": {"network": {"bandwidth": "100Mbit/s"}}}}
    large = {"rate": "5/s", "record.size": "900KiB"}
    found = [
        p50(tmp_path, hardware, topic=ONE | {"replicas": [[name]]}, producer=large)
        for name in ("broker-1", "broker-2")
    ]
    assert found[0] - found[1] == pytest.approx(900 * 1_024 * 8 // 100, rel=0.1)


def test_three_zones_cost_acks_all_round_trips_between_them(tmp_path):
    copies = {"partitions": 1, "config": {"min.insync.replicas": 2}}
    slow = {"rate": "50/s"}
    one, three = (
        p50(tmp_path, {"zones": zones}, racks=True, topic=copies, producer=slow)
        for zones in ("one", "three")
    )
    assert 700 <= three - one <= 2_000, "a fetch comes, and its answer is fetched behind"


def test_threads_wait_for_cores(tmp_path):
    """Eight handlers of 1 ms a request: two cores serve 2,000 a second, eight 8,000."""
    loaded = {"count": 40, "rate": "75/s", "config": {"acks": "1", "linger.ms": 0}}
    two, many, without = (
        p50(tmp_path, hardware, cluster={"cpu": SLOW_CPU}, producer=loaded, lasts="2s")
        for hardware in ({"cores": 2}, {"cores": 16}, {})
    )
    assert two > 20 * many
    assert many <= without * 1.1


def test_a_run_on_some_hardware_is_the_same_when_it_is_repeated(tmp_path):
    hardware = {
        "disk": "gp3",
        "cores": 1,
        "servers": {"broker-2": {"disk": "hdd", "network": "1gbit"}},
    }
    first, again = (go(tmp_path, cluster={"hardware": hardware}, lasts="3s") for _ in range(2))
    assert first.card["trace_digest"] == again.card["trace_digest"]
    assert first.card["scenario_digest"] == again.card["scenario_digest"]
