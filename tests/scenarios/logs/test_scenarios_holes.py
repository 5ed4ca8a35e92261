"""A power loss may leave a hole between two segments: recovery keeps it, and nobody fills it."""

from sim.log.partition.reading import file_batches
from tests.scenarios.run_kit import S, go

ROLLS = {"partitions": 4, "config": {"min.insync.replicas": 2, "segment.ms": 100}}
SEED = 1

SLOW_FLUSH = {"disk": {"flush": {"p50": "200ms", "p99": "400ms"}}}
"""An fsync outlasts a segment: some rolled segment is always unflushed beside the active one."""


def holes(ran):
    """(broker, partition, first offset, end) of each, once each; adjacent ones are one."""
    rows = ran.rows("log_holes", topic="orders")
    places = {(r["broker"], r["partition"], r["from_offset"], r["to_offset"]) for r in rows}
    found = []
    for broker, partition, begin, end in sorted(places):
        adjacent = found and found[-1][:2] == (broker, partition) and found[-1][3] == begin
        first = found.pop()[2] if adjacent else begin
        found.append((broker, partition, first, end))
    return found


def on_disk(ran, broker, partition):
    """Offsets of the records of one replica's log."""
    directory = next((ran.directory / "disks" / f"broker-{broker}").glob(f"*/orders-{partition}"))
    return {
        offset
        for log in sorted(directory.glob("*.log"))
        for _, batch in file_batches(log)
        for offset in range(batch.base_offset, batch.last_offset + 1)
    }


def everybody_dark(tmp_path, seed=SEED):
    dark = {"at": "2500ms", "do": "power-loss", "target": "all brokers", "for": "1s"}
    return go(
        tmp_path, lasts="4s", seed=seed, topic=ROLLS, producer={"rate": "400/s"}, faults=[dark],
        cluster=SLOW_FLUSH,
    )  # fmt: skip


def test_what_lay_in_a_leaders_hole_is_lost_and_what_lies_behind_survives(tmp_path):
    ran = everybody_dark(tmp_path)
    assert holes(ran)
    survived = 0
    for partition in range(4):
        survived += len(on_disk(ran, ran.leader_at(100 * S, partition), partition))
    assert survived == ran.records["survived"]
    assert ran.records["lost_acked"] == ran.records["acked"] - survived > 0
    for broker, partition, begin, end in holes(ran):
        there = on_disk(ran, broker, partition)
        assert there.isdisjoint(range(begin, end))
        assert end in there or max(there, default=-1) < begin


def test_a_follower_that_came_back_with_a_hole_is_in_sync_and_loses_it_for_all_when_it_leads(
    tmp_path,
):
    """It fetches from its log end on: the log end is all that an ISR asks for.

    The controllers' fsyncs are slow, too: each of the eight changes has half a second and more, and
    so has a registration, which broker.heartbeat.interval.ms has to outlast (since 4.1).
    """
    dark = {"at": "2500ms", "do": "power-loss", "target": "broker-1", "for": "500ms"}
    first = ["broker-1", "broker-2", "broker-3"]
    moves = [
        each
        for n in range(4)
        for each in (
            {"at": "7s", "do": "reassign", "partition": f"orders-{n}", "replicas": first},
            {
                "at": "10s",
                "do": "elect-leader",
                "partition": f"orders-{n}",
                "election": "preferred",
            },
        )
    ]
    ran = go(
        tmp_path, lasts="13s", seed=SEED, topic=ROLLS, producer={"rate": "400/s"},
        config={"broker.session.timeout.ms": 3_000, "broker.heartbeat.interval.ms": 1_500},
        faults=[dark, *moves], cluster=SLOW_FLUSH,
    )  # fmt: skip
    lost = 0
    for broker, partition, begin, end in holes(ran):
        assert broker == 1
        last = ran.rows("partition_changes", topic="orders", partition=partition)[-1]
        assert sorted(last["in_sync"].split(",")) == ["1", "2", "3"]
        assert set(range(begin, end)) <= on_disk(ran, 2, partition) & on_disk(ran, 3, partition)
        lost += (end - begin) * (last["leader"] == 1)
    assert ran.records["lost_acked"] == lost > 0
    assert ran.records["divergent"] == sum(end - begin for *_, begin, end in holes(ran))
