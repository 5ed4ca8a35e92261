"""`logquake check` on some of the shipped scenarios, as whoever changes one of them runs it.

The quick ones: each takes a few seconds of one core. All of them, the catalogue too, are run by
slow tests and by `make check`.
"""

import os
import subprocess
import sys

from tests.scenarios.compiled import COMPILED
from tests.scenarios.run_kit import CATALOGUE, ROOT, SHIPPED

QUICK = (
    "separate-roles-crash",
    "tradeoff",
    "zookeeper-majority-lost",
    "group-protocols",
    "b04-kip101-hw-truncation-then-election-historic",
    "b04-kip101-hw-truncation-then-election-fixed",
    "c08-fenced-broker-rejoins-isr-historic",
    "c08-fenced-broker-rejoins-isr-fixed",
)
"""A crash, settings, ZooKeeper, groups; and failures as they were, beside their mends."""


def test_the_quick_scenarios_hold(tmp_path):
    files = [str((SHIPPED | CATALOGUE)[name]) for name in QUICK]
    outside = {name: value for name, value in os.environ.items() if not name.startswith("GITHUB_")}
    done = subprocess.run(
        [sys.executable, "-m", "sim", "check", *files, "--jobs", "1", "--no-cache"], cwd=tmp_path,
        env=outside | COMPILED | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert sum(line.startswith("held  ") for line in lines) == len(QUICK)
    assert lines[-1] == f"{len(QUICK)} of {len(QUICK)} runs held"
    assert list((tmp_path / "runs" / "check").iterdir()) == [], "what held leaves nothing"
