"""Behaviours by name and by version: what is chosen, what is refused, and what it waives."""

from pathlib import Path

import pytest

from sim.checking.invariants.registry import INVARIANTS
from sim.errors import ScenarioError
from sim.kernel import Kernel
from sim.nodes.storage.log_settings import log_config
from sim.protocol.broker.truncation.new_epoch import NewEpoch
from sim.protocol.broker.truncation.registry import TRUNCATIONS
from sim.rng import Streams
from sim.scenario.behaviours import registry as behaviours
from sim.scenario.behaviours.races import RACES
from sim.scenario.behaviours.registry import BEHAVIOURS, DEFAULTS, resolve, waived
from sim.scenario.behaviours.types import Behaviour, Choice
from sim.scenario.behaviours.versions import DEFAULT, VERSIONS, is_since
from sim.scenario.build import client_configs, translate
from sim.scenario.build.cluster import Builder
from sim.scenario.build.servers import ServerSettings
from sim.scenario.loader import load_text
from sim.scenario.model.cluster import ClusterModel
from sim.scenario.scenario import document
from sim.scenario.settings.registry import resolve as resolve_settings
from sim.scenario.text.problems import Problem
from sim.trace.writer import Trace
from sim.units import SECOND
from tests.scenario.scenario_text import changed


@pytest.mark.parametrize(
    ("version", "truncation", "isr_expand", "recovery", "hints"),
    [
        ("0.10", "hw", "reach_hw", "isr", "off"),
        ("0.11", "kip101", "reach_hw", "isr", "off"),
        ("1.1", "kip101", "reach_hw", "isr", "off"),
        ("2.0", "kip279", "reach_hw", "isr", "off"),
        ("2.1", "kip320", "reach_epoch_start", "isr", "off"),
        ("3.9", "kip320", "reach_epoch_start", "isr", "on"),
        ("4.1", "kip320", "reach_epoch_start", "elr", "on"),
    ],
)
def test_a_version_chooses_what_kafka_did_then(version, truncation, isr_expand, recovery, hints):
    chosen = resolve({}, version)
    names = ("truncation", "isr_expand", "recovery", "client.leader_hints")
    assert tuple(chosen[n] for n in names) == (truncation, isr_expand, recovery, hints)


def test_a_switch_that_is_given_wins_over_the_version():
    assert resolve({"truncation": "hw"}, "2.1")["truncation"] == "hw"


def test_a_version_with_a_behaviour_that_is_not_built_says_which_and_how_to_go_on(monkeypatch):
    choices = (Choice("new", "3.3"), Choice("old", modelled=False))
    planted = Behaviour("isr.colour", "none", "a switch of this test", choices)
    monkeypatch.setattr(behaviours, "BEHAVIOURS", (*BEHAVIOURS, planted))
    with pytest.raises(Problem) as caught:
        resolve({}, "2.0")
    said = str(caught.value)
    assert "isr.colour" in said
    assert "Kafka 2.0 had 'old'" in said
    assert "{isr.colour: new}" in said
    assert resolve({}, "3.7")["isr.colour"] == "new"


def test_every_version_can_be_asked_for():
    for version in VERSIONS:
        chosen = resolve({}, version)
        assert (chosen["isr.eligibility"] == "none") is not is_since(version, "3.3"), version
        assert (chosen["kraft.check_quorum"] == "off") is not is_since(version, "3.7"), version
        assert (chosen["kraft.fetch_wakeup"] == "records") is not is_since(version, "4.1"), version
        early = chosen["metadata.first_publish"] == "high_watermark"
        assert early is is_since(version, "3.5"), version
        by_image = chosen["directories.broker_epoch"] == "image"
        assert by_image is is_since(version, "3.9"), version
        waits = chosen["broker.resend"] == "interval"
        assert waits is is_since(version, "4.1"), version
        rules = {"interval": "4.1", "half_session": "3.4", "socket": VERSIONS[0]}
        newest = next(rule for rule, since in rules.items() if is_since(version, since))
        assert chosen["broker.request_timeout"] == newest, version
        balances = chosen["kraft.leader_balance"] == "periodic"
        assert balances is is_since(version, "3.2"), version
        preview = is_since(version, "2.8") and not is_since(version, "3.3")
        assert (chosen["kraft.metadata_version"] == "none") is preview, version
        assert (chosen["kraft.unfencing"] == "committed") is preview, version
        assert (chosen["kraft.admin_requests"] == "no_moves") is (version == "2.8"), version
        assert (chosen["tokens.sweep"] == "thousand") is is_since(version, "4.0"), version


