"""The command logquake check: many runs, remembered, reported, compared, and run twice."""

import json
import os
import subprocess
import sys
from xml.etree import ElementTree as ET

import pytest

from sim import lifetime
from sim.errors import SimulationError
from sim.scenario.run.runner import run
from sim.suite import reports, work
from sim.suite.cache import Cache
from sim.suite.outcome import Outcome, from_json, read_outcome
from sim.suite.plan import Job, find_files, parse_seeds, plan
from tests.scenarios.run_kit import ROOT, text_of

SHORT = {"lasts": "1s", "producer": {"rate": "100/s"}, "topic": {"partitions": 1}}
CRASH = {"at": "500ms", "do": "crash", "target": "leader of orders-0", "for": "400ms"}


def check(cwd, *words):
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("GITHUB_")
    } | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-m", "sim", "check", *words], cwd=cwd, env=environment,
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A file that holds and one that does not, checked once with two seeds."""
    directory = tmp_path_factory.mktemp("check")
    files = directory / "scenarios"
    (files / "deep").mkdir(parents=True)
    (files / "good.yaml").write_text(text_of(**SHORT, expect={"lost_acked": 0}))
    (files / "deep" / "bad.yaml").write_text(
        text_of(**SHORT, faults=[CRASH], expect={"lost_acked": 0, "sent": "at least 999"})
    )
    words = ("--seeds", "1..2", "--jobs", "2", "--junit", "out/j.xml", "--summary", "s.md")
    return directory, check(directory, "scenarios", *words, "--annotate")


def test_one_run_that_does_not_hold_makes_the_answer_no(place):
    directory, done = place
    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()
    assert any(line.startswith("held    scenarios/good.yaml  2/2 seeds") for line in lines)
    assert any(line.startswith("FAILED  scenarios/deep/bad.yaml  0/2 seeds") for line in lines)
    assert "        seed 2: sent: asked at least 999, found 100" in done.stdout
    assert lines[-1] == "2 of 4 runs held"
    kept = sorted(path.name for path in (directory / "runs" / "check").iterdir())
    assert kept == ["bad-s1", "bad-s2"], "runs that held are gone, the others stay"


def test_junit_has_a_case_for_each_seed(place):
    root = ET.parse(place[0] / "out" / "j.xml").getroot()
    suites = {suite.get("name"): suite for suite in root}
    assert list(suites) == ["scenarios/deep/bad.yaml", "scenarios/good.yaml"]
    bad = suites["scenarios/deep/bad.yaml"]
    assert (bad.get("tests"), bad.get("failures")) == ("2", "2")
    assert [case.get("name") for case in bad] == ["seed 1", "seed 2"]
    assert bad[0][0].get("message").startswith("sent: asked at least 999, found 100")
    for case in suites["scenarios/good.yaml"]:
        [told] = case
        assert told.tag == "system-out"
        names = [line.partition(":")[0] for line in told.text.splitlines()]
        assert names == ["lost", "down", "slow"]


def test_annotations_point_at_the_line_of_the_expectation(place):
    text = (place[0] / "scenarios" / "deep" / "bad.yaml").read_text().splitlines()
    line = next(n for n, words in enumerate(text, 1) if "sent:" in words)
    (first, _) = [words for words in place[1].stdout.splitlines() if words.startswith("::error")]
    assert first.startswith(
        f"::error file=scenarios/deep/bad.yaml,line={line},title=failed%2C seed 1::sent: asked"
    )


def test_the_summary_is_a_table_and_what_was_wrong(place):
    page = (place[0] / "s.md").read_text()
    assert page.startswith("## logquake check: 2 of 4 runs held\n")
    assert "| `scenarios/deep/bad.yaml` | 2 | **0 of 2** | 0 |" in page
    assert "* `scenarios/deep/bad.yaml`, seed 1: failed\n  * sent: asked at least 999" in page


def test_what_is_known_is_not_run_again_until_something_changes(place):
    directory, _ = place
    again = check(directory, "scenarios", "--seeds", "1..2", "--json")
    assert again.returncode == 1
    told = json.loads(again.stdout)["runs"]
    assert [run["cached"] for run in told] == [True] * 4
    jobs = plan([directory / "scenarios" / "good.yaml"], (1,), directory)
    changed = directory / "other.yaml"
    text = (directory / "scenarios" / "good.yaml").read_text()
    changed.write_text(text.replace("100/s", "101/s"))
    other = plan([changed], (1,), directory)
    assert other[0].key != jobs[0].key
    assert plan([changed], (2,), directory)[0].key != other[0].key


def test_a_file_that_cannot_be_run_costs_no_run(tmp_path):
    (tmp_path / "a.yaml").write_text(text_of(**SHORT))
    (tmp_path / "b.yaml").write_text(text_of(**SHORT).replace("acks", "acsk"))
    done = check(tmp_path, ".")
    assert (done.returncode, done.stdout) == (2, "")
    assert "b.yaml:" in done.stderr
    assert "did you mean acks?" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.yaml", "b.yaml"]


@pytest.mark.slow
def test_fail_fast_leaves_the_rest_undone(place):
    directory, _ = place
    words = ("scenarios", "--seeds", "1..2", "--jobs", "1", "--fail-fast", "--no-cache")
    done = check(directory, *words)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "0 of 1 runs held; 3 not run"


@pytest.mark.slow
def test_twice_says_nothing_if_both_processes_agree(tmp_path):
    job = Job(str(tmp_path_scenario(tmp_path)), 1, str(tmp_path / "one"), "k", twice=True)
    assert work.execute(job).status == "held"
    assert list(tmp_path.glob("one*")) == [], "nothing is left of runs that agree"


@pytest.mark.slow
def test_twice_tells_the_first_row_in_which_two_processes_differ(tmp_path, monkeypatch):
    job = Job(str(tmp_path_scenario(tmp_path)), 1, str(tmp_path / "one"), "k", twice=True)
    real = lifetime.subprocess.run

    def other(words, **options):
        """The second process runs another seed, which is what chance that leaks would do."""
        if words[words.index("--out") + 1].endswith("-again"):
            words[words.index("--seed") + 1] = "2"
        return real(words, **options)

    monkeypatch.setattr(lifetime.subprocess, "run", other)
    found = work.execute(job)
    assert found.status == "not deterministic"
    first, *sides = found.message.splitlines()
    assert first.startswith("two runs of one seed differ in trace_digest, disk_digest")
    assert ": table " in first
    assert [side.split(":")[0].strip() for side in sides] == ["first", "second"]


def test_a_defect_ends_its_run_and_no_other(tmp_path, monkeypatch):
    file = tmp_path / "a.yaml"
    file.write_text(text_of(**SHORT))

    def broken(*_words, **_options):
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(work, "run", broken)
    found = work.execute(Job(str(file), 1, str(tmp_path / "one"), "k"))
    assert found.status == "defect"
    assert "ZeroDivisionError: planted" in found.failures[0]


@pytest.mark.parametrize("name", ["ok_unanswered", "answered_untold"])
def test_brokers_and_clients_that_differ_on_an_acknowledgement_are_a_defect(name, tmp_path):
    run(tmp_path_scenario(tmp_path), 3, tmp_path / "run")
    assert read_outcome("a.yaml", tmp_path / "run").status in ("held", "failed")
    doctored(tmp_path / "run" / "verdict.json", name, 1)
    found = read_outcome("a.yaml", tmp_path / "run")
    assert (found.status, found.is_repeatable) == ("defect", False)
    assert found.failures[-1] == "brokers and clients differ on what was acknowledged"
    doctored(tmp_path / "run" / "run.json", "complete", value=False)
    assert read_outcome("a.yaml", tmp_path / "run").status == "interrupted"


def doctored(file, name, value):
    file.write_text(json.dumps(json.loads(file.read_text()) | {name: value}))


def test_a_cache_forgets_what_could_come_out_otherwise(tmp_path):
    cache, job = Cache(tmp_path / "cache"), Job("a.yaml", 1, "out", "ab" * 32)
    assert cache.find(job) is None
    cache.keep(job, Outcome("a.yaml", 1, "interrupted"))
    assert cache.find(job) is None
    cache.keep(job, Outcome("a.yaml", 1, "held"))
    assert cache.find(job).cached
    (file,) = (tmp_path / "cache").rglob("*.json")
    file.write_text("{")
    assert cache.find(job) is None, "a damaged file is as good as none"
    cache.keep(job, Outcome("a.yaml", 1, "failed", directory=str(tmp_path / "gone")))
    assert cache.find(job) is None, "somebody will want to look at it"


def test_an_outcome_survives_being_written(tmp_path):
    made = run(tmp_path_scenario(tmp_path), 3, tmp_path / "run")
    found = read_outcome("a.yaml", tmp_path / "run")
    assert from_json(json.loads(json.dumps(found.as_json()))) == found
    assert found.trace_digest == made.card["trace_digest"]
    assert found.metrics["lost_acked"] == 0
    assert "appends" in found.table_digests


def tmp_path_scenario(tmp_path):
    file = tmp_path / "a.yaml"
    file.write_text(text_of(**SHORT))
    return file


def test_seeds_are_written_as_ranges_and_lists():
    assert parse_seeds("1..3,7,2") == (1, 2, 3, 7)
    for text in ("", "a", "3..1", "-1", "1..9999999", "1...3"):
        with pytest.raises(SimulationError, match="--seeds"):
            parse_seeds(text)


def test_what_a_run_left_is_no_scenario_to_check(tmp_path):
    left = tmp_path / "runs" / "a-s1"
    left.mkdir(parents=True)
    (left / "scenario.yaml").write_text("x")
    (tmp_path / "a.yaml").write_text("x")
    assert len(find_files([tmp_path])) == 2
    (left / "run.json").write_text("{}")
    assert find_files([tmp_path]) == [tmp_path / "a.yaml"]


def test_markup_of_other_people_is_quoted():
    outcome = Outcome("a,b.yaml", 1, "defect", "100 % <of> it\nand more")
    (line,) = reports.annotations([outcome], None)
    assert (
        line == "::error file=a%2Cb.yaml,line=1,title=defect%2C seed 1::100 %25 <of> it%0Aand more"
    )
    assert "&lt;of&gt;" in reports.junit([outcome], None)
