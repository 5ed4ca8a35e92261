"""``run`` passes its options on, says what came of it, and ends with the code it promises."""

import json
import os
import signal
import sys
import types
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sim.cli import app
from sim.cli.run import stop_requests
from sim.errors import NoProgress
from sim.scenario.expect.bounds import Held
from sim.scenario.run.result import Result

SCENARIO = Path(__file__).parents[2] / "scenarios" / "acks1-leader-crash.yaml"


@dataclass
class Stage:
    """Stands in for the simulator."""

    outcome: object = None
    calls: list = None

    def run(self, scenario, seed, out, **options):
        self.calls.append((scenario, seed, out, options))
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome(out)


def result(*, held=True, complete=True, unaffected=(), unserved=(), **counted):
    line = Held(name="lost_acked", asked="0", found=1, shown="1", held=held, where="", story="")
    verdict = {"records": {"sent": 1_000, "acked": 900}} | counted
    return lambda out: Result(
        "acks1-leader-crash", 1, out, complete, {}, verdict, (line,), unaffected, unserved
    )


@pytest.fixture
def stage(monkeypatch):
    stage = Stage(result(), [])
    module = types.ModuleType("sim.scenario.run.runner")
    module.run = stage.run
    monkeypatch.setitem(sys.modules, "sim.scenario.run.runner", module)
    return stage


def invoke(*words):
    return CliRunner().invoke(app, ["run", str(SCENARIO), *words])


@pytest.mark.parametrize(
    ("outcome", "code", "word"),
    [
        (result(), 0, "HELD"),
        (result(held=False), 1, "FAILED"),
        (result(unaffected=("faults[0] delay: 0 messages delayed",)), 1, "did not take effect"),
        (result(unserved=("topic t: nothing was acknowledged",)), 1, "nothing was acknowledged"),
        (result(complete=False), 130, "INTERRUPTED"),
    ],
)
def test_exit_code_follows_the_verdict(stage, outcome, code, word):
    stage.outcome = outcome
    answer = invoke()
    assert answer.exit_code == code
    assert word in answer.stdout
    assert "acked 900" in answer.stdout


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize("name", ["ok_unanswered", "answered_untold"])
def test_brokers_and_clients_that_differ_on_an_acknowledgement_are_a_defect_whatever_the_verdict(
    stage, name, held
):
    both = {"ok_unanswered": 0, "answered_untold": 0}
    stage.outcome = result(held=held, **both)
    assert invoke().exit_code == (0 if held else 1)
    stage.outcome = result(held=held, **(both | {name: 1}))
    answer = invoke()
    assert answer.exit_code == 4
    assert "brokers and clients differ on what was acknowledged" in answer.stderr
    assert "This is a defect of Logquake, not of your scenario." in answer.stderr


def test_a_difference_in_any_other_cluster_is_a_defect_too(stage):
    both = {"ok_unanswered": 0, "answered_untold": 0}
    stage.outcome = result(**both, clusters={"dr": both})
    assert invoke().exit_code == 0
    stage.outcome = result(**both, clusters={"near": both, "dr": both | {"ok_unanswered": 2}})
    answer = invoke()
    assert answer.exit_code == 4
    assert "cluster dr: brokers and clients differ on what was acknowledged" in answer.stderr
    assert "near" not in answer.stderr


def test_acknowledgements_of_an_interrupted_run_are_not_held_against_each_other(stage):
    stage.outcome = result(complete=False, ok_unanswered=1)
    assert invoke().exit_code == 130


def test_no_progress_has_its_own_exit_code(stage):
    stage.outcome = NoProgress("more than 5 events at 3.0 s")
    answer = invoke()
    assert (answer.exit_code, answer.stderr) == (3, "more than 5 events at 3.0 s\n")


def test_run_card_comes_before_the_run(stage):
    stage.outcome = NoProgress("stuck")
    card = invoke().stdout
    assert "acks1-leader-crash (digest" in card
    assert "producers.shop.config.acks = 1 (default all)" in card


