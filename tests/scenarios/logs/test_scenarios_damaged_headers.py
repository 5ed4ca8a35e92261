"""A header that cannot be read lies in a log that is cut: the partition fails on that broker.

Source: ``AbstractFetcherThread.doTruncate`` (KIP-461).
"""

from sim.log.store.platter import PAGE
from tests.scenarios.run_kit import go

STOPPED = {"at": "1500ms", "do": "controlled-shutdown", "target": "broker-1", "for": "2s"}
OVERWRITTEN = {
    "at": "3s", "do": "misdirected-write", "target": "broker-1", "partition": "orders-0",
}  # fmt: skip
QUICK = {"broker.heartbeat.interval.ms": 300, "broker.session.timeout.ms": 2000}
"""What lets a broker stop cleanly in half a second."""


def page_of_ones(store, partition, unit):
    """A page that is no batch's, over one in the middle of the newest segment."""
    name = [n for n in store.names(str(partition)) if n.endswith(".log")][-1]
    file = store.open(f"{partition}/{name}")
    at = file.size // 2 // PAGE * PAGE
    assert 0 < at < file.size - 2 * PAGE
    store.overwrite(f"{partition}/{name}", at, b"\xff" * PAGE)
    return 0, 1 << 40


def former_leader(tmp_path, *faults):
    """Broker 1 leads, stops in good order with records that nobody has, and starts again."""
    return go(
        tmp_path, lasts="5s", seed=3, acks=1, faults=[STOPPED, *faults], producer={"rate": "300/s"},
        topic={"partitions": 1}, cluster={"controllers": 1}, config=QUICK,
    )  # fmt: skip


def cut_on_broker_1(ran):
    return ran.rows("truncations", topic="orders", broker=1, reason="diverging_epoch")


def isr(ran):
    return ran.rows("partition_changes", topic="orders", partition=0)[-1]["in_sync"]


def test_a_log_that_cannot_be_read_while_it_is_cut_leaves_its_broker_out_of_the_isr(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("sim.log.directory.damage.misdirect_a_write", page_of_ones)
    ran = former_leader(tmp_path, OVERWRITTEN)
    (cut,) = cut_on_broker_1(ran)
    assert cut["to_offset"] < cut["from_offset"]
    assert isr(ran) == "2,3"
    assert ran.rows("halts") == [], "its directory stays online, and so does the broker"
    assert not ran.rows("appends", broker=1, topic="orders", as_leader=False)


def test_the_twin_whose_log_is_whole_comes_back(tmp_path):
    ran = former_leader(tmp_path)
    assert len(cut_on_broker_1(ran)) == 1
    assert isr(ran) == "1,2,3"
