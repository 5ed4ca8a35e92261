"""A run whose producers were refused is no pass, unless its scenario says that they are."""

import pytest

from sim.checking.scope import Scope
from sim.scenario.expect.bounds import parse
from sim.scenario.expect.unserved import unserved
from tests.scenarios.run_kit import go

COMPACTED = {
    "orders": {"partitions": 1, "replication.factor": 3, "config": {"cleanup.policy": "compact"}}
}
"""A cleaner cannot do without keys: brokers refuse records that have none (INVALID_RECORD)."""


def of(sent=0, acked=0, unknown=0, topic="orders", **errors):
    """A verdict with one topic; failed are those of the errors."""
    failed = sum(errors.values())
    counts = {"sent": sent, "acked": acked, "failed": failed, "unknown": unknown}
    return {"records": counts, "topics": {topic: counts}, "failed_by_error": {topic: errors}}


def test_records_without_keys_are_refused_by_a_compacted_topic_and_the_run_is_no_pass(tmp_path):
    ran = go(tmp_path, topics=COMPACTED, lasts="1s", expect={"lost_acked": 0})
    assert ran.records["failed"] == ran.records["sent"] == 500
    assert ran.verdict["failed_by_error"] == {"orders": {"INVALID_RECORD": 500}}
    (sentence,) = ran.verdict["unserved"]
    assert sentence.startswith("topic orders: nothing was acknowledged of 500 records sent: 500 ")
    assert sentence.endswith("failed (INVALID_RECORD 500)")
    assert all(line["held"] for line in ran.verdict["expectations"])
    assert ran.verdict["held"] is False


def test_a_scenario_that_expects_its_records_to_be_refused_is_a_pass(tmp_path):
    ran = go(tmp_path, topics=COMPACTED, lasts="1s", expect={"lost_acked": 0, "failed": 500})
    assert ran.verdict["held"] is True


def test_without_producers_there_is_nothing_to_refuse(tmp_path):
    ran = go(tmp_path, producers=[], lasts="1s")
    assert (ran.verdict["unserved"], ran.verdict["held"]) == ([], True)


def test_with_acks_0_a_record_is_acknowledged_when_it_is_sent(tmp_path):
    ran = go(
        tmp_path,
        acks="0",
        lasts="1s",
        producer={"config": {"acks": "0", "enable.idempotence": False}},
    )
    assert ran.records["acked"] == ran.records["sent"] > 0
    assert (ran.verdict["unserved"], ran.verdict["held"]) == ([], True)


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        (of(sent=100, acked=90, INVALID_TIMESTAMP=10), "INVALID_TIMESTAMP 10"),
        (of(sent=100, acked=91, INVALID_TIMESTAMP=9), ""),
        (of(sent=100, acked=82, INVALID_TIMESTAMP=9, MESSAGE_TOO_LARGE=9), ""),
        (of(sent=100, acked=1, REQUEST_TIMED_OUT=99), ""),
        (of(sent=100, acked=1, BUFFER_EXHAUSTED=99), ""),
        (of(sent=100, acked=1, TRANSACTION_ABORTED=99), ""),
        (of(sent=100, unknown=60, REQUEST_TIMED_OUT=40), "TIMED_OUT 40), 60 with unknown"),
        (of(), ""),
    ],
)  # fmt: skip
def test_a_tenth_refused_for_good_or_nothing_acknowledged_is_no_pass_and_an_outage_is_not_refusal(
    verdict, words
):
    found = unserved((), verdict)
    assert bool(found) == bool(words)
    assert all(words in sentence for sentence in found)


@pytest.mark.parametrize(
    ("name", "asked", "scope", "says_so"),
    [
        ("failed", 40, Scope(), True),
        ("failed", "at least 1", Scope(topic="orders"), True),
        ("failed", "< 50", Scope(), True),
        ("failed", "at least 41", Scope(), False),
        ("failed", "at least 1", Scope(topic="orders", partition=0), False),
        ("failed", "at least 1", Scope(from_us=0, to_us=9), False),
        ("failed", "at least 1", Scope(topic="bills"), False),
        ("unknown", 60, Scope(), True),
        ("acked", 0, Scope(), True),
        ("acked", "< 10", Scope(), True),
        ("acked", "at least 0", Scope(), False),
        ("lost_acked", 0, Scope(), False),
    ],
)
def test_only_a_bound_on_refused_or_acknowledged_records_of_the_whole_topic_says_so(
    name, asked, scope, says_so
):
    verdict = of(sent=100, unknown=60, REQUEST_TIMED_OUT=40)
    assert bool(unserved((parse(name, asked, scope),), verdict)) != says_so
