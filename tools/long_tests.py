"""Choice of the tests that no landing waits for, by what they were measured to take.

Usage: ``python -m tools.long_tests LOG``, where LOG is what the fast tests printed, run with
``--durations=0 --durations-min=0.5 -q``. It writes :data:`LIST`: the names of all tests that took
more than their share of the whole, which a slower or busier machine does not change.
``tests/conftest.py`` marks them as slow, so that ``make test`` ends in some minutes, and ``make
tenth`` and ``make night`` run them with the other long ones.
"""

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
LIST: Final = ROOT / "tests/long.txt"
"""Names of tests, one in each line, sorted."""

SHARE: Final = 1 / 900
"""Of the whole: what a test may take and still be run at each landing; 2 s of half an hour."""

KEPT: Final = (
    "tests/test_house.py::",
    "tests/cli/test_cli_wheel.py::test_a_wheel_brings_every_scenario_and_runs_one_from_another_directory[pure]",
    "tests/scenarios/catalogue/test_scenarios_judges.py::test_both_judges_agree[small]",
    "tests/scenarios/verdicts/test_scenarios_determinism.py::test_another_process_hash_seed_and_directory_give_the_same_run[transactions]",
    "tests/test_compiled.py::",
)
"""Beginnings of names that every landing has, long or not: one witness of each great promise."""

_TOOK: Final = re.compile(
    r"^\s*(?P<s>[\d.]+)s (?P<phase>call|setup|teardown)\s+(?P<name>tests/.+?)\s*$"
)


def chosen(lines: list[str], collected: list[str]) -> list[str]:
    """Names of the tests that take more than their share.

    Args:
        lines: Of pytest's list of durations.
        collected: Names of all tests. What a test is prepared by (a run, mostly) is shared with
            others, and the next one would wait for it: where that alone takes so long, all with the
            same parameter in its file are long together, and without such others it is not.
    """
    took: dict[str, float] = defaultdict(float)
    prepared: dict[str, float] = defaultdict(float)
    for line in lines:
        found = _TOOK.match(line)
        if found is None:
            continue
        took[found["name"]] += float(found["s"])
        if found["phase"] == "setup":
            prepared[found["name"]] += float(found["s"])
    most = sum(took.values()) * SHARE
    long = {name for name, seconds in took.items() if seconds - prepared[name] >= most}
    together: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name in collected:
        together[_shared(name)].append(name)
    for name, seconds in prepared.items():
        others = together[_shared(name)]
        if seconds >= most and "[" in name and len(others) > 1:
            long.update(others)
    return sorted(long.intersection(collected) - {name for name in long if name.startswith(KEPT)})


def listed() -> frozenset[str]:
    """The names in :data:`LIST`."""
    return frozenset(LIST.read_text(encoding="utf-8").splitlines())


def _shared(name: str) -> tuple[str, str]:
    """File and parameters of a test."""
    file, _, test = name.partition("::")
    return file, test.partition("[")[2]


def _collected() -> list[str]:
    words = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n", "0", "tests"]
    done = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True)
    return [line for line in done.stdout.splitlines() if "::" in line]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("which log? usage: python -m tools.long_tests LOG")
    text = Path(sys.argv[1]).read_text(encoding="utf-8")
    names = chosen(text.splitlines(), _collected())
    LIST.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
    sys.stdout.write(f"{LIST.relative_to(ROOT)}: {len(names)} tests\n")
