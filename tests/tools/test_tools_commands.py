"""Commands that documents show: the program takes them, and those that take no time are run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sim.cli import app
from tools import house_commands, house_text
from tools.house_commands import shown_commands, unknown_targets, wrong_commands
from tools.site.pages import generated

ROOT = Path(__file__).parents[2]
DOCUMENTS = [path for path in house_text.text_files(ROOT) if path.suffix == ".md"]
AT_ONCE = ("init", "list", "schema", "validate")
"""Commands that answer without a run."""


def logquake(words, place):
    return subprocess.run(
        [sys.executable, "-m", "sim", *words], cwd=place,
        env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_program_takes_every_command_that_a_document_shows():
    found = [str(f) for path in DOCUMENTS for f in wrong_commands(ROOT, path)]
    assert found == []
    assert sum(len(list(shown_commands(path.read_text()))) for path in DOCUMENTS) >= 45


def test_the_program_takes_every_command_of_the_pages_that_are_made():
    commands = [words for text in generated().values() for _, words in shown_commands(text)]
    assert len(commands) > 150
    assert [(w, c) for w in commands for c in house_commands.complaints(ROOT, w)] == []


def test_every_target_of_make_that_a_document_names_is_there():
    assert [str(f) for path in DOCUMENTS for f in unknown_targets(ROOT, path)] == []


def test_commands_that_need_no_run_end_well_in_the_order_in_which_the_readme_shows_them(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    shown = [words for _, words in shown_commands((ROOT / "README.md").read_text())]
    quick = [words for words in shown if words[0] in AT_ONCE]
    assert [words[0] for words in quick] == ["init", "init", "validate"]
    for words in quick:
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, (words, done.output)


def studies():
    text = (ROOT / "docs" / "studies.md").read_text()
    return [words for _, words in shown_commands(text) if "my.yaml" not in words]


@pytest.mark.slow
@pytest.mark.parametrize("words", studies(), ids=" ".join)
def test_a_study_answers_as_the_page_of_studies_asks_it(words, tmp_path):
    """But for the largest, which take minutes: these get the sizes of the others."""
    if "--partitions" not in words:
        words = (*words, "--partitions", "2000")
    done = logquake(words, tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "block",
    [
        "```sh\nlogquake run a.yaml --sed 3\n```",
        "```\nlogquake rnu a.yaml\n```",
        "```sh\nlogquake run\n```",
        "```sh\nlogquake run scenarios/nowhere.yaml\n```",
        "```sh\nlogquake run scenarios/tradeoff.yaml --set producers.0.config.ack=1\n```",
        "```text\nfine\n```\n1. Step\n\n    ```sh\n    logquake check a --seed 3 # all\n    ```",
        "```yaml\n      - run: logquake check a --junitt out\n```",
        "```sh\nlogquake run a.yaml \\\n  --sed 3\n```",
        "See `logquake lst faults`.",
    ],
)
def test_a_command_that_the_program_does_not_take_is_found(tmp_path, block):
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    page = tmp_path / "page.md"
    page.write_text(f"# Page\n\n{block}\n")
    assert len(list(wrong_commands(tmp_path, page))) == 1


@pytest.mark.parametrize(
    "block",
    [
        "```sh\nlogquake run a.yaml --seed 3  # exit 1\nlogquake schema > schema.json\n```",
        "```text\nlogquake run [OPTIONS] SCENARIO\n```",
        "```sh\nlogquake run scenarios/tradeoff.yaml --set acks=1\n```",
        "See `logquake list faults`, and `logquake init`.",
    ],
)
def test_a_command_that_the_program_takes_is_left_alone(tmp_path, block):
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    page = tmp_path / "page.md"
    page.write_text(f"# Page\n\n{block}\n")
    assert list(wrong_commands(tmp_path, page)) == []


def test_a_target_that_is_not_in_the_makefile_is_found(tmp_path):
    (tmp_path / "Makefile").write_text("all:  ## everything\n")
    page = tmp_path / "page.md"
    page.write_text("`make all` and `make al`\n```sh\nmake everything\n```\n")
    assert [found.line for found in unknown_targets(tmp_path, page)] == [1, 3]


@pytest.mark.slow
def test_the_readme_s_own_scenario_runs_and_is_explained_under_the_name_that_it_gives(tmp_path):
    """The report, which needs Spark, is left out; other tests make it."""
    shown = [words for _, words in shown_commands((ROOT / "README.md").read_text())]
    asked = [words for words in shown if words[0] in ("init", "run", "explain")]
    mine = [words for words in asked if "--estimate" not in words]
    assert [words[0] for words in mine] == ["init", "init", "run", "explain"]
    codes = [logquake([w for w in words if w != "--report"], tmp_path) for words in mine]
    assert [done.returncode for done in codes] == [0, 0, 0, 0], [done.stderr for done in codes]
    assert "the smallest change that saves it: acks=all" in codes[-1].stdout
    [answer] = [t for _, _, t in house_text.code_blocks(ROOT / "README.md") if t[:5] == "lost "]
    printed = " ".join(codes[2].stdout.split())
    for line in answer.splitlines():
        assert " ".join(line.partition("\N{HORIZONTAL ELLIPSIS}")[0].split()) in printed, line