def test_every_switch_knows_its_source_its_versions_and_what_each_side_changes():
    for item in BEHAVIOURS:
        assert item.source
        assert item.versions
        assert all(choice.changes for choice in item.positions), item.name
        assert item.at(DEFAULT) == DEFAULTS[item.name] == item.default
        assert all(choice.since in (*VERSIONS, "") for choice in item.positions)


@pytest.mark.parametrize(
    ("name", "raced", "first", "fixed"),
    [
        ("fetch.stable_bound", "read_twice", "0.11", "2.5"),
        ("follower.diverging", "adopt_watermark", "2.7", "3.5"),
        ("group.unload", "late", "4.0", None),
        ("transaction.completion", "twice", None, None),  # builds, and no release
    ],
)
def test_a_race_belongs_to_its_versions_where_threads_are_preempted(name, raced, first, fixed):
    (item,) = [race for race in RACES if race.name == name]
    for version in VERSIONS:
        had = first is not None and is_since(version, first)
        had = had and not (fixed is not None and is_since(version, fixed))
        assert (resolve({}, version, preempted=True)[name] == raced) is had, version
        assert resolve({}, version)[name] == item.default != raced
    assert resolve({name: raced})[name] == raced


def test_a_file_that_says_how_long_threads_are_preempted_has_the_races_of_its_version():
    text = "claim: x\ntopics: {t: {replication.factor: 1}}\nrun: {for: 1s}\n"
    cluster = "cluster: {brokers: 3, kafka: '2.3'%s}\n"
    opened = load_text(text + cluster % ", cpu: {preempted: {p50: 2ms, p99: 20ms}}")
    assert opened.behaviours["fetch.stable_bound"] == "read_twice"
    assert load_text(opened.as_yaml()).digest == opened.digest
    assert load_text(text + cluster % "").behaviours["fetch.stable_bound"] == "read_once"
    classic = resolve({"group.coordinator": "classic"}, "4.1", preempted=True)
    assert classic["group.unload"] == "at_once"  # its coordinator has no such thread


def test_a_proposal_is_accepted_and_no_version_chooses_it():
    proposed = {(i.name, c.name) for i in BEHAVIOURS for c in i.positions if c.proposed}
    assert proposed == {
        ("isr.slow_leader", "kip501"),
        ("recovery.unclean", "longest_log"),
        ("cleaner.coordination", "coordinated"),
    }
    for name, choice in proposed:
        assert resolve({name: choice})[name] == choice
        assert all(resolve({}, version)[name] != choice for version in VERSIONS)
        (item,) = [item for item in BEHAVIOURS if item.name == name]
        assert f"{choice}: proposed, in no release" in item.versions


def test_a_proposal_that_is_not_built_is_refused_as_one(monkeypatch):
    choices = (Choice("old"), Choice("new", "", proposed=True, modelled=False))
    planted = Behaviour("isr.colour", "none", "a switch of this test", choices)
    monkeypatch.setattr(behaviours, "BEHAVIOURS", (*BEHAVIOURS, planted))
    with pytest.raises(Problem, match="proposed, in no release and not modelled"):
        resolve({"isr.colour": "new"})


def test_every_proposal_reaches_its_machine():
    config = resolve_settings("broker", {})
    built = {"isr.slow_leader": "kip501", "cleaner.coordination": "coordinated"}
    for positions, on in ((DEFAULTS, False), ({**DEFAULTS, **built}, True)):
        assert translate.replica_config(config, positions).keeps_pending is on
        assert translate.upkeep_settings(config, positions).coordinates_tombstones is on


