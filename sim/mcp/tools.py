"""The tools: each loads what it is given, holds it against the limits, and runs a command."""

import json
from collections.abc import Awaitable, Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Final, ParamSpec, TypeAlias, TypeVar, cast

from anyio import current_time
from anyio.to_thread import run_sync
from mcp.server.mcpserver import Context
from mcp_types import CallToolResult, TextContent
from pydantic import Field

from sim.errors import ScenarioError, SimulationError
from sim.mcp import catalogue, read
from sim.mcp.answers import (
    CatalogueAnswer,
    CatalogueEntry,
    Explanation,
    Plain,
    RunAnswer,
    SweepAnswer,
    UnderstoodScenario,
    UnderstoodSearch,
    UnderstoodSweep,
    UnderstoodVerdict,
    Validation,
    VerdictAnswer,
)
from sim.mcp.limits import Limits
from sim.mcp.process import Commands, OnStep, command
from sim.mcp.workspace import GivenScenario, Workspace, check_name
from sim.progress import Step
from sim.scenario.loader import load
from sim.scenario.overrides.vary import Configuration, configurations, variation
from sim.scenario.run.directory import CARD
from sim.scenario.run.summary import Summary, summary
from sim.suite.fault_outcomes import parse_budget
from sim.suite.plan import parse_seeds
from sim.units import show_duration

Call: TypeAlias = Context[Any, Any]
P = ParamSpec("P")
T = TypeVar("T")

GivenText = Annotated[
    str,
    Field(
        description="A scenario: its YAML text; or the path of a file below the root; or the name "
        "of one that comes with the program (catalogue_search finds them), such as "
        "acks1-leader-crash."
    ),
]
Changes = Annotated[
    list[str] | None,
    Field(
        description="KEY=VALUE each, such as producers.shop.config.acks=all or run.for=30s; keys "
        "are those of the scenario file."
    ),
]
Named = Annotated[
    str, Field(description="Name of a scenario that is given as text; its files are called so.")
]
Seed = Annotated[int | None, Field(ge=0, lt=1 << 63, description="Instead of run.seed.")]

_STEP: Final = 1e-3
"""Least progress between two notifications, for progress has to increase."""

_APART_S: Final = 0.2
"""Least time between two of them, in seconds."""


def answering(tool: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """The tool with problems of the caller as tool errors, in the words of the command line."""

    @wraps(tool)
    async def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await tool(*args, **kwargs)
        except SimulationError as error:
            text = str(error)
        except OSError as error:
            text = f"{error.filename}: {error.strerror}"
        refused = CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)
        return cast("T", refused)  # the SDK passes a result on as it is

    return call


