"""``flush.messages`` with a slow fsync: appends of many wait for one another, and stay in order."""

from itertools import pairwise

import pytest

from tests.scenarios.run_kit import go

EACH_MESSAGE = {"partitions": 6, "config": {"min.insync.replicas": 2, "flush.messages": 1}}


def slow(p50, p99):
    return {"disk": {"flush": {"p50": p50, "p99": p99}}}


@pytest.mark.parametrize("flush", [("1ms", "5ms"), ("20ms", "40ms"), ("60ms", "60ms")])
def test_two_producers_on_logs_with_slow_fsyncs_break_no_rule_and_lose_nothing(tmp_path, flush):
    ran = go(
        tmp_path, lasts="1s", topic=EACH_MESSAGE, cluster=slow(*flush),
        producer={"count": 2, "rate": "150/s"},
    )  # fmt: skip
    assert ran.records["acked"] == 300
    assert ran.records["lost_acked"] == ran.records["reordered"] == ran.records["duplicated"] == 0


def test_nobody_appends_to_a_log_between_an_append_and_the_end_of_its_fsync(tmp_path):
    ran = go(
        tmp_path, lasts="1s", topic=EACH_MESSAGE, cluster=slow("20ms", "20ms"),
        producer={"count": 2, "rate": "300/s"},
    )  # fmt: skip
    flushes = [row for row in ran.rows("disk_io", operation="flush") if row["file"] == "orders-0"]
    at_leader = ran.rows("appends", topic="orders", partition=0, as_leader=True)
    leader = f"broker-{at_leader[0]['broker']}"
    begins = sorted(row["started_us"] for row in flushes if row["node"] == leader)
    appends = sorted(row["t_us"] for row in at_leader)
    assert len(appends) > 5
    for append, following in pairwise(appends):
        begin = next(at for at in begins if at >= append)
        assert following >= begin + 20_000


def test_internal_logs_that_are_flushed_each_message_keep_groups_and_transactions_going(tmp_path):
    ran = go(
        tmp_path, lasts="3s", topic={"partitions": 2}, cluster=slow("20ms", "40ms"),
        config={"log.flush.interval.messages": 1, "offsets.topic.num.partitions": 2,
                "transaction.state.log.num.partitions": 2},
        producers=[
            {"name": name, "topic": "orders", "rate": "20/s", "record.size": "100B",
             "transaction": {"records": 5},
             "config": {"acks": "all", "transactional.id": name}}
            for name in ("desk", "shop")
        ],
        consumers=[{"group": "audit", "topics": ["orders"], "count": 2}],
    )  # fmt: skip
    flushed = {row["file"].rpartition("-")[0] for row in ran.rows("disk_io", operation="flush")}
    assert {"orders", "__consumer_offsets", "__transaction_state"} <= flushed
    assert ran.records["acked"] == 120
    assert ran.records["unknown"] == ran.records["lost_acked"] == ran.records["aborted"] == 0
