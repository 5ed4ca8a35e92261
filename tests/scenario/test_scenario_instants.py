"""Instants of faults relative to other faults: what may be written, and what it means."""

import pytest

from sim.errors import ScenarioError
from sim.faults.draw import draw
from sim.rng import Streams
from sim.scenario.loader import load_text
from sim.scenario.schema.json_schema import json_schema
from tests.scenario.scenario_text import changed

PLACE = "  - {at: 20s, do: power-loss, target: rack a, for: 15s}"
S = 1_000_000
CRASH = "{name: crash, at: 10s, do: crash, target: broker-1, for: 4s}"
DRAWN = "{name: crash, at: 5s..15s, do: crash, target: broker-1, for: 4s}"


def scenario(*lines: str):
    return load_text(changed(PLACE, "\n".join(f"  - {line}" for line in lines)), "bad.yaml")


def followed_by(at: str, *, first: str = CRASH, what: str = "do: pause, target: broker-2, for: 1s"):
    return scenario(first, f"{{at: {at}, {what}}}")


@pytest.mark.parametrize(
    ("at", "first_us", "last_us"),
    [
        ("crash", 10, 10),
        ("crash + 2s", 12, 12),
        ("crash - 2s", 8, 8),
        ("crash - 10s", 0, 0),
        ("end of crash", 14, 14),
        ("end of crash + 5s", 19, 19),
        ("end of crash - 1s", 13, 13),
        ("crash + 2s..5s", 12, 15),
        ("  end  of  crash  +  5s ", 19, 19),
    ],
)
def test_an_instant_may_be_so_long_after_another_fault_begins_or_ends(at, first_us, last_us):
    fault = followed_by(at).faults[1]
    assert (fault.at_us, fault.at_us + fault.spread_us) == (first_us * S, last_us * S)


