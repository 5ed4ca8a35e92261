"""Two clusters in one simulated time, and what a mirror between them keeps.

Source: KIP-382, KIP-545; the failure catalogue, E9.
"""

import json

import pytest

from sim.scenario.run.result import ANSWERS
from sim.suite.outcome import read_outcome
from tests.scenarios import planted
from tests.scenarios.compiled import SWITCH
from tests.scenarios.run_kit import Ran, S, go

QUICK = {
    "broker.session.timeout.ms": 2000, "broker.heartbeat.interval.ms": 400,
    "group.initial.rebalance.delay.ms": 0, "offsets.topic.num.partitions": 1,
    "offsets.topic.replication.factor": 1,
}  # fmt: skip
TOPIC = {"partitions": 2, "replication.factor": 1, "config": {}}
ONE = {"brokers": 1, "controllers": 1, "config": QUICK}
SHOP = {"rate": "200/s", "stop": "4s", "config": {"acks": "all", "linger.ms": 50}}
READER = {"auto.offset.reset": "earliest", "auto.commit.interval.ms": 500}
CONFIG = {
    "replication.factor": 1, "emit.checkpoints.interval.seconds": 1,
    "sync.group.offsets.enabled": True, "sync.group.offsets.interval.seconds": 1,
    "consumer.session.timeout.ms": 6000, "consumer.heartbeat.interval.ms": 300,
}  # fmt: skip
NEAR = {"p50": "10ms", "p99": "12ms"}


def mirrored(directory, faults=(), config=(), there=(), **parts):
    dr = {"cluster": ONE, "distance": NEAR, **dict(there)}
    mirror = {
        "name": "mm2", "topic": "orders", "to": "dr", "groups": ["billing"],
        "config": {**CONFIG, **dict(config)},
    }  # fmt: skip
    given = {
        "lasts": "6s", "cluster": {"brokers": 1, "controllers": 1},
        "config": QUICK, "topics": {"orders": TOPIC}, "producer": SHOP, "faults": list(faults),
        "consumers": [{"group": "billing", "topics": ["orders"], "config": READER}],
        "clusters": {"dr": dr}, "mirrors": [mirror],
    }  # fmt: skip
    return go(directory, **{**given, **parts})


def there(ran):
    return Ran(ran.directory / "clusters" / "dr")


@pytest.fixture(scope="module")
def crashed(tmp_path_factory):
    """The mirror dies between two of its commits, and comes back."""
    crash = {"at": "2500ms", "do": "crash", "target": "mm2", "for": "500ms"}
    more = {"offset.flush.interval.ms": 2_000}
    return mirrored(tmp_path_factory.mktemp("crashed"), [crash], more)


def test_after_a_crash_the_mirror_copies_everything_and_some_of_it_twice(crashed):
    """At least once: what it had not committed is read and written again."""
    found = crashed.verdict["mirroring"]
    assert found["missing"] == 0
    assert found["duplicated"] > 0
    assert crashed.verdict["held"] is True


def test_each_copy_is_in_the_partition_of_its_original(crashed):
    other = there(crashed)
    pairs = {(row["partition"], row["source_partition"]) for row in other.rows("mirrored")}
    assert pairs == {(0, 0), (1, 1)}
    assert other.records["survived"] == 800 + crashed.verdict["mirroring"]["duplicated"]


def test_translated_offsets_are_never_beyond_the_truth(crashed):
    """Each checkpoint's target offset is at or before the copy of the group's next record."""
    other = there(crashed)
    copies = {}
    for row in other.rows("mirrored"):
        for n in range(row["record_count"]):
            where = row["partition"], row["source_offset"] + n
            copies.setdefault(where, row["first_record"] + n)
    checkpoints = other.rows("checkpoints")
    assert checkpoints
    for row in checkpoints:
        true = copies.get((row["partition"], row["upstream"]))
        if true is not None:
            assert row["downstream"] <= true


def test_a_cluster_beside_the_own_is_a_run_directory_of_its_own(crashed):
    other = there(crashed)
    assert other.card["complete"] is True
    assert other.card["producers"] == ["mm2"]
    assert other.verdict["unsent_present"] == 0
    assert crashed.card["clusters"]["dr"]["trace_digest"] == other.card["trace_digest"]
    assert crashed.card["trace_digest"] != other.card["trace_digest"]


def test_messages_of_a_mirror_take_the_way_between_the_regions(crashed):
    took = [row["t_us"] - row["sent_us"] for row in crashed.rows("messages", receiver="mm2")]
    assert min(took) > 5_000, "none came from a broker beside it"
    near = [row["t_us"] - row["sent_us"] for row in there(crashed).rows("messages", receiver="mm2")]
    assert min(near) < 2_000, "it runs beside the cluster that it writes to"


LOST = {"at": "4500ms", "do": "crash", "target": ["all brokers", "shop", "billing"]}
HEIR = {"group": "billing", "topics": ["source.orders"], "start": "5s", "config": READER}


@pytest.mark.parametrize(("commits", "least"), [(True, 1), (False, 500)])
def test_a_group_that_moves_begins_where_its_offsets_say(tmp_path, commits, least):
    """Without ``sync.group.offsets.enabled`` it has none there, and begins by its policy."""
    more = {"sync.group.offsets.enabled": commits}
    ran = mirrored(tmp_path, [LOST], more, {"consumers": [HEIR]}, lasts="7s", then="stop")
    found = ran.verdict["mirroring"]
    reasons = {row["reason"] for row in there(ran).rows("positions")}
    assert reasons == ({"committed"} if commits else {"reset"})
    assert found["skipped"] == 0
    assert found["reread"] >= least
    assert (found["reread"] == 800) is not commits
    assert 0 < found["away_max_us"] < 4 * S


