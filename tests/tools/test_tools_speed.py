"""The speed is held against the last release's, measured as a ratio in one run."""

import os
import subprocess
import sys

import pytest

from sim.compiled import compiled_modules
from tools import measure_cluster, speed_guard


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
    found = measure_cluster.measure(3, 6, 5)
    # Two fetches a second of each of six pairs, four messages' events each, and heartbeats.
    assert 30 < found["events_per_simulated_second"] < 400
    assert found["cpu_seconds_per_simulated_hour"] > 0
    assert found["ratio_to_bare_simpy"] > 1


def test_a_loaded_cluster_has_the_events_of_its_records():
    idle, loaded = (measure_cluster.measure(3, 6, 2, rate) for rate in (0, 2_000))
    # Sixteen records of 1 KB fill a batch, and an event is the least that each of them takes.
    more = loaded["events_per_simulated_second"] - idle["events_per_simulated_second"]
    assert more > 2_000 / 16
    assert loaded["peak_rss_bytes"] > 50 << 20


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
