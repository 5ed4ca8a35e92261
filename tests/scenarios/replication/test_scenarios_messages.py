"""Faults of single kinds of message, of a link's width and of clocks, in whole runs."""

import pytest

from sim.errors import ScenarioError
from sim.scenario.loader import load_text
from tests.scenarios.run_kit import S, go, text_of

ONE = {"partitions": 1}


def fault(**keys):
    return {k.rstrip("_").replace("_", "-"): v for k, v in keys.items()}


def test_a_leader_whose_fetch_responses_are_held_acknowledges_nothing_meanwhile(tmp_path):
    held = [
        fault(
            at="2s", do="hold", message="FetchResponse", from_="leader of orders-0",
            to="all brokers", for_="3s",
        )
    ]  # fmt: skip
    ran = go(tmp_path, topic=ONE, faults=held, lasts="8s")
    assert ran.faults[0]["took_effect"]
    acks = ran.times("client_batches", outcome="ok")
    assert [t for t in acks if 2_200_000 < t < 5 * S] == []
    assert [t for t in acks if t > 5 * S]
    assert ran.records["lost_acked"] == ran.records["duplicated"] == 0


def test_a_lost_produce_response_is_retried_without_a_duplicate(tmp_path):
    lost = [
        fault(
            at="2s", do="drop", message="ProduceResponse", from_="leader of orders-0", to="shop",
            count=1,
        )
    ]  # fmt: skip
    producer = {"config": {"acks": "all", "request.timeout.ms": 2000}}
    ran = go(tmp_path, topic=ONE, faults=lost, producer=producer, lasts="8s")
    assert "1 messages lost" in ran.faults[0]["effect"]
    assert ran.records["duplicated"] == ran.records["lost_acked"] == 0


def test_without_idempotence_the_same_makes_a_duplicate(tmp_path):
    lost = [
        fault(
            at="2s", do="drop", message="ProduceResponse", from_="leader of orders-0", to="shop",
            count=1,
        )
    ]  # fmt: skip
    config = {"acks": "all", "request.timeout.ms": 2000, "enable.idempotence": False}
    ran = go(tmp_path, topic=ONE, faults=lost, producer={"config": config}, lasts="8s")
    assert ran.records["duplicated"] > 0


def test_a_lost_share_fetch_response_leaves_no_record_unfinished(tmp_path):
    lost = [
        fault(
            at="2s", do="drop", message="ShareFetchResponse", from_="leader of orders-0",
            to="workers-1", count=1,
        )
    ]  # fmt: skip
    workers = {
        "group": "workers", "group.type": "share", "topics": ["orders"], "count": 2,
        "config": {"share.auto.offset.reset": "earliest"},
    }  # fmt: skip
    locks = {
        "group.share.record.lock.duration.ms": 2_000,
        "group.share.min.record.lock.duration.ms": 1_000,
    }
    ran = go(tmp_path, topic=ONE, faults=lost, consumers=[workers], config=locks, lasts="8s")
    assert "1 messages lost" in ran.faults[0]["effect"]
    assert ran.verdict["sharing"]["unfinished"] == ran.records["lost_acked"] == 0


def test_a_narrow_link_makes_a_follower_late(tmp_path):
    narrow = [
        fault(
            at="2s", do="bandwidth", between="leader of orders-0", and_="follower of orders-0",
            to="200KB/s", for_="4s",
        )
    ]  # fmt: skip
    producer = {"rate": "5000/s"}
    ran = go(tmp_path, topic=ONE, faults=narrow, producer=producer, lasts="8s")
    assert ran.faults[0]["took_effect"]
    assert ran.verdict["latency_us"]["produce"]["p90"] > 200_000
    assert ran.records["lost_acked"] == 0


def test_a_clock_that_jumps_is_seen_on_records_and_heals(tmp_path):
    jump = [fault(at="2s", do="clock-jump", target="shop", by="1h", for_="2s")]
    ran = go(tmp_path, topic=ONE, faults=jump, lasts="6s")
    assert ran.faults[0]["effect"] == "shop: 3600 s forward"
    assert ran.faults[0]["took_effect"]


@pytest.mark.parametrize(
    ("what", "found"),
    [
        (fault(at="1s", do="hold", message="FetchReponse", from_="broker-1"), "no message"),
        (fault(at="1s", do="hold", message="FetchResponse", from_="broker-9"), "no broker"),
        (fault(at="1s", do="clock-jump", target="broker-1", by="-1h"), "by"),
    ],
)
def test_what_cannot_be_is_refused_before_the_run(what, found):
    with pytest.raises(ScenarioError, match=found):
        load_text(text_of(faults=[what]))


def test_every_such_fault_is_written_back_as_it_was_read():
    faults = [
        fault(
            at="1s", do="hold", message=["FetchResponse", "FetchRequest"], from_="broker-1",
            to="broker-2", count=3, for_="1s",
        ),
        fault(at="1s", do="drop", message="ProduceRequest", from_="shop"),
        fault(at="2s", do="bandwidth", between="broker-1", and_="broker-2", to="1MB/s", for_="1s"),
        fault(at="2s", do="clock-jump", target="broker-1", by="5s", direction="backward"),
    ]  # fmt: skip
    scenario = load_text(text_of(faults=faults))
    again = load_text(scenario.as_yaml())
    assert again.faults == scenario.faults
