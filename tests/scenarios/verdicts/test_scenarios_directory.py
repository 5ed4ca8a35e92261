"""A run leaves exactly what the design says: files, keys, tables; and what it ships holds."""

import json

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from sim.checking.invariant import ALWAYS
from sim.checking.outcomes.verdict import COUNTS
from sim.faults.registry import KINDS
from sim.scenario.build import zookeeper as zookeeper_runs
from sim.scenario.loader import load
from sim.scenario.rules import zookeeper
from sim.scenario.rules.replication import waived
from sim.scenario.run.runner import run
from sim.trace.schema import TABLES
from tests.scenarios.run_kit import SHIPPED, arrow

RUNS = [
    *("small", *(name for name in SHIPPED if name != "quickstart")),
    pytest.param("quickstart", marks=pytest.mark.slow),
]

CARD = {
    "kept", "logquake", "compiled", "trace_schema", "scenario", "claim", "scenario_digest", "seed",
    "off_default", "level", "simulated_us", "run_us", "wall_us", "events", "rows", "producers",
    "trace_digest", "disk_digest", "table_digests", "complete",
}  # fmt: skip
VERDICT = {
    "answer", "windows",
    "end_us", "records", "topics", "readers", "availability", "latency_us", "checks", "examples",
    "internal_divergent", "unsent_present", "complete", "expectations", "faults",
    "held", "partitions", "divergence", "throttling", "processing", "balance", "sharing",
    "failed_by_error", "consumer_errors", "unserved", "ok_unanswered", "answered_untold",
}  # fmt: skip
RANKS = {"p50", "p90", "p99", "p999", "max", "records"}

ALWAYS_MET = {
    "offsets-contiguous", "batch-epochs-ordered", "one-leader-per-epoch", "logs-match",
    "high-watermark-within-log", "high-watermark-monotonic", "follower-watermark-behind-leader",
    "high-watermark-needs-in-sync-ends", "in-sync-are-replicas", "partition-epochs-step",
    "fenced-are-not-in-sync", "one-quorum-leader", "broker-epochs-grow",
}  # fmt: skip
"""Checks without conditions whose subject occurs in every run that changes a leader."""

WITH_CONSUMERS = {"reads-are-committed"}
WITH_IDEMPOTENCE = {"sequences-contiguous"}
WITH_ACKS_ALL = {"acknowledged-is-committed"}
MAY_BE_ABSENT = {
    "records-have-one-holder",
    "deliveries-are-limited",
    "share-starts-advance",
    "renewed-locks-hold",
    "refused-is-not-appended",
    "log-start-is-committed",
    "log-start-behind-leader",
    "cleaner-keeps-last-values",
    "writes-are-authorized",
    "clients-are-authenticated",
    "tokens-limit-sessions",
}
"""An ISR below its minimum comes when the faults bring it about; a log start moves by policy, a
cleaner needs a compacted topic, a remote log an object store, rights an authorizer, and logins a
listener that demands them."""

ALONE = {"retry-storm", "retry-storm-patient"}
"""One broker: nobody follows."""

UNCHANGED = {
    "region-loss-mirror", "connect-at-least-once", "acl-removed", "share-group-renewals",
    "token-not-renewed", *ALONE,
}  # fmt: skip
"""No partition changes: whoever could change one is lost with it, or no broker fails."""


@pytest.fixture
def ran(shared, name):
    return shared.ran(name)


def as_run(ran):
    return load(ran.directory / "scenario.yaml")


def test_there_is_something_to_test():
    assert {"quickstart", "acks1-leader-crash", "power-loss-whole-cluster"} <= set(SHIPPED)


@pytest.mark.parametrize("name", RUNS)
def test_a_shipped_scenario_holds(ran, name):
    assert ran.verdict["held"] is True
    assert all(line["held"] for line in ran.verdict["expectations"])
    assert ran.verdict["expectations"], "a scenario that expects nothing proves nothing"
    assert all(fault["took_effect"] for fault in ran.faults)
    lasting = [fault for fault in ran.faults if not KINDS[fault["kind"]].is_instant()]
    if as_run(ran).run.drain:
        assert all(fault["healed_us"] is not None for fault in lasting)
    assert ran.verdict["unsent_present"] == 0
    assert (ran.verdict["ok_unanswered"], ran.verdict["answered_untold"]) == (0, 0)
    for counted in ran.verdict.get("clusters", {}).values():
        assert (counted["ok_unanswered"], counted["answered_untold"]) == (0, 0)
        assert counted["answer"]["lost"]["acked"] > 0
    assert ran.verdict["internal_divergent"] == 0


@pytest.mark.parametrize("name", RUNS)
def test_the_directory_holds_what_the_design_says_and_nothing_else(ran, name):
    scenario = as_run(ran)
    here = {path.name for path in ran.directory.iterdir()}
    regions = {"clusters"} if scenario.clusters else set()
    assert here == {"run.json", "scenario.yaml", "verdict.json", "trace", "disks"} | regions
    assert {path.name for path in (ran.directory / "trace").iterdir()} == {
        table.name for table in TABLES
    }
    parts = [part.name for part in (ran.directory / "trace").glob("*/*")]
    assert all(part.startswith("part-") and part.endswith(".parquet") for part in parts)
    cluster = scenario.cluster
    governing = (*cluster.controllers, *cluster.zookeepers)
    servers = {s.name for s in (*cluster.brokers, *governing)}
    assert {path.name for path in (ran.directory / "disks").iterdir()} == servers
    numbers = range(scenario.cluster.disk.directories)
    assert {path.name for path in ran.log_dirs("broker")} == {f"data-{n}" for n in numbers}
    assert {path.name for path in ran.log_dirs("controller")} == {
        "data-0" for controller in cluster.controllers if controller not in cluster.brokers
    }


