"""Shrinking of capsules of many kinds: the same fingerprint, within the budget, minimal by one."""

import pytest

from sim.hunting import capsule as capsules
from sim.hunting import sought
from sim.hunting.replay import replay
from sim.hunting.shrinking import moves, shrink
from sim.hunting.shrinking.shrink import Shrinker, claimed
from sim.scenario.loader import load_data
from sim.suite.pool import Pool
from tests.hunting.kinds_of_capsules import KINDS
from tests.hunting.losing import smaller_by_one

BUDGET = 300
"""Runs of a shrinking."""


def packed(kind, path):
    """The capsule of a failure, as a hunt leaves it."""
    looked_for = sought.parse(kind.looking_for)
    found = replay(load_data(kind.data), 1, looked_for).findings
    name = kind.kind or looked_for[0].name
    finding = next(f for f in found if f.kind == name and kind.mechanism in (*f.chain, ""))
    path.write_text(capsules.text_of(capsules.made(kind.data, 1, looked_for, finding)))
    return capsules.opened(path)


def test_there_are_twenty_capsules_of_different_kinds():
    named = {(kind.kind or kind.looking_for, kind.mechanism, name) for name, kind in KINDS.items()}
    assert len(named) >= 20
    assert len({(kind.kind or kind.looking_for, kind.mechanism) for kind in KINDS.values()}) >= 20


def shrunk(capsule):
    shrinker = Shrinker(
        capsule.finding, capsule.sought, capsule.seed, Pool(1, None), 1, runs_max=BUDGET
    )
    return shrinker.shrink(dict(capsule.data))


def happens(capsule, data):
    """True if a scenario fails with the capsule's fingerprint."""
    return capsule.finding in replay(load_data(data), capsule.seed, capsule.sought).findings


@pytest.mark.night
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_capsule_is_shrunk_to_one_that_is_minimal_by_one(kind, tmp_path, monkeypatch):
    if kind.plant:
        kind.plant(monkeypatch)
    capsule = packed(kind, tmp_path / "found.capsule.yaml")
    found = shrunk(capsule)
    assert found.is_minimal
    assert found.runs < BUDGET
    assert len(found.data["faults"]) < len(kind.data["faults"])
    assert happens(capsule, claimed(found.data, capsule.finding, capsule.sought))
    assert [each for each in smaller_by_one(found.data) if happens(capsule, each)] == []


@pytest.mark.slow
@pytest.mark.parametrize("left_out", [moves.smaller_numbers, moves.fewer_faults])
def test_planted_a_shrinker_that_leaves_something_undone_is_not_minimal_by_one(
    left_out, tmp_path, monkeypatch
):
    kind = KINDS["planted-acknowledged-at-append"]
    kind.plant(monkeypatch)
    monkeypatch.setattr(shrink, "STAGES", tuple(s for s in moves.STAGES if s is not left_out))
    capsule = packed(kind, tmp_path / "found.capsule.yaml")
    found = shrunk(capsule)
    assert any(happens(capsule, each) for each in smaller_by_one(found.data))
