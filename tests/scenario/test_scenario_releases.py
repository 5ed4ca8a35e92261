"""Clients of another release than the brokers: whose behaviours, whose settings, who may not."""

import pytest

from sim.errors import ScenarioError
from sim.kernel import Kernel
from sim.rng import Streams
from sim.scenario.behaviours.registry import BEHAVIOURS, at_release, resolve
from sim.scenario.behaviours.versions import VERSIONS, is_since
from sim.scenario.build.cluster import Builder
from sim.scenario.loader import load_text
from sim.trace.writer import Trace

TEXT = """\
claim: Clients of two releases.
cluster: {brokers: 3, kafka: "%s"}
topics: {t: {replication.factor: 3}}
producers:
  - {name: own, topic: t, rate: 10/s}
  - {name: other, topic: t, rate: 10/s, kafka: "%s"}
consumers: [{group: readers, topics: [t], kafka: "%s"}]
run: {for: 1s}
"""


def loaded(brokers, client, more=""):
    return load_text(TEXT % (brokers, client, client) + more)


def built(scenario, tmp_path):
    builder = Builder(scenario, Kernel(0), Streams(1), Trace(None), tmp_path)
    builder.servers()
    return builder


def test_a_behaviour_of_both_sides_is_at_each_end_what_its_release_does(tmp_path):
    builder = built(loaded("3.9", "3.6"), tmp_path)
    own, other = builder.producers()
    assert own.config.skips_backoff_on_leader_hint
    assert not other.config.skips_backoff_on_leader_hint
    assert all(b.settings.replica.gives_leader_hints for b in builder.cluster.brokers.values())


def test_a_client_keeps_its_side_and_brokers_keep_theirs(tmp_path):
    builder = built(loaded("4.1", "2.2"), tmp_path)
    (reader,) = builder.consumers()
    assert not reader.config.validates  # KIP-320, in clients since 2.3
    assert not reader.config.commits_epochs
    (broker, *_) = builder.cluster.brokers.values()
    assert broker.settings.group.follows_watermark  # the coordinator of 4.0


def test_a_client_has_the_defaults_of_its_own_release():
    own, other = loaded("4.1", "3.9").producers
    assert (own.config.number("linger.ms"), other.config.number("linger.ms")) == (5, 0)
    assert (own.config.version, other.config.version) == ("4.1", "3.9")


@pytest.mark.parametrize("release", VERSIONS)
def test_levels_and_the_other_side_are_left_as_they_are(release):
    positions = resolve({}, "4.1")
    sides = {item.name: item.side for item in BEHAVIOURS}
    for side in ("client", "server"):
        moved = at_release(positions, "4.1", release, side)
        fresh = resolve({}, release)
        for name, position in moved.items():
            expected = fresh if sides[name] in (side, "both") else positions
            # Of an older coordinator; see `resolve`.
            assert position == expected[name] or name == "group.unload", (side, name)


def test_what_the_scenario_chose_itself_holds_for_every_release():
    positions = resolve({"client.leader_hints": "off"}, "3.9")
    assert at_release(positions, "3.9", "4.1", "client")["client.leader_hints"] == "off"


def test_a_scenario_as_it_was_run_gives_the_same_one_again():
    scenario = loaded("4.1", "3.6", "behaviours: {kraft.pre_vote: 'off'}\n")
    again = load_text(scenario.as_yaml())
    assert again.digest == scenario.digest
    assert again.client_behaviours("3.6") == scenario.client_behaviours("3.6")
    assert again.producers[1].config == scenario.producers[1].config
    assert "kafka" not in scenario.producers[0].plain()


@pytest.mark.parametrize(
    ("brokers", "client", "said"),
    [
        ("4.1", "2.0", "a client of 2.0 beside brokers of 4.1"),
        ("2.4", "3.0", "a client of 3.0 beside brokers of 2.4"),
        ("4.1", "9.9", "9.9 of Kafka"),
    ],
)
def test_releases_that_do_not_talk_are_refused(brokers, client, said):
    with pytest.raises(ScenarioError) as caught:
        loaded(brokers, client)
    assert said in str(caught.value)
    assert "producers[1].kafka" in str(caught.value)


def test_a_setting_that_the_client_s_release_lacks_is_refused():
    text = TEXT % ("4.1", "3.6", "4.1")
    known = 'kafka: "3.6", config: {compression.zstd.level: 3}}'
    with pytest.raises(ScenarioError, match=r"came with 3\.8"):
        load_text(text.replace('kafka: "3.6"}', known))


TRANSACTIONS = """\
claim: A transactional client of an older release.
cluster: {brokers: 3, kafka: "4.1"}
topics: {t: {replication.factor: 3}}
producers:
  - name: other
    topic: t
    rate: 10/s
    kafka: "%s"
    transaction: {records: 5}
    config: {transactional.id: other}
run: {for: 1s}
"""


def test_transactions_of_an_older_client_are_refused_at_transaction_version_2():
    with pytest.raises(ScenarioError, match=r"transactions of 3\.9 where"):
        load_text(TRANSACTIONS % "3.9")
    assert load_text(TRANSACTIONS % "4.0")
    assert load_text(TRANSACTIONS % "3.9" + "behaviours: {transactions: kip98}\n")


@pytest.mark.parametrize(
    ("keys", "since"),
    [("config: {group.protocol: consumer}", "4.0"), ("group.type: share", "4.1")],
)
def test_members_of_newer_groups_have_a_release_that_knows_them(keys, since):
    for release in VERSIONS[VERSIONS.index("3.7") :]:
        text = TEXT % ("4.3", "4.3", f'{release}", {keys}, rack: "a')
        text = text.replace("brokers: 3", "racks: {a: 3}")
        if is_since(release, since):
            load_text(text)
        else:
            with pytest.raises(ScenarioError, match=r"consumers\[0\]"):
                load_text(text)
