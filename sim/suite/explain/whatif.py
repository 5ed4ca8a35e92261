"""The same run with one setting changed at a time: which smallest change would have saved it.

Changes are tried in order of what they ask of those who run the cluster: a client's setting first,
then a topic's, then the cluster's, then a version. The first that saves the run is the answer.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from sim.errors import InvariantBroken, NoProgress, ScenarioError
from sim.scenario.expect.bounds import found_in
from sim.scenario.loader import load
from sim.scenario.run.runner import run
from sim.scenario.scenario import Scenario
from sim.scenario.settings.resolved import Config
from sim.suite.explain.run_facts import RunFacts

OUTAGES: Final = ("late", "outage", "ok", "unread")
"""Kinds of which the longest outage is the measure: of ``unread`` that of consumers."""

_PAIR: Final = 2

_HASTY_MS: Final = 5_000
"""``request.timeout.ms`` of a client that gives a silent broker up soon; Kafka's is 30,000."""


@dataclass(frozen=True, slots=True)
class SettingChange:
    """One setting, as ``--set`` takes it; several keys if several clients or topics have it."""

    words: str
    overrides: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChangeOutcome:
    """Outcome of a change."""

    change: SettingChange
    found: int
    """The number that was wrong: records, or microseconds of an outage."""
    saves: bool
    error: str = ""
    """Reason of a run without a verdict, after which nothing is known of the change."""


def damage(kind: str, verdict: dict[str, Any]) -> int:
    """The number that is to be made better."""
    if kind == "unread":
        worst = verdict["answer"]["down"]["worst"]
        return max((int(each["max_us"]) for each in worst if each["what"] == "consume"), default=0)
    if kind in OUTAGES:
        return int(verdict["availability"].get("produce_max_us", 0))
    found = found_in(kind, verdict)
    assert found is not None, f"{kind} is what the run was explained by"
    return found


def changes(scenario: Scenario, kind: str) -> Iterator[SettingChange]:
    """Changes to try, each only if it changes something and the scenario allows it.

    Args:
        scenario: Of the run.
        kind: What went wrong; of outages what only ends a wait sooner is tried, too.
    """
    if kind == "unread":
        yield from _of_consumers(scenario)
        yield _sooner_fenced()
        yield from _behaviours(scenario)
        return
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
    # A leader that went silent is looked for elsewhere only after this time.
    waits = f"request.timeout.ms={_HASTY_MS}"
    longer = [n for n in clients if _waits_long(scenario.producers[n].config)]
    if kind in OUTAGES:
        yield _one(waits, [f"producers.{n}.config.{waits}" for n in longer])
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
    yield _sooner_fenced()
    yield from _behaviours(scenario)


def _of_consumers(scenario: Scenario) -> Iterator[SettingChange]:
    """Changes by which readers look for another leader, and groups for another member, sooner."""
    waits = f"request.timeout.ms={_HASTY_MS}"
    clients = [n for n, each in enumerate(scenario.consumers) if _waits_long(each.config)]
    yield _one(waits, [f"consumers.{n}.config.{waits}" for n in clients])
    session, more_often = "session.timeout.ms=6000", "heartbeat.interval.ms=2000"
    yield _one(
        session,
        [
            f"consumers.{n}.config.{setting}"
            for n, each in enumerate(scenario.consumers)
            if each.membership == "classic"
            for setting in (session, more_often)
        ],
    )


def _sooner_fenced() -> SettingChange:
    session = "broker.session.timeout.ms=3000"
    more_often = "broker.heartbeat.interval.ms=500"
    return _one(session, [f"cluster.config.{setting}" for setting in (session, more_often)])


def _behaviours(scenario: Scenario) -> Iterator[SettingChange]:
    """Behaviours of older versions, each as it is today."""
    for option in scenario.off_default:
        if option.path.startswith("behaviours."):
            name = option.path.removeprefix("behaviours.")
            yield _one(f"{name}: {option.default}", [f"{option.path}={option.default}"])


def trials(
    facts: RunFacts, kind: str, directory: Path, should_stop: Callable[[], bool]
) -> Iterator[ChangeOutcome]:
    """Run the same seed with each change, until one saves it.

    Args:
        facts: The run.
        kind: What went wrong in it.
        directory: Where the runs are written.
        should_stop: Asked now and then.
    """
    before = damage(kind, facts.verdict)
    for number, change in enumerate(changes(facts.scenario, kind)):
        try:
            found = _again(facts, kind, change.overrides, directory / str(number), should_stop)
        except (InvariantBroken, NoProgress) as error:
            yield ChangeOutcome(change, before, saves=False, error=_first_line(error))
            continue
        if should_stop():
            return
        if found is not None:
            saves = _is_saved(kind, before, found)
            yield ChangeOutcome(change, found, saves=saves)
            if saves:
                return


