"""Tasks above their quota: they are late, and each output is there once all the same.

Source: KIP-13, KIP-219; ``NetworkClient.maybeThrottle``.
"""

import pytest

from tests.scenarios.run_kit import S, go

ONE = {"partitions": 1, "replication.factor": 1, "config": {"min.insync.replicas": 1}}
ALONE = {
    "group.initial.rebalance.delay.ms": 0, "offsets.topic.replication.factor": 1,
    "transaction.state.log.replication.factor": 1, "transaction.state.log.min.isr": 1,
}  # fmt: skip
QUOTA = 30_000
"""Bytes a second; a window of ten seconds forgives 300 kB."""

SENT_S = 8
"""Records of 1,000 bytes and some, 100 a second: 800 kB, and as much of outputs."""


def processed(directory, quotas, guarantee="exactly_once_v2", way=()):
    task = {
        "name": "copy", "topics": ["orders"], "output": "bills", "record.size": "1000B",
        "config": {"processing.guarantee": guarantee, "commit.interval.ms": 200,
                   "producer.linger.ms": 5, "producer.transaction.timeout.ms": 60_000,
                   "consumer.max.poll.records": 20, **dict(way)},
    }  # fmt: skip
    shop = {
        "name": "shop", "topic": "orders", "rate": "100/s", "record.size": "1000B",
        "stop": f"{SENT_S}s", "config": {"batch.size": 4_000},
    }  # fmt: skip
    ran = go(
        directory, cluster={"brokers": 1, "controllers": 1}, producers=[shop], processors=[task],
        topics={"orders": ONE, "bills": ONE}, lasts="40s", then="heal and drain", quotas=quotas,
        config=ALONE,
    )  # fmt: skip
    processing = ran.verdict["processing"]
    return ran, (processing["unprocessed"], processing["reprocessed"], processing["orphaned"])


def last(ran, table, **where):
    return max(ran.times(table, **where)) / S


@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "at_least_once"])
def test_outputs_above_the_quota_come_late_and_once(tmp_path, guarantee):
    """800 kB by 30 kB/s, of which the window forgives 300 kB: 500 kB more take 17 s."""
    own = [{"client.id": "copy", "producer_byte_rate": QUOTA}]
    ran, wrong = processed(tmp_path, own, guarantee)
    assert wrong == (0, 0, 0)
    assert {row["client_id"] for row in ran.rows("throttles")} == {"copy"}
    # Nobody who reads waits for it: what is polled waits for the outputs of what was polled before.
    assert last(ran, "client_batches", producer="copy") > (800_000 - 300_000) / QUOTA
    free, _ = processed(tmp_path, [], guarantee)
    assert last(free, "client_batches", producer="copy") < SENT_S + 2


@pytest.mark.parametrize(
    "way", [(), {"consumer.group.protocol": "consumer"}.items()], ids=["classic", "modern"]
)
def test_a_task_that_reads_above_its_quota_is_late_and_stays_in_its_group(tmp_path, way):
    """The connection to the leader is muted; the coordinator's is another one of the client."""
    own = [{"client.id": "copy", "consumer_byte_rate": QUOTA}]
    ran, wrong = processed(tmp_path, own, way=way)
    assert wrong == (0, 0, 0)
    assert last(ran, "reads", consumer="copy") > (800_000 - 300_000) / QUOTA
    generations = {row["generation"] for row in ran.rows("assignments", consumer="copy")}
    assert len(generations - {-1, 0}) == 1