class Tools:
    """The tools over one root directory.

    Args:
        workspace: Files that may be read and written.
        limits: Of each call.
        commands: Runs them.
    """

    def __init__(self, workspace: Workspace, limits: Limits, commands: Commands) -> None:
        self._workspace = workspace
        self._limits = limits
        self._commands = commands

    @answering
    async def run(
        self,
        ctx: Call,
        scenario: GivenText,
        seed: Seed = None,
        changes: Changes = None,
        name: Named = "scenario",
    ) -> RunAnswer:
        """Run a scenario once and judge it: what was lost, how long it was down, how slow it got.

        The same scenario with the same seed gives the same answer. One run proves little about
        another seed: see verdict and explore.
        """
        sets = changes or []
        given, found = await self._loaded(scenario, name, sets, seed)
        self._limits.check_scenario(found)
        out = self._workspace.free(f"{found.scenario}-s{found.seed}")
        words = ["run", str(given.file), "--seed", str(found.seed), *_sets(sets), "--out", str(out)]
        plain = await self._commands.answer(words, _steps(ctx))
        understood = _understood(given, sets, found)
        return read.run_answer(plain, _card(out), understood, [*words, "--force"])

    @answering
    async def explain(
        self,
        ctx: Call,
        run: Annotated[
            str, Field(description="A run's directory as run returned it, or its name.")
        ],
        record: Annotated[
            str,
            Field(
                description="PRODUCER:TOPIC-PARTITION:NUMBER or TOPIC-PARTITION@OFFSET; empty: "
                "the first thing that went wrong."
            ),
        ] = "",
        *,
        rerun: Annotated[
            bool, Field(description="Run the seed again to find the smallest change that helps.")
        ] = True,
    ) -> Explanation:
        """Explain what became of a record, why, and which smallest change would have saved it."""
        directory = self._workspace.run_directory(run)
        words = ["explain", *([] if rerun else ["--no-rerun"]), "--", str(directory)]
        words += [record] if record else []
        plain = await self._commands.answer(words, _steps(ctx))
        return read.explanation(plain, _card(directory), directory, record, words)

    @answering
    async def verdict(
        self,
        ctx: Call,
        scenario: GivenText = "",
        files: Annotated[
            list[str] | None,
            Field(
                description="Instead of a scenario: server.properties, a producer's properties, "
                "output of kafka-topics --describe and kafka-configs --describe; paths below the "
                "root."
            ),
        ] = None,
        seeds: Annotated[str, Field(description="Such as 1..3 or 3,7.")] = "1..3",
        budget: Annotated[str, Field(description="Real time it may take, such as 90s.")] = "2m",
        changes: Changes = None,
        name: Named = "scenario",
    ) -> VerdictAnswer:
        """Try every single fault on a cluster and say in sentences what it loses, and how long.

        Cluster, topics and clients are the scenario's; its own faults are left out.
        """
        if bool(scenario) == bool(files):
            raise SimulationError("verdict: give a scenario or files, and not both")
        self._limits.check_runs(len(parse_seeds(seeds)), "seeds")
        self._check_budget(budget)
        steps, sets, commands = _steps(ctx), changes or [], list[str]()
        absent: list[str] = []
        if files:
            scenario, absent = await self._imported(files, name, steps, commands)
        given, found = await self._loaded(scenario, name, sets)
        out = self._workspace.free(f"{found.scenario}-verdict")
        jobs = self._commands.jobs
        words = ["verdict", str(given.file), "--seeds", seeds, "--budget", budget]
        words += ["--jobs", str(jobs), *_sets(sets), "--out", str(out)]
        plain = await self._commands.answer(words, steps, places=jobs)
        understood = UnderstoodVerdict(
            scenario=_understood(given, sets, found),
            imported_from=files or [],
            not_simulated=absent,
            seeds=seeds,
            budget=budget,
        )
        return read.verdict_answer(plain, understood, [*commands, command(words)])

    @answering
    async def explore(
        self,
        ctx: Call,
        scenario: GivenText,
        vary: Annotated[
            list[str],
            Field(
                description="KEY=A,B,C each, such as acks=0,1,all or min.insync.replicas=1,2; "
                "every combination is compared."
            ),
        ],
        seeds: Annotated[str, Field(description="How many, from 1 on; or a range: 1..50.")] = "10",
        outage: Annotated[
            str, Field(description="A longer time without service is an outage.")
        ] = "1s",
        changes: Changes = None,
        name: Named = "scenario",
    ) -> SweepAnswer:
        """Compare configurations over the same seeds, with Spark: a table, and the safest choice.

        Probabilities have 95 % intervals.
        """
        sets = changes or []
        given, found = await self._loaded(scenario, name, sets)
        self._limits.check_scenario(found)
        compared = configurations([variation(text) for text in vary])
        self._limits.check_runs(len(compared) * _count(seeds), "a sweep")
        await self._check_each(given.file, sets, compared)
        out = self._workspace.free(f"{found.scenario}-explore")
        jobs = self._commands.jobs
        words = ["explore", str(given.file), *(word for v in vary for word in ("--vary", v))]
        words += ["--seeds", seeds, "--outage", outage, "--master", f"local[{jobs}]"]
        words += [*_sets(sets), "--out", str(out)]
        plain = await self._commands.answer(words, _steps(ctx), places=jobs)
        understood = UnderstoodSweep(
            scenario=_understood(given, sets, found),
            vary=vary,
            configurations=len(plain["configurations"]),
            seeds=seeds,
            outage=outage,
        )
        replay = _replay_of_safest(plain, compared, [str(given.file), *_seed(seeds)], sets, out)
        return read.sweep_answer(plain, understood, words, replay)

    @answering
    async def validate(
        self, scenario: GivenText, changes: Changes = None, name: Named = "scenario"
    ) -> Validation:
        """Check a scenario without running it: all its problems at once, or what was understood."""
        sets = changes or []
        given = await self._given(scenario, name)
        commands = [command(["validate", str(given.file), *_sets(sets)])]
        try:
            found = await self._load(given.file, sets)
        except ScenarioError as error:
            problems = str(error).splitlines()
            return Validation(understood=None, ok=False, problems=problems, commands=commands)
        understood = _understood(given, sets, found)
        return Validation(understood=understood, ok=True, problems=[], commands=commands)

    @answering
    async def catalogue_search(
        self,
        words: Annotated[
            str,
            Field(
                description="Words of a failure, a fault, a setting, a KIP or a ticket, such as "
                "unclean election or KIP-101; empty: everything."
            ),
        ] = "",
        kind: Annotated[
            catalogue.Kind, Field(description="catalogue: published failures alone.")
        ] = "all",
        limit: Annotated[int, Field(ge=1, le=200)] = 10,
    ) -> CatalogueAnswer:
        """Search published failures of Kafka, and examples, that come with the program."""
        given = catalogue.words_of(words)
        found = await run_sync(catalogue.search, given, kind)
        searched = len(catalogue.searched(kind))
        return CatalogueAnswer(
            understood=UnderstoodSearch(words=given, kind=kind, searched=searched),
            found=len(found),
            entries=[_entry(each) for each in found[:limit]],
            near=[] if found else catalogue.near(given),
            commands=[command(["list", "scenarios"])],
        )

    async def _loaded(
        self, given: str, name: str, sets: list[str], seed: int | None = None
    ) -> tuple[GivenScenario, Summary]:
        """The scenario's file, and what it says.

        Raises:
            SimulationError: If it cannot be read or run.
        """
        file = await self._given(given, name)
        return file, await self._load(file.file, sets, seed)

    async def _given(self, scenario: str, name: str) -> GivenScenario:
        """The scenario's file, written if it was given as text.

        Raises:
            SimulationError: If it may not be read, or the root directory is full.
        """
        self._limits.check_disk(await run_sync(self._workspace.used))
        return self._workspace.scenario(scenario, name)

    async def _check_each(
        self, file: Path, sets: list[str], compared: tuple[Configuration, ...]
    ) -> None:
        """Check the size of every configuration that can be.

        Raises:
            SimulationError: If a run of one is too large.
        """
        for each in compared:
            try:
                found = await self._load(file, [*sets, *each.overrides])
            except ScenarioError:
                continue  # the sweep says which cannot be
            self._limits.check_scenario(found)

    async def _load(self, file: Path, sets: list[str], seed: int | None = None) -> Summary:
        """Reads a scenario.

        Raises:
            SimulationError: If it cannot be run, or would run a Python file outside of the root.
        """

        def read_it() -> Summary:
            scenario = load(file, sets)
            self._workspace.check_modules(file, [name for name, _ in scenario.modules])
            return summary(scenario, seed)

        return await run_sync(read_it)

    def _check_budget(self, budget: str) -> None:
        """Check that a budget is a time within the limit.

        Raises:
            SimulationError: If it is not.
        """
        try:
            allowed = parse_budget(budget) <= self._limits.time_us
        except ValueError:
            return  # the command says what is allowed
        if not allowed:
            raise SimulationError(
                f"budget: {budget}; allowed: at most {show_duration(self._limits.time_us)} "
                "(--max-time of logquake mcp)"
            )

    async def _imported(
        self, files: list[str], name: str, steps: OnStep, commands: list[str]
    ) -> tuple[str, list[str]]:
        """A scenario of a running cluster's files, and what it leaves out."""
        check_name(name)
        paths = [str(self._workspace.readable(file)) for file in files]
        out = self._workspace.free(f"{name}-imported.yaml")
        words = ["import", *paths, "--out", str(out)]
        plain = await self._commands.answer(words, steps, places=0)
        commands.append(command([*words, "--force"]))
        return str(out), plain["not_simulated"]