@dataclass(frozen=True, slots=True)
class Blame:
    """Behaviours of an older version without which the run would have been saved."""

    words: tuple[str, ...]
    """``truncation is hw, today's is kip320``; several if only together they do it."""
    found: int
    """The number that was wrong, as it is without them."""
    errors: tuple[str, ...] = ()
    """Trials that came to no verdict, and why."""


def old_behaviours(scenario: Scenario) -> list[SettingChange]:
    """The behaviours that are not today's, each with the change that makes it so."""
    return [
        SettingChange(
            f"{option.path.removeprefix('behaviours.')} is {option.value}, today's is "
            f"{option.default}",
            (f"{option.path}={option.default}",),
        )
        for option in scenario.off_default
        if option.path.startswith("behaviours.")
    ]


def blamed(
    facts: RunFacts, kind: str, directory: Path, should_stop: Callable[[], bool]
) -> Blame | None:
    """Old behaviours that are needed, shown by running the seed without them.

    All are made today's at once: where that saves nothing, none is a cause. Then halves are tried,
    so that one of sixteen is found with at most nine runs. Where neither half saves the run,
    several are needed: what can be left out of them is left out, one by one. ``None`` if there is
    none, or somebody stopped it. A mixture of versions that never was may break an invariant: such
    a trial shows nothing, and is reported.

    Args:
        facts: The run.
        kind: What went wrong in it.
        directory: Where the runs are written.
        should_stop: Asked now and then.
    """
    scenario = load(facts.directory / "scenario.yaml")
    suspects, found, count = old_behaviours(scenario), 0, 0
    errors: list[str] = []

    def saved(changed: list[SettingChange]) -> int | None:
        nonlocal count
        count += 1
        words = [word for change in changed for word in change.overrides]
        try:
            result = _again(facts, kind, words, directory / f"without-{count}", should_stop)
        except (InvariantBroken, NoProgress) as error:
            errors.append(f"{' '.join(words)}: {_first_line(error)}")
            return None
        is_saved = result is not None and _is_saved(kind, damage(kind, facts.verdict), result)
        return result if is_saved else None

    all_of_them = saved(suspects) if suspects else None
    if all_of_them is None:
        return None
    found = all_of_them
    while len(suspects) > 1:
        middle = len(suspects) // 2
        for half in (suspects[:middle], suspects[middle:]):
            left = saved(half)
            if left is not None:
                suspects, found = half, left
                break
        else:
            break
    # Of two that are left each has been tried alone.
    for each in list(suspects) if len(suspects) > _PAIR else ():
        rest = [change for change in suspects if change is not each]
        left = saved(rest) if rest else None
        if left is not None:
            suspects, found = rest, left
    return Blame(tuple(change.words for change in suspects), found, tuple(errors))


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _again(
    facts: RunFacts, kind: str, overrides: Sequence[str], directory: Path,
    should_stop: Callable[[], bool],
) -> int | None:  # fmt: skip
    """The number that was wrong, in the same seed with some changes.

    ``None`` if they do not fit together or change nothing, or somebody stopped it.
    """
    file = facts.directory / "scenario.yaml"
    try:
        changed = load(file, overrides)
    except ScenarioError:
        return None  # the change does not fit the others, which is no answer to anybody
    if changed.digest == facts.scenario.digest or should_stop():
        return None
    result = run(
        replace(changed, expect=()), facts.seed, directory, force=True, level="facts",
        should_stop=should_stop,
    )  # fmt: skip
    return damage(kind, dict(result.verdict)) if result.complete else None


def _is_saved(kind: str, before: int, found: int) -> bool:
    is_outage = kind in OUTAGES
    return found * 2 <= before if is_outage else found == 0


def _waits_long(config: Config) -> bool:
    return config.number("request.timeout.ms") > _HASTY_MS


def _one(words: str, overrides: list[str]) -> SettingChange:
    return SettingChange(words, tuple(overrides))


def _of_topic(topic: str, setting: str) -> str:
    return f"topics.{topic}.config.{setting}"
