"""Clients that promise "once" keep it under random faults; their loose twins do not, in some seeds.

Source: KIP-98, KIP-429, KIP-447, KIP-848.
"""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sim.protocol.clients.consumer.classic_protocol import ConsumerMembership
from tests.swarm.once import drawn, forgotten, outcome

ROOT = Path(__file__).parents[2]

ONCE = ("lost_acked", "duplicated", "reordered", "unprocessed", "reprocessed", "orphaned")

WRONG = {
    "tasks": ONCE,
    "cooperative tasks": ONCE,
    "modern tasks": ONCE,
    "idempotent": ("lost_acked", "duplicated", "reordered"),
}
"""What must be 0 in every seed."""

LOOSE = {"loose tasks": ("reprocessed",), "plain": ("duplicated", "reordered")}
"""What must be above 0 in some seeds."""

FEW = {"tasks": (3, 1), "cooperative tasks": (0, 1), "modern tasks": (2, 1), "idempotent": (3, 1)}
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


def test_only_what_a_restarted_leader_forgot_may_be_there_twice(tmp_path):
    """Answers of several batches are lost, and their leader restarts before they are sent again.

    Of both batches only the last is in its snapshot, so both are sent in the next epoch.
    """
    (told,) = outcomes("idempotent", 666, 1, tmp_path)
    assert (told["forgotten"], told["duplicated"], told["lost_acked"]) == (18, 0, 0)


@pytest.mark.parametrize(
    ("restarted", "broker", "epoch", "count"),
    [(5, 1, 1, 2), (9, 1, 1, 0), (5, 2, 1, 0), (5, 1, 0, 0)],
    ids=["restarted in between", "restarted later", "another restarted", "same epoch"],
)
def test_a_copy_is_excused_by_a_restart_in_between_alone(restarted, broker, epoch, count):
    batch = {"topic": "orders", "partition": 0, "producer_index": 0, "first_record": 7,
             "record_count": 2, "as_leader": True, "broker": 1}  # fmt: skip
    appends = [
        {**batch, "t_us": 3, "producer_epoch": 0},
        {**batch, "t_us": 8, "producer_epoch": epoch},
    ]
    assert forgotten(appends, [{"broker": broker, "t_us": restarted}]) == count


def test_planted_a_member_that_rejoins_with_what_it_lost_is_found(monkeypatch, tmp_path):
    """KAFKA-12983: it does not prepare again, when it is lost in the middle of a rebalance."""
    forget = ConsumerMembership.forget

    def forgetful(self, *given):
        prepared = self._prepared
        forget(self, *given)
        self._prepared = prepared

    monkeypatch.setattr(ConsumerMembership, "forget", forgetful)
    assert outcome("cooperative tasks", 0, tmp_path)["reprocessed"] > 0


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
