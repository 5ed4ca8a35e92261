"""Faults that are left to the seed: what may be written, and what is refused and why."""

import pytest

from sim.errors import ScenarioError
from sim.scenario.loader import load_text
from tests.scenario.scenario_text import changed

PLACE = "  - {at: 20s, do: power-loss, target: rack a, for: 15s}"
ONE_OF = (
    "{at: 20s..22s, do: one-of, of: [{do: crash, target: random broker, for: 2s}, "
    "{do: power-loss, target: random rack, for: 1s}]}"
)
EACH = "{do: crash, target: each broker, mtbf: 30d, mttr: 1h}"


def scenario(line: str):
    return load_text(changed(PLACE, f"  - {line}"), "bad.yaml")


@pytest.mark.parametrize(
    "line",
    [
        "{at: 10s..12s, do: crash, target: broker-1, for: 2s}",
        ONE_OF,
        EACH,
        "{do: power-loss, target: each rack, mtbf: 20s, mttr: 500ms}",
        "{do: crash, target: each controller, mtbf: 1h}",
        "{do: partition, between: rack a, mtbf: 10s, mttr: 1s}",
        "{do: corrupt-replica, target: follower of orders-0, mtbf: 10s}",
        "{do: one-of, mtbf: 10s, mttr: 1s, of: [{do: pause, target: random broker}]}",
    ],
)
def test_chance_is_written_out_and_read_again(line):
    found = scenario(line)
    assert load_text(found.as_yaml(), "bad.yaml") == found
    assert found.digest == load_text(found.as_yaml(), "bad.yaml").digest


def test_the_seed_does_not_move_the_digest_but_the_window_does():
    text = changed(PLACE, f"  - {ONE_OF}")
    digests = [load_text(text, overrides=[f"run.seed={seed}"]).digest for seed in (1, 2)]
    assert digests[0] == digests[1] != load_text(text.replace("22s", "23s")).digest


@pytest.mark.parametrize(
    ("line", "path", "says"),
    [
        ("{do: crash, target: broker-1}", "faults[0].at", "add at, or mtbf"),
        ("{do: hold, message: FetchRequest, from: broker-1}", "faults[0].at", "add at"),
        ("{at: 9s..8s, do: crash, target: broker-1}", "faults[0].at", "ends before it begins"),
        ("{at: 9s..8, do: crash, target: broker-1}", "faults[0].at", "'8' has no unit"),
        ("{at: 50s..60s, do: crash, target: broker-1}", "faults[0].at", "not before the end"),
        ("{at: 40s..50s, do: crash, target: broker-1, for: 15s}", "faults[0].for", "until 65s"),
        ("{at: 1s, do: crash, target: broker-1, mtbf: 1h}", "faults[0].mtbf", "one of the two"),
        ("{at: 1s, do: crash, target: broker-1, mttr: 1h}", "faults[0].mttr", "write for"),
        ("{do: crash, target: broker-1, mtbf: 1h, for: 1s}", "faults[0].for", "mttr"),
        ("{do: crash, target: broker-1, mtbf: 0s}", "faults[0].mtbf", "more than zero"),
        ("{do: delete-topic, topic: orders, mtbf: 1h}", "faults[0].mtbf", "unknown key"),
        ("{at: 1s, do: crash, target: each broker}", "faults[0].target", "mtbf beside it"),
        ("{at: 1s, do: crash, target: each disk}", "faults[0].target", "each broker"),
        ("{at: 1s, do: one-of, of: []}", "faults[0].of", "at least 1"),
        ("{at: 1s, do: one-of, of: [{do: crash}]}", "faults[0].of[0].target", "missing"),
        ("{at: 1s, do: one-of, of: [{do: crush, target: x}]}", "faults[0].of[0].do", "crash?"),
        (
            "{at: 1s, do: one-of, of: [{at: 2s, do: crash, target: broker-1}]}",
            "faults[0].of[0].at",
            "move it up",
        ),
        (
            "{at: 1s, do: one-of, of: [{do: crash, target: broker-9}]}",
            "faults[0].of[0].target",
            "brokers are",
        ),
        (
            "{do: one-of, mtbf: 1h, of: [{do: crash, target: broker-1, for: 1s}]}",
            "faults[0].of[0].for",
            "move it up",
        ),
        (
            "{at: 50s, do: one-of, of: [{do: crash, target: broker-1, for: 20s}]}",
            "faults[0].for",
            "until 70s",
        ),
        (
            "{do: lost-replica, target: each rack, partition: orders-0, mtbf: 1h}",
            "faults[0].target",
            "not one broker",
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused(line, path, says):
    with pytest.raises(ScenarioError) as refused:
        scenario(line)
    message = str(refused.value)
    assert message.startswith(f"bad.yaml:13: {path}: "), message
    assert says in message


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (EACH, "{at: 5s, do: crash, target: broker-2, for: 1s}"),
        (
            "{at: 5s..15s, do: crash, target: broker-2, for: 2s}",
            "{at: 16s, do: crash, target: broker-2}",
        ),
        (ONE_OF, "{at: 23s, do: crash, target: random broker}"),
    ],
)
def test_what_may_hit_the_same_target_at_once_is_refused(first, second):
    with pytest.raises(ScenarioError, match=r"faults\[1\].at: overlaps faults\[0\]"):
        scenario(f"{first}\n  - {second}")


def test_a_window_that_ends_before_another_fault_begins_is_no_overlap():
    scenario(f"{ONE_OF}\n  - {{at: 24s, do: crash, target: random broker}}")
