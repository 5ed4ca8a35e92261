"""``logquake rehearse`` without a Kafka: repetitions, exit codes, refusals."""

from dataclasses import replace
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import sim.rehearsal.apache
import sim.rehearsal.run
from sim.cli.commands.app import app
from sim.cli.rehearse import RehearseOptions, rehearse_command
from sim.rehearsal.apache import Apache
from sim.scenario.run.result import Result

ROOT = Path(__file__).parents[2]
SCENARIO = ROOT / "scenarios" / "separate-roles-crash.yaml"
OPTIONS = RehearseOptions(
    seed=None, sets=(), out=None, force=False, kafka=None, scale=1.0, repeat=1, warm_up="8s",
    as_json=True,
)  # fmt: skip


@pytest.fixture
def rehearsals(monkeypatch):
    """Rehearsals that were ordered; each is a run that held, or what ``endings`` says."""
    made, endings = [], {}

    def rehearse(scenario, apache, options, *_):
        made.append((scenario, apache, options))
        complete, held = endings.get(len(made), (True, True))
        unaffected = () if held else ("fault 0: nothing",)
        exits = ["broker-1 ended on its own, code 1"]
        card = {"noise": {"samples": 0}, "unordered_exits": exits}
        return Result("x", options.seed, options.out, complete, card, {}, (), unaffected)

    kafka = Apache("4.3.1", Path("lib"))
    monkeypatch.setattr(sim.rehearsal.run, "rehearse", rehearse)
    monkeypatch.setattr(sim.rehearsal.apache, "found", lambda version, directory: kafka)
    return made, endings


def ended(**changed):
    with pytest.raises(typer.Exit) as caught:
        rehearse_command(SCENARIO, replace(OPTIONS, **changed))
    return caught.value.exit_code


def test_a_rehearsal_writes_beside_the_simulated_run(rehearsals):
    made, _ = rehearsals
    assert ended() == 0
    [(scenario, _, options)] = made
    assert options.out == Path("runs/separate-roles-crash-s1-real")
    assert (options.seed, scenario.name) == (1, "separate-roles-crash")


@pytest.mark.parametrize(
    ("text", "lasts_us"), [("0s", 0), ("1500ms", 1_500_000), ("2min", 120_000_000)]
)
def test_a_rehearsal_has_the_warm_up_that_is_given(rehearsals, text, lasts_us):
    made, _ = rehearsals
    assert ended(warm_up=text) == 0
    [(_, _, options)] = made
    assert options.warm_up_us == lasts_us


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("3min", "--warm-up: found 3min; allowed: 0s to 120 s"),
        ("soon", "--warm-up: 'soon' is not a quantity; allowed: a duration"),
    ],
)
def test_a_warm_up_that_is_none_or_too_long_is_refused(rehearsals, capsys, text, message):
    made, _ = rehearsals
    assert ended(warm_up=text) == 2
    assert message in capsys.readouterr().err
    assert made == []


def test_noise_and_processes_that_ended_on_their_own_are_shown(rehearsals, capsys):
    assert ended(as_json=False) == 0
    shown = capsys.readouterr().out
    assert "noise    not measured" in shown
    assert "ended    broker-1 ended on its own, code 1" in shown


def test_repetitions_have_the_same_seed_and_directories_of_their_own(rehearsals, tmp_path):
    made, _ = rehearsals
    assert ended(repeat=3, out=tmp_path / "x", seed=5) == 0
    assert [each[2].out.name for each in made] == ["x-1", "x-2", "x-3"]
    assert {each[2].seed for each in made} == {5}


def test_one_repetition_that_did_not_hold_decides_the_exit_code(rehearsals):
    made, endings = rehearsals
    endings[2] = (True, False)
    assert ended(repeat=3) == 1
    assert len(made) == 3


def test_no_repetition_follows_an_interrupted_one(rehearsals):
    made, endings = rehearsals
    endings[2] = (False, True)
    assert ended(repeat=3) == 130
    assert len(made) == 2


def test_the_scale_reaches_the_rates(rehearsals):
    made, _ = rehearsals
    assert ended(scale=0.5) == 0
    [(scenario, _, options)] = made
    assert (scenario.producers[0].rate_per_s, options.scale) == (25, 0.5)


@pytest.mark.parametrize("scale", ["0", "-1", "2"])
def test_a_scale_out_of_range_is_bad_input(scale):
    done = CliRunner().invoke(app, ["rehearse", str(SCENARIO), "--scale", scale])
    assert done.exit_code == 2
    assert "allowed: above 0, up to 1" in done.output + done.stderr


def test_what_cannot_be_had_is_bad_input_and_nothing_starts(rehearsals):
    made, _ = rehearsals
    assert ended(sets=("run.for=2h",)) == 2
    assert not made


def test_a_machine_without_java_is_bad_input(monkeypatch):
    monkeypatch.setattr(sim.rehearsal.apache.shutil, "which", lambda name: None)
    assert ended() == 2