def test_unclean_recovery_is_refused_with_zookeeper():
    text = (
        "claim: x\ntopics: {t: {replication.factor: 1}}\nrun: {for: 1s}\n"
        "behaviours: {recovery.unclean: longest_log}\ncluster: {brokers: 3%s}\n"
    )
    assert load_text(text % "").behaviours["recovery.unclean"] == "longest_log"
    with pytest.raises(ScenarioError, match=r"longest_log with cluster\.zookeeper"):
        load_text(text % ", kafka: '3.9', zookeeper: {servers: 3}")


_RECOVERY = (
    "claim: x\nrun: {for: 1s}\n%s"
    "topics: {t: {replication.factor: 1, config: {%s}}}\ncluster: {brokers: 3, config: {%s}}\n"
)
_SWITCHED = "behaviours: {recovery.unclean: longest_log}\n"


@pytest.mark.parametrize(
    ("topic", "cluster", "fault", "path"),
    [
        ("unclean.recovery.strategy: None", "", "", "topics.t.config.unclean.recovery.strategy"),
        ("", "unclean.recovery.strategy: None", "", "cluster.config.unclean.recovery.strategy"),
        ("", "unclean.recovery.timeout.ms: 5", "", "cluster.config.unclean.recovery.timeout.ms"),
        ("", "", "alter-config, topic: t", "faults[0].config.unclean.recovery.strategy"),
        ("", "", "alter-broker-config", "faults[0].config.unclean.recovery.strategy"),
    ],
)
def test_settings_of_a_proposal_go_with_its_switch_alone(topic, cluster, fault, path):
    faults = ""
    if fault:
        changes = "config: {unclean.recovery.strategy: Aggressive}"
        faults = f"faults: [{{at: 500ms, do: {fault}, {changes}}}]\n"
    load_text(_RECOVERY % (_SWITCHED + faults, topic, cluster))
    with pytest.raises(ScenarioError) as caught:
        load_text(_RECOVERY % (faults, topic, cluster))
    text = str(caught.value)
    assert path in text
    assert "KIP-966 proposes it" in text
    assert "recovery.unclean: longest_log" in text


def test_the_settings_of_unclean_recovery_are_those_of_the_proposal():
    text = _RECOVERY % (_SWITCHED, "%s", "%s")
    usual = load_text(text % ("", ""))
    assert usual.topics[0].config["unclean.recovery.strategy"] is None
    assert usual.cluster.config["unclean.recovery.timeout.ms"] == 300_000
    inherited = load_text(text % ("", "unclean.recovery.strategy: Aggressive"))
    assert inherited.topics[0].config["unclean.recovery.strategy"] == "Aggressive"
    assert load_text(inherited.as_yaml()).digest == inherited.digest != usual.digest
    with pytest.raises(ScenarioError, match="None, Balanced, Aggressive"):
        load_text(text % ("unclean.recovery.strategy: Proactive", ""))
    with pytest.raises(ScenarioError, match="leave it out: the brokers' counts then"):
        load_text(text % ("unclean.recovery.strategy: null", ""))


def test_the_settings_of_unclean_recovery_reach_the_controllers():
    config = "unclean.recovery.timeout.ms: 7000"
    found = load_text(_RECOVERY % (_SWITCHED, "", config))
    controller = ServerSettings(found, found.cluster.kafka).controller().controller
    assert controller.unclean_recovery_timeout_us == 7 * SECOND


def test_every_position_says_its_risk_and_todays_are_the_safest_there_is():
    for item in BEHAVIOURS:
        for choice in item.positions:
            assert choice.risk, (item.name, choice.name)
            assert not choice.backports or all(v.count(".") >= 2 for v in choice.backports)
    assert not {c.risk for i in BEHAVIOURS for c in i.positions if c.waives} & {"none for data"}


