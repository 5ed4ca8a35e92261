"""Upgrades of servers: which are refused, with which words, and what a release changes."""

from itertools import pairwise

import pytest

from sim.error_codes import ErrorCode
from sim.errors import ScenarioError
from sim.ids import TopicPartition
from sim.kernel import Kernel
from sim.protocol.broker.replication.leader.transactions import Marking
from sim.protocol.messages.transaction import WriteTxnMarkersRequest
from sim.protocol.metadata.versions import keeps_metadata
from sim.protocol.ports import Appended
from sim.rng import Streams
from sim.scenario.behaviours.versions import VERSIONS
from sim.scenario.build.cluster import Builder
from sim.scenario.build.servers import ServerSettings
from sim.scenario.loader import load_text
from sim.scenario.releases.upgrades import config_of, levels_of
from sim.scenario.settings.facts import features_of, supported_features
from sim.trace.writer import Trace

TEXT = """\
claim: An upgrade.
cluster: {brokers: 3, kafka: "%s"%s}
topics: {t: {replication.factor: 3}}
producers: [{name: shop, topic: t, rate: 10/s}]
faults:
%s
run: {for: 60s}
"""


def loaded(release, *faults, more=""):
    lines = "".join(f"  - {{{fault}}}\n" for fault in faults)
    return load_text(TEXT % (release, more, lines))


def up(to, target="all brokers", at="1s", more=""):
    return f'at: {at}, do: rolling-restart, target: {target}, to: "{to}"{more}'


ALL = up("4.2", "[all controllers, all brokers]")
CONTROLLERS = "[controller-1, controller-2, controller-3]"


@pytest.mark.parametrize(
    ("release", "faults", "said"),
    [
        ("4.1", [up("4.3")], "4.3, and broker-1 runs 4.1; allowed: 4.2, the next one"),
        ("4.1", [up("4.1")], "leave to out to restart with the same release"),
        ("4.1", [up("4.0")], "Kafka permits it after kafka-features downgrade --metadata 4.0"),
        ("4.0", [up("3.9")], "Kafka refuses it, too, where metadata.version is that of 4.0"),
        ("4.3", [up("4.3")], "no release after 4.3 is known"),
        ("3.6", [up("3.7")], "an upgrade of a cluster that begins with 3.6"),
        ("4.1", [up("4.2", "leader of t-0")], "'leader of t-0', a role"),
        ("4.1", [up("4.2"), up("4.3", at="9s")], "4.3 beside 4.1, which controller-1 still runs"),
        (
            "4.1",
            ["at: 1s, do: rolling-restart, target: all brokers, finalize: true"],
            "finalize without to",
        ),
        ("3.6", ['at: 1s, do: upgrade-features, release: "3.7"'], "begins with 3.6"),
        ("4.1", ["at: 1s, do: upgrade-features"], "add release or metadata"),
        (
            "4.1",
            ['at: 1s, do: upgrade-features, release: "4.2", metadata: "4.2"'],
            "metadata beside release",
        ),
        ("4.1", [up("4.2", at="1s..4s")], "an instant that the seed draws"),
    ],
)
def test_a_path_that_is_not_modelled_is_refused(release, faults, said):
    with pytest.raises(ScenarioError) as caught:
        loaded(release, *faults)
    assert said in " ".join(str(caught.value).split()), str(caught.value)
    assert "faults[" in str(caught.value)


def test_kafka_permits_the_downgrades_that_change_no_metadata():
    """``MetadataVersion.didMetadataChange``: 4.0-IV1 has ELR, 4.3-IV0 cordoned directories."""
    permitted = []
    for newer, older in pairwise(VERSIONS[: VERSIONS.index("3.7") - 1 : -1]):
        level, lower = (features_of(release)["metadata.version"] for release in (newer, older))
        if keeps_metadata(level, lower):
            permitted.append((newer, older))
    assert permitted == [("4.2", "4.1"), ("4.1", "4.0"), ("3.9", "3.8"), ("3.8", "3.7")]


@pytest.mark.parametrize("more", [", replication: raft", ", zookeeper: {}"])
def test_without_kraft_and_an_isr_there_is_no_upgrade(more):
    release = "3.8" if "zoo" in more else "4.1"
    with pytest.raises(ScenarioError):
        loaded(release, up("3.9" if "zoo" in more else "4.2"), more=more)


