"""Groups that subscribe to a pattern: topics that come and go while they run."""

import pytest
import yaml

from sim.errors import ScenarioError
from sim.protocol.clients.consumer.classic_protocol import ConsumerMembership
from sim.scenario.loader import load_text
from tests.scenarios.run_kit import S, go, text_of

ONE = {"partitions": 2, "replication.factor": 3, "config": {"min.insync.replicas": 2}}
TOPICS = {"bills-eu": ONE, "bills-us": ONE, "orders": ONE}
PRODUCERS = [
    {"name": f"to-{topic}", "topic": topic, "rate": "50/s", "record.size": "100B",
     "config": {"metadata.max.age.ms": 500}}
    for topic in TOPICS
]  # fmt: skip
AGE_US = 2 * S
GONE = [{"at": "12s", "do": "delete-topic", "topic": "bills-us"}]
AGAIN = [*GONE, {"at": "25s", "do": "create-topic", "topic": "bills-us"}]


def group(protocol="classic", **more):
    config = {
        "auto.offset.reset": "earliest", "metadata.max.age.ms": AGE_US // 1_000,
        "group.protocol": protocol,
    }  # fmt: skip
    return {"group": "billing", "topics.pattern": "bills-.*", "config": config} | more


def pattern_run(tmp_path, protocol="classic", **parts):
    parts = {"topics": TOPICS, "producers": PRODUCERS, "lasts": "13s"} | parts
    return go(tmp_path, consumers=[group(protocol, count=2)], **parts)


def topics_read(ran, after=0, until=1 << 60):
    return {row["topic"] for row in ran.rows("reads") if after < row["t_us"] < until}


def owned_at(ran, at):
    """Partitions of the group's members, as each last noted them before an instant."""
    last = {row["consumer"]: row for row in ran.rows("assignments") if row["t_us"] <= at}
    return sorted(p for row in last.values() for p in row["partitions"].split(",") if p)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_reads_the_topics_that_match_and_no_other(tmp_path, protocol):
    ran = pattern_run(tmp_path, protocol)
    assert topics_read(ran) == {"bills-eu", "bills-us"}
    places = [f"{topic}-{number}" for topic in ("bills-eu", "bills-us") for number in (0, 1)]
    assert owned_at(ran, 12 * S) == places
    assert ran.verdict["held"]
    assert ran.records["lost_acked"] == 0


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_topic_that_is_created_on_the_way_is_joined_once_a_member_has_seen_it(tmp_path, protocol):
    """At most ``metadata.max.age.ms`` later; with KIP-848 members hear of it, and of what they have
    to give up, with a heartbeat each, every 5 s."""
    ran = pattern_run(tmp_path, protocol, faults=AGAIN, lasts="42s")
    assert all(fault["took_effect"] for fault in ran.faults)
    assert owned_at(ran, 25 * S) == ["bills-eu-0", "bills-eu-1"], "the deleted one is given up"
    joined = 25 * S + AGE_US + (10 * S if protocol == "consumer" else 0) + S
    assert len(owned_at(ran, joined)) == 4
    assert "bills-us" in topics_read(ran, after=25 * S)
    assert ran.records["lost_acked"] == 0


def rebalances_for_a_new_topic(tmp_path):
    """Generations after the topic was created, which one member sees earlier than the other."""
    config = group()["config"] | {"heartbeat.interval.ms": 300}
    # Both know of the deletion at once; a request for metadata may follow a second after another.
    ages = {"first": 8_000, "second": 4_500}
    two = [group(name=n, config=config | {"metadata.max.age.ms": a}) for n, a in ages.items()]
    parts = {"topics": TOPICS, "producers": PRODUCERS, "faults": AGAIN, "lasts": "32s"}
    ran = go(tmp_path, consumers=two, **parts)
    rows = ran.rows("assignments")
    assert len(owned_at(ran, 31 * S)) == 4
    return len({row["generation"] for row in rows if 25 * S < row["t_us"] < 32 * S})


def test_all_members_come_to_a_new_topic_in_one_rebalance(tmp_path):
    """Each refreshes its metadata before it rejoins (``ConsumerCoordinator.poll``)."""
    assert rebalances_for_a_new_topic(tmp_path) == 1


def test_planted_members_that_rejoin_with_old_metadata_need_another_rebalance(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(ConsumerMembership, "_awaits_metadata", lambda *_: False)
    assert rebalances_for_a_new_topic(tmp_path) > 1


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"topics": ["orders"]}, "beside topics"),
        ({"group": "none"}, "without a group"),
        ({"group.type": "share", "config": {}}, "in a share group"),
        ({"topics.pattern": "bills-("}, "no regular expression"),
        ({"topics.pattern": "bills"}, "matches no topic"),
        ({"topics.pattern": ""}, "no topics"),
    ],
)
def test_a_pattern_that_means_nothing_is_refused(given, words):
    with pytest.raises(ScenarioError, match=words):
        load_text(text_of(topics=TOPICS, producers=PRODUCERS, consumers=[group() | given]))


def test_a_pattern_beside_an_authorizer_is_refused():
    config = {"authorizer.class.name": "StandardAuthorizer", "super.users": "User:ANONYMOUS"}
    with pytest.raises(ScenarioError, match="beside an authorizer"):
        load_text(text_of(topics=TOPICS, producers=PRODUCERS, consumers=[group()], config=config))


def test_a_pattern_is_written_out_as_it_was_given():
    scenario = load_text(text_of(topics=TOPICS, producers=PRODUCERS, consumers=[group()]))
    assert scenario.consumers[0].topics == ("bills-eu", "bills-us")
    written = yaml.safe_load(scenario.as_yaml())["consumers"][0]
    assert written["topics.pattern"] == "bills-.*"
    assert "topics" not in written
    assert load_text(scenario.as_yaml()).digest == scenario.digest