def _understood(given: GivenScenario, sets: list[str], found: Summary) -> UnderstoodScenario:
    return UnderstoodScenario(
        given_as=given.origin, file=str(given.file), changes=sets, scenario=found
    )


def _sets(changes: list[str]) -> list[str]:
    return [word for change in changes for word in ("--set", change)]


def _card(directory: Path) -> Plain:
    card: Plain = json.loads((directory / CARD).read_text(encoding="utf-8"))
    return card


def _steps(ctx: Call) -> OnStep:
    """Progress as notifications: they increase, whatever parts a command has, and are few."""
    last, sent_at = -1.0, -_APART_S

    async def notify(step: Step) -> None:
        nonlocal last, sent_at
        now = current_time()
        if now - sent_at < _APART_S and step.done != step.total:
            return
        sent_at = now
        is_part = step.done > last
        last = step.done if is_part else last + _STEP
        await ctx.report_progress(last, step.total if is_part else None, step.message)

    return notify


def _count(seeds: str) -> int:
    """Number of seeds of ``50`` or ``1..50``; the command says what else is wrong."""
    low, _, high = seeds.strip().partition("..")
    if not low.isdecimal() or (high and not high.isdecimal()):
        return 0
    return int(high) - int(low) + 1 if high else int(low)


def _seed(seeds: str) -> list[str]:
    low, _, high = seeds.strip().partition("..")
    return ["--seed", low if high else "1"]


def _replay_of_safest(
    plain: Plain,
    compared: tuple[Configuration, ...],
    run: list[str],
    sets: list[str],
    out: Path,
) -> list[str]:
    """The command that runs the first seed of the safest configuration."""
    best = next((r for r in plain["configurations"] if r["configuration"] == plain["safest"]), None)
    if best is None:
        return []
    labels = [(key, str(best[key])) for key in plain["varied"]]
    chosen = next((c for c in compared if list(c.labels) == labels), None)
    if chosen is None:
        return []
    changed = [*sets, *chosen.overrides]
    words = ["run", *run, *_sets(changed), "--out", f"{out}-safest", "--force"]
    return [command(words)]


def _entry(each: catalogue.ShippedScenario) -> CatalogueEntry:
    return CatalogueEntry(
        name=each.name,
        kind=each.kind,
        claim=each.claim,
        versions=each.versions,
        history=each.history,
        source=each.source,
        file=str(each.file),
        command=command(["run", str(each.file)]),
    )
