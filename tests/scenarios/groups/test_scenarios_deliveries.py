"""What becomes of records on their way to readers, in whole runs; and defects that it shows."""

from sim.protocol.clients.consumer.fetcher import ConsumerFetcher
from tests.scenarios.run_kit import go

QUICK = {
    "session.timeout.ms": 6_000,
    "heartbeat.interval.ms": 1_000,
    "auto.offset.reset": "earliest",
}
AT_ONCE = {"group.initial.rebalance.delay.ms": 0}
SLOW = {"rate": "100/s"}


def readers(tmp_path, **parts):
    members = {"group": "billing", "topics": ["orders"], "config": QUICK}
    members |= parts.pop("members", {})
    ran = go(tmp_path, consumers=[members], **({"config": AT_ONCE, "producer": SLOW} | parts))
    return ran.verdict["readers"]


def test_a_crash_between_commits_delivers_twice_and_skips_nothing(tmp_path):
    crash = [{"at": "3s", "do": "crash", "target": "billing-1", "for": "1s"}]
    found = readers(tmp_path, members={"count": 2}, faults=crash, lasts="5s")
    assert found["delivered_twice"] > 0
    assert (found["undelivered"], found["skipped_by_reset"], found["read_lost"]) == (0, 0, 0)
    assert found["delivered"] == 500


def test_planted_a_batch_that_is_dropped_on_the_way_is_undelivered(tmp_path, monkeypatch):
    real = ConsumerFetcher._deliver
    calls = iter(range(1, 1_000_000))

    def deliver(self, item, batch, first, last):
        if next(calls) % 10:
            real(self, item, batch, first, last)

    monkeypatch.setattr(ConsumerFetcher, "_deliver", deliver)
    found = readers(tmp_path, lasts="2s")
    assert found["undelivered"] > 0
    assert (found["skipped_by_reset"], found["delivered_twice"]) == (0, 0)


def test_only_readers_of_uncommitted_data_get_what_is_aborted(tmp_path):
    """Transactions of 100 ms, so that their records are sent before an abort.

    What the accumulator still has is dropped by it (abortUndrainedBatches). So it is with all that
    waited for InitProducerId and is sent at once; and an EndTxn that meets the last transaction's
    markers is asked again after retry.backoff.ms, 100 ms: shorter transactions never catch up.
    """
    consumers = [
        {"group": level, "topics": ["orders"], "config": QUICK | {"isolation.level": level}}
        for level in ("read_uncommitted", "read_committed")
    ]
    till = {
        "rate": "200/s",
        "transaction": {"records": 20, "abort": "50%"},
        "config": {"transactional.id": "till"},
    }
    ran = go(tmp_path, consumers=consumers, config=AT_ONCE, producer=till, lasts="4s")
    found = ran.verdict["readers"]["by_reader"]
    assert 0 < found["read_uncommitted"]["read_aborted"] <= ran.records["aborted"]
    assert found["read_committed"]["read_aborted"] == 0
    assert all((one["undelivered"], one["read_lost"]) == (0, 0) for one in found.values())
