"""The search's own promises: equal states have equal futures, and a broken property is seen."""

import random

import pytest

from sim.protocol.broker.truncation.registry import TRUNCATIONS
from tests.explore import brokers
from tests.explore.brokers import Brokers
from tests.explore.world import Bounds, World

WIDE = Bounds(brokers=3, records=4, moves=3, crashes=2, restarts=3, min_in_sync=2, elr=True)


def walk(world, seed, steps=150):
    chance = random.Random(seed)
    state = world.initial()
    for _ in range(steps):
        choices = list(world.successors(state))
        if not choices:
            return
        _, state = chance.choice(choices)


@pytest.mark.parametrize("rule", ["kip320", "kip101"])
def test_machines_of_equal_state_and_different_past_do_the_same(rule):
    world = World(Brokers(TRUNCATIONS[rule], doubts=True), WIDE, forgives=True)
    for seed in range(12):
        walk(world, seed)
    assert len(world.machines.views) > 300


@pytest.mark.parametrize("field", [3, 15, 20])
def test_a_state_that_forgets_its_disk_its_followers_or_its_fetches_is_caught(field, monkeypatch):
    whole = brokers.key_of

    def forgetful(manager, metadata):
        key = whole(manager, metadata)
        return (*key[:field], None, *key[field + 1 :])

    monkeypatch.setattr(brokers, "key_of", forgetful)
    with pytest.raises(AssertionError, match="equal states part"):
        test_machines_of_equal_state_and_different_past_do_the_same("kip320")
