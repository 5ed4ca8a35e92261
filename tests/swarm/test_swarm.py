"""Random clusters, loads and bad luck: no promise of Kafka 4.1 is broken, and all goes on after."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from tests.swarm.scenarios import drawn
from tests.swarm.swarm import (
    _damaged,
    _divergent,
    _forgotten,
    _in_holes,
    _unknown,
    judged,
    outcome,
)

ROOT = Path(__file__).parents[2]

RARE = (
    "unclean start", "fencing", "ELR election", "divergence truncation", "controller fail-over",
    "snapshot",
)  # fmt: skip
"""What has to be in at least 5 % of many runs, or they prove little."""

BLOCK = 25
"""Seeds of one test of the thousand: about a minute."""


def swarm(first, count, directory, workers=1):
    """Outcomes of the seeds, run by processes of their own with the compiled packages."""
    each = -(-count // workers)
    starts = range(first, first + count, each)

    def some(start):
        command = (sys.executable, "-m", "tests.swarm.swarm", str(start))
        more = (str(min(each, first + count - start)), str(directory))
        ran = subprocess.run(
            [*command, *more],
            cwd=ROOT,
            env={**os.environ, "LOGQUAKE_PURE": "0"},
            capture_output=True,
            check=False,
            text=True,
        )
        assert ran.returncode == 0, ran.stderr
        return [json.loads(line) for line in ran.stdout.splitlines()]

    with ThreadPoolExecutor(workers) as pool:
        return [told for part in pool.map(some, starts) for told in part]


def sound(told, count):
    assert len(told) == count
    assert {each["seed"]: each["broken"] for each in told if each["broken"]} == {}


def rare_enough(told):
    return {kind: sum(each["saw"][kind] > 0 for each in told) / len(told) for kind in RARE}


def test_8_seeds_break_no_promise_and_go_on_after_the_heal(tmp_path):
    sound(swarm(0, 8, tmp_path), 8)


@pytest.mark.slow
def test_100_seeds_break_no_promise_and_everything_rare_is_among_them(tmp_path):
    told = swarm(0, 100, tmp_path, workers=2)
    sound(told, 100)
    assert min(rare_enough(told).values()) >= 0.05, rare_enough(told)


@pytest.mark.night
@pytest.mark.parametrize("first", range(0, 1_000, BLOCK))
def test_1_000_seeds_break_no_promise(first, tmp_path):
    sound(swarm(first, BLOCK, tmp_path), BLOCK)


def test_a_seed_is_always_the_same_scenario_and_another_seed_another():
    assert drawn(3) == drawn(3) != drawn(4)


# -- the swarm sees what is broken -----------------------------------------------------------------


def planted(faults, *, then="heal and drain", **config):
    """A scenario that keeps one promise less, told of as if it kept all."""
    document = {
        "claim": "Not what it says.",
        "cluster": {"brokers": 3, "controllers": 1},
        "topics": {
            "orders": {
                "partitions": 1,
                "replication.factor": 3,
                "config": {"min.insync.replicas": 2} | config,
            }
        },
        "producers": [
            {"name": "desk", "topic": "orders", "rate": "50/s", "record.size": "100B",
             "config": {"acks": 1}}
        ],
        "faults": faults,
        "run": {"for": "20s", "then": then, "seed": 1},
        "expect": {},
    }  # fmt: skip
    return drawn(0)._replace(text=yaml.safe_dump(document, sort_keys=False), frugal=True)


def test_planted_a_frugal_cluster_that_loses_what_it_acknowledged_is_told(tmp_path):
    lost = {"at": "3s", "do": "power-loss", "target": "all brokers", "for": "1s"}
    told = judged(planted([lost]), 0, tmp_path)
    assert "lost_acked" in [line.partition(":")[0] for line in told.broken]


def test_planted_a_cluster_that_does_not_go_on_is_told(tmp_path):
    dead = {"at": "3s", "do": "crash", "target": "all brokers"}
    told = judged(planted([dead], then="stop"), 0, tmp_path)
    assert any("no batch of orders begun" in line for line in told.broken)
    assert any("ISR" in line for line in told.broken)


def test_what_broke_stays_and_the_rest_is_removed(tmp_path):
    assert outcome(0, tmp_path).broken == []
    assert list(tmp_path.iterdir()) == []


# -- what it lets pass, and nothing beside it ------------------------------------------------------


class Told:
    """Rows of a run that never was."""

    def __init__(self, **tables):
        self.tables = tables

    def rows(self, table, **where):
        return [
            row
            for row in self.tables.get(table, [])
            if all(row.get(name) == value for name, value in where.items())
        ]


def written(t_us, epoch, *, broker=3):
    return {
        "t_us": t_us, "broker": broker, "topic": "orders", "partition": 0, "as_leader": True,
        "first_record": 7, "record_count": 2, "producer_epoch": epoch,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("restarted", "epochs", "forgotten"),
    [([(3, 5)], (0, 1), 2), ([(3, 5)], (0, 0), 0), ([(2, 5), (3, 15)], (0, 1), 0)],
)
def test_written_twice_is_excused_only_by_a_restart_of_that_leader_and_a_new_epoch(
    restarted, epochs, forgotten
):
    starts = [{"broker": broker, "t_us": at} for broker, at in restarted]
    twice = [written(1, epochs[0]), written(9, epochs[1])]
    assert _forgotten(Told(appends=twice, recoveries=starts)) == forgotten


def test_only_what_lay_in_a_hole_may_be_gone_or_diverge():
    hole = {"topic": "orders", "partition": 0, "from_offset": 5, "to_offset": 9}
    inner = {**hole, "topic": "__consumer_offsets", "to_offset": 7}
    told = Told(log_holes=[hole, hole, inner])
    assert _in_holes(told) == 4
    assert _in_holes(told, internal=True) == 2
    assert _in_holes(Told()) == 0


def test_only_the_copy_that_was_damaged_may_stay_out_of_the_isr():
    fault = {"phase": "began", "took_effect": True, "resolved": "broker-5"}
    flipped = {**fault, "kind": "corrupt-replica", "effect": "a bit flipped: orders-0 on broker-5"}
    told = Told(faults=[flipped])
    assert _damaged(told, "orders", 0) == {"5"}
    assert _damaged(told, "orders", 1) == set()
    done = "a page overwritten: orders-1 on broker-5"
    misdirected = {**fault, "kind": "misdirected-write", "effect": done}
    told = Told(faults=[misdirected, {**misdirected, "took_effect": False, "resolved": "broker-4"}])
    assert _damaged(told, "orders", 1) == {"5"}, "a truncation that meets it fails (KIP-461)"
    assert _damaged(told, "orders", 0) == set()


def test_only_a_log_with_a_page_of_another_file_may_differ_from_the_others():
    fault = {"kind": "misdirected-write", "phase": "began", "took_effect": True}
    told = Told(faults=[{**fault, "resolved": "broker-1"}])
    told.verdict = {"divergence": {"broker-1, broker-2": 4, "broker-1, broker-3": 4}}
    assert _divergent(told) == 0
    told.verdict["divergence"]["broker-2, broker-3"] = 1
    assert _divergent(told) == 1
    assert _divergent(SimpleNamespace(rows=Told().rows, verdict=told.verdict)) == 4


def test_only_what_an_aborted_transaction_held_may_stay_unknown():
    end = {"producer": "desk", "outcome": "aborted", "begun_us": 10, "t_us": 20}
    batches = [{"producer": "desk", "outcome": "unknown", "t_us": at} for at in (15, 25)]
    told = Told(transaction_outcomes=[end], client_batches=batches)
    assert [batch["t_us"] for batch in _unknown(told)] == [25]
