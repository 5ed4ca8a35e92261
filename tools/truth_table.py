"""Real clusters beside simulated ones: ``docs/real-cluster``, measured and held against the model.

Each scenario file there has its facts in a JSON file of its name: those of a few rehearsals on a
real Apache Kafka. ``README.md`` there names the rows in which the simulator differs, with a cause
for each.

``measure`` rehearses (``make rehearse``): a Kafka that Maven brings, on loopback, half a minute for
each rehearsal. If it rehearses all scenarios it calibrates before, and the simulator has that
preset in all of them. ``table`` runs the simulator and writes the table of differences again; a
new one gets no cause, and fails the tests until somebody has found it.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sim.errors import SimulationError
from sim.suite.comparison.groups import OF_THE_MACHINE, Row, rows_of
from sim.suite.comparison.measured import Measured, measure
from sim.suite.comparison.tolerance import Tolerance
from sim.suite.two_runs import leaves, plain_scenario
from sim.trace.run_files import Shape, read_mapping
from sim.units import GIB
from tools.kept_runs import as_plain, from_plain

ROOT: Final = Path(__file__).parents[1]
PLACE: Final = ROOT / "docs" / "real-cluster"
README: Final = PLACE / "README.md"
CALIBRATED: Final = PLACE / "calibrated"
"""The preset that every scenario names, and the fit that it comes from."""
WORK: Final = ROOT / "build" / "real-cluster"
"""Run directories, while they are needed."""

FORMAT: Final = 1
SEEDS: Final = (1, 2, 3, 4, 5)
"""Of the simulated runs."""
REPEAT: Final = 3
NO_CAUSE: Final = "?"
BEGIN: Final = "<!-- differences: begin; python -m tools.truth_table table -->"
END: Final = "<!-- differences: end -->"
_HEAD: Final = "| scenario | row | simulated | real | cause |\n|---|---|---|---|---|\n"
_LINE: Final = re.compile(r"^\| `([^`]+)` \| `([^`]+)` \| (.*) \| (.*) \| (\S+) \|$", re.MULTILINE)
_CAUSE: Final = re.compile(r"^\*\*([a-z-]+)\*\*", re.MULTILINE)
_SHAPE: Final[Shape] = {
    "format": int,
    "scenario": {"*": str},
    "kafka": str,
    "machine": {"system": str, "cores": int, "memory": str, "java": str},
    "repetitions": [{"date": str, "noise": {"*": int}, "measured": {"real": bool}}],
}


@dataclass(frozen=True, slots=True)
class Kept:
    """Facts of one scenario's rehearsals."""

    scenario: dict[str, str]
    """Leaves of the scenario that was rehearsed, without what a rehearsal does not apply."""
    runs: list[Measured]
    """Each repetition."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A line of the table of differences."""

    scenario: str
    row: str
    simulated: str
    real: str
    cause: str

    def __str__(self) -> str:
        """The line."""
        return (
            f"| `{self.scenario}` | `{self.row}` | {self.simulated} | {self.real} | {self.cause} |"
        )


def names() -> list[str]:
    """Every scenario of the table."""
    return sorted(path.stem for path in PLACE.glob("*.yaml"))


def scenario_leaves(path: Path) -> dict[str, str]:
    """What a scenario file says that a rehearsal applies."""
    return _applied(dict(leaves(plain_scenario(path), "")))


def _applied(scenario: dict[str, str]) -> dict[str, str]:
    return {
        key: value for key, value in scenario.items() if not f"{key}.".startswith(OF_THE_MACHINE)
    }


def kept(name: str) -> Kept:
    """Facts of a scenario's rehearsals.

    Raises:
        SimulationError: If its file is damaged.
    """
    path = PLACE / f"{name}.json"
    plain = read_mapping(path, _SHAPE)
    runs = [from_plain(each["measured"], path) for each in plain["repetitions"]]
    return Kept(_applied(plain["scenario"]), runs)


def outside(simulated: Sequence[Measured], real: Sequence[Measured]) -> list[Row]:
    """Rows of the simulator that are outside of the stated tolerances."""
    return [row for row in rows_of(simulated, real, Tolerance()) if not row.is_inside]


def simulate(name: str, place: Path) -> list[Measured]:
    """The simulator's runs of a scenario, on every seed."""
    found = []
    for seed in SEEDS:
        out = place / f"{name}-s{seed}"
        if not (out / "verdict.json").is_file():
            _logquake("run", name, out, "--seed", str(seed))
        found.append(measure(out))
    return found


def listed(text: str) -> list[Difference]:
    """Lines of the table of differences in the text of ``README.md``."""
    return [Difference(*found) for found in _LINE.findall(_between(text)[1])]


def causes(text: str) -> set[str]:
    """Causes that the text of ``README.md`` explains."""
    return set(_CAUSE.findall(text))


def renewed(text: str, found: Sequence[Difference]) -> str:
    """``README.md`` with these differences; those that were listed keep their causes."""
    before, _, after = _between(text)
    known = {(each.scenario, each.row): each.cause for each in listed(text)}
    lines = [
        Difference(d.scenario, d.row, d.simulated, d.real, known.get((d.scenario, d.row), d.cause))
        for d in found
    ]
    table = "".join(f"{line}\n" for line in lines)
    return f"{before}{BEGIN}\n{_HEAD}{table}{END}{after}"


