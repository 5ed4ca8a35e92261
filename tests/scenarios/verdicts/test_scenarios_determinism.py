"""Same scenario, same seed, same run: whatever the process, hash seed, directory, tracing level."""

import json
import os
import subprocess
import sys

import pytest

from sim.nodes.sampler import Sampler
from sim.scenario.loader import load, load_text
from sim.scenario.run.runner import run
from sim.substrate.distributions import Delays
from sim.trace.difference import first_difference
from sim.trace.schema import TABLES
from tests.scenarios.compiled import COMPILED
from tests.scenarios.run_kit import ROOT, SHIPPED, SMALL, TWICE, text_of

SAME = ("scenario_digest", "trace_digest", "disk_digest", "events", "rows", "simulated_us")
RUNS = [
    pytest.param(
        name,
        marks=[pytest.mark.slow] if name not in ("small", *TWICE) else [],
    )
    for name in ("small", *SHIPPED)
]
SHORT = {
    "lasts": "8s",
    "faults": [
        {"at": "2s", "do": "crash", "target": "random broker", "for": "2s"},
        {"at": "2s", "do": "loss", "between": "leader of orders-0", "ratio": 0.1, "for": "3s"},
    ],
    "consumers": [{"group": "billing", "topics": "orders", "count": 2}],
}  # fmt: skip


def in_process(scenario, out, *, hash_seed, cwd, options=()):
    """Run the command in a process of its own; the card and the verdict it left."""
    environment = os.environ | COMPILED | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
    words = ["run", str(scenario), "--out", str(out), *options]
    done = subprocess.run(
        [sys.executable, "-m", "sim", *words], cwd=cwd, env=environment, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads((out / name).read_text()) for name in ("run.json", "verdict.json")]


@pytest.mark.parametrize("name", RUNS)
def test_another_process_hash_seed_and_directory_give_the_same_run(name, shared, tmp_path):
    first = shared.ran(name)
    scenario = SMALL if name == "small" else SHIPPED[name]
    card, verdict = in_process(scenario, tmp_path / "again", hash_seed="4711", cwd=tmp_path)
    assert {key: card[key] for key in SAME} == {key: first.card[key] for key in SAME}
    assert verdict == first.verdict
    assert first_difference(first.directory / "trace", tmp_path / "again" / "trace") is None


def test_less_tracing_changes_neither_verdict_nor_digest(shared, tmp_path):
    first = shared.ran("small")
    card, verdict = in_process(
        SMALL, tmp_path / "facts", hash_seed="1", cwd=ROOT, options=["--trace", "facts"]
    )
    assert card["level"] == "facts"
    for key in SAME:
        assert card[key] == first.card[key], key
    assert verdict == first.verdict
    detail = {table.name for table in TABLES if table.level == "detail"}
    written = {path.name for path in (tmp_path / "facts" / "trace").iterdir()}
    assert written == {table.name for table in TABLES} - detail
    assert first_difference(first.directory / "trace", tmp_path / "facts" / "trace") is None


def test_another_seed_gives_another_run(tmp_path):
    """The limit: digests are not equal by themselves."""
    scenario = load_text(text_of(**SHORT))
    one = run(scenario, 1, tmp_path / "one")
    two = run(scenario, 2, tmp_path / "two")
    assert one.card["scenario_digest"] == two.card["scenario_digest"]
    assert one.card["trace_digest"] != two.card["trace_digest"]
    assert one.card["disk_digest"] != two.card["disk_digest"]
    assert first_difference(tmp_path / "one" / "trace", tmp_path / "two" / "trace") is not None


def test_a_run_does_not_leave_anything_for_the_next_one(tmp_path):
    """Two runs in one process, another one between them."""
    scenario = load_text(text_of(**SHORT))
    first = run(scenario, out=tmp_path / "first")
    run(load(SHIPPED["power-loss-whole-cluster"], ["run.for=25s"]), out=tmp_path / "between")
    second = run(scenario, out=tmp_path / "second")
    assert {key: first.card[key] for key in SAME} == {key: second.card[key] for key in SAME}
    assert first.verdict == second.verdict


def fields(side):
    """Of one side of a difference, as text: column to value."""
    pairs = [item.split("=", 1) for item in side.split(": ", 1)[1].split(", ") if "=" in item]
    return {column.strip(): value for column, value in pairs}


def test_a_planted_difference_is_found_with_its_table_and_row(tmp_path, monkeypatch):
    """What an environment variable would do that is read where it should not be."""
    scenario = load_text(text_of(**SHORT))
    run(scenario, out=tmp_path / "first")
    real = Delays.draw

    def draw(self):
        return real(self) + int(os.environ.get("JITTER_US", "0"))

    monkeypatch.setattr(Delays, "draw", draw)
    run(scenario, out=tmp_path / "same")
    assert first_difference(tmp_path / "first" / "trace", tmp_path / "same" / "trace") is None
    monkeypatch.setenv("JITTER_US", "1")
    run(scenario, out=tmp_path / "second")
    found = first_difference(tmp_path / "first" / "trace", tmp_path / "second" / "trace")
    where, *sides = found.splitlines()
    assert where == "table client_batches, row 0:"
    first, second = map(fields, sides)
    assert first["producer"] == second["producer"] == "'shop'"
    assert first != second


def test_a_late_difference_is_found_where_it_begins(tmp_path, monkeypatch):
    """One message of one kind, once, a microsecond later: everything before it is equal."""
    scenario = load_text(text_of(**SHORT))
    first = run(scenario, out=tmp_path / "first")
    real = Sampler.high_watermark
    asked = []

    def high_watermark(self, partition):
        asked.append(partition)
        return real(self, partition) + (len(asked) == 20)

    monkeypatch.setattr(Sampler, "high_watermark", high_watermark)
    second = run(scenario, out=tmp_path / "second")
    assert first.card["trace_digest"] != second.card["trace_digest"]
    found = first_difference(tmp_path / "first" / "trace", tmp_path / "second" / "trace")
    where, *sides = found.splitlines()
    assert where.startswith("table lag, row ")
    assert not where.endswith("row 0:")
    mine, theirs = map(fields, sides)
    assert [key for key in mine if mine[key] != theirs[key]] == ["high_watermark"]
