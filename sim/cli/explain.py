"""``logquake explain``: the causal chain of a record, its mechanism, and what would have helped."""

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sim.cli.exits import Case, ExitCode, exit_codes, failed, say_json
from sim.cli.run import stop_requests
from sim.cli.screen import say, step_bar
from sim.errors import SimulationError
from sim.scratch import scratch
from sim.suite.explain import chain, whatif
from sim.suite.explain.causes import causes
from sim.suite.explain.run_facts import RunFacts, Story
from sim.units import show_duration

_CONTRADICTIONS = (
    *(LookupError, TypeError, ValueError, ArithmeticError, AttributeError, AssertionError),
    RecursionError,
)
_WHAT = {
    "lost_acked": "was acknowledged, and is lost",
    "divergent": "differs between two replicas",
    "duplicated": "stands in the log more than once",
    "reordered": "stands behind a later record",
    "unprocessed": "was read by a task, and has no output",
    "reprocessed": "has more outputs than it asks for",
    "late": "was acknowledged, and is there",
    "aborted": "was sent in a transaction that was aborted",
    "ok": "was not acknowledged",
}

_OUTAGES = {"outage": "the longest outage", "unread": "the consumers' longest outage"}
"""Names of the number that is too large."""

_REAL = "what would have helped, as no seed brings a real run again; simulate it: logquake run {}"

_UNKNOWN = "the trace shows no mechanism that is known by name"


def explain_command(directory: Path, record: str, *, rerun: bool, as_json: bool) -> None:
    """Explain what became of a record, or of the first thing that went wrong, and why."""
    with exit_codes(Case(directory=directory)):
        found = explanation(directory, record, rerun=rerun, hear=_silent if as_json else say)
        if as_json:
            say_json(found)


def explanation(
    directory: Path, record: str, *, rerun: bool, hear: Callable[[str], None]
) -> dict[str, Any]:
    """The causal chain of a record, its causes, and what would have helped.

    Args:
        directory: The run.
        record: ``PRODUCER:NUMBER``, or nothing for the first thing that went wrong.
        rerun: Whether the seed is run again with changes.
        hear: Called with each line as soon as it is known.

    Returns:
        ``head``, ``subject``, ``is_time``, ``chain``, ``ending``, ``causes``, ``untried``,
        ``tried`` and ``advice``, in words.

    Raises:
        SimulationError: If the directory is no run, or its files contradict each other.
    """
    facts = RunFacts(directory)
    rerun = rerun and not facts.is_real
    with _understood(directory):
        story = Story(facts, facts.pick(record))
        kind = story.subject.kind
        found = chain.lines(story)
        why = causes(story)
        head, end = _head(story), chain.ending(story)
    for line in (head, *map(chain.show, found), *([f"{'':>14}  {end}"] if end else [])):
        hear(line)
    for cause in why:
        hear(f"why: {cause}")
    is_wrong = kind != "wait"
    old = whatif.old_behaviours(facts.scenario) if is_wrong else []
    blame = _blame(facts, kind) if rerun and old else None
    if blame is not None:
        why.append(_shown_by_rerun(kind, blame))
        for line in (f"why: {why[-1]}", *(f"no verdict without {each}" for each in blame.errors)):
            hear(line)
    elif is_wrong and not why:
        hear(f"why: {_UNKNOWN}")
    if facts.is_real and is_wrong:
        hear(f"not tried: {_REAL.format(directory / 'scenario.yaml')}")
    elif old and not rerun:
        hear(f"not tried: {_untried(old)}")
    tried, advice = _try(facts, kind, hear) if rerun and is_wrong else ([], "")
    return {
        "head": head,
        "subject": asdict(story.subject),
        "is_time": kind in whatif.OUTAGES,
        "chain": [{"t_us": at, "what": words} for at, words in found],
        "ending": end,
        "causes": why,
        "untried": [] if rerun else [change.words for change in old],
        "tried": [asdict(trial) for trial in tried],
        "advice": advice,
    }


def _silent(_: str) -> None:
    """Ignores a line."""


@contextmanager
def _understood(directory: Path) -> Iterator[None]:
    """Turn what fails inside into bad input: each file is sound, and they contradict each other.

    Raises:
        SimulationError: With the place in the code, for it may be wrong instead.
    """
    try:
        yield
    except _CONTRADICTIONS as error:
        step = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{type(error).__name__} at {Path(step.filename).name}:{step.lineno}"
        raise SimulationError(
            f"{directory}: run.json, verdict.json and trace/ contradict each other ({place}); "
            "were they changed? logquake run makes them again"
        ) from None


def _head(story: Story) -> str:
    subject = story.subject
    run = f"{story.facts.card['scenario']}, seed {story.facts.seed}"
    if subject.kind in _OUTAGES:
        return f"{run}: {_OUTAGES[subject.kind]}, {show_duration(subject.for_us)} of {subject}"
    if subject.kind == "wait":
        return (
            f"{run}: nothing went wrong; the longest time without an acknowledgement is "
            f"{show_duration(subject.for_us)} of {subject}, which is no outage"
        )
    return f"{run}: {subject} {_WHAT[subject.kind]}"


def _blame(facts: RunFacts, kind: str) -> whatif.Blame | None:
    """Run the seed again without the behaviours of older versions."""
    with (
        scratch() as directory,
        stop_requests() as stop,
        step_bar("without behaviours of older versions"),
    ):
        blame = whatif.blamed(facts, kind, directory, stop)
        if stop():
            raise failed("interrupted", ExitCode.INTERRUPTED)
    return blame


def _shown_by_rerun(kind: str, blame: whatif.Blame) -> str:
    shown = show_duration(blame.found) if kind in whatif.OUTAGES else f"{blame.found:,}"
    number = _OUTAGES.get(kind, _OUTAGES["outage"]) if kind in whatif.OUTAGES else kind
    with_today = "with today's" if len(blame.words) == 1 else "only with all of today's"
    return (
        f"the cluster behaves as before a fix: {'; '.join(blame.words)}; {with_today} the same "
        f"seed comes to {number} {shown}"
    )


def _untried(old: list[whatif.SettingChange]) -> str:
    words = "; ".join(change.words for change in old)
    return f"whether it takes behaviours of an older version ({words}); without --no-rerun it is"


def _try(
    facts: RunFacts, kind: str, hear: Callable[[str], None]
) -> tuple[list[whatif.ChangeOutcome], str]:
    """Run the seed again with one change at a time; the last trial is the one that helped."""
    is_outage = kind in whatif.OUTAGES
    found: list[whatif.ChangeOutcome] = []
    with (
        scratch() as directory,
        stop_requests() as stop,
        step_bar("what would have helped") as on_step,
    ):
        for trial in whatif.trials(facts, kind, directory, stop):
            found.append(trial)
            on_step(trial.change.words)
            shown = show_duration(trial.found) if is_outage else f"{trial.found:,}"
            word = f"{kind} {shown}: {'saves it' if trial.saves else 'does not'}"
            hear(f"with {trial.change.words}: {trial.error or word}")
        if stop():
            raise failed("interrupted", ExitCode.INTERRUPTED)
    saving = next((trial for trial in found if trial.saves), None)
    advice = "no single change of those that were tried would have saved it"
    if saving is not None:
        sets = " ".join(f"--set {word}" for word in saving.change.overrides)
        advice = f"the smallest change that saves it: {saving.change.words} ({sets})"
    hear(advice)
    return found, advice
