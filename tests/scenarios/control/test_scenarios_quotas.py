"""Quotas of clients: who is above his is late, nothing of his is lost, and nobody else notices."""

import functools

import pytest

from sim.errors import SimulationError
from sim.scenario.loader import load_text
from tests.scenarios.run_kit import S, go, text_of

QUOTA = 100_000
"""Bytes a second that the broker lets through; three times as much is sent."""

SHOP = {
    "name": "shop", "topic": "orders", "rate": "300/s", "record.size": "1000B", "stop": "16s",
    "config": {"acks": "all", "linger.ms": 20},
}  # fmt: skip
BYSTANDER = SHOP | {
    "name": "bystander", "rate": "50/s", "record.size": "100B", "stop": "24s",
    "config": {"acks": "all", "linger.ms": 20, "batch.size": 1000},
}  # fmt: skip
"""While it waits its batches fill up: full ones must be small beside a window of its quota."""

RATE = {"producer_byte_rate": 1}
REMOVED = {"remove": ["producer_byte_rate"]}
OF_SHOP = {"client.id": "shop", "producer_byte_rate": QUOTA}


def one_broker(directory, **parts):
    topic = {"partitions": 1, "replication.factor": 1, "config": {"min.insync.replicas": 1}}
    parts = {
        "cluster": {"brokers": 1, "controllers": 1}, "topic": topic, "lasts": "24s",
        "then": "stop", "producers": [SHOP, BYSTANDER],
    } | parts  # fmt: skip
    return go(directory, **parts)


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Runs by what is different in them, each made once."""

    @functools.cache
    def made(quotas=(), **behaviours):
        directory = tmp_path_factory.mktemp("quotas")
        return one_broker(directory, quotas=[dict(q) for q in quotas], behaviours=behaviours)

    return lambda *quotas, **behaviours: made(tuple(tuple(q.items()) for q in quotas), **behaviours)


def produced(ran, client, start, end):
    """Bytes of the client's produce requests that were answered between two instants."""
    rows = ran.rows("requests", kind="Produce", client=client)
    return sum(row["request_bytes"] for row in rows if start * S <= row["t_us"] < end * S)


def slowest(ran, client):
    return max(max(r["latency_us"]) for r in ran.rows("client_batches", producer=client))


def test_what_is_above_the_quota_comes_late_and_none_of_it_is_lost(ran):
    """4.8 MB by a rate of 0.1 MB/s, of which the window forgives 1 MB."""
    run = ran(OF_SHOP)
    acked = sum(r["record_count"] for r in run.rows("client_batches", outcome="ok"))
    assert run.records["lost_acked"] == run.records["duplicated"] == 0
    assert 2_900 < acked < run.records["sent"]
    # Samples leave the window as they came into it: only over all of it is the rate an even one.
    for second in range(4, 14):
        assert produced(run, "shop", second, second + 11) == pytest.approx(11 * QUOTA, rel=0.25)
    assert slowest(run, "shop") > 5 * S
    assert slowest(ran(), "shop") < S // 10


def test_the_window_forgives_what_was_not_used_before(ran):
    """Until ten seconds' worth has been sent nobody waits: here that takes 3.3 s."""
    first = ran(OF_SHOP).times("throttles")[0]
    assert 3 * S < first < 4 * S


def test_a_bystander_waits_no_longer_than_without_quotas(ran):
    assert not ran(OF_SHOP).rows("throttles", client="bystander")
    assert slowest(ran(OF_SHOP), "bystander") < 1.2 * slowest(ran(), "bystander")


def test_a_throttled_client_sends_nothing_for_as_long_as_it_is_told_to_wait(ran):
    run = ran(OF_SHOP)
    sent = sorted(r["sent_us"] for r in run.rows("requests", kind="Produce", client="shop"))
    told = run.rows("throttles", client="shop", request="Produce")
    assert len(told) > 10
    for row in told:
        begun, until = row["t_us"] + 1_000, row["t_us"] + row["throttle_us"]
        assert not [at for at in sent if begun < at < until]


def test_the_answer_comes_first_and_before_kip219_it_came_last(ran):
    """How long producers wait is the same; where the time goes is not."""
    waited = {}
    for name, run in (
        ("first", ran(OF_SHOP)),
        ("last", ran(OF_SHOP, **{"quota.throttle": "delay"})),
    ):
        rows = run.rows("requests", kind="Produce", client="shop")
        waited[name] = max(row["t_us"] - row["decided_us"] for row in rows)
        assert produced(run, "shop", 12, 23) == pytest.approx(11 * QUOTA, rel=0.25)
        assert run.records["lost_acked"] == 0
    assert waited["first"] < 10_000
    assert waited["last"] > S // 10


