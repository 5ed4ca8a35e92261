"""Records of different sizes: drawn, encoded, refused, counted and estimated."""

import numpy as np
import pytest

from sim.errors import ScenarioError
from sim.nodes.clients.workload import Workload, noise_for
from sim.protocol.clients.producer.events import TOMBSTONE
from sim.rng import Streams
from sim.scenario.build.workloads import workload_of
from sim.scenario.estimate.flows import flows
from sim.scenario.loader import load_text
from sim.wire.payload import build_producer_batch
from tests.scenarios.run_kit import go, text_of

QUANTILES = {"p50": "1KB", "p99": "20KB", "max": "40KB"}
TWO = {"values": {"200B": "90%", "2MB": "10%"}}
SHOP = {"name": "shop", "topic": "orders", "rate": "200/s"}


def loaded(sizes, **more):
    return load_text(text_of(producers=[SHOP | {"record.sizes": sizes} | more], lasts="50s"))


def drawn(sizes, seed=1, **more):
    spec = workload_of(loaded(sizes, **more).producers[0], ())
    workload, found = Workload(spec, Streams(seed), "shop"), []
    while (block := workload.next_block()) is not None:
        found.append(block.value_sizes)
    return np.concatenate(found)


def test_sizes_have_the_quantiles_that_were_given_and_a_largest():
    sizes = drawn(QUANTILES)
    assert np.quantile(sizes, 0.5) == pytest.approx(1_000, rel=0.1)
    assert np.quantile(sizes, 0.99) == pytest.approx(20_000, rel=0.2)
    assert sizes.max() == 40_000
    uncut = drawn({"p50": "1KB", "p99": "20KB"})
    assert uncut.max() > 60_000
    assert (drawn(QUANTILES, seed=2) != sizes).any()


def test_sizes_have_their_shares_and_tombstones_theirs():
    sizes = drawn(TWO)
    assert set(sizes.tolist()) == {200, 2_000_000}
    assert (sizes == 200).mean() == pytest.approx(0.9, abs=0.01)
    mixed = drawn(TWO, keys="uniform", tombstones="20%")
    assert (mixed == TOMBSTONE).mean() == pytest.approx(0.2, abs=0.02)
    alive = mixed != TOMBSTONE
    assert (mixed[alive] == sizes[alive]).all(), "they move no other draw"


def test_records_are_written_with_their_sizes(tmp_path):
    """Half of the bytes are in the few large records; the broker's log has all of them."""
    sizes = {"values": {"100B": "90%", "10KB": "10%"}}
    ran = go(tmp_path, producers=[SHOP | {"record.sizes": sizes}], lasts="5s")
    assert ran.verdict["held"]
    batches = ran.rows("client_batches")
    bodies = sum(row["size_bytes"] for row in batches)
    large = (bodies - 1_000 * 100) / 9_900
    assert 70 < large < 140
    assert max(row["size_bytes"] for row in batches) > 10_000


def test_a_record_too_large_for_a_request_is_refused_and_the_others_are_sent(tmp_path):
    """RecordTooLargeException, by ``send()`` of 2 MB with the default ``max.request.size``."""
    by_class = {"config": {"partitioner.class": "RoundRobinPartitioner"}}
    for more in ({}, {"keys": "uniform"}, by_class, {"clients": 3, "rate": None}):
        producer = {k: v for k, v in (SHOP | {"record.sizes": TWO} | more).items() if v}
        ran = go(tmp_path, producers=[producer], lasts="2s", then="heal and drain")
        records = ran.records
        refused = [row for row in ran.rows("client_batches") if row["error"] != "NONE"]
        assert {row["error"] for row in refused} == {"MESSAGE_TOO_LARGE"}
        assert 0.05 < records["failed"] / records["sent"] < 0.16
        assert records["acked"] + records["failed"] == records["sent"]
        assert records["lost_acked"] == 0


def test_a_record_too_large_for_its_topic_comes_back_from_the_broker(tmp_path):
    sizes = {"values": {"200B": "90%", "20KB": "10%"}}
    topic = {"partitions": 1, "config": {"min.insync.replicas": 2, "max.message.bytes": 10_000}}
    ran = go(tmp_path, producers=[SHOP | {"record.sizes": sizes}], topic=topic, lasts="3s")
    refused = [row for row in ran.rows("client_batches") if row["error"] != "NONE"]
    assert {row["error"] for row in refused} == {"MESSAGE_TOO_LARGE"}
    assert {row["record_count"] for row in refused} == {1}, "batches of more were split"
    assert all(row["size_bytes"] > 20_000 for row in refused)
    assert ran.records["acked"] > 500


