"""The same run with one setting changed at a time: which smallest change would have saved it.

Changes are tried in order of what they ask of those who run the cluster: a client's setting first,
then a topic's, then the cluster's, then a version. The first that saves the run is the answer.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sim.errors import ScenarioError
from sim.scenario.expectations import found_in
from sim.scenario.loader import load
from sim.scenario.model import Scenario
from sim.scenario.run import run
from sim.suite.facts import Facts


@dataclass(frozen=True, slots=True)
class Change:
    """One setting, as ``--set`` takes it; several keys if several clients or topics have it."""

    words: str
    overrides: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Trial:
    """What a change came to."""

    change: Change
    found: int
    """The number that was wrong: records, or microseconds of an outage."""
    saves: bool


def damage(kind: str, verdict: dict[str, Any]) -> int:
    """The number that is to be made better."""
    if kind in ("late", "outage", "ok"):
        return int(verdict["availability"].get("produce_max_us", 0))
    found = found_in(kind, verdict)
    assert found is not None, f"{kind} is what the run was explained by"
    return found


def changes(scenario: Scenario) -> Iterator[Change]:
    """What may be tried, each only if it changes something and the scenario allows it."""
    clients = range(len(scenario.producers))
    topics = [topic.name for topic in scenario.topics]
    yield _one("acks=all", [f"producers.{n}.config.acks=all" for n in clients])
    yield _one(
        "enable.idempotence=true",
        [
            f"producers.{n}.config.{setting}"
            for n in clients
            for setting in ("acks=all", "enable.idempotence=true")
        ],
    )
    yield _one(
        "max.in.flight.requests.per.connection=1",
        [f"producers.{n}.config.max.in.flight.requests.per.connection=1" for n in clients],
    )
    yield _one("min.insync.replicas=2", [_of_topic(t, "min.insync.replicas=2") for t in topics])
    yield _one("flush.messages=1", [_of_topic(t, "flush.messages=1") for t in topics])
    unclean = "unclean.leader.election.enable=false"
    yield _one(
        unclean,
        [f"cluster.config.{unclean}", *(_of_topic(t, unclean) for t in topics)],
    )
    kept = "delete.retention.ms=86400000"
    yield _one(kept, [_of_topic(topic, kept) for topic in topics])
    yield _one("replica.lag.time.max.ms=5000", ["cluster.config.replica.lag.time.max.ms=5000"])
    yield _one("replica.lag.time.max.ms=30000", ["cluster.config.replica.lag.time.max.ms=30000"])
    session = "broker.session.timeout.ms=3000"
    more_often = "broker.heartbeat.interval.ms=500"
    yield _one(session, [f"cluster.config.{setting}" for setting in (session, more_often)])
    for option in scenario.off_default:
        if option.path.startswith("behaviours."):
            name = option.path.removeprefix("behaviours.")
            yield _one(f"{name}: {option.default}", [f"{option.path}={option.default}"])


def trials(
    facts: Facts, kind: str, directory: Path, should_stop: Callable[[], bool]
) -> Iterator[Trial]:
    """Run the same seed with each change, until one saves it.

    Args:
        facts: The run.
        kind: What went wrong in it.
        directory: Where the runs are written.
        should_stop: Asked now and then.
    """
    file = facts.directory / "scenario.yaml"
    before = damage(kind, facts.verdict)
    scenario = load(file)
    for number, change in enumerate(changes(scenario)):
        try:
            changed = load(file, change.overrides)
        except ScenarioError:
            continue  # the change does not fit the others, which is no answer to anybody
        if changed.digest == scenario.digest:
            continue
        changed = replace(changed, expect=())
        result = run(
            changed, facts.seed, directory / str(number), force=True, level="facts",
            should_stop=should_stop,
        )  # fmt: skip
        if not result.complete:
            return
        found = damage(kind, dict(result.verdict))
        is_outage = kind in ("late", "outage", "ok")
        saves = found * 2 <= before if is_outage else found == 0
        yield Trial(change, found, saves)
        if saves:
            return


def _one(words: str, overrides: list[str]) -> Change:
    return Change(words, tuple(overrides))


def _of_topic(topic: str, setting: str) -> str:
    return f"topics.{topic}.config.{setting}"
