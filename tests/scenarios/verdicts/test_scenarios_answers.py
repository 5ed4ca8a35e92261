"""What brokers say they acknowledged, and what producers count as acknowledged, is the same.

Both judges take acknowledgements from the producers' rows; the brokers' own rows are their check.
"""

import pytest

from analysis.verify import acknowledgements
from tests.scenarios import planted
from tests.scenarios.run_kit import go

COMPACTED = {
    "orders": {
        "partitions": 1, "replication.factor": 3, "config": {"cleanup.policy": "compact"},
    }
}  # fmt: skip
"""Brokers refuse every record, for none has a key."""

LOST_ANSWERS = [
    {"at": "1s", "do": "partition", "between": "leader of orders-0", "and": "shop",
     "one-way": True, "for": "5s"},
]  # fmt: skip


DELETED = [{"at": "1s", "do": "delete-topic", "topic": "orders"}]


def differences(ran):
    return ran.verdict["ok_unanswered"], ran.verdict["answered_untold"]


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_acknowledgement_that_a_client_counts_was_given_by_a_broker(acks, tmp_path):
    config = {"acks": acks, "enable.idempotence": acks == "all"}
    ran = go(tmp_path, producer={"config": config}, lasts="1s")
    assert ran.records["acked"] == ran.records["sent"] == 500
    assert differences(ran) == (0, 0)


def test_an_answer_that_is_lost_is_no_difference(tmp_path):
    hasty = {"acks": "all", "request.timeout.ms": 1000, "delivery.timeout.ms": 2000}
    ran = go(tmp_path, producer={"config": hasty}, faults=LOST_ANSWERS, lasts="8s")
    assert ran.records["unknown"] > 0
    assert differences(ran) == (0, 0)


def test_the_brokers_of_raft_groups_say_what_they_acknowledge_too(tmp_path):
    ran = go(tmp_path, cluster={"replication": "raft"}, topic={"config": {}}, lasts="1s")
    assert ran.records["acked"] > 0
    assert differences(ran) == (0, 0)


def test_a_broker_that_acknowledges_what_its_client_sees_refused_is_caught(tmp_path, monkeypatch):
    planted.acknowledged_batches_are_answered_with_an_error(monkeypatch)
    ran = go(tmp_path, lasts="1s")
    assert ran.records["failed"] > 0
    assert differences(ran) == (0, ran.records["failed"])


def test_a_client_that_counts_as_acknowledged_what_no_broker_did_is_caught(tmp_path, monkeypatch):
    planted.refused_batches_count_as_acknowledged(monkeypatch)
    ran = go(tmp_path, topics=COMPACTED, lasts="1s")
    assert ran.records["acked"] > 0
    assert differences(ran) == (ran.records["acked"], 0)


def test_a_producer_that_says_nothing_of_what_brokers_acknowledged_is_caught(tmp_path, monkeypatch):
    """Its topic is deleted, so that no log has its records either."""
    planted.outcomes_are_not_written_down(monkeypatch)
    ran = go(tmp_path, faults=DELETED, lasts="2s", then="stop")
    assert ran.rows("client_batches") == []
    acknowledged = ran.rows("acknowledgements", topic="orders", error="NONE")
    counted = sum(row["last_offset"] - row["base_offset"] + 1 for row in acknowledged)
    assert differences(ran) == (0, counted)
    assert counted > 0


PLANTED = {
    "a broker acknowledges what its client sees refused": (
        planted.acknowledged_batches_are_answered_with_an_error, {}, "answered_untold",
    ),
    "a client counts what no broker acknowledged": (
        planted.refused_batches_count_as_acknowledged, {"topics": COMPACTED}, "ok_unanswered",
    ),
    "a producer says nothing": (
        planted.outcomes_are_not_written_down,
        {"faults": DELETED, "lasts": "2s", "then": "stop"},
        "answered_untold",
    ),
}  # fmt: skip


@pytest.mark.parametrize("how", PLANTED)
def test_the_analysis_finds_the_same_differences_from_the_tables_alone(how, tmp_path, monkeypatch):
    plant, parts, name = PLANTED[how]
    with monkeypatch.context() as planting:
        plant(planting)
        ran = go(tmp_path, **{"lasts": "1s"} | parts)
    found = acknowledgements.counts(ran.directory)
    assert found[name] > 0
    assert found == {each: ran.verdict[each] for each in acknowledgements.COUNTS}
