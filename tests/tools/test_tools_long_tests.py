"""Tests that are too long for every landing are those that were measured to be."""

import re
from pathlib import Path

from tools import long_tests

ROOT = Path(__file__).parents[2]

LOG = """
100.00s call     tests/a.py::test_all_of_it
0.60s call     tests/a.py::test_long[x y]
0.50s setup    tests/b.py::test_runs[big]
0.10s call     tests/b.py::test_runs[big]
0.50s setup    tests/c.py::test_alone[big]
0.60s teardown tests/gone.py::test_that_was_there
0.60s call     tests/test_house.py::test_the_house
99.00s call    not a test
1 passed in 300s
"""

COLLECTED = [
    "tests/a.py::test_all_of_it",
    "tests/a.py::test_long[x y]",
    "tests/b.py::test_runs[big]",
    "tests/b.py::test_asks_the_same_run[big]",
    "tests/b.py::test_runs[small]",
    "tests/c.py::test_alone[big]",
    "tests/test_house.py::test_the_house",
]


def test_what_takes_more_than_its_share_is_long_with_all_that_share_its_run():
    assert long_tests.chosen(LOG.splitlines(), COLLECTED) == [
        "tests/a.py::test_all_of_it",
        "tests/a.py::test_long[x y]",
        "tests/b.py::test_asks_the_same_run[big]",
        "tests/b.py::test_runs[big]",
    ]


def test_a_busier_machine_chooses_the_same():
    slower = re.sub(r"([\d.]+)s ", lambda found: f"{float(found[1]) * 3:.2f}s ", LOG)
    chosen = long_tests.chosen(slower.splitlines(), COLLECTED)
    assert chosen == long_tests.chosen(LOG.splitlines(), COLLECTED)


def test_every_listed_test_is_there_and_none_is_kept_for_every_landing():
    names = long_tests.listed()
    missing = [name for name in names if not _is_there(name)]
    assert names
    assert missing == [], "write the list again: python -m tools.long_tests LOG"
    assert [name for name in names if name.startswith(long_tests.KEPT)] == []


def test_what_is_kept_is_there():
    assert [name for name in long_tests.KEPT if not _is_there(name)] == []


def _is_there(name):
    file, _, test = name.partition("::")
    function = test.partition("[")[0]
    path = ROOT / file
    return path.is_file() and f"\ndef {function}" in path.read_text()