def test_options_reach_the_simulator(stage, tmp_path):
    invoke(
        "--seed", "9", "--out", str(tmp_path / "x"), "--force", "--trace", "facts",
        "--set", "run.for=35s", "--set", "producers.shop.rate=10/s",
    )  # fmt: skip
    ((scenario, seed, out, options),) = stage.calls
    assert (seed, out) == (9, tmp_path / "x")
    assert scenario.run.for_us == 35_000_000
    assert scenario.producers[0].rate_per_s == 10
    assert (options["force"], options["level"]) == (True, "facts")
    assert options["on_progress"] is None, "a pipe gets no progress bar"
    assert options["should_stop"]() is False


def test_directory_and_seed_have_defaults(stage):
    invoke()
    assert stage.calls[0][1:3] == (1, Path("runs/acks1-leader-crash-s1"))
    assert stage.calls[0][3]["force"] is False


def test_json_is_the_only_thing_on_standard_output(stage):
    stage.outcome = result(held=False)
    answer = invoke("--json")
    told = json.loads(answer.stdout)
    assert answer.exit_code == 1
    assert (told["held"], told["complete"], told["seed"]) == (False, True, 1)
    assert told["verdict"]["records"]["acked"] == 900


@pytest.fixture
def reporter(monkeypatch):
    """Stands in for the report: two judges that differ as told."""

    def differing(*names, complete=True, inputs=()):
        def build(runs, *, master, on_progress, explain, prepares):
            told = [{"topic": "", "name": name, "spark": 1, "checker": 2} for name in names]
            report = runs[0] / "report"
            report.mkdir(parents=True)
            (runs[0] / "verdict.json").write_text("{}")
            (report / "report.json").write_text(
                json.dumps(
                    {
                        "complete": complete,
                        "differences": told,
                        "inputs": {"differences": inputs},
                    }
                )
            )
            return report / "index.html"

        module = types.ModuleType("analysis.report.write")
        module.build = build
        monkeypatch.setitem(sys.modules, "analysis.report.write", module)

    return differing


def test_the_verdict_comes_before_the_report_and_both_judges_after_it(stage, reporter, tmp_path):
    reporter()
    answer = invoke("--report", "--out", str(tmp_path / "x"))
    lines = answer.stdout.splitlines()
    assert answer.exit_code == 0
    assert lines[-1] == str(tmp_path / "x" / "report" / "index.html")
    assert lines[-2].startswith("judges   agree")
    assert "HELD" in lines


def test_judges_that_differ_are_a_defect_whatever_the_verdict(stage, reporter, tmp_path):
    reporter("survived")
    answer = invoke("--report", "--out", str(tmp_path / "x"))
    assert answer.exit_code == 4
    assert "survived: 2 inside, 1 on disk" in answer.stdout
    assert "This is a defect of Logquake, not of your scenario." in answer.stderr
    answer = CliRunner().invoke(app, ["report", str(tmp_path / "x")])
    assert answer.exit_code == 2, "no run.json: not a run directory"


def test_disks_that_contradict_what_both_judges_take_from_the_trace_are_a_defect(
    stage, reporter, tmp_path
):
    sentence = "log start of orders-0: the trace says 7, disks/x says 9"
    reporter(inputs=(sentence,))
    answer = invoke("--report", "--out", str(tmp_path / "x"))
    assert answer.exit_code == 4
    assert sentence in " ".join(answer.stdout.split())


def test_judges_of_an_interrupted_run_are_not_compared(reporter, tmp_path):
    reporter("survived", complete=False)
    (tmp_path / "run.json").write_text("{}")
    answer = CliRunner().invoke(app, ["report", str(tmp_path), "--json"])
    assert answer.exit_code == 0
    assert json.loads(answer.stdout)["judges_differ"] == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_asks_for_a_stop_and_the_second_one_is_the_ordinary_one(number):
    before = signal.getsignal(number)
    with stop_requests() as should_stop:
        assert not should_stop()
        os.kill(os.getpid(), number)
        assert should_stop()
        assert signal.getsignal(number) is before
    assert signal.getsignal(number) is before
