"""A run that would fill the disk is refused before it writes; ``--estimate`` says what it takes."""

import json
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from analysis.sweep.explore import explore
from sim import bench
from sim.cli import app
from sim.errors import SimulationError
from sim.scenario.estimate import space
from sim.suite import work
from sim.suite.plan import Job
from tests.scenarios.run_kit import text_of

MIB = 1 << 20
SHORT = {"lasts": "1s", "producer": {"rate": "100/s"}, "topic": {"partitions": 1}}
LARGE = {"lasts": "90s", "producer": {"rate": "20000/s", "record.size": "1000B"}}


@pytest.fixture
def disk(monkeypatch):
    """Plants a disk with so much free space of a tebibyte: a reserve of 1 GiB."""

    def of(free, total=1 << 40):
        usage = SimpleNamespace(total=total, used=total - free, free=free)
        monkeypatch.setattr(space.shutil, "disk_usage", lambda _path: usage)

    return of


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A directory with a short scenario and a large one, in which commands run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "short.yaml").write_text(text_of(**SHORT, expect={"lost_acked": 0}))
    (tmp_path / "large.yaml").write_text(text_of(**LARGE))
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    return tmp_path


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """Stands in for the measurement, and counts it."""
    made = []

    def measure(milliseconds):
        made.append(milliseconds)
        return {"cpu_seconds": 1.1, "peak_rss_bytes": 210_000_000, "compiled": True}

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(bench, "_in_own_process", measure)
    return made