@pytest.mark.parametrize("release", VERSIONS[VERSIONS.index("3.7") : -1])
def test_every_release_from_3_7_on_can_go_to_the_next(release):
    to = VERSIONS[VERSIONS.index(release) + 1]
    scenario = loaded(release, up(to, CONTROLLERS), up(to, at="20s", more=", finalize: true"))
    assert load_text(scenario.as_yaml()).digest == scenario.digest


def test_a_chain_of_upgrades_is_one_release_at_a_time():
    scenario = loaded(
        "4.1", up("4.2", CONTROLLERS), up("4.2", at="9s"), up("4.3", CONTROLLERS, "20s"),
        up("4.3", at="30s"),
    )  # fmt: skip
    assert [fault.to.name for fault in scenario.faults] == ["4.2", "4.2", "4.3", "4.3"]


def test_transactions_that_would_change_their_version_on_the_way_are_refused():
    transacting = TEXT.replace(
        "rate: 10/s}", "rate: 10/s, transaction: {records: 5}, config: {transactional.id: x}}"
    )
    lines = f"  - {{{up('4.0', CONTROLLERS)}}}\n  - {{{up('4.0', at='9s', more='%s')}}}\n"
    assert load_text(transacting % ("3.9", "", lines % ""))
    with pytest.raises(ScenarioError, match=r"features of 4\.0 raise transaction"):
        load_text(transacting % ("3.9", "", lines % ", finalize: true"))
    alone = '  - {at: 20s, do: upgrade-features, metadata: "4.0"}\n'
    assert load_text(transacting % ("3.9", "", (lines % "") + alone))


def test_a_server_of_the_next_release_has_its_defaults_and_keeps_what_was_chosen():
    chosen = loaded("3.9", up("4.0"), more=", config: {num.io.threads: 3}").cluster
    before, after = chosen.config, config_of(chosen, "4.0")
    name = "num.recovery.threads.per.data.dir"
    assert (before.number(name), after.number(name)) == (1, 2)
    assert after.number("num.io.threads") == 3
    assert after.version == "4.0"


def test_a_server_of_the_next_release_has_its_behaviours_at_the_levels_of_the_cluster(tmp_path):
    scenario = loaded("4.0", up("4.1", CONTROLLERS), up("4.1", at="9s"))
    builder = Builder(scenario, Kernel(0), Streams(1), Trace(None), tmp_path)
    builder.servers()
    broker = builder.cluster.brokers[1]
    later = broker.releases["4.1"]
    assert not broker.settings.quorum.wakes_on_commit  # KIP-1166 came with 4.1
    assert later.quorum.wakes_on_commit
    assert later.metadata_log.supported == supported_features("4.1")
    assert later.metadata_log.features == broker.settings.metadata_log.features
    (controller, *_) = builder.cluster.controllers.values()
    assert not controller.releases["4.1"].controller.elr  # a level, not a release


def test_a_setting_that_the_next_release_lacks_is_refused_before_the_run():
    config = ", config: {log.message.timestamp.difference.max.ms: 3600000}"
    with pytest.raises(ScenarioError, match=r"cluster\.config"):
        loaded("3.9", up("4.0"), more=config)


def test_levels_are_those_that_kafka_features_asks_for():
    assert levels_of("4.2") == {
        "metadata.version": 29, "transaction.version": 2, "group.version": 1,
        "eligible.leader.replicas.version": 1, "share.version": 1, "streams.version": 1,
    }  # fmt: skip
    assert levels_of("3.8") == {"metadata.version": 20}


@pytest.mark.parametrize(("release", "known"), [("4.1", 0), ("4.2", 2)])
def test_a_leader_reads_of_a_marker_what_its_release_knows(release, known):
    config = ServerSettings(loaded("4.1", up("4.2")), release).broker().transaction
    assert config.marker_version == known
    marks = []

    class Leader:
        partition = TopicPartition("t", 0)
        transactional = False

        def leader_mark(self, _request, _now_ms, version):
            marks.append(version)
            return Appended(ErrorCode.NONE, -1, -1, False, False, None)

    request = WriteTxnMarkersRequest(1, 0, 0, True, (Leader.partition,), 2)
    Marking(1, request, config.marker_version).write(Leader(), None, 0, [])
    assert marks == [known]
