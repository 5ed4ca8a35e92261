"""``logquake init`` writes a file that is a scenario, and runs."""

import json
from itertools import product
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sim.cli import app
from sim.cli.commands.init_options import Acks, Fails, InitOptions
from sim.cli.init import _answers, scenario_text
from sim.errors import SimulationError
from sim.scenario.loader import load, load_text
from sim.scenario.shipped import find

OPEN = InitOptions(source=None, brokers=None, zones=1, acks=None, fails=None, force=False)
ROOT = Path(__file__).parents[2]


def init(*words, place):
    return CliRunner().invoke(app, ["init", str(place / "mine.yaml"), *words])


@pytest.mark.parametrize(
    ("acks", "fails", "size"), list(product(Acks, Fails, [(1, 1), (3, 1), (3, 3), (7, 3)]))
)
def test_every_combination_of_answers_is_a_scenario(acks, fails, size):
    brokers, zones = size
    if fails is Fails.ZONE and zones == 1:
        with pytest.raises(SimulationError, match="add --zones 3"):
            scenario_text(brokers, acks, fails, zones=zones)
        return
    scenario = load_text(scenario_text(brokers, acks, fails, zones=zones))
    assert len(scenario.cluster.brokers) == brokers
    assert len(scenario.faults) == (
        fails is not Fails.NOTHING and (brokers, fails) != (1, "network")
    )


def test_what_init_writes_is_run_and_held(tmp_path):
    done = init("--brokers", "3", "--acks", "all", "--fails", "broker", place=tmp_path)
    assert done.exit_code == 0, done.output
    assert "next: logquake run" in done.output
    words = ["run", str(tmp_path / "mine.yaml"), "--out", str(tmp_path / "run"), "--json"]
    ran = CliRunner().invoke(app, words)
    assert ran.exit_code == 0, ran.output
    verdict = json.loads((tmp_path / "run" / "verdict.json").read_text())
    assert verdict["answer"]["lost"]["level"] == "green"
    assert verdict["answer"]["down"]["level"] == "amber", "the fault was felt"


def test_on_a_terminal_three_questions_are_put_and_their_answers_checked(tmp_path, monkeypatch):
    monkeypatch.setattr("sim.cli.init.sys.stdin.isatty", lambda: True, raising=False)
    answers = iter([5, "1", "disk"])
    monkeypatch.setattr("sim.cli.init.typer.prompt", lambda *_words, **_more: next(answers))
    made = scenario_text(*_answers(OPEN), zones=1)
    assert "brokers: 5" in made
    assert 'acks: "1", enable.idempotence: false' in made
    assert "do: slow-disk" in made
    answers = iter([5, "2"])
    with pytest.raises(SimulationError, match="'2'; allowed: all, 1, 0"):
        _answers(OPEN)


def test_a_file_that_is_there_is_replaced_by_force_alone(tmp_path):
    (tmp_path / "mine.yaml").write_text("mine")
    done = init("--fails", "disk", place=tmp_path)
    assert done.exit_code == 2
    assert "exists; --force replaces it" in done.output
    assert (tmp_path / "mine.yaml").read_text() == "mine"
    assert init("--fails", "disk", "--force", place=tmp_path).exit_code == 0


def test_an_example_is_copied_by_its_name_and_an_unknown_one_names_its_neighbours(tmp_path):
    assert init("--from", "quickstart", place=tmp_path).exit_code == 0
    assert load(tmp_path / "mine.yaml").digest == load(find("quickstart")).digest
    done = init("--from", "acks", "--force", place=tmp_path)
    assert done.exit_code == 2
    assert "acks1-leader-crash" in done.output


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--brokers", "0"), "1 to 99 are allowed"),
        (("--brokers", "3", "--zones", "4"), "1 to 3 are allowed"),
        (("--fails", "meteor"), "meteor"),
    ],
)
def test_answers_that_make_no_cluster_are_refused(words, told, tmp_path):
    done = init(*words, place=tmp_path)
    assert done.exit_code == 2
    assert told in done.output
    assert list(tmp_path.iterdir()) == []
