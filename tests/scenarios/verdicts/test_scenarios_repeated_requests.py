"""Requests that reach a server twice, and clocks that drift."""

from struct import unpack_from

import pytest

from sim.errors import ScenarioError
from sim.scenario.loader import load_text
from tests.scenarios.run_kit import S, go, text_of

ONE = {"partitions": 1}


def twice(message="ProduceRequest", later="200ms", **more):
    return {
        "at": "2s", "do": "duplicate", "message": message, "from": "shop", "to": "all brokers",
        "later": later, **more,
    }  # fmt: skip


def records_in(ran):
    """Records in the leader's log."""
    rows = ran.rows("appends", topic="orders", as_leader=True)
    return sum(row["record_count"] for row in rows)


def test_a_repeated_request_of_an_idempotent_producer_is_known_again(tmp_path):
    ran = go(tmp_path, faults=[twice(**{"for": "1s"})], topic=ONE, lasts="5s")
    assert ran.faults[0]["took_effect"]
    assert "messages delivered twice" in ran.faults[0]["effect"]
    assert ran.records["duplicated"] == ran.records["reordered"] == 0
    assert records_in(ran) == ran.records["acked"] == ran.records["sent"]
    assert ran.verdict["held"]


def test_without_idempotence_its_records_are_there_twice(tmp_path):
    producer = {"config": {"acks": "all", "enable.idempotence": False}}
    ran = go(tmp_path, faults=[twice(count=3)], topic=ONE, producer=producer, lasts="5s")
    assert ran.faults[0]["effect"] == "3 messages delivered twice"
    assert ran.records["duplicated"] > 0
    assert records_in(ran) == ran.records["sent"] + ran.records["duplicated"]


def test_a_repeated_request_comes_so_much_later_and_ends_with_the_fault(tmp_path):
    ran = go(tmp_path, faults=[twice(later="300ms", **{"for": "1s"})], topic=ONE, lasts="6s")
    copies = [row for row in ran.rows("messages", kind="ProduceRequest") if row["delayed_by"]]
    assert copies
    assert all(row["t_us"] - row["sent_us"] == 300_000 for row in copies)
    assert max(row["sent_us"] for row in copies) <= 3 * S


@pytest.mark.parametrize(
    ("message", "to"),
    [
        ("FetchRequest", ["broker-2", "broker-3"]),
        ("AlterPartitionRequest", "all controllers"),
        ("BrokerHeartbeatRequest", "all controllers"),
    ],
)
def test_servers_know_each_others_requests_again(message, to, tmp_path):
    """Sessions, partition epochs and broker epochs see to it."""
    faults = [
        {"at": "2s", "do": "duplicate", "message": message, "from": "broker-1", "to": to,
         "later": "100ms", "for": "13s"},
        {"at": "3s", "do": "crash", "target": "broker-2", "for": "2s"},
    ]  # fmt: skip
    ran = go(tmp_path, faults=faults, lasts="16s", producer={"rate": "50/s"})
    assert ran.faults[0]["took_effect"], ran.faults[0]["effect"]
    assert ran.records["lost_acked"] == ran.records["divergent"] == ran.records["duplicated"] == 0
    assert ran.verdict["held"]


def test_a_response_is_never_delivered_twice():
    with pytest.raises(ScenarioError, match="ProduceResponse is no request"):
        load_text(text_of(faults=[twice("ProduceResponse")]))


def test_at_once_is_no_later():
    with pytest.raises(ScenarioError, match="later: 0us changes nothing"):
        load_text(text_of(faults=[twice(later="0s")]))


def max_timestamps(ran):
    """``maxTimestamp`` of each batch by its base offset, from the leader's file."""
    leader = f"broker-{ran.leader_at(1 * S)}"
    (directory,) = [path for path in ran.log_dirs("broker") if path.parent.name == leader]
    data = (directory / "orders-0" / "00000000000000000000.log").read_bytes()
    found, at = {}, 0
    while at < len(data):
        base, size = unpack_from(">qi", data, at)
        (found[base],) = unpack_from(">q", data, at + 35)
        at += 12 + size
    return found


# -- clocks ---------------------------------------------------------------------------------------


def drift(target="broker-1", ppm=100_000, **more):
    return {"at": "2s", "do": "clock-drift", "target": target, "ppm": ppm, **more}


@pytest.mark.parametrize(("direction", "gained"), [("fast", 400_000), ("slow", -400_000)])
def test_a_clock_that_drifts_stamps_what_is_appended_by_it(direction, gained, tmp_path):
    """LogAppendTime of a leader whose clock gains or loses a tenth, for four seconds."""
    topic = {"partitions": 1, "config": {"message.timestamp.type": "LogAppendTime"}}
    fault = drift(target="all brokers", direction=direction, **{"for": "4s"})
    ran = go(tmp_path, faults=[fault], topic=topic, lasts="8s", then="stop")
    assert ran.faults[0]["took_effect"]
    stamps = max_timestamps(ran)
    rows = [r for r in ran.rows("appends", topic="orders", as_leader=True)
            if r["base_offset"] in stamps]  # fmt: skip
    start = stamps[0] * 1_000 - rows[0]["t_us"]
    off = {row["t_us"]: stamps[row["base_offset"]] * 1_000 - row["t_us"] - start for row in rows}
    assert all(abs(by) <= 2_000 for at, by in off.items() if at < 2 * S or at > 6 * S)
    last = max(at for at in off if at < 6 * S)
    assert abs(off[last] - gained) < 30_000


def test_timers_of_a_slow_clock_are_longer(tmp_path):
    """A broker at half the pace sends half as many heartbeats as the others."""
    fault = drift(ppm=500_000, direction="slow", **{"for": "16s"})
    ran = go(tmp_path, faults=[fault], topic=ONE, lasts="20s", then="stop")

    def beats(broker):
        rows = ran.rows("requests", kind="BrokerHeartbeat", client=broker)
        return len([row for row in rows if 4 * S < row["t_us"] < 18 * S])

    assert beats("broker-1") <= beats("broker-2") * 0.6


def test_a_clock_that_nobody_reads_does_not_count(tmp_path):
    faults = [
        {"at": "1s", "do": "power-loss", "target": "broker-1", "for": "4s"},
        drift(**{"for": "1s"}),
    ]
    ran = go(tmp_path, faults=faults, topic=ONE, lasts="6s")
    assert [fault["took_effect"] for fault in ran.faults] == [True, False]
    assert ran.faults[1]["effect"] == "no process ran there that could read it"


def test_a_drift_of_nothing_is_refused():
    with pytest.raises(ScenarioError, match="ppm"):
        load_text(text_of(faults=[drift(ppm=0)]))