def test_faults_may_follow_those_further_down_and_chains_of_them():
    found = scenario(
        "{name: third, at: end of second + 1s, do: pause, target: broker-3, for: 1s}",
        "{name: second, at: first + 1s, do: pause, target: broker-2, for: 2s}",
        "{name: first, at: 10s, do: pause, target: broker-1, for: 1s}",
    )
    assert [fault.at_us // S for fault in found.faults[:3]] == [14, 11, 10]


def test_a_chain_of_thousands_is_resolved():
    lines = [
        f"{{name: f{n}, at: f{n - 1} + 1ms, do: restart, target: broker-1}}"
        for n in range(1, 3_000)
    ]
    found = scenario("{name: f0, at: 1s, do: restart, target: broker-1}", *lines)
    assert found.faults[2_999].at_us == 3_999_000


def test_the_canonical_text_has_the_instants_of_the_run():
    found = followed_by("end of crash + 5s")
    assert "at: 19s\n" in found.as_yaml()
    assert "end of" not in found.as_yaml()
    assert load_text(found.as_yaml(), "bad.yaml") == found


def test_a_repeated_fault_may_follow_another_one():
    every = "do: pause, target: broker-2, for: 1s, every: 2s, times: 3"
    assert [f.at_us // S for f in followed_by("crash + 1s", what=every).faults[1:4]] == [11, 13, 15]
    drawn = followed_by("crash + 1s", first=DRAWN, what=every)
    drawn_again = draw(drawn.faults, Streams(3), 60 * S)
    base = drawn_again[0].at_us
    assert [f.at_us - base for f in drawn_again[1:4]] == [S, 3 * S, 5 * S]
    assert load_text(drawn.as_yaml(), "bad.yaml") == drawn


@pytest.mark.parametrize(
    ("at", "low", "high"),
    [
        ("crash + 2s", 2, 2),
        ("end of crash", 4, 4),
        ("crash - 5s", -5, -5),
        ("crash + 1s..3s", 1, 3),
    ],
)
def test_what_follows_a_fault_that_the_seed_draws_keeps_its_distance(at, low, high):
    found = followed_by(at, first=DRAWN)
    assert load_text(found.as_yaml(), "bad.yaml") == found, "the distance is written out"
    seen = []
    for seed in range(200):
        crash, pause, *_ = draw(found.faults, Streams(seed), 60 * S)
        seen.append((crash.at_us, pause.at_us - crash.at_us))
        assert pause.at_us == max(pause.at_us, found.faults[1].at_us), "never before its window"
    assert len({at for at, _ in seen}) > 190
    assert all(low * S <= distance <= high * S for _, distance in seen)
    assert (len({distance for _, distance in seen}) > 1) is (low < high)


def test_a_chain_behind_a_drawn_fault_is_drawn_in_its_order():
    found = scenario(
        "{name: third, at: end of second + 1s, do: pause, target: broker-3, for: 1s}",
        "{name: second, at: end of crash + 1s, do: pause, target: broker-2, for: 2s}",
        DRAWN,
    )
    assert load_text(found.as_yaml(), "bad.yaml") == found
    third, second, first, *_ = draw(found.faults, Streams(1), 60 * S)
    assert (third.at_us - second.at_us, second.at_us - first.at_us) == (3 * S, 5 * S)


def test_what_begins_after_the_end_of_a_drawn_fault_does_not_overlap_it():
    again = "do: crash, target: broker-1, for: 1s"
    assert len(followed_by("end of crash + 1s", first=DRAWN, what=again).faults) > 1
    with pytest.raises(ScenarioError, match=r"overlaps faults\[0\]"):
        followed_by("crash + 3s", first=DRAWN, what=again)
    both = [f"{{at: {at}, do: pause, target: broker-2, for: 1s}}" for at in ("crash", "crash + 2s")]
    assert len(scenario(DRAWN, *both).faults) > 2


ONE_OF = "{name: crash, at: 9s, do: one-of, of: [{do: pause, target: broker-1, for: 1s}]}"
BAD = [
    ("crsh + 2s", CRASH, "faults[1].at", "named 'crsh'; allowed: crash; did you mean crash?"),
    ("boom", CRASH.replace("name: crash, ", ""), "faults[1].at", "add name: boom to the fault"),
    ("crash+2s", CRASH, "faults[1].at", "crash + 5s"),
    ("crash + 2", CRASH, "faults[1].at", "'2' has no unit"),
    ("crash + ", CRASH, "faults[1].at", "relative to a fault with a name"),
    ("crash - 1s..2s", CRASH, "faults[1].at", "'1s..2s'"),
    ("crash + 5s..1s", CRASH, "faults[1].at", "ends before it begins"),
    ("crash - 11s", CRASH, "faults[1].at", "'crash - 11s' is 1s before the run begins"),
    ("crash - 6s", DRAWN, "faults[1].at", "is 1s before the run begins"),
    ("crash + 60s", CRASH, "faults[1].at", "not before the end of the run"),
    ("end of crash", CRASH.replace(", for: 4s", ""), "faults[1].at", "give faults[0] a duration"),
    ("end of crash", "{name: crash, at: 1s, do: restart, target: broker-1}", "faults[1].at",
     "write crash + 5s"),
    ("end of crash", "{name: crash, at: 1s, do: rolling-restart, target: broker-1}",
     "faults[1].at", "has no duration"),
    ("end of crash", ONE_OF, "faults[1].at", "has no duration"),
    ("crash", "{name: crash, do: crash, target: broker-1, mtbf: 1h}", "faults[1].at",
     "crash has no instant of its own"),
    ("9s", CRASH.replace("for: 4s", "for: 4s, every: 9s"), "faults[0].name", "name beside every"),
    ("9s", CRASH.replace("name: crash", "name: 9lives"), "faults[0].name", "a letter, then"),
    ("9s", ONE_OF.replace("do: pause", "do: pause, name: x"), "faults[0].of[0].name", "choice"),
]  # fmt: skip


@pytest.mark.parametrize(("at", "first", "path", "says"), BAD)
def test_an_instant_that_cannot_be_is_refused_where_it_is(at, first, path, says):
    with pytest.raises(ScenarioError) as caught:
        followed_by(at, first=first)
    assert f": {path}: " in str(caught.value)
    assert says in str(caught.value)


def test_a_name_belongs_to_one_fault():
    with pytest.raises(ScenarioError, match=r"faults\[1\].name: 'crash' is faults\[0\] already"):
        scenario(CRASH, CRASH.replace("broker-1", "broker-2"))


@pytest.mark.parametrize("length", [1, 2, 5])
def test_faults_that_wait_for_each_other_are_refused(length):
    lines = [
        f"{{name: f{n}, at: f{(n + 1) % length} + 1s, do: restart, target: broker-1}}"
        for n in range(length)
    ]
    with pytest.raises(ScenarioError, match="an instant that does not wait for itself") as caught:
        scenario(*lines)
    assert all(f"f{n}" in str(caught.value) for n in range(length))


def test_a_mistake_hides_only_what_follows_it():
    with pytest.raises(ScenarioError) as caught:
        scenario(
            "{name: first, at: gone + 1s, do: restart, target: broker-1}",
            "{at: first + 1s, do: restart, target: broker-1}",
            "{at: 90s, do: restart, target: broker-1}",
        )
    lines = str(caught.value).splitlines()
    assert [("faults[0].at" in line, "faults[2].at" in line) for line in lines] == [
        (True, False),
        (False, True),
    ]


def test_an_editor_knows_both_forms():
    known = str(json_schema()["$defs"]["CrashModel"]["properties"]["at"])
    assert "relative to a fault with a name" in known
