"""Which configurations a sweep compares, and where a setting's bare name belongs."""

import pytest

from sim.errors import ScenarioError
from sim.scenario.loader import load_text
from sim.scenario.overrides.vary import VariedValue, configurations, of_values, variation
from tests.scenario.scenario_text import GOOD, changed


def labels(text: str) -> list[str]:
    return [choice.label for choice in variation(text).choices]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("acks=0,1,all", ["0", "1", "all"]),
        ("linger.ms=0..100..25", ["0", "25", "50", "75", "100"]),
        ("x=1..3", ["1", "2", "3"]),
        ("x=5ms..20ms..5, 1s", ["5ms", "10ms", "15ms", "20ms", "1s"]),
        ("batch.size=1..64..x4", ["1", "4", "16", "64"]),
        ("cluster.racks={a: 1, b: 2},{a: 3}", ["{a: 1, b: 2}", "{a: 3}"]),
        ("faults.0.at='2s..4s',3s", ["2s..4s", "3s"]),
        ("faults.0.between=[rack a, rack b],rack c", ["[rack a, rack b]", "rack c"]),
    ],
)
def test_values_are_lists_ranges_and_what_is_quoted(text, found):
    assert labels(text) == found


def test_a_bundle_sets_several_keys_under_one_name():
    found = variation("kind={safe: {acks: all, min.insync.replicas: 2}, fast: {acks: 1}}")
    assert found.key == "kind"
    assert found.choices == (
        VariedValue("safe", ('acks="all"', "min.insync.replicas=2")),
        VariedValue("fast", ("acks=1",)),
    )
    assert of_values("kind", {"safe": {"acks": "all"}, "fast": {"acks": 1}}).choices == (
        VariedValue("safe", ('acks="all"',)),
        VariedValue("fast", ("acks=1",)),
    )


def test_values_of_a_program_are_those_of_the_command_line():
    assert of_values("acks", [0, 1, "all"]) == variation("acks=0,1,all")
    assert of_values("flag", [False, True]) == variation("flag=false,true")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("acks", "varies nothing"),
        ("acks=", "varies nothing"),
        ("=1", "varies nothing"),
        ("x=3..1", "no range"),
        ("x=1ms..3s", "no range"),
        ("x=1..9..x1", "no range"),
        ("x=1..9..0", "no range"),
        ("x=0..9..x2", "has no end"),
        ("x=0..5000", "has no end"),
        ("x=1,1", "1 twice"),
        ("k={a: {b: 1}, a: {b: 2}}", "stands twice"),
    ],
)
def test_what_varies_nothing_or_without_end_is_refused(text, says):
    with pytest.raises(ScenarioError, match=says):
        variation(text)


def test_every_combination_once_the_last_key_fastest():
    found = configurations([variation("a=1,2"), variation("b=x,y")])
    assert [c.text for c in found] == ["a=1, b=x", "a=1, b=y", "a=2, b=x", "a=2, b=y"]
    assert found[1].overrides == ("a=1", "b=y")
    assert [c.text for c in configurations([])] == ["as it is"]


def test_a_key_twice_and_too_many_configurations_are_refused():
    with pytest.raises(ScenarioError, match="a is varied twice"):
        configurations([variation("a=1"), variation("a=2")])
    with pytest.raises(ScenarioError, match="1,000,000 configurations; allowed: at most 10,000"):
        configurations([variation(f"{key}=1..100") for key in "abc"])


def test_a_bare_setting_is_set_wherever_it_belongs():
    second = "  - {name: web, topic: orders, rate: 1/s}\nconsumers:"
    text = GOOD.replace("consumers:", second)
    overrides = ["acks=1", "min.insync.replicas=1", "replica.lag.time.max.ms=9000"]
    found = load_text(text, overrides=[*overrides, "max.poll.records=7", "producers.*.rate=9/s"])
    assert [p.config.text("acks") for p in found.producers] == ["1", "1"]
    assert [p.rate_per_s for p in found.producers] == [9, 9]
    assert found.topics[0].config.number("min.insync.replicas") == 1
    assert found.cluster.config.number("min.insync.replicas") == 1  # its default, not the topic's
    assert found.cluster.config.number("replica.lag.time.max.ms") == 9_000
    assert found.consumers[0].config.number("max.poll.records") == 7
    assert load_text(text, overrides=["min.insync.replicas=3"]).cluster.config.number(
        "min.insync.replicas"
    ) == 1  # fmt: skip


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("request.timeout.ms=1000", "a setting of broker and producer and consumer"),
        ("compression.type=lz4", "producers.*.config.compression.type"),
        ("ackz=1", "unknown key ackz"),
        ("acks=2", "acks"),
    ],
)
def test_a_name_of_two_kinds_or_none_is_refused(override, says):
    with pytest.raises(ScenarioError) as refused:
        load_text(GOOD, overrides=[override])
    assert says in str(refused.value)


def test_a_setting_of_clients_that_are_not_there_is_refused():
    text = changed("consumers:\n  - {group: billing, topics: [orders], count: 3}\n", "")
    with pytest.raises(ScenarioError, match="there are no consumers"):
        load_text(text, overrides=["max.poll.records=7"])