@pytest.mark.parametrize("name", RUNS)
def test_the_run_card_has_its_keys_and_means_them(ran, name):
    card, scenario = ran.card, as_run(ran)
    assert set(card) == CARD | ({"clusters"} if scenario.clusters else set())
    assert card["complete"] is True
    assert len(card["trace_digest"]) == len(card["disk_digest"]) == 64
    assert scenario.digest == card["scenario_digest"], "what was run is what is written down"
    assert card["seed"] == scenario.run.seed
    assert card["claim"] == scenario.claim
    assert card["rows"] == {
        table.name: pq.ParquetDataset(ran.directory / "trace" / table.name).read().num_rows
        for table in TABLES
    }
    assert card["events"] > 10_000
    assert card["wall_us"] > 0
    assert card["simulated_us"] == ran.verdict["end_us"] > card["run_us"]


@pytest.mark.parametrize("name", RUNS)
def test_the_verdict_has_its_keys_and_its_sums(ran, name):
    verdict = ran.verdict
    scenario = as_run(ran)
    more = {
        "mirroring": scenario.mirrors, "connecting": scenario.connectors,
        "clusters": scenario.clusters,
    }  # fmt: skip
    assert set(verdict) == VERDICT | {key for key, parts in more.items() if parts}
    windows = verdict["windows"]
    timed = [windows["normal"], *(each["produce"] for each in windows["faults"])]
    assert sum(each.get("records", 0) for each in timed) >= verdict["records"]["acked"]
    assert all(each["from_us"] <= each["to_us"] <= verdict["end_us"] for each in windows["faults"])
    assert verdict["answer"]["lost"]["size"] == verdict["records"]["lost_acked"]
    assert tuple(verdict["records"]) == COUNTS
    for counts in (verdict["records"], *verdict["topics"].values()):
        assert counts["sent"] == counts["acked"] + counts["failed"] + counts["unknown"]
        told = counts["acked"] - counts["lost_acked"] - counts["removed"]
        survived = told + counts["unacked_present"]
        # Of aborted records some were acknowledged and some were not: none of them survives.
        assert survived - counts["aborted"] <= counts["survived"] <= survived
    for key, total in verdict["records"].items():
        assert total == sum(topic[key] for topic in verdict["topics"].values())
    assert set(verdict["latency_us"]["produce"]) == RANKS
    assert verdict["latency_us"]["produce"]["records"] == verdict["records"]["acked"]
    gaps = verdict["availability"]["partitions"]
    assert verdict["availability"]["produce_max_us"] == max(g["produce_us"] for g in gaps.values())
    for line in verdict["expectations"]:
        assert set(line) == {"name", "asked", "found", "shown", "held", "where", "story"}
    for check in verdict["checks"]:
        assert set(check) == {
            "name", "sentence", "source", "conditions", "checked", "suspended", "outcome",
        }  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
def test_every_table_can_be_read_and_has_the_columns_of_the_schema(ran, name):
    for table in TABLES:
        read = pq.read_table(ran.directory / "trace" / table.name)
        told = [(field.name, str(field.type)) for field in read.schema]
        assert told == [(c.name, arrow(c.type)) for c in table.columns], table.name
        assert not any(read.column(column.name).null_count for column in table.columns)
        instants = read.column("t_us").to_pylist()
        assert instants == sorted(instants), f"{table.name} is not in the order of time"


@pytest.mark.parametrize("name", RUNS)
def test_every_check_without_conditions_saw_its_subject(ran, name):
    without = {c["name"]: c["checked"] for c in ran.verdict["checks"] if c["conditions"] == ALWAYS}
    due = set(ALWAYS_MET)
    if ran.rows("reads"):
        due |= WITH_CONSUMERS
    if ran.rows("acknowledgements", acks=-1):
        due |= WITH_ACKS_ALL
    producers = pq.read_table(ran.directory / "trace" / "appends", columns=["producer_id"])
    if pc.max(producers.column(0)).as_py() >= 0:
        due |= WITH_IDEMPOTENCE
    if name.startswith("raft-"):
        due -= set(waived("raft"))
    governed = name.startswith("zookeeper-")
    due -= set(zookeeper.waived(zookeeper=governed))
    if name in UNCHANGED:
        due -= {"partition-epochs-step"}
    if name in ALONE:
        due -= {"follower-watermark-behind-leader"}
    assert {check: without[check] for check in due if without[check] == 0} == {}
    assert set(without) == (
        ALWAYS_MET | WITH_CONSUMERS | WITH_IDEMPOTENCE | WITH_ACKS_ALL | MAY_BE_ABSENT
    ) | {check.name for check in zookeeper_runs.invariants(zookeeper=governed)}


def test_the_scenario_as_run_gives_the_same_run_again(shared, tmp_path):
    first = shared.ran("small")
    again = run(first.directory / "scenario.yaml", out=tmp_path / "again")
    for key in ("scenario_digest", "trace_digest", "disk_digest", "events", "rows"):
        assert again.card[key] == first.card[key], key
    written = json.loads((again.directory / "verdict.json").read_text())
    assert written == first.verdict
