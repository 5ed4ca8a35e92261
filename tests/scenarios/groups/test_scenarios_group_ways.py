"""Ways to hand over partitions, in a whole cluster: cooperative, static, sticky, by rack."""

from statistics import median

from tests.scenarios.run_kit import S, go

SIX = {"partitions": 6}
AT_ONCE = {"group.initial.rebalance.delay.ms": 0}
KEYED = {"keys": "uniform", "rate": "60/s"}
"""Every partition is written all the time."""
SETTINGS = {
    "auto.offset.reset": "earliest",
    "session.timeout.ms": 6_000,
    "heartbeat.interval.ms": 1_000,
    "auto.commit.interval.ms": 1_000,
}


def members(count=3, **more):
    config = SETTINGS | more.pop("config", {})
    return {"group": "billing", "topics": ["orders"], "count": count, "config": config, **more}


def stops(ran, begin, end):
    """The longest time without a read of each partition that is written all the time."""
    last = {}
    longest = {}
    for row in ran.rows("reads"):
        place, at = row["partition"], row["t_us"]
        if begin <= at <= end:
            longest[place] = max(longest.get(place, 0), at - last.get(place, begin))
            last[place] = at
    return longest


def generations(ran):
    return sorted({row["generation"] for row in ran.rows("groups", state="Stable")})


def with_newcomer(tmp_path, strategy):
    """Two quick members and one that polls every 3 s, and then one more."""
    config = {"partition.assignment.strategy": strategy}
    slow = {"processing": "1500ms", "name": "slow", "config": config | {"max.poll.records": 2}}
    consumers = [
        members(2, name="quick", config=config),
        members(1, **slow),
        members(1, name="late", start="4500ms", config=config),
    ]
    ran = go(tmp_path, consumers=consumers, topic=SIX, producer=KEYED, config=AT_ONCE, lasts="10s")
    assert generations(ran)[-1] > 1
    assert ran.checked("assignments-disjoint") > 0
    return stops(ran, 3 * S, 10 * S)


def test_a_newcomer_stops_everybody_if_they_are_eager_and_few_if_they_cooperate(tmp_path):
    eager = with_newcomer(tmp_path, "sticky")
    cooperative = with_newcomer(tmp_path, "cooperative-sticky")
    assert set(eager) == set(cooperative) == set(range(6))
    assert median(cooperative.values()) * 2 < median(eager.values())


def test_a_static_member_that_restarts_within_its_session_disturbs_nobody(tmp_path):
    more = {
        "consumers": [members()],
        "topic": SIX,
        "producer": KEYED,
        "config": AT_ONCE,
        "faults": [{"at": "4s", "do": "crash", "target": "billing-2", "for": "3s"}],
        "lasts": "9s",
    }
    static = go(tmp_path, behaviours={"rebalance": "static"}, **more)
    assert generations(static)[-1] == max(row["generation"] for row in static.rows("groups"))
    before = {row["generation"] for row in static.rows("groups") if row["t_us"] < 4 * S}
    assert set(generations(static)) <= before
    found = sorted(stops(static, 3 * S, 15 * S).values())
    assert found[3] < 1_500_000 < 3 * S <= found[4], "two partitions wait for their owner"
    dynamic = go(tmp_path, **more)
    assert generations(dynamic)[-1] > max(before)
    waits = stops(dynamic, 3 * S, 15 * S).values()
    assert min(waits) > 1_500_000, "all wait for the end of a session"


def test_members_get_the_partitions_of_their_own_rack(tmp_path):
    """KIP-881; the twin without racks gets consecutive ones, wherever they are."""
    cluster = {"brokers": None, "racks": {"a": 1, "b": 1, "c": 1}, "config": AT_ONCE}
    one_copy = {"partitions": 6, "replication.factor": 1, "config": {"min.insync.replicas": 1}}

    def local(rack_of):
        """How many partitions are read from the reader's own rack, and how many could be."""
        consumers = [
            members(1, rack=rack, name=f"in-{rack}", config={"client.rack": rack_of(rack)})
            for rack in "abc"
        ]
        more = {"consumers": consumers, "topic": one_copy, "cluster": cluster, "lasts": "5s"}
        ran = go(tmp_path, producer=KEYED, **more)
        rows = [row for row in ran.rows("reads") if row["t_us"] > 3 * S]
        homes = {row["partition"]: row["read_from"] for row in rows}
        assert set(homes) == set(range(6))
        near = {r["partition"] for r in rows if "abc"[r["read_from"] - 1] == r["consumer"][-1]}
        return len(near), sum(min(2, list(homes.values()).count(broker)) for broker in (1, 2, 3))

    found, could = local(lambda rack: rack)
    assert found == could
    found, could = local(lambda _: "")
    assert found < could
