"""``logquake mcp`` and lines of progress: what the command refuses, and what a child says."""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sim.cli import app
from sim.cli.screen import step_bar
from sim.cli.terminal import count_bar, progress_bar
from sim.progress import REPORTS_PROGRESS, Step, as_line, of_line, request
from sim.scenario.run.result import Progress

ROOT = Path(__file__).parents[2]


def invoke(*words):
    return CliRunner().invoke(app, ["mcp", *(str(word) for word in words)])


def test_without_the_sdk_it_says_what_to_install(monkeypatch, tmp_path):
    for name in [name for name in sys.modules if name.partition(".")[0] in {"mcp", "mcp_types"}]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "sim.mcp.server", raising=False)
    monkeypatch.setitem(sys.modules, "mcp", None)
    done = invoke("--root", tmp_path / "root")
    assert done.exit_code == 2
    assert "pip install 'logquake[mcp]'" in done.stderr
    assert not (tmp_path / "root").exists()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--max-time", "soon"), "--max-time: "),
        (("--max-simulated", "5"), "allowed: a time such as 90s, 5m or 1h"),
        (("--max-disk", "8"), "--max-disk: "),
        (("--read", "nowhere"), "--read nowhere: no such directory"),
    ],
)
def test_an_option_that_cannot_be_is_refused_before_anything_is_served(words, text):
    done = invoke(*words)
    assert done.exit_code == 2
    assert text in done.stderr


@pytest.fixture
def requested(monkeypatch):
    monkeypatch.setattr("sim.progress._REQUESTED", [])
    request()


def told(capsys):
    return [of_line(line) for line in capsys.readouterr().err.splitlines()]


def test_a_line_of_progress_is_no_other_line():
    step = Step(1.5, None, 'run "x"\n')
    assert of_line(as_line(step)) == step
    for line in ("", "interrupted", '{"progress": 1', '{"progress": 1}', '["progress"]'):
        assert of_line(line) is None


def test_bars_are_lines_where_a_program_requests_them(requested, capsys):
    with count_bar("verdict", 2) as on_result:
        on_result("crash", True)
        on_result("pause", False)
    assert told(capsys) == [Step(0, 2, "verdict"), Step(1, 2, "crash"), Step(2, 2, "pause")]
    with step_bar("trying") as on_step:
        on_step("acks=all")
    assert told(capsys) == [Step(0, None, "trying"), Step(1, None, "trying: acks=all")]
    with progress_bar("tiny") as on_progress:
        for now in range(0, 1_000_000, 100):
            on_progress(Progress("run", now, 1_000_000, 5, 1, 2))
    steps = told(capsys)
    assert len(steps) == 1_000
    assert steps[-1] == Step(0.999, 1.0, "run, 1.0 s of simulated time, faults 1/2")


def test_bars_say_nothing_in_a_pipe_that_nobody_reads_progress_from(monkeypatch, capsys):
    monkeypatch.setattr("sim.progress._REQUESTED", [])
    with count_bar("verdict", 1) as on_result, step_bar("trying") as on_step:
        on_result("crash", True)
        on_step("acks=all")
    with progress_bar("tiny") as on_progress:
        assert on_progress is None
    assert capsys.readouterr() == ("", "")


def test_the_argument_before_the_command_requests_lines(tmp_path):
    words = [
        "run",
        "acks1-leader-crash.yaml",
        "--set",
        "run.for=3s",
        "--set",
        "faults=[]",
        "--out",
        tmp_path / "run",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "sim", REPORTS_PROGRESS, *words, "--json"],
        cwd=ROOT / "scenarios",
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    steps = [of_line(line) for line in done.stderr.splitlines()]
    assert len(steps) > 1, done.stderr
    assert None not in steps
    assert done.stdout.startswith("{")
