"""Two adjacent releases in one cluster while its servers are restarted with the next one."""

import pytest

from sim.log.partition.reading import file_batches
from sim.nodes.cluster import Cluster
from sim.scenario.loader import load_text
from sim.scenario.run.runner import run
from sim.scenario.settings.facts import features_of, supported_features
from sim.wire.schemas import decode
from tests.scenarios.run_kit import Ran, S

TEXT = """
claim: A cluster goes to the next release.
cluster:
  kafka: "{release}"
  brokers: 3
  {servers}
  config: {{broker.session.timeout.ms: 3000, broker.heartbeat.interval.ms: 500}}
topics: {{orders: {{partitions: 3, replication.factor: 3, config: {{min.insync.replicas: 2}}}}}}
producers: [{{name: shop, topic: orders, rate: 50/s, config: {{acks: all}}}}]
consumers: [{{group: billing, topics: orders}}]
faults:
{faults}
run: {{for: 22s, seed: 3}}
expect: {{lost_acked: 0}}
"""
CONTROLLERS = "[controller-1, controller-2, controller-3]"
BOTH = """
  - {{at: 1s, do: rolling-restart, target: {controllers}, to: "{to}"}}
  - {{at: 5s, do: rolling-restart, target: all brokers, to: "{to}", finalize: {finalize}}}
"""


def go(
    out, release, faults, servers="controllers: 3", *, acks="all", rate="50/s", seed=3, lasts="22s"
):
    text = TEXT.format(release=release, faults=faults, servers=servers)
    text = text.replace("acks: all", f"acks: {acks}").replace("50/s", rate)
    text = text.replace("for: 22s", f"for: {lasts}")
    run(load_text(text, "upgrade"), seed, out=out / "run")
    return Ran(out / "run")


def upgraded(out, release, to, finalize="true"):
    return go(out, release, BOTH.format(controllers=CONTROLLERS, to=to, finalize=finalize))


def metadata_of(ran, server="controller-1"):
    """Names, versions and fields of the metadata's records."""
    home = ran.directory / "disks" / server
    found = []
    for file in sorted(home.glob("*/__cluster_metadata-0/*.log")):
        for _, batch in file_batches(file):
            if not batch.is_control:
                found += [decode(record.value or b"") for record in batch.records()]
    return found


def levels(ran):
    """Finalized levels in the order of the log."""
    return [
        (record.values["name"], record.values["featureLevel"])
        for record in metadata_of(ran)
        if record.name == "FeatureLevelRecord"
    ]


def named(record):
    return tuple(tuple(feature.values()) for feature in record.values["features"])


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    return upgraded(tmp_path_factory.mktemp("up"), "4.1", "4.2")


def test_servers_take_the_next_release_one_after_the_other_and_lose_nothing(ran):
    assert ran.records["lost_acked"] == 0
    assert ran.records["acked"] == ran.records["sent"]
    steps = ran.rows("faults", phase="step")
    for number, servers in ((0, 3), (1, 3)):
        mine = [row for row in steps if row["fault"] == number and row["resolved"]]
        texts = [row["effect"] for row in mine]
        assert texts == ["has stopped", "runs 4.2", "is in sync"] * servers
        assert [row["t_us"] for row in mine] == sorted(row["t_us"] for row in mine)
    assert ran.faults[1]["effect"].endswith("with 4.2; features of 4.2: committed")


def test_each_server_registers_with_what_its_release_supports(ran):
    old, new = supported_features("4.1"), supported_features("4.2")
    records = metadata_of(ran)
    for kind, key in (("RegisterBrokerRecord", "brokerId"),
                      ("RegisterControllerRecord", "controllerId")):  # fmt: skip
        found = {}
        for record in records:
            if record.name == kind:
                found.setdefault(record.values[key], []).append(named(record))
        assert len(found) == 3
        assert all(seen == [old, new] for seen in found.values()), kind


def test_levels_stay_until_the_last_server_has_the_release(ran):
    records = metadata_of(ran)
    new = features_of("4.2")["metadata.version"]
    (finalized,) = [
        place
        for place, record in enumerate(records)
        if record.name == "FeatureLevelRecord" and record.values["featureLevel"] == new
    ]
    registered = [place for place, record in enumerate(records) if record.name.startswith("Reg")]
    assert finalized > max(registered)
    assert levels(ran)[-3:] == [
        ("metadata.version", new), ("share.version", 1), ("streams.version", 1),
    ]  # fmt: skip


def test_without_finalize_the_new_release_runs_at_the_old_levels(tmp_path):
    ran = upgraded(tmp_path, "4.2", "4.3", finalize="false")
    assert dict(levels(ran))["metadata.version"] == features_of("4.2")["metadata.version"]
    # 4.3 writes RegisterBrokerRecord in version 4 from its own level on alone.
    versions = [r.version for r in metadata_of(ran) if r.name == "RegisterBrokerRecord"]
    assert set(versions) == {3}
    assert ran.records["lost_acked"] == 0