def test_noise_is_the_same_share_of_every_value():
    spec = workload_of(loaded(TWO, **{"record.compressibility": 0.5}).producers[0], ())
    noise = noise_for(spec, Streams(1), "shop")
    count = 400
    sizes = np.full(count, 200, dtype=np.int64)
    batch = build_producer_batch(
        producer_index=1, first_record=0, intended_us=np.arange(count, dtype=np.int64),
        value_size=spec.value_bytes, timestamps_ms=np.zeros(count, np.int64), codec="lz4",
        style=spec.style, noise=noise, value_sizes=sizes,
    )  # fmt: skip
    # 88 of 200 bytes are noise, and beside filler a record has a few that differ.
    assert 0.42 < batch.size_bytes / batch.raw_bytes < 0.6
    values = [record.value for record in batch.records()]
    assert {len(value) for value in values} == {200}
    assert len({value[24:112] for value in values}) == count


def test_the_estimate_knows_the_mean_size():
    (flow,) = flows(loaded({"values": {"100B": "50%", "900B": "50%"}}))
    (same,) = flows(load_text(text_of(producers=[SHOP | {"record.size": "500B"}], lasts="50s")))
    assert flow.record_bytes == same.record_bytes


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ({}, "without p50, p99 or values"),
        ({"p50": "1KB"}, "without p50, p99 or values"),
        ({"p50": "1KB", "p99": "2KB", "values": {"1KB": "100%"}}, "quantiles beside values"),
        ({"max": "2KB", "values": {"1KB": "100%"}}, "quantiles beside values"),
        ({"values": {"1KB": "90%"}}, "shares of 90%"),
        ({"values": {"1KB": "100%", "2KB": "0%"}}, "above 0%"),
        ({"p50": "2KB", "p99": "1KB"}, "p50 <= p99"),
        ({"p50": "1KB", "p99": "2KB", "max": "1500B"}, "p50 <= p99 <= max"),
        ({"p50": "1KB", "p99": "1GB"}, "socket.request.max.bytes"),
        ({"values": {"10B": "50%", "90B": "50%"}}, "at least 24B"),
        ({"values": {"2MB": "50%", "3MB": "50%"}}, "does not fit into max.request.size"),
    ],
)
def test_sizes_that_cannot_be_are_refused(sizes, words):
    with pytest.raises(ScenarioError) as caught:
        loaded(sizes)
    assert words in str(caught.value)
    assert "record.sizes" in str(caught.value)


def test_one_size_beside_a_distribution_is_refused():
    with pytest.raises(ScenarioError, match=r"record\.size beside it"):
        loaded(TWO, **{"record.size": "1KB"})


@pytest.mark.parametrize("sizes", [QUANTILES, TWO])
def test_sizes_are_written_out_and_can_be_read_again(sizes):
    scenario = loaded(sizes)
    text = scenario.as_yaml()
    assert load_text(text).digest == scenario.digest
    assert "record.size:" not in text


@pytest.mark.parametrize(
    "release", ["0.10", pytest.param("0.11", marks=pytest.mark.slow), "4.1", "4.2"]
)
def test_a_topic_whose_batches_may_be_smaller_than_batch_size_gets_them_since_4_2(
    release, tmp_path
):
    """KAFKA-8350: split to ``batch.size``, a batch stays as it is; in halves it gets small enough.

    Before KIP-126 (0.11) its first answer ends it; before KIP-91 (2.1) no batch in flight expires.
    """
    limit = {"partitions": 1, "replication.factor": 3, "config": {"max.message.bytes": 2_000}}
    times = {"linger.ms": 50, "request.timeout.ms": 1_000}
    if release >= "2.1":
        times["delivery.timeout.ms"] = 2_000
    shop = {**SHOP, "rate": "400/s", "record.size": "100B", "stop": "1s", "config": times}
    ran = go(
        tmp_path, cluster={"kafka": release}, topics={"orders": limit}, producers=[shop],
        lasts="5s",
    )  # fmt: skip
    if release == "4.2":
        assert ran.records["acked"] == ran.records["survived"] == 400
        return
    # A batch of 50 ms has 20 records, of which 2,000 bytes hold fewer; the last ones may fit.
    assert ran.records["acked"] < 40
    error = "MESSAGE_TOO_LARGE" if release == "0.10" else "REQUEST_TIMED_OUT"
    done = [row for row in ran.rows("client_batches") if row["outcome"] != "ok"]
    never = {"NONE"} if release == "0.11" else set()
    assert {row["error"] for row in done} == {error} | never