def test_a_race_is_written_out_where_it_is_run_and_moves_no_digest_elsewhere():
    text = "claim: x\ntopics: {t: {replication.factor: 1}}\nrun: {for: 1s}\n"
    race = (
        "behaviours: {group.unload: late}\n"
        "cluster: {brokers: 3, cpu: {preempted: {p50: 1s, p99: 2s}}}\n"
    )
    today = document(load_text(text + "cluster: {brokers: 3}\n"))
    then = document(load_text(text + race))
    races = {race.name: race.default for race in RACES}
    assert not races.keys() & set(today["behaviours"])
    assert then["behaviours"] == today["behaviours"] | races | {"group.unload": "late"}
    assert then["cluster"]["cpu"]["preempted"] == {"p50": "1s", "p99": "2s"}
    with pytest.raises(ScenarioError, match="p50 at most p99"):
        load_text(text + race.replace("p50: 1s", "p50: 3s"))


def test_every_race_reaches_its_machine():
    config = resolve_settings("broker", {})
    races = {i.name: c.name for i in RACES for c in i.positions if c.is_race}
    for positions, today in (({**DEFAULTS, **races}, False), (DEFAULTS, True)):
        made = translate.replica_config(config, positions)
        assert made.reads_bound_once is made.truncates_first is made.unloads_at_once is today
        assert translate.transaction_config(config, positions).completes_once is today


def test_a_version_without_quotes_that_yaml_would_mistake_is_refused():
    assert ClusterModel.model_validate({"kafka": 2.1}).kafka == "2.1"
    with pytest.raises(ValueError, match=r"0\.1 of Kafka"):
        ClusterModel.model_validate({"kafka": 0.1})  # what YAML makes of 0.10


def test_what_a_behaviour_waives_are_invariants_and_todays_behaviour_waives_none():
    names = {kind.name for kind in INVARIANTS}
    for item in BEHAVIOURS:
        for choice in item.positions:
            assert set(choice.waives) <= names
    assert waived(DEFAULTS) == {}
    assert waived({**DEFAULTS, "truncation": "hw"})["leader-complete"] == "truncation: hw"


@pytest.mark.parametrize("name", list(TRUNCATIONS))
def test_every_truncation_rule_reaches_the_machine(name):
    config = resolve_settings("broker", {})
    made = translate.replica_config(config, {**DEFAULTS, "truncation": name})
    assert made.truncation is TRUNCATIONS[name]


def test_every_modelled_switch_of_replication_reaches_the_machine():
    config = resolve_settings("broker", {})
    old = {"high_watermark.gate": "none", "isr_expand": "reach_hw", "client.leader_hints": "off"}
    made = translate.replica_config(config, {**DEFAULTS, **old})
    flags = (made.gates_high_watermark, made.joins_at_epoch_start, made.gives_leader_hints)
    assert flags == (False, False, False)
    now = translate.replica_config(config, DEFAULTS)
    flags = (now.gates_high_watermark, now.joins_at_epoch_start, now.gives_leader_hints)
    assert flags == (True, True, True)


@pytest.mark.parametrize(("position", "hurries"), [("on", True), ("off", False)])
def test_leader_hints_reach_producers(position, hurries):
    config = resolve_settings("producer", {})
    made = client_configs.producer_config(config, {**DEFAULTS, "client.leader_hints": position})
    assert made.skips_backoff_on_leader_hint is hurries


@pytest.mark.parametrize(
    ("version", "position", "flags"),
    [
        ("0.10", "none", (False, False)),
        ("0.11", "batch_size", (True, False)),
        ("4.1", "batch_size", (True, False)),
        ("4.2", "halves", (True, True)),
    ],
)
def test_how_batches_are_split_reaches_producers_of_a_release(version, position, flags):
    """KIP-126 in 0.11.0.0, KAFKA-8350 in 4.2.0."""
    behaviours_then = resolve({}, version)
    assert behaviours_then["client.batch_split"] == position
    made = client_configs.producer_config(resolve_settings("producer", {}), behaviours_then)
    assert (made.splits_batches, made.halves_parts) == flags


