"""Every shipped scenario and catalogue entry holds on three seeds, run by ``logquake check``."""

import os
import subprocess
import sys

import pytest

from tests.scenarios.compiled import COMPILED
from tests.scenarios.run_kit import CATALOGUE, ROOT, SHIPPED

FILES = {name: path.relative_to(ROOT) for name, path in (SHIPPED | CATALOGUE).items()}


def check(path, place):
    words = ["check", str(ROOT / path), "--seeds", "1..3", "--jobs", "1", "--no-cache"]
    return subprocess.run(
        [sys.executable, "-m", "sim", *words], cwd=place, capture_output=True, text=True,
        env=os.environ | COMPILED | {"PYTHONPATH": str(ROOT)}, check=False,
    )  # fmt: skip


@pytest.mark.night
@pytest.mark.parametrize("name", FILES)
def test_a_shipped_scenario_holds_on_three_seeds(name, tmp_path):
    done = check(FILES[name], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 of 3 runs held" in done.stdout


@pytest.mark.slow
def test_planted_an_expectation_that_fails_on_one_seed_is_seen(tmp_path):
    """The quickstart's little sister, which loses nothing, is asked to lose something."""
    text = (ROOT / "tests/scenarios/small.yaml").read_text()
    assert "lost_acked: 0" in text
    file = tmp_path / "small.yaml"
    file.write_text(text.replace("lost_acked: 0", "lost_acked: '>= 1'"))
    done = check(file, tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "0 of 3 runs held" in done.stdout
