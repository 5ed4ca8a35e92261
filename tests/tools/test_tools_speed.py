"""The speed is held against the last release's, measured as a ratio in one run."""

import os
import subprocess
import sys

import pytest

from sim.compiled import compiled_modules
from tools import measure_idle, speed_guard


def test_the_last_release_of_the_table_counts_and_ten_percent_less_is_red():
    version, before = speed_guard.released(speed_guard.TABLE.read_text(encoding="utf-8"))
    assert version.count(".") == 2
    assert not speed_guard.is_slower(before, before)
    assert not speed_guard.is_slower(before * 1.1, before)
    assert speed_guard.is_slower(before / 0.9, before)
    table = "| release | figure |\n|---|---|\n| 0.1.0 | 500 | x |\n| 0.2.0 | 450.5 | y |\n"
    assert speed_guard.released(table) == ("0.2.0", 450.5)
    with pytest.raises(ValueError, match="no line such as"):
        speed_guard.released("| main | 3 |\n")


def test_an_idle_cluster_is_measured_without_its_boot():
    found = measure_idle.measure(3, 6, 5)
    # Two fetches a second of each of six pairs, four messages' events each, and heartbeats.
    assert 30 < found["events_per_simulated_second"] < 400
    assert found["cpu_seconds_per_simulated_hour"] > 0
    assert found["ratio_to_bare_simpy"] > 1


@pytest.mark.night
def test_a_batch_is_at_most_ten_percent_slower_than_in_the_last_release():
    root = speed_guard.ROOT
    if not compiled_modules(root, root / "build" / "compiled")[0]:
        pytest.skip("nothing is compiled of these sources")
    done = subprocess.run(
        [sys.executable, "-m", "tools.speed_guard"], cwd=root, capture_output=True, text=True,
        env=os.environ | {"LOGQUAKE_PURE": "0"}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