@pytest.mark.parametrize("version", ["0.10", "4.1", "4.3"])
@pytest.mark.parametrize("position", [None, "none", "batch_size", "halves"])
def test_a_quiet_behaviour_is_written_out_where_it_is_not_the_versions_own(version, position):
    given = f"recovery: isr, client.batch_split: {position}" if position else "recovery: isr"
    text = changed("recovery: elr", given)
    found = load_text(text.replace("cluster:\n", f'cluster:\n  kafka: "{version}"\n'))
    own = resolve({}, version)["client.batch_split"]
    assert found.cluster.kafka == version
    assert found.behaviours["client.batch_split"] == (position or own)
    assert ("client.batch_split" in found.as_yaml()) == (position not in (None, own))
    again = load_text(found.as_yaml())
    assert again.behaviours == found.behaviours
    assert again.digest == found.digest


@pytest.mark.parametrize(("position", "tracks"), [("newest", True), ("last", False)])
def test_the_rule_for_older_metadata_reaches_producers_and_consumers(position, tracks):
    found = load_text(changed("recovery: elr", f"client.metadata: {position}"))
    producer = client_configs.producer_config(found.producers[0].config, found.behaviours)
    consumer = client_configs.consumer_config(found.consumers[0], "", found.behaviours)
    assert (producer.tracks_epochs, consumer.tracks_epochs) == (tracks, tracks)


def settings_of(behaviour):
    """Settings of the brokers and of the controllers under one switch."""
    scenario = load_text(changed("recovery: elr", behaviour))
    builder = Builder(scenario, Kernel(0), Streams(1), Trace(None), Path("disks"))
    return builder.settings.broker(), builder.settings.controller()


@pytest.mark.parametrize(("position", "built"), [("kip841", True), ("none", False)])
def test_eligibility_reaches_leaders_and_controllers(position, built):
    broker, controller = settings_of(f"isr.eligibility: {position}")
    assert broker.replica.checks_eligibility is built
    assert controller.controller.checks_eligibility is built
    assert broker.replica.applies_metadata_during_shutdown
    broker, _ = settings_of("shutdown.metadata: ignored")
    assert not broker.replica.applies_metadata_during_shutdown


@pytest.mark.parametrize(
    ("behaviour", "flag"),
    [
        ("isr.broker_epochs: none", "checks_broker_epochs"),
        ("fetch.former_process: count", "refuses_former_process"),
        ("high_watermark.waits_for: caught_up", "waits_for_eligible"),
    ],
)
def test_each_fix_of_the_isr_has_a_switch_of_its_own(behaviour, flag):
    flags = ("checks_broker_epochs", "refuses_former_process", "waits_for_eligible")
    broker, controller = settings_of(behaviour)
    assert [name for name in flags if not getattr(broker.replica, name)] == [flag]
    assert broker.replica.checks_eligibility
    assert controller.controller.checks_eligibility


@pytest.mark.parametrize("position", list(NewEpoch))
def test_the_rule_for_leader_epochs_of_the_same_leader_reaches_every_broker(position):
    broker, _ = settings_of(f"follower.new_epoch: {position.value}")
    assert broker.replica.new_epoch is position


@pytest.mark.parametrize(
    ("position", "level", "leaders"),
    [("kept", 30, False), ("bumped", 11, True), ("by_controller", 11, False)],
)
def test_epochs_that_begin_with_a_smaller_isr_are_those_of_an_older_metadata_version(
    position, level, leaders
):
    _, controller = settings_of(f"leader_epoch.isr_shrink: {position}")
    assert controller.controller.features["metadata.version"] == level
    assert controller.controller.bumps_for_leaders is leaders


@pytest.mark.parametrize(
    ("off", "flag"), [("pre_vote: 'off'", 0), ("pre_vote_refusal: log_only", 1)]
)
def test_pre_votes_and_their_refusal_reach_every_member(off, flag):
    broker, controller = settings_of(f"kraft.{off}")
    for quorum in (broker.quorum, controller.quorum):
        assert (quorum.pre_votes, quorum.refuses_while_fetching)[flag] is False
        assert (quorum.pre_votes, quorum.refuses_while_fetching)[1 - flag] is True


