"""Every command of the guide is run, and ends as the guide says."""

import os
import re
import shlex
import subprocess
import sys

import pytest

from sim.scenario.loader import load
from tests.scenarios.run_kit import ROOT
from tools.house_text import code_blocks

GUIDE = ROOT / "docs" / "guide"
CHAPTERS = sorted(GUIDE.glob("0*.md"))
EXIT = re.compile(r"  # exit (\d+)$")


def commands(chapter):
    """(words, exit code) of every command of a chapter."""
    lines = [
        line
        for _, language, text in code_blocks(chapter)
        if language == "sh"
        for line in text.splitlines()
    ]
    found = []
    for line in lines:
        code = EXIT.search(line)
        assert code, f"{chapter.name}: {line!r} does not say how it ends"
        program, *words = shlex.split(line[: code.start()])
        assert program == "logquake", line
        found.append((words, int(code[1])))
    return found


def test_there_are_six_chapters_each_with_a_scenario_that_fails_first():
    assert len(CHAPTERS) == 6
    for chapter in CHAPTERS:
        scenario = chapter.with_suffix(".yaml")
        load(scenario)
        (words, code), *_, (_, last) = commands(chapter)
        assert words[:2] == ["run", f"docs/guide/{scenario.name}"]
        assert code == 1
        assert {code for _, code in commands(chapter)} == {0, 1}
        assert last in (0, 1)
        assert f"({chapter.name})" in (GUIDE / "README.md").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_the_commands_of_a_chapter_end_as_it_says_and_print_what_it_shows(chapter, tmp_path):
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    printed = ""
    for words, code in commands(chapter):
        done = subprocess.run(
            [sys.executable, "-m", "sim", *words], cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == code, (words, done.stdout, done.stderr)
        printed += done.stdout
    plain = " ".join(printed.split())
    for _, language, text in code_blocks(chapter):
        # What is shown may be cut short at its end, and begins at the beginning of a line.
        for shown in re.split(r"\n(?=\S)", text) if language == "text" else ():
            assert " ".join(shown.split()) in plain, shown
