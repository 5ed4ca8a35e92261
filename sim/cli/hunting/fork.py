"""``logquake fork``: the same past, many futures, and from when on it could not be saved."""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import typer

from sim.cli.exits import Case, ExitCode, exit_codes, failed, say_json
from sim.cli.run import stop_requests
from sim.cli.screen import say
from sim.cli.terminal import count_bar
from sim.errors import SimulationError
from sim.faults.broker_configs import AlterBrokerConfig
from sim.faults.operations import AlterConfig
from sim.hunting import sought as looked
from sim.hunting.forking import curve as curves
from sim.hunting.forking.future import Branches, Change, Future, Task, branches, check
from sim.scenario.loader import load
from sim.scenario.overrides.places import places
from sim.scenario.run.directory import CARD
from sim.scenario.text.problems import Problem
from sim.scenario.text.quantities import QuantityError, parse_duration, parse_moment
from sim.scenario.text.yaml import ReadError, read, read_value
from sim.suite.pool import pool
from sim.trace.run_files import ENDED_CARD, read_mapping
from sim.units import Micros

DEFAULT: Final = "lost_acked,down>30s"
SEEDS_MAX: Final = 10_000
PAGE: Final = "fork.md"
NUMBERS: Final = "fork.json"


@dataclass(frozen=True, slots=True)
class ForkOptions:
    """The options of ``logquake fork``."""

    at: str
    points: int
    seeds: int
    sets: tuple[str, ...]
    without: tuple[int, ...]
    looking_for: str
    jobs: int
    out: Path | None
    as_json: bool


def fork_command(run: Path, options: ForkOptions) -> None:
    """Fork a run at some instants and draw the curve; exits 1 if a future failed."""
    with exit_codes(Case(directory=run)):
        card = read_mapping(run / CARD, ENDED_CARD)
        task = _task(run, int(card["seed"]), options)
        check(task)
        out = options.out or Path("runs") / f"{card['scenario']}-s{card['seed']}-fork"
        found, digest = _futures(task, options)
        is_as_it_was = not any(each.name == looked.STUCK for each in task.sought)
        if is_as_it_was and digest and str(card.get("trace_digest", digest)) != digest:
            say(
                f"note: {run} was made by other sources of Logquake: its past is replayed by these",
                err=True,
            )
        faults = read_mapping(run / "verdict.json", {})["faults"]
        numbers = _numbers(task, found, options)
        _write(numbers, found, task, _marks(faults), out)
        _say(numbers, out, as_json=options.as_json)
        is_hit = any(future.hits for future in found)
        raise typer.Exit(ExitCode.EXPECTATION_FAILED if is_hit else ExitCode.HELD)


def _task(run: Path, seed: int, options: ForkOptions) -> Task:
    file = run / "scenario.yaml"
    load(file)
    data = read(file.read_text(encoding="utf-8"), str(file)).data
    assert isinstance(data, dict), "it has been loaded"
    return Task(
        data,
        seed,
        _instants(options.at, options.points),
        tuple(range(1, options.seeds + 1)),
        Change(options.without, tuple(_configs(options.sets, data))),
        looked.parse(options.looking_for),
    )