@pytest.mark.parametrize(
    ("name", "old", "flag"),
    [
        ("cleaner.bound_by_hw", "'off'", "cleaning_bounded"),
        ("cleaner.errors", "thread", "error_ends_cleaner"),
        ("retention.bound_by_hw", "'off'", "retention_bounded"),
    ],
)
def test_what_was_done_to_logs_reaches_every_broker(name, old, flag):
    now = getattr(settings_of("recovery: elr")[0].upkeep, flag)
    assert getattr(settings_of(f"{name}: {old}")[0].upkeep, flag) is not now


@pytest.mark.parametrize(("position", "built"), [("same_end", True), ("fetched", False)])
def test_the_rule_for_idle_followers_reaches_every_broker(position, built):
    broker, _ = settings_of(f"isr.caught_up: {position}")
    assert broker.replica.in_sync_at_same_end is built


@pytest.mark.parametrize(("position", "built"), [("on", True), ("off", False)])
def test_the_check_of_the_quorum_reaches_every_member(position, built):
    broker, controller = settings_of(f"kraft.check_quorum: '{position}'")
    assert broker.quorum.checks_quorum is built
    assert controller.quorum.checks_quorum is built


@pytest.mark.parametrize(("position", "built"), [("high_watermark", True), ("records", False)])
def test_what_wakes_fetches_of_the_metadata_log_reaches_every_member(position, built):
    broker, controller = settings_of(f"kraft.fetch_wakeup: {position}")
    assert broker.quorum.wakes_on_commit is built
    assert controller.quorum.wakes_on_commit is built


@pytest.mark.parametrize(("position", "built"), [("high_watermark", True), ("registered", False)])
def test_when_the_first_metadata_is_published_reaches_every_broker(position, built):
    broker, _ = settings_of(f"metadata.first_publish: {position}")
    assert broker.publishes_unregistered is built


@pytest.mark.parametrize(("position", "built"), [("image", True), ("registration", False)])
def test_the_broker_epoch_of_assignments_reaches_every_broker(position, built):
    broker, _ = settings_of(f"directories.broker_epoch: {position}")
    assert broker.replica.assigns_by_image is built


@pytest.mark.parametrize(("position", "built"), [("rack_aware", True), ("plain", False)])
def test_placement_reaches_the_controllers(position, built):
    assert settings_of(f"placement: {position}")[1].controller.rack_aware is built


@pytest.mark.parametrize(
    ("behaviour", "leaves", "renews"),
    [
        ("producer.state: with_records", True, True),
        ("producer.expiry: data", False, False),
        ("placement: plain", False, True),
    ],
)
def test_what_is_remembered_of_producers_reaches_every_log(behaviour, leaves, renews):
    producers = settings_of(behaviour)[0].producers
    assert (producers.leave_with_records, producers.markers_renew) == (leaves, renews)
    made = log_config({}, producers)
    assert (made.producers_leave_with_records, made.markers_renew_producers) == (leaves, renews)


def test_the_expiry_of_producers_is_a_setting_of_the_brokers():
    names = ("producer.id.expiration.ms", "producer.id.expiration.check.interval.ms")
    config = resolve_settings("broker", dict(zip(names, (5_000, 700), strict=True)))
    made = translate.producer_upkeep(config, DEFAULTS)
    assert (made.expiration_ms, made.check_us) == (5_000, 700_000)
    assert log_config({}, made).producer_id_expiration_ms == 5_000


@pytest.mark.parametrize("name", list(TRUNCATIONS))
def test_only_logs_of_the_oldest_rule_go_by_last_offsets(name):
    by_last_offset = settings_of(f"truncation: {name}")[0].replica.truncation.by_last_offset
    assert by_last_offset is (name == "hw")
    assert log_config({}, by_last_offset=by_last_offset).by_last_offset is by_last_offset
    assert ("offsets-contiguous" in waived({**DEFAULTS, "truncation": name})) is by_last_offset