def differences(name: str, simulated: Sequence[Measured]) -> Iterator[Difference]:
    """Lines of the table for a scenario, without causes."""
    for row in outside(simulated, kept(name).runs):
        yield Difference(name, row.name, row.found, row.reference, NO_CAUSE)


def _between(text: str) -> tuple[str, str, str]:
    before, _, rest = text.partition(f"{BEGIN}\n")
    table, end, after = rest.partition(END)
    if not end:
        raise SimulationError(f"{README}: lacks {BEGIN} or {END}")
    return before, table, after


def write(name: str, runs: Sequence[Path]) -> None:
    """Writes the JSON file of a scenario from its rehearsals.

    Raises:
        SimulationError: If one is none, or did not come to its end.
    """
    cards = [json.loads((run / "run.json").read_text(encoding="utf-8")) for run in runs]
    machine = cards[0]["machine"]
    plain = {
        "format": FORMAT,
        "scenario": scenario_leaves(PLACE / f"{name}.yaml"),
        "kafka": cards[0]["kafka"],
        "machine": {
            "system": machine["system"],
            "cores": machine["cores"],
            "memory": f"{round(machine['memory_bytes'] / GIB)} GiB",
            "java": machine["java"],
        },
        "settings": cards[0]["settings"],
        "heap": cards[0]["heap"],
        "repetitions": [
            {"date": card["date"], "noise": card["noise"], "measured": as_plain(measure(run))}
            for run, card in zip(runs, cards, strict=True)
        ],
    }
    (PLACE / f"{name}.json").write_text(_text(plain), encoding="utf-8")


def _text(plain: dict[str, Any]) -> str:
    """JSON with a line for each fact of a repetition, so that a diff can be read."""
    text = json.dumps(plain, indent=1, ensure_ascii=False)
    return re.sub(r"\{\s+([^{}\[\]]*?)\s+\}", _joined, text) + "\n"


def _joined(found: re.Match[str]) -> str:
    return "{" + " ".join(found[1].split()) + "}"


def measure_all(chosen: Sequence[str], repeat: int, place: Path) -> None:
    """Rehearses scenarios and writes their files; each repetition of all before the next one.

    So repetitions of a scenario lie apart, and a busy minute of the machine is in one of them.
    A rehearsal that a former call has completed in the same place is not repeated.
    """
    place.mkdir(parents=True, exist_ok=True)
    runs = {name: [place / f"{name}-{n}" for n in range(1, repeat + 1)] for name in chosen}
    for number in range(repeat):
        for name in chosen:
            out = runs[name][number]
            if not (out / "verdict.json").is_file():
                sys.stdout.write(f"{name}, {number + 1} of {repeat}\n")
                sys.stdout.flush()
                _logquake("rehearse", name, out)
    for name in chosen:
        write(name, runs[name])


def calibrate(place: Path) -> None:
    """Calibrates to this machine, and keeps the preset and the fit.

    Raises:
        SystemExit: If the command failed, with what it said.
    """
    out = place / CALIBRATED.name
    if not (out / "hardware.yaml").is_file():
        shutil.rmtree(out, ignore_errors=True)
        words = [sys.executable, "-m", "sim", "calibrate", "--out", str(out)]
        done = subprocess.run(words, cwd=ROOT, check=False, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{' '.join(words[2:])}: {done.stderr[-3_000:]}")
    CALIBRATED.mkdir(exist_ok=True)
    for name in ("hardware.yaml", "calibration.json"):
        shutil.copyfile(out / name, CALIBRATED / name)


def _logquake(command: str, name: str, out: Path, *options: str) -> None:
    """Runs a command of ``logquake`` on a scenario; a missed expectation is a fact, not an end.

    Raises:
        SystemExit: If the command failed, with what it said.
    """
    shutil.rmtree(out, ignore_errors=True)
    words = [sys.executable, "-m", "sim", command, str(PLACE / f"{name}.yaml"), "--out", str(out)]
    done = subprocess.run([*words, *options], cwd=ROOT, check=False, capture_output=True, text=True)
    if done.returncode not in (0, 1) or not (out / "verdict.json").is_file():
        raise SystemExit(f"{' '.join(words[2:])}: {done.stderr[-3_000:]}{done.stdout[-1_000:]}")


def main(arguments: Sequence[str] | None = None) -> None:
    """``measure`` or ``table``, of all scenarios or of some."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("command", choices=("measure", "table"))
    parser.add_argument("names", nargs="*", metavar="NAME", help="scenarios; default: all")
    parser.add_argument("--repeat", type=int, default=REPEAT, help="rehearsals of each")
    parser.add_argument("--place", type=Path, default=WORK, help="run directories")
    given = parser.parse_args(arguments)
    chosen = given.names or names()
    unknown = sorted(set(chosen) - set(names()))
    if unknown:
        parser.error(f"found {', '.join(unknown)}; allowed: {', '.join(names())}")
    if given.repeat < 1:
        parser.error(f"--repeat: found {given.repeat}; allowed: 1 or more")
    if given.command == "measure":
        if not given.names:
            calibrate(given.place)
        measure_all(chosen, given.repeat, given.place)
        return
    if given.names:
        parser.error("table is of all scenarios; leave the names out")
    given.place.mkdir(parents=True, exist_ok=True)
    found = [each for name in chosen for each in differences(name, simulate(name, given.place))]
    README.write_text(renewed(README.read_text(encoding="utf-8"), found), encoding="utf-8")


if __name__ == "__main__":
    main()