def invoke(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def names(directory):
    return sorted(path.name for path in directory.iterdir())


# -- run ------------------------------------------------------------------------------------------


def test_a_run_that_would_fill_the_disk_is_refused_before_anything_is_written(place, disk):
    disk(3 << 30)
    before = names(place)
    answer = invoke("run", "large.yaml", "--out", "out")
    assert (answer.exit_code, answer.stdout) == (2, "")
    (line,) = answer.stderr.splitlines()
    assert line.startswith("out: the run would write about 5.1 GiB there (logs 5.1 GiB, trace ")
    assert "and 2.0 GiB are allowed (3.0 GiB free, of which 1.0 GiB stay free)" in line
    for advice in ("--set run.for=", "an --out on a larger disk", "--no-space-check"):
        assert advice in line
    assert names(place) == before


def test_a_shorter_run_as_the_refusal_advises_is_not_refused(place, disk):
    disk(3 << 30)
    told = invoke("run", "large.yaml", "--estimate", "--out", "out")
    (words,) = [w for w in told.stdout.split() if w.startswith("run.for=")]
    again = invoke("run", "large.yaml", "--estimate", "--out", "out", "--set", words)
    assert "refused" in told.stdout
    assert "refused" not in again.stdout


def test_an_earlier_run_is_not_touched_by_a_refusal(place, disk):
    assert invoke("run", "short.yaml", "--out", "out").exit_code == 0
    before = (place / "out" / "run.json").read_bytes()
    disk(1 << 30)
    answer = invoke("run", "large.yaml", "--out", "out", "--force")
    assert answer.exit_code == 2
    assert (place / "out" / "run.json").read_bytes() == before


def test_a_run_with_room_is_not_refused_and_says_nothing_of_it(place, disk):
    disk((1 << 30) + 20 * MIB)
    answer = invoke("run", "short.yaml", "--out", "out")
    assert (answer.exit_code, answer.stderr) == (0, "")


def test_the_reserve_of_a_small_disk_is_a_twentieth_of_it(place, disk):
    disk(30 * MIB, total=200 * MIB)
    assert invoke("run", "short.yaml", "--out", "out").exit_code == 0
    disk(10 * MIB, total=200 * MIB)
    answer = invoke("run", "short.yaml", "--out", "other")
    assert answer.exit_code == 2
    assert "0 B are allowed (10 MiB free, of which 10 MiB stay free)" in answer.stderr


def test_who_knows_better_runs_without_the_check(place, disk):
    disk(0)
    assert invoke("run", "short.yaml", "--out", "out").exit_code == 2
    assert invoke("run", "short.yaml", "--out", "out", "--no-space-check").exit_code == 0


def test_a_large_run_is_announced_in_one_line(place, disk, monkeypatch):
    disk(1 << 39)
    monkeypatch.setattr("sim.cli.run._run", lambda *_: (_ for _ in ()).throw(SimulationError("x")))
    for words, more in (((), "; --keep verdict removes it"), (("--keep", "verdict"), "")):
        answer = invoke("run", "large.yaml", "--out", "out", *words)
        line, _ = answer.stderr.splitlines()
        assert line.startswith("out: the run will write about 5.1 GiB there (logs 5.1 GiB, trace ")
        assert line.endswith(f"512 GiB free, of which 1.0 GiB stay free{more}")


# -- run --estimate -------------------------------------------------------------------------------


def test_an_estimate_runs_nothing_and_says_what_it_is_made_of(place, machine):
    before = names(place)
    answer = invoke("run", "large.yaml", "--estimate")
    assert answer.exit_code == 0
    heads = [line.split()[0] for line in answer.stdout.splitlines()]
    assert heads == ["time", "memory", "disk", "space", "from", "machine", "error"]
    assert "1,800,000 records in" in answer.stdout
    assert "runs/large-s1: " in answer.stdout
    assert names(place) == sorted([*before, "cache"]), "only the measurement is remembered"


def test_an_estimate_for_programs_has_every_number(place, machine):
    told = json.loads(invoke("run", "large.yaml", "--estimate", "--json").stdout)
    assert told["disk_bytes"]["total"] == told["kept_bytes"]
    assert told["disk_bytes"]["logs"] + told["disk_bytes"]["trace"] <= told["kept_bytes"]
    assert told["from"]["records"] == 1_800_000
    assert told["refused"] == ""
    assert told["within_factor"] == {"disk": 1.3, "memory": 1.5, "time": 2.0}
    assert 20 < told["seconds"] < 400
    kept = invoke("run", "large.yaml", "--estimate", "--json", "--keep", "verdict").stdout
    assert json.loads(kept)["kept_bytes"] < MIB
    facts = invoke("run", "large.yaml", "--estimate", "--json", "--trace", "facts").stdout
    assert json.loads(facts)["disk_bytes"]["trace"] < told["disk_bytes"]["trace"]


def test_an_estimate_of_what_would_be_refused_says_so_and_is_no_failure(place, disk, machine):
    disk(2 << 30)
    answer = invoke("run", "large.yaml", "--estimate")
    assert answer.exit_code == 0
    assert "refused  runs/large-s1: the run would write about 5.1 GiB there" in answer.stdout


def test_the_machine_is_measured_once_and_with_no_cache_again(place, machine):
    for words in ((), (), ("--no-cache",)):
        assert invoke("run", "short.yaml", "--estimate", *words).exit_code == 0
    assert len(machine) == 2


def test_an_estimate_of_a_scenario_that_cannot_be_is_bad_input(place, machine):
    answer = invoke("run", "short.yaml", "--estimate", "--set", "run.for=-1s")
    assert answer.exit_code == 2
    assert machine == []


# -- many runs ------------------------------------------------------------------------------------


def test_a_check_that_would_fill_the_disk_is_refused_before_anything_is_written(place, disk):
    disk(8 << 30)
    before = names(place)
    words = ("large.yaml", "--seeds", "1..3", "--jobs", "2", "--no-cache")
    answer = invoke("check", *words)
    assert answer.exit_code == 2
    assert "3 runs, 2 at once, would write about 10 GiB there at most" in answer.stderr
    assert "fewer at once (--jobs)" in answer.stderr
    assert "--keep" not in answer.stderr, "it would not help: nothing is kept that holds"
    assert names(place) == before


def test_runs_that_are_kept_are_counted_and_less_may_be_kept(tmp_path, place, disk):
    disk(1 << 30)
    jobs = [Job("large.yaml", seed, f"x/{seed}", "k", keep="all") for seed in (1, 2, 3)]
    with pytest.raises(SimulationError, match="write about 15 GiB there at most") as caught:
        work.check_space(jobs, 1)
    assert "--keep verdict; shorten the runs" in str(caught.value)
    less = [Job("large.yaml", seed, f"x/{seed}", "k", keep="verdict") for seed in (1, 2, 3)]
    with pytest.raises(SimulationError, match=r"write about 5\.1 GiB there at most"):
        work.check_space(less, 1)


def test_both_runs_of_twice_are_counted(place, disk):
    disk(1 << 30)
    with pytest.raises(SimulationError, match="write about 10 GiB there at most"):
        work.check_space([Job("large.yaml", 1, "x/1", "k", twice=True)], 1)


def test_nothing_to_run_needs_no_room(disk):
    disk(0)
    assert work.check_space([], 2) == ""


def test_a_run_of_many_that_has_no_room_when_it_begins_is_not_begun(place, disk):
    disk(0)
    found = work.execute(Job("short.yaml", 1, "out", "k"))
    assert found.status == "bad input"
    assert "out: the run would write about" in found.message
    assert not Path("out").exists()


def test_large_runs_of_a_check_are_announced(place, disk):
    disk(1 << 39)
    line = work.check_space([Job("large.yaml", s, f"x/{s}", "k") for s in (1, 2)], 2)
    assert line.startswith("x: 2 runs, 2 at once, will write about 10 GiB there at most; ")


def test_a_verdict_on_a_cluster_is_refused_where_its_runs_have_no_room(place, disk):
    disk(1 << 30)
    answer = invoke("verdict", "short.yaml", "--seeds", "1", "--jobs", "2", "--no-cache")
    assert answer.exit_code == 2
    assert "at once, would write about" in answer.stderr
    assert not (place / "runs" / "short-verdict" / "runs").exists()


def test_a_sweep_needs_room_for_the_runs_that_its_cores_make_at_once(place, disk, monkeypatch):
    disk(1 << 30)
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    with pytest.raises(SimulationError, match="4 runs at once would write about 20 GiB") as caught:
        explore("large.yaml", ["acks=1,all"], 2, out="sweep")
    assert "set TMPDIR to a directory on a larger disk" in str(caught.value)
    assert not (place / "sweep").exists()


def test_the_disk_of_this_machine_is_looked_at(tmp_path):
    found = space.space_at(tmp_path / "a" / "b")
    assert 0 < found.free <= shutil.disk_usage(tmp_path).total
