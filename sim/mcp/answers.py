"""Answers of the tools, from which their output schemas are made.

Each has ``understood``, and ``commands``: command lines that give the same.
"""

from typing import Annotated, Any

from pydantic import BaseModel, Field

from sim.levels import Level
from sim.mcp.workspace import Origin
from sim.scenario.run.summary import Summary

Commands = Annotated[
    list[str], Field(description="Command lines that give the same in a shell, in their order.")
]


class UnderstoodScenario(BaseModel):
    """The scenario of a call."""

    given_as: Origin
    file: str = Field(description="Its file; a text was written there.")
    changes: list[str] = Field(description="KEY=VALUE each, as --set takes them.")
    scenario: Summary = Field(description="With every default filled in.")


class Number(BaseModel):
    """One of the three numbers: lost, down or slow."""

    level: Level = Field(description="By fixed rules: docs/results.md, The answer.")
    text: str


class FaultEffect(BaseModel):
    """Effect and cost of one fault."""

    level: Level
    text: str


class HeldExpectation(BaseModel):
    """One line of expect."""

    name: str
    where: str = Field(description="Part of the run that it is about; empty: all of it.")
    expected: str
    found: str
    held: bool
    story: str = Field(description="Of one that did not hold: how it came to it.")


class RunAnswer(BaseModel):
    """Result of one run."""

    understood: UnderstoodScenario
    held: bool = Field(
        description="Every expectation held, every fault took effect, every topic was served."
    )
    lost: Number
    down: Number
    slow: Number
    faults: list[FaultEffect]
    expectations: list[HeldExpectation]
    faults_without_effect: list[str]
    unserved: list[str] = Field(description="Topics that did not take what producers sent.")
    records: dict[str, int] = Field(description="Fates of records: docs/results.md, The verdict.")
    checks: dict[str, int] = Field(
        description="Checks by outcome; one that met nothing of its subject proves nothing."
    )
    directory: str = Field(description="Run directory: run.json, verdict.json, trace, disks.")
    trace_digest: str = Field(description="Equal for equal runs.")
    commands: Commands


class UnderstoodRun(BaseModel):
    """The run of an explanation."""

    directory: str
    scenario: str
    claim: str
    seed: int
    complete: bool = Field(description="False: the run was interrupted.")
    record: str = Field(description="As given; empty: the first thing that went wrong.")


class Step(BaseModel):
    """One event of a causal chain."""

    t_us: int = Field(description="Simulated instant, in microseconds.")
    what: str


class Change(BaseModel):
    """A change of a setting with which the seed was run again."""

    words: str
    changes: list[str] = Field(description="KEY=VALUE each, as --set takes them.")
    found: int = Field(description="The number that was wrong: records, or microseconds down.")
    saves: bool
    error: str = Field(description="Reason of a run without a verdict.")


class Explanation(BaseModel):
    """Fate of a record, or an outage, with its causes."""

    understood: UnderstoodRun
    head: str
    chain: list[Step]
    ending: str
    causes: list[str]
    tried: list[Change]
    smallest_change: str = Field(description="That saves it; empty if none of those tried does.")
    untried: list[str]
    commands: Commands


class UnderstoodVerdict(BaseModel):
    """The cluster of a verdict; faults and expectations of its scenario are left out."""

    scenario: UnderstoodScenario
    imported_from: list[str]
    not_simulated: list[str] = Field(description="Of imported files: settings left out, and why.")
    seeds: str
    budget: str


class Finding(BaseModel):
    """One sentence with the command that shows it."""

    sentence: str
    seed: int
    command: str


class VerdictAnswer(BaseModel):
    """Outcomes of single faults."""

    understood: UnderstoodVerdict
    findings: list[Finding] = Field(description="The worst first.")
    closing: list[str]
    losing_faults: int = Field(description="Single faults that lost acknowledged records.")
    untried_runs: int = Field(description="They did not fit into the budget.")
    errors: list[str]
    directory: str
    commands: Commands


class UnderstoodSweep(BaseModel):
    """The comparison of a sweep."""

    scenario: UnderstoodScenario
    vary: list[str]
    configurations: int
    seeds: str
    outage: str


class ConfigurationRow(BaseModel):
    """One configuration with its numbers; durations are microseconds."""

    settings: dict[str, str]
    runs: int
    failed_runs: int
    loss: float | None = Field(description="Probability that a run loses acknowledged records.")
    loss_low: float | None
    loss_high: float | None
    outage: float | None = Field(description="Probability of an outage.")
    unavailable_us: float | None = Field(description="Longest time without service, on average.")
    p50: float | None = Field(description="Produce latency.")
    p99: float | None
    throughput: float | None = Field(description="Acknowledged records per second.")
    is_best: bool = Field(description="No other is better in something and worse in nothing.")


class SweepAnswer(BaseModel):
    """Configurations compared over the same seeds."""

    understood: UnderstoodSweep
    verdict: str = Field(description="The result in plain words.")
    safest: dict[str, str] | None = Field(
        description="Settings of the safest choice: nothing lost and the shortest time without "
        "service, else the least often lost."
    )
    table: list[ConfigurationRow]
    refused: list[str] = Field(description="Combinations that cannot be, with reasons.")
    report: str
    directory: str
    commands: Commands


class Validation(BaseModel):
    """A scenario that can be run, or all that is wrong with it."""

    understood: UnderstoodScenario | None = Field(description="Null if it cannot be run.")
    ok: bool
    problems: list[str] = Field(
        description="FILE:LINE: KEY: found; allowed; remedy, a line for each mistake."
    )
    commands: Commands


class UnderstoodSearch(BaseModel):
    """The words of a search."""

    words: list[str]
    kind: str
    searched: int = Field(description="Number of scenarios.")


class CatalogueEntry(BaseModel):
    """A scenario that comes with the program."""

    name: str = Field(description="As run, validate, verdict and explore take it.")
    kind: str = Field(description="catalogue: a published failure; example: any other scenario.")
    claim: str
    versions: str = Field(description="Version of Kafka, and behaviours of other versions.")
    history: str
    source: str
    file: str
    command: str


class CatalogueAnswer(BaseModel):
    """Entries that a search found, the nearest first."""

    understood: UnderstoodSearch
    found: int
    entries: list[CatalogueEntry]
    near: list[str] = Field(description="Known words, if nothing was found.")
    commands: Commands


Plain = dict[str, Any]
"""JSON of a command."""