def _instants(text: str, points: int) -> tuple[Micros, ...]:
    """The instants of ``12.4s``, of ``2s,4s``, or so many from ``2s..20s``.

    Raises:
        SimulationError: For anything else.
    """
    try:
        if "," in text:
            found = [parse_duration(word.strip()) for word in text.split(",")]
        else:
            low, high = parse_moment(text)
            steps = max(points - 1, 1) if high > low else 1
            found = [low + (high - low) * n // steps for n in range(steps + 1)]
    except QuantityError as error:
        raise SimulationError(
            f"--at: {error.found}; allowed: an instant such as 12.4s, some such as 2s,4s, or a "
            "window such as 2s..20s"
        ) from None
    return tuple(sorted(dict.fromkeys(found)))


def _configs(sets: Sequence[str], data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Entries of ``faults:`` that change settings, as an administrator does while a cluster runs.

    Raises:
        SimulationError: For a key that is not one of a topic's or the brokers' settings.
    """
    for word in sets:
        key, equals, text = word.partition("=")
        try:
            paths = places(key.strip(), data) if equals else []
            value = read_value(text, f"--set {word}").data
        except (Problem, ReadError) as error:
            raise SimulationError(f"--set {word}: {error}") from None
        for path in paths:
            where, name = _split(path)
            if where[:1] == ["topics"] and len(where) > 2:
                topic = ".".join(where[1:-1])
                yield {"do": AlterConfig.kind, "topic": topic, "config": {name: value}}
            elif where == ["cluster", "config"]:
                yield {"do": AlterBrokerConfig.kind, "config": {name: value}}
            else:
                raise SimulationError(
                    f"--set {word}: found a key that no cluster changes while it runs; allowed: "
                    "topics.TOPIC.config.SETTING and cluster.config.SETTING of those that Kafka "
                    "takes while a broker runs; for others run the scenario again with --set"
                )
        if not paths:
            raise SimulationError(f"--set {word}: found no assignment; allowed: KEY=VALUE")


def _split(path: Sequence[str]) -> tuple[list[str], str]:
    """Keys above ``config``, that one included, and the name of the setting."""
    words = list(path)
    if "config" not in words:
        return words, ""
    place = words.index("config") + 1
    return words[:place], ".".join(words[place:])


def _futures(task: Task, options: ForkOptions) -> tuple[list[Future], str]:
    """All futures, and the digest of the past with the future that it had."""
    processes = min(options.jobs or os.cpu_count() or 1, len(task.instants))
    shares = [replace(task, instants=task.instants[n::processes]) for n in range(processes)]
    total = len(task.instants) * len(task.seeds)
    found: list[Future] = []
    digest = ""
    with (
        stop_requests() as interrupted,
        pool(processes, apart=True) as some,
        count_bar("fork", total) as on_result,
    ):
        for _, result in some.results(branches, shares, interrupted):
            _check(result, interrupted)
            if result is not None:
                found += result.futures
                digest = result.digest
                for future in result.futures:
                    on_result(f"{future.at_us} us", not future.hits)
        if interrupted():
            raise failed("interrupted: nothing was written", ExitCode.INTERRUPTED)
    return sorted(found, key=lambda future: (future.at_us, future.seed)), digest


def _check(result: Branches | None, interrupted: Callable[[], bool]) -> None:
    if result is not None and result.error and not interrupted():
        raise failed(f"a future came to no verdict: {result.error}", ExitCode.DEFECT)


def _numbers(task: Task, found: Sequence[Future], options: ForkOptions) -> dict[str, Any]:
    curve = {
        each.name: [
            {**asdict(point), "share": point.share} for point in curves.curve(found, each.name)
        ]
        for each in task.sought
    }
    return {
        "looking_for": looked.show(task.sought),
        "seeds": options.seeds,
        "without": list(task.change.without),
        "set": list(options.sets),
        "way": "forked" if task.forks else "replayed",
        "sentences": [
            curves.sentence(curves.curve(found, each.name), str(each)) for each in task.sought
        ],
        "curves": curve,
        "lost_max": max((future.lost for future in found), default=0),
        "down_max_us": max((future.down_us for future in found), default=0),
    }


def _marks(faults: Sequence[dict[str, Any]]) -> list[tuple[Micros, str]]:
    return [(each["began_us"], each["kind"]) for each in faults if each["began_us"] is not None]


def _write(
    numbers: dict[str, Any],
    found: Sequence[Future],
    task: Task,
    marks: Sequence[tuple[Micros, str]],
    out: Path,
) -> None:
    if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not (out / PAGE).is_file())):
        raise SimulationError(f"{out}: holds something else; choose another --out")
    out.mkdir(parents=True, exist_ok=True)
    lines = ["# Futures of a run", ""]
    lines += [f"* {sentence}" for sentence in numbers["sentences"]]
    for each in task.sought:
        points = curves.curve(found, each.name)
        picture = out / f"{each.name}.svg"
        picture.write_text(curves.drawn(points, str(each), marks), encoding="utf-8")
        lines += ["", f"## {each}", "", f"![{each}]({picture.name})", "", *curves.table(points)]
    (out / PAGE).write_text("\n".join(lines) + "\n", encoding="utf-8")
    (out / NUMBERS).write_text(
        json.dumps({**numbers, "futures": [asdict(each) for each in found]}, indent=1) + "\n",
        encoding="utf-8",
    )


def _say(numbers: dict[str, Any], out: Path, *, as_json: bool) -> None:
    if as_json:
        say_json({**numbers, "page": (out / PAGE).as_posix()})
        return
    for name, points in numbers["curves"].items():
        say(name)
        for point in points:
            bar = "#" * round(40 * point["share"])
            interval = f"{point['low']:.1%} to {point['high']:.1%}"
            say(
                f"  {point['at_us'] / 1_000_000:>12.6f} s  {point['hits']:>4} of "
                f"{point['futures']:<4} {interval:>18}  {bar}"
            )
    for sentence in numbers["sentences"]:
        say(sentence)
    say((out / PAGE).as_posix())
