"""Static members of the consumer protocol in a whole cluster (KIP-345 in KIP-848's protocol)."""

import pytest

from sim.errors import InvariantBroken, ScenarioError
from sim.protocol.coordinator.group.consumer_groups import ConsumerGroups
from sim.scenario.loader import load_text
from tests.scenarios.run_kit import S, go, text_of

MODERN = {"group.protocol": "consumer", "auto.offset.reset": "earliest"}


def static(name, instance, **more):
    config = MODERN | {"group.instance.id": instance}
    return {"name": name, "group": "billing", "topics": ["orders"], "config": config} | more


@pytest.fixture(scope="module")
def followed(tmp_path_factory):
    """The first leaves at 11 s and is followed under its instance id; another reads on.

    Heartbeats come every 5 s, so that the two have their partitions after 10 s at the latest.
    """
    consumers = [
        static("first", "one", stop="11s"),
        static("heir", "one", start="12s"),
        static("other", "two"),
    ]
    more = {"producer": {"rate": "50/s"}, "lasts": "14s"}
    return go(tmp_path_factory.mktemp("static"), consumers=consumers, **more)


def test_the_next_of_an_instance_id_gets_its_partitions_and_nobody_else_moves(followed):
    assert followed.verdict["held"]
    held = {r["consumer"]: r["partitions"] for r in followed.rows("assignments") if r["partitions"]}
    assert held["heir"] == held["first"]
    assert not [t for t in followed.times("assignments", consumer="other") if 11 * S < t < 14 * S]
    assert not [t for t in followed.times("groups", reason="new group epoch") if t > 11 * S]


def test_its_place_is_left_with_epoch_minus_two(followed):
    rows = followed.rows("group_members")
    left = next(place for place, row in enumerate(rows) if row["member_epoch"] == -2)
    gone, copied, heir = rows[left + 1 : left + 4]
    assert (gone["member_id"], gone["state"]) == (rows[left]["member_id"], "GONE")
    assert (copied["member_epoch"], heir["consumer"]) == (0, "heir")
    assert heir["member_epoch"] > 0


def test_a_member_that_died_keeps_its_instance_id_until_its_session_ends(tmp_path):
    """Kafka's client ends with UNRELEASED_INSTANCE_ID when it is restarted too soon."""
    faults = [{"at": "4s", "do": "crash", "target": "first", "for": "1s"}]
    ran = go(tmp_path, consumers=[static("first", "one")], faults=faults, lasts="8s")
    states = [row["state"] for row in ran.rows("node_states", node="first")]
    assert states[-1] == "stopped"
    assert not [t for t in ran.times("reads") if t > 5 * S]


def test_planted_an_instance_id_with_two_owners_is_found_out(tmp_path, monkeypatch):
    """Without the check of instance ids a restarted member takes what the group gave its twin."""

    def forgets(self, group, request, records):
        live = group.live
        former = live.static_member(request.instance_id) if request.member_epoch == 0 else None
        new = super(ConsumerGroups, self)._before(group, request, records)
        if former is None:
            return new
        twin = former.assigned
        return type(new)(request.member_id, assigned=twin, instance_id=request.instance_id)

    monkeypatch.setattr(ConsumerGroups, "_before", forgets)
    consumers = [static("first", "one", stop="4s"), static("heir", "one", start="5s")]
    with pytest.raises(InvariantBroken, match="partitions-have-one-owner"):
        go(tmp_path, consumers=consumers, lasts="8s")


def test_two_members_at_a_time_may_not_have_one_instance_id():
    consumers = [static("first", "one"), static("second", "one")]
    with pytest.raises(ScenarioError, match="'one' is first already"):
        load_text(text_of(consumers=consumers))
