"""Answers of commands, read from their JSON."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from sim.mcp.answers import (
    Change,
    ConfigurationRow,
    Explanation,
    FaultEffect,
    Finding,
    HeldExpectation,
    Number,
    Plain,
    RunAnswer,
    Step,
    SweepAnswer,
    UnderstoodRun,
    UnderstoodScenario,
    UnderstoodSweep,
    UnderstoodVerdict,
    VerdictAnswer,
)
from sim.mcp.process import command

_NUMBERS: Final = (
    *("loss", "loss_low", "loss_high", "outage", "unavailable_us", "p50", "p99", "throughput"),
)


def run_answer(
    found: Plain, card: Plain, understood: UnderstoodScenario, words: Sequence[str]
) -> RunAnswer:
    """The answer of ``run --json`` and of the run card."""
    verdict = found["verdict"]
    answer = verdict["answer"]
    three = {name: _number(answer[name]) for name in ("lost", "down", "slow")}
    return RunAnswer(
        understood=understood,
        held=found["held"],
        **three,
        faults=[FaultEffect(level=f["level"], text=f["text"]) for f in answer["faults"]],
        expectations=[
            HeldExpectation(
                **{name: line[name] for name in ("name", "where", "held", "story")},
                expected=line["asked"],
                found=line["shown"],
            )
            for line in verdict["expectations"]
        ],
        faults_without_effect=found["faults_without_effect"],
        unserved=found["unserved"],
        records={k: v for k, v in verdict["records"].items() if isinstance(v, int)},
        checks=dict(Counter(check["outcome"] for check in verdict["checks"])),
        directory=found["directory"],
        trace_digest=card["trace_digest"],
        commands=[command(words)],
    )


def explanation(
    found: Plain, card: Plain, directory: Path, record: str, words: Sequence[str]
) -> Explanation:
    """The answer of ``explain --json``."""
    tried = [
        Change(
            words=trial["change"]["words"],
            changes=trial["change"]["overrides"],
            found=trial["found"],
            saves=trial["saves"],
            error=trial["error"],
        )
        for trial in found["tried"]
    ]
    saving = next((trial for trial in tried if trial.saves), None)
    commands = [command(words)]
    if saving is not None:
        sets = [word for change in saving.changes for word in ("--set", change)]
        again = ["run", str(directory / "scenario.yaml"), "--seed", str(card["seed"]), *sets]
        commands.append(command([*again, "--out", f"{directory}-changed", "--force"]))
    return Explanation(
        understood=UnderstoodRun(
            directory=str(directory),
            scenario=card["scenario"],
            claim=card["claim"],
            seed=card["seed"],
            complete=card["complete"],
            record=record,
        ),
        head=found["head"],
        chain=[Step(t_us=step["t_us"], what=step["what"]) for step in found["chain"]],
        ending=found["ending"],
        causes=found["causes"],
        tried=tried,
        smallest_change="" if saving is None else saving.words,
        untried=found["untried"],
        commands=commands,
    )


def verdict_answer(
    found: Plain, understood: UnderstoodVerdict, commands: Sequence[str]
) -> VerdictAnswer:
    """The answer of ``verdict --json``."""
    answers = found["answers"]
    return VerdictAnswer(
        understood=understood,
        findings=[Finding(**finding) for each in answers for finding in each["findings"]],
        closing=found["closing"],
        losing_faults=sum(bool(each["lost"]) for each in answers if each["name"] != "nothing"),
        untried_runs=found["untried"],
        errors=[f"{each['words']}: {error}" for each in answers for error in each["errors"]],
        directory=found["directory"],
        commands=list(commands),
    )


def sweep_answer(
    found: Plain, understood: UnderstoodSweep, words: Sequence[str], replay: Sequence[str]
) -> SweepAnswer:
    """The answer of ``explore --json``; ``replay`` runs one seed of its safest choice."""
    rows = {row["configuration"]: _row(row, found["varied"]) for row in found["configurations"]}
    best = rows.get(found["safest"])
    return SweepAnswer(
        understood=understood,
        verdict=found["verdict"],
        safest=None if best is None else best.settings,
        table=list(rows.values()),
        refused=[f"{each['configuration']}: {each['why']}" for each in found["refused"]],
        report=found["report"],
        directory=found["directory"],
        commands=[command(words), *replay],
    )


def _row(row: Mapping[str, object], varied: Sequence[str]) -> ConfigurationRow:
    plain: Plain = {name: row.get(name) for name in _NUMBERS}
    plain |= {name: row[name] for name in ("runs", "failed_runs", "is_best")}
    return ConfigurationRow(settings={key: str(row[key]) for key in varied}, **plain)


def _number(found: Plain) -> Number:
    return Number(level=found["level"], text=found["text"])
