"""Clients that promise "once" keep it under random faults; their loose twins do not, in some seeds.

Source: KIP-98, KIP-447.
"""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.swarm.once import drawn

ROOT = Path(__file__).parents[2]

WRONG = {
    "tasks": ("lost_acked", "duplicated", "reordered", "unprocessed", "reprocessed", "orphaned"),
    "idempotent": ("lost_acked", "duplicated", "reordered"),
}
"""What must be 0 in every seed."""

LOOSE = {"loose tasks": ("reprocessed",), "plain": ("duplicated", "reordered")}
"""What must be above 0 in some seeds."""

FEW = {"tasks": (3, 1), "idempotent": (3, 1)}
"""First seed and how many, where every test run looks."""

BLOCK = 50
"""Seeds of one test of the thousand."""


def outcomes(kind, first, count, directory, workers=1):
    each = -(-count // workers)

    def some(start):
        number = min(each, first + count - start)
        command = (sys.executable, "-m", "tests.swarm.once", kind, str(start), str(number))
        ran = subprocess.run(
            [*command, str(directory)],
            cwd=ROOT,
            env={**os.environ, "LOGQUAKE_PURE": "0"},
            capture_output=True,
            check=False,
            text=True,
        )
        assert ran.returncode == 0, ran.stderr
        return [json.loads(line) for line in ran.stdout.splitlines()]

    with ThreadPoolExecutor(workers) as pool:
        return [told for part in pool.map(some, range(first, first + count, each)) for told in part]


def keeps(kind, told, count):
    assert len(told) == count
    assert {each["seed"]: each["defect"] for each in told if each["defect"]} == {}
    for name in WRONG[kind]:
        assert {each["seed"]: each[name] for each in told if each[name]} == {}, name


def breaks(kind, told):
    assert {each["seed"]: each["defect"] for each in told if each["defect"]} == {}
    for name in LOOSE[kind]:
        assert any(each[name] for each in told), name


@pytest.mark.parametrize("kind", WRONG)
def test_a_seed_keeps_the_promise(kind, tmp_path):
    keeps(kind, outcomes(kind, *FEW[kind], tmp_path), FEW[kind][1])


@pytest.mark.parametrize("seed", [201, 495, 779])
def test_what_random_runs_of_tasks_found_is_mended(seed, tmp_path):
    """Outputs committed while a position was under validation, and not the position (201); a
    committed position of a partition that nobody led (495); offsets of a member whose group moved
    on while its transaction was verified (779)."""
    keeps("tasks", outcomes("tasks", seed, 1, tmp_path), 1)


@pytest.mark.slow
@pytest.mark.parametrize("kind", WRONG)
def test_100_seeds_keep_the_promise(kind, tmp_path):
    keeps(kind, outcomes(kind, 0, 100, tmp_path, workers=2), 100)


@pytest.mark.night
@pytest.mark.parametrize("first", range(0, 1_000, BLOCK))
@pytest.mark.parametrize("kind", WRONG)
def test_1_000_seeds_keep_the_promise(kind, first, tmp_path):
    keeps(kind, outcomes(kind, first, BLOCK, tmp_path), BLOCK)


@pytest.mark.slow
@pytest.mark.parametrize("kind", LOOSE)
def test_without_the_promise_some_seeds_show_what_goes_wrong(kind, tmp_path):
    breaks(kind, outcomes(kind, 0, 100, tmp_path, workers=2))


def test_the_loose_twin_of_a_seed_has_the_same_faults():
    def faults(kind):
        text = drawn(kind, 5)
        return text[text.index("\nfaults:") : text.index("\nrun:")]

    assert faults("tasks") == faults("loose tasks")
    assert faults("idempotent") == faults("plain") != faults("tasks")
