"""Groups with settings of their own: what is taken, handed on, and refused (GroupConfig)."""

import pytest

from sim.errors import ScenarioError
from sim.scenario.loader import load_text
from tests.scenarios.run_kit import text_of

SHARE = {"group": "work", "topics": ["orders"], "group.type": "share"}
MODERN = {"group": "work", "topics": ["orders"], "config": {"group.protocol": "consumer"}}
CLASSIC = {"group": "work", "topics": ["orders"]}
EXPLICIT = {"share.acknowledgement.mode": "explicit"}


def loaded(member, given, kafka="4.3", name="work", **parts):
    text = text_of(consumers=[member], groups={name: {"config": given}}, **parts)
    return load_text(text.replace("cluster:", f"cluster:\n  kafka: '{kafka}'", 1), "test.yaml")


def refused(*args, **more):
    with pytest.raises(ScenarioError) as caught:
        loaded(*args, **more)
    return str(caught.value)


def test_what_is_not_the_brokers_is_asked_of_the_controller_by_kafkas_name():
    given = {"share.delivery.count.limit": 3, "share.renew.acknowledge.enable": False}
    (group,) = loaded(SHARE, given).groups
    request = group.request()
    assert (request.group, request.resource) == ("work", "work")
    assert dict(request.changes) == {
        "share.delivery.count.limit": "3", "share.renew.acknowledge.enable": "false"
    }  # fmt: skip


def test_a_group_inherits_from_the_brokers_and_so_overrides_them_by_kafkas_default():
    brokers = {"group.share.delivery.count.limit": 3}
    (plain,) = loaded(SHARE, {}, config=brokers).groups
    assert plain.config["share.delivery.count.limit"] == 3
    assert plain.own == ()
    (own,) = loaded(SHARE, {"share.delivery.count.limit": 5}, config=brokers).groups
    assert own.own == (("share.delivery.count.limit", "5"),)


@pytest.mark.parametrize("member", [SHARE, MODERN])
def test_a_scenario_writes_them_out_for_its_kind_and_loads_them_again(member):
    kind = "share" if member is SHARE else "consumer"
    scenario = loaded(member, {f"{kind}.session.timeout.ms": 50_000})
    again = load_text(scenario.as_yaml(), "test.yaml")
    assert again.digest == scenario.digest
    assert again.groups == scenario.groups
    assert all(name.startswith(kind) for name in scenario.groups[0].config)
    assert f"groups.work.config.{kind}.session.timeout.ms" in [
        each.path for each in scenario.off_default
    ]


def test_a_scenario_without_them_says_nothing_of_groups():
    scenario = load_text(text_of(consumers=[SHARE]), "test.yaml")
    assert "\ngroups:" not in scenario.as_yaml()


@pytest.mark.parametrize(
    ("member", "config", "error"),
    [
        (SHARE, {"share.delivery.count.limit": 11}, "2 to 10 (group.share.min.delivery.count"),
        (SHARE, {"share.partition.max.record.locks": 4_001}, "100 to 4000"),
        (SHARE, {"share.record.lock.duration.ms": 5_000}, "15000 to 60000"),
        (SHARE, {"share.session.timeout.ms": 44_999}, "45000 to 60000"),
        (SHARE, {"share.heartbeat.interval.ms": 4_999}, "5000 to 15000"),
        (SHARE, {"share.assignment.interval.ms": 15_001}, "0 to 15000"),
        (MODERN, {"consumer.session.timeout.ms": 60_001}, "45000 to 60000"),
        (MODERN, {"consumer.assignment.interval.ms": 15_001}, "0 to 15000"),
        (MODERN, {"share.delivery.count.limit": 3}, "settings that begin with consumer."),
        (SHARE, {"consumer.session.timeout.ms": 50_000}, "settings that begin with share."),
        (CLASSIC, {"consumer.session.timeout.ms": 50_000}, "a classic group"),
        (SHARE, {"share.auto.offset.reset": "earliest"}, "the group's members"),
        (SHARE, {"share.isolation.level": "read_committed"}, "not modelled"),
        (SHARE, {"streams.num.standby.replicas": 1}, "Streams groups"),
        (SHARE, {"share.delivery.limit": 3}, "unknown group setting"),
    ],
)
def test_what_kafka_would_refuse_or_nobody_would_read_is_refused(member, config, error):
    assert error in refused(member, config)


def test_bounds_are_those_of_the_brokers():
    bounds = {"group.share.max.delivery.count.limit": 12}
    loaded(SHARE, {"share.delivery.count.limit": 12}, config=bounds)
    bounds = {"group.consumer.min.session.timeout.ms": 6_000}
    loaded(MODERN, {"consumer.session.timeout.ms": 6_000}, config=bounds)
    found = refused(MODERN, {"consumer.session.timeout.ms": 5_000}, config={
        "group.consumer.min.session.timeout.ms": 5_000,
    })  # fmt: skip
    assert "more than consumer.heartbeat.interval.ms, 5000" in found


@pytest.mark.parametrize(
    ("kafka", "member", "config", "since"),
    [
        ("4.2", SHARE, {"share.delivery.count.limit": 3}, "4.3"),
        ("4.2", SHARE, {"share.renew.acknowledge.enable": False}, "4.3"),
        ("4.2", MODERN, {"consumer.assignment.interval.ms": 5}, "4.3"),
    ],
)
def test_a_setting_comes_with_its_release(kafka, member, config, since):
    assert f"came with {since}" in refused(member, config, kafka)
    loaded(member, config, since)


@pytest.mark.parametrize("kafka", ["4.1", "4.2", "4.3"])
def test_sessions_and_locks_of_one_group_are_there_since_share_groups_are(kafka):
    loaded(SHARE, {"share.record.lock.duration.ms": 20_000}, kafka)
    loaded(SHARE, {"share.session.timeout.ms": 50_000}, kafka)


def test_a_group_without_members_is_no_group():
    assert "no members of 'wrok'" in refused(SHARE, {}, name="wrok")
    assert "work" in refused(SHARE, {}, name="wrok")


def test_an_interval_is_refused_where_each_epoch_has_its_target_at_once():
    at_once = {"group.assignment": "each_epoch"}
    given = {"share.assignment.interval.ms": 5}
    assert "at once" in refused(SHARE, given, behaviours=at_once)


# -- renewals -------------------------------------------------------------------------------------


def test_an_application_renews_since_4_2_with_explicit_acknowledgement():
    member = SHARE | {"renew": "5s", "config": EXPLICIT}
    assert loaded(member, {}, "4.2").consumers[0].renew_us == 5_000_000
    assert "4.2 or newer" in refused(member, {}, "4.1")
    assert "4.2 or newer" in refused(member | {"kafka": "4.1"}, {}, "4.2")
    assert "explicit" in refused(SHARE | {"renew": "5s"}, {})
    assert "more than zero" in refused(member | {"renew": "0s"}, {})
    assert "renew in no share group" in refused(MODERN | {"renew": "5s"}, {})
