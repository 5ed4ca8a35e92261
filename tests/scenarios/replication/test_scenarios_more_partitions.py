"""A topic that grows while clients use it: who takes the new partitions up, and where keys go."""

from itertools import pairwise

import pytest

from sim.protocol.clients.producer.partitioner import key_of, partition_of
from sim.units import EPOCH_MS
from sim.wire.record_batch import parse_batches
from tests.scenarios.run_kit import S, go

GROW = {"at": "3s", "do": "create-partitions", "topic": "orders", "count": 5}
FRESH = {"metadata.max.age.ms": 1_000}
KEYS = 40


def grown(tmp_path, *, reset="earliest", fresh=FRESH, transaction=None, **producer):
    shop = {"rate": "400/s", "keys": "uniform", "key.count": KEYS} | producer
    config = {"acks": "all", **fresh}
    if transaction:
        shop["transaction"] = transaction
        config["transactional.id"] = "shop"
    group = {
        "group": "billing", "topics": ["orders"], "count": 2,
        "config": {"auto.offset.reset": reset, **fresh},
    }  # fmt: skip
    return go(
        tmp_path,
        faults=[GROW],
        lasts="9s",
        producer=shop | {"config": config},
        consumers=[group],
        cluster={"controllers": 1},
        config={"offsets.topic.num.partitions": 2, "transaction.state.log.num.partitions": 2,
                "group.initial.rebalance.delay.ms": 500},
    )  # fmt: skip


@pytest.fixture(scope="module")
def keyed(tmp_path_factory):
    """One run that several tests look at."""
    return grown(tmp_path_factory.mktemp("grown"))


def records(ran, partition):
    """(timestamp in ms, key) of every record in one replica's files, in order."""
    (directory,) = (ran.directory / "disks" / "broker-1").glob(f"*/orders-{partition}")
    found = []
    for log in sorted(directory.glob("*.log")):
        for batch in parse_batches(log.read_bytes()):
            found += [(record.timestamp_ms, record.key) for record in batch.records()]
    return found


def reads(ran, partition):
    rows = ran.rows("reads", topic="orders", partition=partition)
    return [(row["base_offset"], row["last_offset"]) for row in rows]


def test_producers_write_to_the_new_partitions_when_they_hear_of_them(keyed):
    assert keyed.faults[0]["took_effect"]
    for partition in range(5):
        first = keyed.rows("appends", partition=partition, topic="orders")[0]["t_us"]
        low, high = (3 * S, 4.2 * S) if partition > 2 else (-9 * S, S)
        assert low < first < high, partition
    assert keyed.records["acked"] == keyed.records["sent"] == 3_600
    assert keyed.verdict["held"]


def test_keys_move_to_hash_mod_5_and_their_order_with_them(keyed):
    """Before, every key is where 3 partitions put it; afterwards where 5 do; in between both."""
    homes = {}
    for partition in range(5):
        for stamp, key in records(keyed, partition):
            homes.setdefault(key, []).append((stamp - EPOCH_MS, partition))
    assert sorted(homes) == [key_of(number) for number in range(KEYS)]
    moved = 0
    for key, found in homes.items():
        old, new = partition_of(key, 3), partition_of(key, 5)
        assert {p for at, p in found if at < 3_000} == {old}
        assert {p for at, p in found if at > 4_200} == {new}
        moved += old != new
    assert moved > KEYS // 2


def test_the_group_takes_them_up_by_a_rebalance_of_its_leader_s_asking(keyed):
    shares = {}
    for row in keyed.rows("assignments", group="billing"):
        shares.setdefault(row["generation"], {})[row["consumer"]] = row["partitions"]
    last = ",".join(shares[max(shares)].values()).split(",")
    assert sorted(last) == [f"orders-{p}" for p in range(5)]
    assert any(len(",".join(s.values()).split(",")) == 3 for s in shares.values())
    for partition in range(5):
        found = reads(keyed, partition)
        assert found[0][0] == 0
        assert all(b[0] == a[1] + 1 for a, b in pairwise(found))


def test_with_reset_to_latest_a_group_skips_what_was_written_before_it_looked(tmp_path):
    """The producer hears of the partitions at once, the group a second and a rebalance later."""
    ran = grown(tmp_path, reset="latest")
    skipped = [reads(ran, partition)[0][0] for partition in (3, 4)]
    assert max(skipped) > 0
    assert ran.records["lost_acked"] == 0


def test_clients_that_do_not_ask_keep_to_the_partitions_that_they_know(tmp_path):
    ran = grown(tmp_path, fresh={})
    assert ran.faults[0]["took_effect"]
    assert not ran.rows("appends", partition=3, topic="orders")
    assert ran.records["acked"] == 3_600


def test_records_without_keys_and_transactions_go_to_the_new_partitions_too(tmp_path):
    ran = grown(tmp_path, transaction={"records": 100}, keys="none", **{"key.count": None})
    assert {row["partition"] for row in ran.rows("transaction_records")} == set(range(5))
    assert ran.records["acked"] == 3_600
    assert ran.records["lost_acked"] == ran.records["duplicated"] == 0
    assert ran.verdict["held"]