def test_the_default_is_for_whoever_has_no_quota_of_his_own(ran):
    everybody = {"client.id": "<default>", "producer_byte_rate": 3_000}
    run = ran(everybody, OF_SHOP)
    assert {row["client_id"] for row in run.rows("throttles")} == {"shop", "bystander"}
    assert produced(run, "shop", 12, 24) == pytest.approx(12 * QUOTA, rel=0.25)
    assert produced(run, "bystander", 12, 24) == pytest.approx(12 * 3_000, rel=0.25)


def test_a_quota_of_the_user_goes_before_one_of_the_client_and_is_shared(ran):
    run = ran(OF_SHOP, {"user": "ANONYMOUS", "producer_byte_rate": 2 * QUOTA})
    together = sum(produced(run, client, 12, 24) for client in ("shop", "bystander"))
    assert together == pytest.approx(12 * 2 * QUOTA, rel=0.25)


def test_a_quota_of_threads_makes_wait_for_a_second_at_most(ran):
    run = ran({"client.id": "shop", "request_percentage": 0.01})
    rows = run.rows("throttles")
    assert {row["quota"] for row in rows} == {"request_percentage"}
    assert max(row["throttle_us"] for row in rows) == S
    assert run.verdict["throttling"]["clients"]["shop"]["count"] == len(rows)


def test_a_quota_can_be_set_raised_and_removed_while_clients_run(tmp_path):
    reader = {"group": "none", "name": "reader", "topics": ["orders"],
              "config": {"auto.offset.reset": "earliest"}}  # fmt: skip
    do = {"do": "alter-client-quotas", "client.id": "reader"}
    run = one_broker(
        tmp_path,
        producers=[SHOP],
        consumers=[reader],
        faults=[
            do | {"at": "2s", "consumer_byte_rate": "50kB/s"},
            do | {"at": "18s", "remove": ["consumer_byte_rate"]},
        ],
        lasts="30s",  # the last throttling may have begun just before, and lasts 10 s at most
    )
    assert [report["took_effect"] for report in run.faults] == [True, True]
    rows = run.rows("throttles")
    assert {(row["client_id"], row["quota"]) for row in rows} == {("reader", "consumer_byte_rate")}
    assert 2 * S < rows[0]["t_us"] < rows[-1]["t_us"] < 18 * S + S
    fetched = run.rows("requests", kind="Fetch", client="reader")
    bytes_of = lambda a, b: sum(  # noqa: E731 - used on the next lines only
        r["response_bytes"] for r in fetched if a * S <= r["t_us"] < b * S
    )
    assert bytes_of(8, 18) < 1.25 * 10 * 50_000
    assert sum(row["record_count"] for row in run.rows("reads")) == 4_800


@pytest.mark.parametrize(("memory", "refused"), [(200_000, True), (33_554_432, False)])
def test_a_throttled_producer_fills_its_memory_and_then_sends_wait_or_fail(
    tmp_path, memory, refused
):
    config = {"acks": "all", "linger.ms": 20, "buffer.memory": memory, "max.block.ms": 300}
    run = one_broker(tmp_path, producers=[SHOP | {"config": config}], quotas=[OF_SHOP])
    errors = {row["error"] for row in run.rows("client_batches", outcome="failed")}
    assert ("BUFFER_EXHAUSTED" in errors) == refused
    assert run.records["lost_acked"] == 0


@pytest.mark.parametrize(
    ("parts", "where", "why"),
    [
        ({"quotas": [{"client.id": "shap"} | RATE]}, "quotas[0].client.id", "shop"),
        ({"quotas": [{"client.id": "shop"}]}, "quotas[0]", "without a quota"),
        ({"quotas": [RATE]}, "quotas[0]", "nobody"),
        ({"quotas": [OF_SHOP, OF_SHOP]}, "quotas[1]", "twice"),
        ({"quotas": [{"client.id": "shop"} | REMOVED]}, "quotas[0]", "remov"),
        ({"quotas": [OF_SHOP | {"controller_mutation_rate": 1}]}, "quotas[0]", "_mutation_rate"),
        ({"quotas": [{"user": "ann"} | RATE]}, "quotas[0].user", "ANONYMOUS"),
        ({"quotas": [OF_SHOP], "cluster": {"replication": "raft"},
          "topic": {"config": {}}}, "quotas[0]", "raft"),
        ({"config": {"producer_byte_rate": 5}}, "producer_byte_rate", "quotas:"),
    ],
)  # fmt: skip
def test_a_quota_that_cannot_be_is_refused_with_its_place(parts, where, why):
    load_text(text_of(quotas=[OF_SHOP]))
    with pytest.raises(SimulationError) as refused:
        load_text(text_of(**parts))
    assert where in str(refused.value)
    assert why in str(refused.value)


def test_a_scenario_with_quotas_reads_what_it_has_written():
    asked = [OF_SHOP, {"client.id": "<default>", "user": "<default>", "request_percentage": 12.5}]
    scenario = load_text(text_of(quotas=asked))
    again = load_text(scenario.as_yaml())
    assert again.quotas == scenario.quotas
    assert again.digest == scenario.digest
