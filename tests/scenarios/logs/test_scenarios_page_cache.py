"""Readers far behind, and the page cache that keeps them off the disk or does not."""

import pytest

from sim.log.store.page_cache import PageCache
from sim.nodes.process.cold_reads import ColdReads
from sim.substrate.host import Host
from tests.scenarios.run_kit import S, go

SLOW = {
    "read": "20MB/s", "access": "5ms", "dirty.background": "1MiB", "dirty.limit": "4MiB",
    "flush": {"p50": "1ms", "p99": "1ms"},
}  # fmt: skip
TAIL = {"name": "tail", "group": "none", "topics": ["orders"]}
LATE = {
    "name": "late", "group": "none", "topics": ["orders"], "start": "4s",
    "config": {"auto.offset.reset": "earliest"},
}  # fmt: skip


def load(tmp_path, cache="8MiB", consumers=(TAIL, LATE), **more):
    """6 MB/s on one partition; the reader that starts late wants 24 MB of the past."""
    parts = {
        "lasts": "7s", "then": "stop", "topic": {"partitions": 1}, "consumers": consumers,
        "producer": {"rate": "150/s", "record.size": "40KB"},
        "config": {"num.network.threads": 1},
        "cluster": {"disk": SLOW | {"cache": cache}},
    } | more  # fmt: skip
    return go(tmp_path, **parts)


def reads(ran, **where):
    return ran.rows("disk_io", operation="read", **where)


def worst(ran, client, after=4 * S):
    """Longest time that a broker took to answer a fetch or a produce request of a client."""
    rows = [row for row in ran.rows("requests", client=client) if row["decided_us"] >= after]
    return max(row["t_us"] - row["decided_us"] for row in rows)


def delivered(ran, client):
    return sum(row["records"] for row in ran.rows("deliveries", client=client))


def produce_p99(ran):
    return ran.verdict["latency_us"]["produce"]["p99"]


@pytest.fixture(scope="module")
def quiet(tmp_path_factory):
    """The small cache without anybody who is late: a tail reader never meets the disk."""
    return load(tmp_path_factory.mktemp("quiet"), consumers=(TAIL,))


@pytest.fixture(scope="module")
def backfill(tmp_path_factory):
    return load(tmp_path_factory.mktemp("backfill"))


def test_a_reader_at_the_tail_needs_no_disk_however_small_the_cache(quiet):
    assert reads(quiet) == []
    assert produce_p99(quiet) < 10_000


def test_with_memory_for_everything_a_backfill_reads_nothing_and_slows_nobody(tmp_path, quiet):
    """The failure catalogue's D9 and its fix."""
    ran = load(tmp_path, cache="1GiB")
    assert reads(ran) == []
    assert produce_p99(ran) < 2 * produce_p99(quiet)


def test_a_backfill_beyond_the_cache_makes_followers_and_producers_ten_times_slower(
    quiet, backfill
):
    """The failure catalogue's D9: network threads wait for the disk, whoever comes after waits."""
    assert sum(row["size_bytes"] for row in reads(backfill)) > 10 * 1_000_000
    assert produce_p99(backfill) > 10 * produce_p99(quiet)
    assert backfill.records["lost_acked"] == 0
    assert backfill.verdict["held"]


def test_a_backfill_goes_no_faster_than_the_disk(backfill):
    rows = reads(backfill)
    size = sum(row["size_bytes"] for row in rows)
    assert size / 20 <= rows[-1]["started_us"] - rows[0]["started_us"] + size / len(rows) / 20


@pytest.mark.parametrize("defect", ["nothing makes room", "nobody pays"])
def test_the_slowness_comes_from_the_cache_and_the_disk(defect, tmp_path, monkeypatch, quiet):
    if defect == "nothing makes room":
        monkeypatch.setattr(PageCache, "_evict", lambda self: None)
    else:
        monkeypatch.setattr(ColdReads, "of", lambda self, response: {})
    ran = load(tmp_path)
    assert reads(ran) == []
    assert produce_p99(ran) < 2 * produce_p99(quiet)


def test_a_stalled_disk_holds_cold_reads_until_it_is_healed(tmp_path):
    """The leader's network thread waits with them, so nobody is served; then all goes on."""
    fault = {"at": "4500ms", "do": "stalled-disk", "target": "leader of orders-0", "for": "1s"}
    ran = load(tmp_path, faults=[fault])
    assert ran.faults[0]["took_effect"]
    node = {row["node"] for row in reads(ran)}
    assert len(node) == 1
    stalled = [row for row in reads(ran) if 4.5 * S < row["t_us"] < 5.5 * S]
    assert stalled == []
    assert [row for row in reads(ran) if row["t_us"] > 5.5 * S]


RESTART = {"at": "4s", "target": "broker-1", "for": "200ms"}


def recovered(ran):
    return ran.rows("recoveries", broker=1, topic="orders", partition=0)[0]


def test_after_a_power_loss_recovery_reads_the_disk_and_after_a_crash_memory(tmp_path):
    config = {"broker.session.timeout.ms": 1_000, "broker.heartbeat.interval.ms": 300}
    parts = {"consumers": (), "cache": "1GiB", "lasts": "8s", "config": config}
    dark = load(tmp_path, faults=[RESTART | {"do": "power-loss"}], **parts)
    killed = load(tmp_path, faults=[RESTART | {"do": "crash"}], **parts)
    for ran, cold in ((dark, True), (killed, False)):
        row = recovered(ran)
        assert row["scanned_bytes"] > 15 * 1_000_000
        assert (row["read_bytes"] > 15 * 1_000_000) == cold
        assert cold or row["read_bytes"] == 0
        at_least = row["scanned_bytes"] // 20 if cold else 0
        assert at_least <= row["took_us"] <= at_least + S // 10
        assert row["t_us"] - row["took_us"] == 4_200_000
    running = {
        name: ran.times("node_states", node="broker-1", state="running")[-1]
        for name, ran in (("dark", dark), ("killed", killed))
    }
    assert running["dark"] > recovered(dark)["t_us"], "it is of no use before its logs are loaded"
    assert recovered(killed)["t_us"] < running["killed"] < running["dark"]


def test_a_memory_that_survived_the_power_loss_would_be_noticed(tmp_path, monkeypatch):
    """The planted defect: the cache of a host that lost power is still warm."""
    real = Host.power_off

    def power_off(self, **how):
        kept, self.page_cache.drop = self.page_cache.drop, lambda: None
        try:
            return real(self, **how)
        finally:
            self.page_cache.drop = kept

    monkeypatch.setattr(Host, "power_off", power_off)
    ran = load(tmp_path, consumers=(), faults=[RESTART | {"do": "power-loss"}], cache="1GiB")
    assert recovered(ran)["read_bytes"] == 0
