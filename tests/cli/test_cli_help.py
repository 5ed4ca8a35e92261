"""The help of each command: it answers, names its options, and says what each is for."""

import pytest
import typer.main
from typer.testing import CliRunner

from sim.cli import app

ROOT = typer.main.get_command(app)
COMMANDS = sorted(getattr(ROOT, "commands", {}))


def test_there_are_commands_to_ask():
    assert {"run", "validate", "list"} <= set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_answers_with_its_options(name):
    command = ROOT.commands[name]
    answer = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "200"})
    assert answer.exit_code == 0, answer.output
    assert (command.help or "").strip(), f"{name} says nothing about itself"
    for option in command.params:
        if getattr(option, "hidden", False) or option.param_type_name != "option":
            continue
        assert option.opts[0] in answer.output, (name, option.opts)
        assert (option.help or "").strip(), (name, option.opts)


def test_a_command_that_there_is_not_is_refused_by_name():
    answer = CliRunner().invoke(app, ["no-such-command", "--help"])
    assert answer.exit_code == 2
    assert "no-such-command" in answer.output
