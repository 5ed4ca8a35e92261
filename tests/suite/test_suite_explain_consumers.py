"""Explanations of outages of consumers: records were there, and nobody got them."""

from types import SimpleNamespace

import pytest

from sim.scenario.loader import load_text
from sim.scenario.run.runner import run
from sim.suite.explain import chain, whatif
from sim.suite.explain.causes import causes, mechanisms
from sim.suite.explain.consumers import dead_consumer, ended_consumer, rebalance
from sim.suite.explain.run_facts import RunFacts, Story
from sim.units import SECOND
from tests.scenarios.run_kit import text_of

PLACED = {"partitions": 1, "replicas": [["broker-1", "broker-2", "broker-3"]]}
SHORT = {"broker.session.timeout.ms": 3000, "broker.heartbeat.interval.ms": 500}


def readers(count=1, **config):
    """A group of consumers of the only topic."""
    own = {"auto.offset.reset": "earliest", **config}
    return [{"group": "billing", "topics": ["orders"], "count": count, "config": own}]


def story_of(tmp_path, **parts):
    """The story that a small run tells."""
    parts = {"topic": PLACED, "producer": {"rate": "100/s"}, "config": SHORT} | parts
    run(load_text(text_of(**parts)), out=tmp_path / "run", level="facts")
    facts = RunFacts(tmp_path / "run")
    return Story(facts, facts.pick())


@pytest.fixture(scope="module")
def dark(tmp_path_factory):
    """A leader's machine loses power for good, and its follower is leader after four seconds."""
    power = {"at": "8s", "do": "power-loss", "target": "broker-1", "for": "20s"}
    producer = {"rate": "100/s", "config": {"request.timeout.ms": 4000}}
    return story_of(
        tmp_path_factory.mktemp("dark"), lasts="32s", faults=[power], producer=producer,
        consumers=readers(**{"request.timeout.ms": 15_000}),
    )  # fmt: skip


def test_a_fetch_without_an_answer_costs_request_timeout_ms_although_another_leader_is_there(dark):
    assert dark.subject.kind == "unread"
    start, end = dark.window
    assert 14_900_000 < end - start < 16_000_000
    first = causes(dark)[0]
    assert first.startswith("request.timeout.ms: billing had its last records from broker-1 at ")
    assert "got no answer to its next fetch, for 15,000 ms" in first
    elected = next(row["t_us"] for row in dark.changes if row["leader"] not in (-1, 1))
    assert f"another leader had been there for {(end - elected) / 1e6:.4g} s by then" in first
    assert mechanisms(dark)[0] == "silent-fetch"
    words = [line for _, line in chain.lines(dark)]
    assert "records of orders-0 are delivered again" in words


@pytest.mark.slow
def test_a_shorter_request_timeout_ms_of_consumers_is_what_saves_them(dark, tmp_path):
    found = list(whatif.trials(dark.facts, "unread", tmp_path, lambda: False))
    assert [trial.change.words for trial in found] == ["request.timeout.ms=5000"]
    assert found[0].saves


def test_a_consumer_that_dies_is_named_and_so_is_the_rebalance_that_ends_the_outage(tmp_path):
    dies = {"at": "9s", "do": "crash", "target": "billing-1"}
    config = {"session.timeout.ms": 10_000, "heartbeat.interval.ms": 3000}
    story = story_of(tmp_path, lasts="28s", faults=[dies], consumers=readers(2, **config))
    assert story.subject.kind == "unread"
    dead, rebalanced = causes(story)
    assert dead == "billing-1, which read the partition, crashed at 9.000000 s"
    assert rebalanced.startswith("group billing rebalanced from ")
    assert "until then the partition had no consumer" in rebalanced


def said_by(explain, errors=(), states=(), groups=()):
    """What a way to an outage from 10 s to 20 s says; ``c-1`` of ``billing`` read until 9 s."""
    tables = {
        "reads": [
            {"t_us": at * SECOND, "consumer": "c-1", "group": "billing", "read_from": 1}
            for at in (9, 20)
        ],
        "consumer_errors": [
            {"t_us": at * SECOND, "consumer": name, "group": group, "error": "GROUP_ID_NOT_FOUND"}
            for at, name, group in errors
        ],
        "groups": [
            {"t_us": at * SECOND, "group": "billing", "state": state, "reason": "c-1 left"}
            for at, state in groups
        ],
    }
    story = SimpleNamespace(
        window=(10 * SECOND, 20 * SECOND),
        subject=None,
        states=[{"t_us": at * SECOND, "node": "c-1", "state": state} for at, state in states],
        facts=SimpleNamespace(rows=lambda table, _subject=None: tables[table]),
    )
    return list(explain(story))


def test_consumers_of_the_group_that_poll_ended_in_the_outage_are_named_and_no_others():
    errors = [
        (9, "c-0", "billing"), (10, "c-1", "billing"), (12, "c-2", "billing"),
        (13, "d-1", "audit"), (21, "c-3", "billing"),
    ]  # fmt: skip
    assert said_by(ended_consumer, errors=errors) == [
        "c-2 of group billing ended at 12.000000 s: poll() raised GROUP_ID_NOT_FOUND"
    ]


@pytest.mark.parametrize(
    ("errors", "end"),
    [
        ([(9, "c-1", "billing")], "ended at 9.000000 s: poll() raised GROUP_ID_NOT_FOUND"),
        ([(3, "c-1", "billing")], "stopped at 10.000000 s"),  # of the process before
        ([(9, "c-2", "billing")], "stopped at 10.000000 s"),
        ([], "stopped at 10.000000 s"),
    ],
)
def test_a_reader_that_stopped_ended_by_an_error_only_of_the_same_process(errors, end):
    states = [(0, "started"), (4, "stopped"), (5, "started"), (10, "stopped")]
    (said,) = said_by(dead_consumer, errors=errors, states=states)
    assert said == f"c-1, which read the partition, {end}"


def test_a_group_that_is_empty_after_a_rebalance_has_no_member_and_is_no_group_that_read_on():
    empty = [(11, "PreparingRebalance"), (11, "Empty")]
    assert said_by(rebalance, groups=empty) == [
        "group billing had no member from 11.000000 s on (c-1 left)"
    ]
    (stable,) = said_by(rebalance, groups=[(11, "PreparingRebalance"), (14, "Stable")])
    assert stable.endswith("until then the partition had no consumer")


def test_where_nobody_could_write_either_producers_are_spoken_of(tmp_path):
    dies = {"at": "8s", "do": "crash", "target": "broker-1", "for": "7s"}
    story = story_of(tmp_path, lasts="16s", faults=[dies], consumers=readers())
    assert story.subject.kind == "outage"


def test_changes_of_consumers_are_tried_and_none_of_producers():
    scenario = load_text(text_of(topic=PLACED, consumers=readers()))
    words = [change.words for change in whatif.changes(scenario, "unread") if change.overrides]
    assert words == [
        "request.timeout.ms=5000", "session.timeout.ms=6000", "broker.session.timeout.ms=3000",
    ]  # fmt: skip
