"""Catalogue entries of ZooKeeper mode: what the trace shows beside the expectations."""

import pytest

from sim.inspect.doctor import examine
from tests.scenarios.run_kit import S


def last_isrs(ran, until):
    """Each partition's ISR in ZooKeeper at an instant."""
    return {
        row["partition"]: row["in_sync"]
        for row in ran.rows("partition_changes", topic="orders")
        if row["t_us"] <= until
    }


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["historic", "fixed"])
def test_no_isr_grows_back_behind_an_old_version_and_all_do_within_a_minute_without(shared, kind):
    """C1: healed at 38 s; published for "fixed" are the lag limit and a round of fetches."""
    ran = shared.ran(f"c01-zk-cached-version-zombie-{kind}")
    if kind == "fixed":
        assert last_isrs(ran, 60 * S) == {0: "2,3"}
    else:
        assert last_isrs(ran, 40 * S) == last_isrs(ran, 90 * S)
        assert all(isr in {"2", "3"} for isr in last_isrs(ran, 90 * S).values()), "its leader"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["historic", "fixed"])
def test_zookeepers_leader_is_another_than_the_brokers_only_without_fencing(shared, kind):
    """C4: from the stale write at 40 s to the death at 60 s."""
    ran = shared.ran(f"c04-stale-controller-writes-zk-{kind}")
    led = {
        row["broker"]
        for row in ran.rows("appends", topic="orders", as_leader=True)
        if 41 * S < row["t_us"] < 60 * S
    }
    in_zookeeper = ran.leader_at(60 * S)
    assert (led == {in_zookeeper}) is (kind == "fixed")
    assert len(led) == 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["historic", "fixed"])
def test_a_follower_fetches_its_whole_log_anew_only_by_the_old_handler(shared, kind):
    """B9: published for "fixed" is less than a batch beyond what it lacks."""
    ran = shared.ran(f"b09-replica-truncates-to-zero-on-migration-{kind}")
    cuts = [row["to_offset"] for row in ran.rows("truncations", broker=3, reason="out_of_range")]
    assert cuts == ([0] if kind == "historic" else [])
    (held,) = [fault for fault in ran.faults if fault["kind"] == "hold"]
    fetched = [
        row["base_offset"]
        for row in ran.rows("appends", broker=3, topic="orders", as_leader=False)
        if row["t_us"] > held["healed_us"]
    ]
    (before,) = [r["to_offset"] for r in ran.rows("truncations", broker=3, reason="high_watermark")]
    assert fetched[0] == (0 if kind == "historic" else before)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "ended"), [("historic", ["broker-2", "broker-3"]), ("fixed", [])])
def test_every_follower_that_is_ahead_ends_only_if_it_must_not_cut(shared, kind, ended):
    """B10: both come back at 62 s and 64 s, and end at once."""
    ran = shared.ran(f"b10-shutdown-on-forbidden-truncation-{kind}")
    rows = ran.rows("node_states", state="crashed")
    assert [row["node"] for row in rows if row["t_us"] > 60 * S] == ended


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["historic", "fixed"])
def test_a_transaction_coordinator_decides_again_only_if_its_load_replaces_what_it_kept(
    shared, kind
):
    """C13: broker-1 leads the partition of the producer's id again from 41 s on."""
    ran = shared.ran(f"c13-txn-coordinator-partial-transition-{kind}")
    place = {"topic": "__transaction_state", "partition": 0}
    now = ran.rows("partition_changes", **place)[-1]
    assert now["leader"] == 1
    assert now["t_us"] < 45 * S
    epochs = {row["coordinator_epoch"] for row in ran.rows("transactions") if row["t_us"] > 45 * S}
    assert (now["leader_epoch"] in epochs) is (kind == "fixed")
    assert len(epochs) == 1, "what it kept is aborted at its timeout, in its former epoch"


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "do_both"), [("historic", True), ("fixed", False)])
def test_two_brokers_take_writes_for_exactly_the_partitions_that_the_refused_controller_moved(
    shared, kind, do_both
):
    """C3: from the election at 120 s to the last write at 160 s."""
    ran = shared.ran(f"c03-honeycomb-2017-split-brain-controller-{kind}")
    led = {}
    for row in ran.rows("appends", as_leader=True):
        if 122 * S < row["t_us"] < 160 * S:
            led.setdefault((row["topic"], row["partition"]), set()).add(row["broker"])
    for partition in range(2):
        before = ran.leader_at(119 * S, partition)
        assert before in (4, 5)
        assert led["orders", partition] == ({before, 6} if do_both else {6})
    for partition in range(4):
        assert len(led["others", partition]) == 1
    epochs = [row["epoch"] for row in ran.rows("controllers", state="elected")]
    assert len(set(epochs)) == len(epochs), "each controller has an epoch of its own"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["historic", "fixed"])
def test_a_reader_goes_back_to_the_old_leader_only_by_older_metadata(shared, kind):
    """C12: nothing that was committed is truncated, and the reader begins anew all the same."""
    ran = shared.ran(f"c12-stale-metadata-spurious-offset-reset-{kind}")
    resets = [row for row in ran.rows("positions") if row["reason"] == "reset"]
    assert (len(resets) > 1) is (kind == "historic")
    assert all(row["offset"] == 0 for row in resets)


def states_of(ran, broker, after):
    return [r["state"] for r in ran.rows("node_states", node=broker) if r["t_us"] >= after]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["historic", "fixed"])
def test_after_a_power_outage_a_batch_lies_over_others_and_its_broker_does_not_start(shared, kind):
    """B3: published for "historic" is a high watermark 2,228 records ahead of the leader's end."""
    ran = shared.ran(f"b03-kafka-3919-power-outage-offset-regression-{kind}")
    is_old = kind == "historic"
    (lost,) = ran.rows("truncations", broker=1, reason="recovery")
    for broker in (2, 3):
        rule = "high_watermark" if is_old else "leader_epoch"
        cuts = ran.rows("truncations", broker=broker, reason=rule)
        if is_old and not cuts:
            # Its page cache lost what lay above the high watermark: there is nothing to cut.
            (cut,) = ran.rows("truncations", broker=broker, reason="recovery")
        else:
            cut = cuts[0]
            assert cut["to_offset"] == (cut["high_watermark"] if is_old else lost["to_offset"])
            assert 500 < cut["high_watermark"] - lost["to_offset"] < 6_000
        assert not is_old or 500 < cut["to_offset"] - lost["to_offset"] < 6_000
        appended = ran.rows("appends", broker=broker, topic="orders")
        first = next(row for row in appended if row["t_us"] > cut["t_us"])
        assert (first["base_offset"] < cut["to_offset"] < first["last_offset"]) is is_old
        assert (first["base_offset"] == cut["to_offset"]) is not is_old
        state = states_of(ran, f"broker-{broker}", 133 * S)[:2]
        assert state == ["started", "crashed" if is_old else "running"]
    assert states_of(ran, "broker-2", 181 * S)[-1] == "running", "once its files are deleted"
    assert ("crashed" in states_of(ran, "broker-3", 181 * S)[-1:]) is is_old
    errors = [f for f in examine(ran.directory / "disks" / "broker-3") if f.severity == "error"]
    assert len(errors) == is_old
    assert all("before 0.11 a broker may not start on it" in found.message for found in errors)
