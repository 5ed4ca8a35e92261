"""The command answers in one line or in JSON, with the exit code that it promises."""

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import typer
import yaml
from typer.testing import CliRunner

from sim.cli import app
from sim.cli.exits import Case, ExitCode, exit_codes
from sim.errors import InvariantBroken, NoProgress, SimulationError
from sim.suite.outcome import Outcome
from tests.scenarios.run_kit import text_of

ROOT = Path(__file__).parents[2]
QUICKSTART = ROOT / "scenarios" / "quickstart.yaml"

BAD = {
    "unknown key": ("racks:", "rakcs:"),
    "wrong unit": ("at: 8s", "at: 6 lightyears"),
    "RF above brokers": ("replication.factor: 3", "replication.factor: 7"),
    "min.insync above RF": ("min.insync.replicas: 2", "min.insync.replicas: 4"),
    "unknown target": ("target: broker-3", "target: broker-33"),
    "negative time": ("at: 8s", "at: -6s"),
    "unknown setting": ("linger.ms: 25", "lingr.ms: 25"),
    "YAML tag": ("seed: 7", "seed: !!python/object/apply:os.getpid []"),
}


def invoke(*words: str):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("command", ["run", "validate"])
def test_bad_input_is_one_line_exit_2_and_nothing_written(name, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    old, new = BAD[name]
    file = tmp_path / "bad.yaml"
    text = QUICKSTART.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    result = invoke(command, file)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith(f"{file}:")
    assert "Traceback" not in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["bad.yaml"]


@pytest.mark.parametrize("text", ["", "a: [", "- x"])
def test_what_is_no_scenario_is_refused_by_run(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    result = invoke("run", file)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert len(list(tmp_path.iterdir())) == 1


def test_bad_override_is_refused_by_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = invoke("run", QUICKSTART, "--set", "run.for=60")
    assert result.exit_code == 2
    assert result.stderr.startswith("--set run.for=60: run.for: 60 has no unit")
    assert list(tmp_path.iterdir()) == []


def test_validate_takes_directories_and_answers_for_each_file():
    result = invoke("validate", ROOT / "scenarios", "--json")
    answers = json.loads(result.stdout)
    assert result.exit_code == 0
    assert len(answers) >= 5
    assert all(answer["ok"] and len(answer["digest"]) == 64 for answer in answers)


def test_validate_shows_what_presets_and_relative_instants_came_to(tmp_path):
    file = tmp_path / "gp3.yaml"
    faults = [
        {"name": "crash", "at": "1s", "do": "crash", "target": "broker-1", "for": "1s"},
        {"at": "end of crash + 500ms", "do": "restart", "target": "broker-2"},
    ]
    file.write_text(text_of(cluster={"hardware": {"disk": "gp3"}}, faults=faults))
    shown = yaml.safe_load(invoke("validate", "--show", file).stdout)
    assert shown["cluster"]["disk"]["flush"] == {"p50": "2ms", "p99": "9ms"}
    assert [fault["at"] for fault in shown["faults"]] == ["1s", "2500ms"]
    (answer,) = json.loads(invoke("validate", "--show", "--json", file).stdout)
    assert answer["scenario"] == shown
    file.write_text(yaml.safe_dump(shown))
    (again,) = json.loads(invoke("validate", "--json", file).stdout)
    assert again["digest"] == answer["digest"]


def test_validate_goes_on_after_a_bad_file(tmp_path):
    (tmp_path / "a.yaml").write_text("claim: [")
    (tmp_path / "b.yaml").write_text(QUICKSTART.read_text())
    result = invoke("validate", tmp_path)
    assert result.exit_code == 2
    assert "b.yaml: ok" in result.stdout
    assert "a.yaml:1: " in result.stderr


def test_validate_of_an_empty_directory_is_bad_input(tmp_path):
    result = invoke("validate", tmp_path)
    assert (result.exit_code, "no scenario" in result.stderr) == (2, True)


def test_schema_is_json_schema_of_the_scenario_file():
    schema = json.loads(invoke("schema").stdout)
    assert "claim" in schema["properties"]
    assert "replica.lag.time.max.ms" in json.dumps(schema)


SUBJECTS = ["faults", "settings", "behaviours", "checks", "hardware", "scenarios"]


@pytest.mark.parametrize("subject", SUBJECTS)
def test_list_answers_in_json_and_in_lines(subject, monkeypatch):
    monkeypatch.chdir(ROOT)
    rows = json.loads(invoke("list", subject, "--json").stdout)
    assert len(rows) > 5
    lines = invoke("list", subject).stdout.splitlines()
    assert len(lines) == len(rows), "in a pipe a line is a row"


def test_list_of_scenarios_goes_down_into_directories_and_shows_claims(monkeypatch):
    monkeypatch.chdir(ROOT)
    rows = {row["scenario"]: row["claim"] for row in json.loads(listed("scenarios"))}
    assert "acks1" in "".join(rows)
    assert any(path.startswith("scenarios/catalogue/") for path in rows)
    assert all(claim.endswith(".") for claim in rows.values())


def test_list_of_scenarios_elsewhere_has_those_that_come_with_the_program(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = {row["scenario"] for row in json.loads(listed("scenarios"))}
    assert {"quickstart", "tradeoff", "acks1-leader-crash"} <= rows
    assert len(rows) > 100, "and the catalogue"


def listed(subject):
    return invoke("list", subject, "--json").stdout


def test_list_of_an_unknown_subject_is_a_usage_error():
    assert invoke("list", "planets").exit_code == 2


def test_doctor_finds_this_environment_fit():
    result = invoke("doctor")
    assert result.exit_code == 0
    assert "pydantic" in result.stdout


def test_dump_and_doctor_of_nothing_are_bad_input(tmp_path):
    for words in (("dump", tmp_path / "none.log"), ("doctor", tmp_path / "none")):
        result = invoke(*words)
        assert (result.exit_code, "no such" in result.stderr) == (2, True)


def test_report_of_something_else_is_bad_input(tmp_path):
    result = invoke("report", tmp_path)
    assert (result.exit_code, "not a run directory" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("error", "code", "traceback"),
    [
        (SimulationError("no"), ExitCode.BAD_INPUT, False),
        (NoProgress("stuck"), ExitCode.NO_PROGRESS, False),
        (InvariantBroken("high-watermark-monotonic"), ExitCode.DEFECT, False),
        (ZeroDivisionError("oops"), ExitCode.DEFECT, True),
        (AssertionError("oops"), ExitCode.DEFECT, True),
        (KeyboardInterrupt(), ExitCode.INTERRUPTED, False),
        (OSError(28, "No space left on device"), ExitCode.INTERRUPTED, False),
        (PermissionError(13, "Permission denied", "runs"), ExitCode.BAD_INPUT, False),
    ],
)
def test_every_kind_of_failure_has_its_exit_code(error, code, traceback, capsys):
    with pytest.raises(BaseException) as caught, exit_codes():
        raise error
    assert caught.value.exit_code == code
    assert ("Traceback" in capsys.readouterr().err) is traceback


def test_a_defect_says_that_it_is_one_and_what_to_send_and_where_the_run_lies(tmp_path, capsys):
    case = Case(Path("my.yaml"), 7, tmp_path)
    with pytest.raises(typer.Exit), exit_codes(case):
        raise InvariantBroken("high-watermark-monotonic: orders-0 fell from 9 to 8")
    told = capsys.readouterr().err
    assert told.startswith("high-watermark-monotonic: orders-0 fell from 9 to 8\n")
    assert "This is a defect of Logquake, not of your scenario.\n" in told
    assert f"Please send: my.yaml, seed 7, version {version('logquake')}, and " in told
    assert f"or else what stands above; the run lies in {tmp_path}." in told
    case.directory = tmp_path / "none"
    with pytest.raises(typer.Exit), exit_codes(case):
        raise ZeroDivisionError("oops")
    told = capsys.readouterr().err
    assert "ZeroDivisionError: oops\nThis is a defect of Logquake" in told
    assert "no run directory was written" in told


@pytest.mark.parametrize("words", [("explain",), ("report",), ("run",), ("check",), ("explore",)])
def test_every_command_says_of_its_own_defect_what_to_send(words, tmp_path, monkeypatch):
    """A planted defect: what each of them calls first fails as nothing of the caller's can."""
    import sim.cli.check  # noqa: PLC0415 - what is planted in
    import sim.cli.explain  # noqa: PLC0415
    import sim.cli.explore  # noqa: PLC0415
    import sim.cli.report  # noqa: PLC0415
    import sim.cli.run  # noqa: PLC0415

    def fails(*_given, **_more):
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(sim.cli.explain, "RunFacts", fails)
    monkeypatch.setattr(sim.cli.report, "report", fails)
    monkeypatch.setattr(sim.cli.run, "load", fails)
    monkeypatch.setattr(sim.cli.check, "find_files", fails)
    monkeypatch.setattr(sim.cli.explore, "parse_seeds", fails)
    (tmp_path / "run.json").write_text("{}")
    result = invoke(*words, tmp_path)
    assert result.exit_code == 4, result.output
    assert "ZeroDivisionError: planted\nThis is a defect of Logquake" in result.stderr
    is_run = words[0] in ("explain", "report")
    assert (f"the run lies in {tmp_path}." in result.stderr) is is_run
    name = "scenario.yaml of the run directory" if is_run else "Please send: "
    assert name in result.stderr


def test_check_says_of_a_run_that_met_a_defect_what_to_send(tmp_path, monkeypatch):
    import sim.cli.check  # noqa: PLC0415 - what is planted in

    broken = Outcome("my.yaml", 7, "defect", "offsets fell", directory=str(tmp_path))
    monkeypatch.setattr(sim.cli.check, "_plan", lambda *_given: [])
    monkeypatch.setattr(sim.cli.check, "_run", lambda *_given: ([broken], False))
    baseline = tmp_path / "baseline.json"
    result = invoke("check", "my.yaml", "--baseline", baseline, "--update")
    assert result.exit_code == 4, result.output
    assert "left as it was" in result.stderr
    assert not baseline.exists()
    assert "offsets fell\nThis is a defect of Logquake, not of your scenario." in result.stderr
    assert f"Please send: my.yaml, seed 7, version {version('logquake')}" in result.stderr
    assert f"the run lies in {tmp_path}." in result.stderr


def test_help_is_quick_and_imports_neither_the_simulator_nor_spark():
    code = (
        "import sys\n"
        "from typer.testing import CliRunner\n"
        "from sim.cli import app\n"
        "assert 'dump' in CliRunner().invoke(app, ['--help']).stdout\n"
        "heavy = {'simpy', 'networkx', 'numpy', 'pyarrow', 'pydantic', 'pyspark', 'pandas', "
        "'analysis', 'yaml'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_a_plain_run_imports_nothing_that_only_others_need(tmp_path):
    code = (
        "import sys\n"
        "from sim.cli import main\n"
        f"sys.argv = ['logquake', 'run', 'tests/scenarios/small.yaml', '--set', 'run.for=1s', "
        f"'--set', 'faults=[]', '--set', 'expect={{}}', '--out', {str(tmp_path / 'out')!r}]\n"
        "try:\n"
        "    main()\n"
        "except SystemExit as end:\n"
        "    assert end.code == 0\n"
        "others = ('sim.suite', 'sim.hunting', 'sim.studies', 'sim.importer', 'sim.inspect', "
        "'analysis', 'pyspark', 'py4j', 'pandas', 'scipy', 'matplotlib', 'jinja2', "
        "'pyarrow.compute', 'multiprocessing.queues', 'concurrent.futures.process', 'asyncio')\n"
        "print(sorted(name for name in sys.modules "
        "if any(name == other or name.startswith(other + '.') for other in others)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"
    assert (tmp_path / "out" / "verdict.json").is_file()


def test_loading_a_scenario_does_not_import_the_simulator():
    code = (
        "import sys\n"
        "from sim.scenario.loader import load\n"
        "load('scenarios/quickstart.yaml')\n"
        "print(sorted({'simpy', 'numpy', 'pyarrow', 'pyspark', 'analysis'} & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_version_is_told_and_that_of_kafka():
    result = invoke("--version")
    assert result.exit_code == 0
    assert result.stdout == f"logquake {version('logquake')}, simulates Kafka 0.10 to 4.3\n"