def test_copies_that_went_with_the_power_of_the_other_region_are_missing(tmp_path):
    """Its broker stays down: what it had not written back is no copy, for either verdict."""
    dark = {"faults": [{"at": "5s", "do": "power-loss", "target": "broker-1", "unflushed": "lost"}]}
    ran = mirrored(tmp_path, there=dark, then="stop")
    other = there(ran)
    gone = sum(
        row["from_offset"] - row["to_offset"]
        for row in other.rows("truncations", topic="source.orders", reason="unrecovered")
    )
    assert ran.verdict["mirroring"]["missing"] == gone == other.records["lost_acked"] > 100
    assert ran.records["lost_acked"] == 0


def test_what_was_not_copied_when_the_region_was_lost_is_missing(tmp_path):
    """The mirror stands still for the last second: all that came in it is gone."""
    pause = {"at": "3s", "do": "pause", "target": "mm2"}
    ran = mirrored(tmp_path, [pause, LOST], expect={"mirror.missing": 0}, then="stop")
    found = ran.verdict["mirroring"]
    assert 150 <= found["missing"] <= 250
    assert ran.verdict["held"] is False
    (line,) = ran.verdict["expectations"]
    assert line["found"] == found["missing"]


def test_an_expectation_of_another_cluster_can_fail_the_run(tmp_path):
    ran = mirrored(tmp_path, there={"expect": {"acked": 1}}, lasts="5s")
    (line,) = ran.verdict["expectations"]
    assert (line["held"], line["where"]) == (False, "cluster dr")
    assert ran.verdict["held"] is False


def test_the_same_seed_gives_the_same_digests_in_both_clusters(tmp_path):
    first, second = (mirrored(tmp_path, lasts="5s", seed=4).card for _ in range(2))
    for name in ("trace_digest", "disk_digest"):
        assert first[name] == second[name]
        assert first["clusters"]["dr"][name] == second["clusters"]["dr"][name]


@pytest.fixture(scope="module")
def refused(tmp_path_factory):
    """Only the mirror's batches are answered with an error that their broker knows nothing of."""
    with pytest.MonkeyPatch.context() as planting:
        planting.setattr(SWITCH, "here", True)
        planted.acknowledged_batches_are_answered_with_an_error(planting, topic="source.orders")
        return mirrored(tmp_path_factory.mktemp("refused"), lasts="6s", then="stop")


def test_acknowledgements_that_only_another_clusters_two_sides_dispute_are_a_defect(refused):
    counted = {name: there(refused).verdict[name] for name in ANSWERS}
    assert counted["answered_untold"] > 0
    assert [refused.verdict[name] for name in ANSWERS] == [0, 0]
    there_too = refused.verdict["clusters"]["dr"]
    assert {name: there_too[name] for name in ANSWERS} == counted
    found = read_outcome("mirrored.yaml", refused.directory)
    assert (found.status, found.is_repeatable) == ("defect", False)
    assert found.failures[-1] == ("cluster dr: brokers and clients differ on what was acknowledged")


@pytest.mark.slow
@pytest.mark.spark
def test_spark_counts_another_clusters_disputed_acknowledgements_alike(refused):
    from analysis.report import write as report  # noqa: PLC0415 - only Spark's tests need it
    from analysis.spark import session  # noqa: PLC0415

    with session.using("local[2]"):
        page = report.build([refused.directory])
    found = json.loads((page.parent / "report.json").read_text())
    assert found["differences"] == []
    told = refused.directory / "verdict.json"
    verdict = json.loads(told.read_text())
    verdict["clusters"]["dr"]["answered_untold"] = 0
    told.write_text(json.dumps(verdict))
    with session.using("local[2]"):
        page = report.build([refused.directory])
    (item,) = json.loads((page.parent / "report.json").read_text())["differences"]
    assert (item["cluster"], item["name"], item["checker"]) == ("dr", "answered_untold", 0)
    assert "answered_untold (cluster dr)" in page.read_text()


@pytest.mark.spark
@pytest.mark.slow
def test_both_judges_agree_on_what_a_mirror_was_worth(tmp_path):
    from analysis.report import write as report  # noqa: PLC0415 - only Spark's tests need it
    from analysis.spark import session  # noqa: PLC0415

    # Its group lets the mirror in again when the session of its former self has ended, at 8.5 s.
    crash = {"at": "2500ms", "do": "crash", "target": "mm2", "for": "300ms"}
    pause = {"at": "11s", "do": "pause", "target": "mm2"}
    ran = mirrored(
        tmp_path, [crash, pause, LOST | {"at": "12s"}], {"offset.flush.interval.ms": 2_000},
        {"consumers": [HEIR | {"start": "12500ms"}]}, producer=SHOP | {"stop": "12s"},
        lasts="15s", then="stop",
    )  # fmt: skip
    with session.using("local[2]"):
        page = report.build([ran.directory])
    found = json.loads((page.parent / "report.json").read_text())
    assert found["differences"] == []
    counts = {name: ran.verdict["mirroring"][name] for name in found["mirroring"]}
    assert found["mirroring"] == counts
    assert counts["missing"] > 0
    assert counts["duplicated"] > 0
    assert counts["reread"] > 0