def test_features_are_refused_while_one_broker_has_the_release_before(tmp_path):
    faults = BOTH.replace("all brokers", "[broker-1, broker-2]").format(
        controllers=CONTROLLERS, to="4.2", finalize="false"
    )
    faults += '  - {at: 18s, do: upgrade-features, release: "4.2"}\n'
    ran = go(tmp_path, "4.1", faults)
    effect = ran.faults[2]["effect"]
    assert "broker 3 only supports versions 7 to 27 INVALID_UPDATE_VERSION" in effect
    assert not ran.faults[2]["took_effect"]
    assert dict(levels(ran))["metadata.version"] == 27


def test_eligible_leader_replicas_come_with_the_level_and_not_with_the_release(tmp_path):
    ran = upgraded(tmp_path, "4.0", "4.1")
    found = levels(ran)
    assert found.index(("eligible.leader.replicas.version", 1)) > found.index(
        ("metadata.version", features_of("4.1")["metadata.version"])
    )
    assert ("eligible.leader.replicas.version", 1) not in found[:3]
    assert ran.records["lost_acked"] == 0


def test_a_controller_is_elected_by_voters_of_which_one_knows_no_pre_votes(tmp_path):
    faults = """
  - {at: 1s, do: rolling-restart, target: [controller-1, controller-2], to: "4.0"}
  - {at: 8s, do: crash, target: controller leader, for: 3s}
"""
    ran = go(tmp_path, "3.9", faults)
    assert ran.records["lost_acked"] == 0
    elected = [row["t_us"] for row in ran.rows("quorum", role="leader")]
    assert [at for at in elected if at > 8 * S]


def test_servers_of_both_roles_take_the_next_release(tmp_path):
    faults = '  - {at: 1s, do: rolling-restart, target: all brokers, to: "4.2", finalize: true}\n'
    ran = go(tmp_path, "4.1", faults, servers="combined: 3")
    assert ran.faults[0]["effect"].endswith("features of 4.2: committed")
    assert ran.records["lost_acked"] == 0


def test_a_cluster_goes_over_two_releases_and_the_second_waits_for_the_first(tmp_path):
    faults = "".join(
        f'  - {{at: {at}, do: rolling-restart, target: {target}, to: "{to}"{more}}}\n'
        for at, target, to, more in (
            ("1s", CONTROLLERS, "4.2", ""), ("1s", "all brokers", "4.2", ", finalize: true"),
            ("2s", CONTROLLERS, "4.3", ""), ("2s", "all brokers", "4.3", ", finalize: true"),
        )
    )  # fmt: skip
    ran = go(tmp_path, "4.1", faults)
    steps = [row for row in ran.rows("faults", phase="step") if row["effect"].startswith("runs")]
    running = dict.fromkeys((row["resolved"] for row in steps), "4.1")
    for row in steps:
        running[row["resolved"]] = row["effect"].removeprefix("runs ")
        assert len(set(running.values())) <= 2, row
    assert set(running.values()) == {"4.3"}
    assert dict(levels(ran))["metadata.version"] == features_of("4.3")["metadata.version"]
    assert ran.records["lost_acked"] == 0


def test_planted_a_server_that_keeps_its_release_holds_the_levels_back(tmp_path, monkeypatch):
    installed = Cluster.install

    def forgets(cluster, name, release):
        if name != "broker-2":
            installed(cluster, name, release)

    monkeypatch.setattr(Cluster, "install", forgets)
    ran = upgraded(tmp_path, "4.1", "4.2")
    assert "broker 2 only supports versions" in ran.faults[1]["effect"]
    assert dict(levels(ran))["metadata.version"] == 27


def test_with_acks_1_an_upgrade_may_lose_what_was_acknowledged_and_with_all_it_does_not(tmp_path):
    # What a leader has acknowledged after it handed over, or before a follower had it, is cut off.
    faults = BOTH.format(controllers=CONTROLLERS, to="4.2", finalize="true")
    runs = (
        (seed, go(tmp_path / f"one-{seed}", "4.1", faults, acks="1", rate="1000/s", seed=seed))
        for seed in range(3, 9)
    )
    seed, lossy = next((seed, ran) for seed, ran in runs if ran.records["lost_acked"])
    assert lossy.rows("truncations", topic="orders")
    whole = go(tmp_path / "all", "4.1", faults, rate="1000/s", seed=seed)
    assert whole.records["lost_acked"] == 0


@pytest.mark.parametrize("finalize", ["true", "false"])
def test_a_replica_is_eligible_below_min_insync_once_the_level_is_finalized(tmp_path, finalize):
    faults = BOTH.format(controllers=CONTROLLERS, to="4.1", finalize=finalize)
    faults += "  - {at: 22s, do: crash, target: [broker-2, broker-3], for: 6s}\n"
    ran = go(tmp_path, "4.0", faults, lasts="30s")
    changes = [r for r in ran.rows("partition_changes", topic="orders") if r["t_us"] > 22 * S]
    assert any(r["eligible"] for r in changes) is (finalize == "true")
    assert ran.records["lost_acked"] == 0
