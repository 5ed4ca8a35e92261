"""Whatever a setting is moved to from its default, something else is built: none is ignored."""

import pytest
import yaml

from sim.nodes.storage.log_settings import log_config
from sim.scenario.build.servers import ServerSettings
from sim.scenario.loader import load_text
from sim.scenario.settings.registry import SETTINGS
from tests.scenario.probing import BESIDE, built, effect, forget, moved, probes, refusal, values_of

BOUNDS = {
    "group.consumer.min.session.timeout.ms": "group.consumer.session.timeout.ms",
    "group.consumer.max.session.timeout.ms": "group.consumer.session.timeout.ms",
    "group.consumer.min.heartbeat.interval.ms": "group.consumer.heartbeat.interval.ms",
    "group.consumer.max.heartbeat.interval.ms": "group.consumer.heartbeat.interval.ms",
    "group.consumer.min.assignment.interval.ms": "group.consumer.assignment.interval.ms",
    "group.consumer.max.assignment.interval.ms": "group.consumer.assignment.interval.ms",
    "group.share.min.assignment.interval.ms": "group.share.assignment.interval.ms",
    "group.share.max.assignment.interval.ms": "group.share.assignment.interval.ms",
    "group.share.min.record.lock.duration.ms": "group.share.record.lock.duration.ms",
    "group.share.max.record.lock.duration.ms": "group.share.record.lock.duration.ms",
    "group.share.min.delivery.count.limit": "group.share.delivery.count.limit",
    "group.share.max.delivery.count.limit": "group.share.delivery.count.limit",
    "group.share.min.partition.max.record.locks": "group.share.partition.max.record.locks",
    "group.share.max.partition.max.record.locks": "group.share.partition.max.record.locks",
}
"""Settings that only bound another one, which is refused beyond them, as in Kafka."""

CHECKS = {
    ("connect", "exactly.once.support"): "refuses a source without exactly.once.source.support",
    ("broker", "authorizer.class.name"): "goes with super.users; see below",
    ("broker", "cordoned.log.dirs"): "is in the file of what may change; see below",
    ("broker", "remote.log.storage.system.enable"): "goes with cluster.object-store; see below",
}
"""Settings that change nothing else in any probe, with the reason."""

PROBES = probes()


def idle(scope):
    return [
        setting.name
        for setting in SETTINGS[scope].values()
        if setting.is_modelled
        and setting.name not in BOUNDS
        and (scope, setting.name) not in CHECKS
        and not effect(scope, setting, PROBES)
    ]


def test_every_probe_can_be_built_and_is_built_alike_again():
    for name, probe in PROBES.items():
        assert not refusal(probe), name
        first = built(probe)
        built_afresh = built({**probe, "claim": "Once more."})
        assert first == built_afresh, name


@pytest.mark.parametrize("scope", [scope for scope in SETTINGS if scope != "broker"])
def test_another_value_of_a_setting_builds_other_things(scope):
    assert idle(scope) == []


READ_ELSEWHERE = {
    "min.insync.replicas": "the controller and the leaders",
    "unclean.leader.election.enable": "the controller",
    "follower.replication.throttled.replicas": "the brokers' quotas of replication",
    "leader.replication.throttled.replicas": "the brokers' quotas of replication",
    "unclean.recovery.strategy": "the controller",
}
"""Settings of topics that are not of their logs, with who reads them."""


def test_another_value_of_a_topics_setting_gives_it_another_log():
    alike = []
    for name, setting in SETTINGS["topic"].items():
        given = {key: str(value) for key, value in BESIDE.get(name, {}).items()}
        found = values_of(setting) if setting.is_modelled else ()
        values = [str(v).lower() if v is True or v is False else str(v) for v in found]
        usual = log_config(given)
        if values and all(log_config({**given, name: value}) == usual for value in values):
            alike.append(name)
    assert alike == list(READ_ELSEWHERE)


@pytest.mark.slow
def test_another_value_of_a_brokers_setting_builds_other_things():
    assert idle("broker") == []


@pytest.mark.parametrize("bound", BOUNDS)
def test_a_bound_refuses_what_is_beyond_it(bound):
    plain, table = PROBES["plain"], SETTINGS["broker"]
    bounded = table[BOUNDS[bound]]
    values = (bounded.default, *values_of(bounded))
    taken = [
        probe
        for value in values
        if not refusal(probe := moved(plain, "broker", bounded.name, value))
    ]
    assert any(
        bound in refusal(moved(probe, "broker", bound, value))
        for probe in taken
        for value in values_of(table[bound])
    )


def test_an_authorizer_is_switched_with_its_super_users():
    assert built(PROBES["plain"]) != built(PROBES["acls"])


def test_tiered_storage_is_switched_with_its_store():
    assert built(PROBES["plain"]) != built(PROBES["tiered"])


def test_cordoned_directories_are_in_the_file_of_the_brokers():
    probe = moved(PROBES["directories"], "broker", "cordoned.log.dirs", "data-1")
    scenario = load_text(yaml.safe_dump(probe), "probe")
    file = ServerSettings(scenario, scenario.cluster.kafka).broker().file
    assert file.settings == {"cordoned.log.dirs": "data-1"}


def test_exactly_once_that_is_required_of_a_connector_is_refused_without_it():
    probe = moved(PROBES["connector"], "connect", "exactly.once.source.support", "disabled")
    assert not refusal(probe)
    probe["connectors"][0]["config"]["exactly.once.support"] = "required"
    assert "exactly.once.support" in refusal(probe)


def test_exceptions_are_settings_that_are_modelled():
    for scope, name in (*CHECKS, *(("broker", bound) for bound in BOUNDS)):
        assert SETTINGS[scope][name].is_modelled


def test_planted_a_setting_that_nobody_reads_is_found(monkeypatch):
    from sim.scenario.build import translate  # noqa: PLC0415

    real = translate.quorum_config
    monkeypatch.setattr(
        translate,
        "quorum_config",
        lambda config, behaviours: real(config.changed(USUAL), behaviours),
    )
    forget()
    setting = SETTINGS["broker"]["controller.quorum.append.linger.ms"]
    assert effect("broker", setting, {"plain": PROBES["plain"]}) == ""
    monkeypatch.undo()
    forget()
    assert effect("broker", setting, {"plain": PROBES["plain"]})


USUAL = {"controller.quorum.append.linger.ms": 25}
