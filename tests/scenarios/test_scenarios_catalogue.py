"""The failure catalogue: every file runs, and the outcome is the published one."""

import re

import pytest

from tests.scenarios.run_kit import CATALOGUE

QUICK = (
    "d07-tombstone-removed-before-slow-reader-historic",
    "d07-tombstone-removed-before-slow-reader-fixed",
)
"""What the fast tests run; the others are slow tests."""

NAME = re.compile(r"[a-f]\d\d(-[a-z0-9]+)+")
RUNS = [
    pytest.param(
        name,
        marks=[
            pytest.mark.xdist_group(f"catalogue-{name[:3]}"),
            *([] if name in QUICK else [pytest.mark.slow]),
        ],
    )
    for name in CATALOGUE
]


def entry_of(name):
    return CATALOGUE[name].read_text().splitlines()[0]


def test_every_file_is_named_by_its_entry_and_tells_it_in_its_first_line():
    assert set(QUICK) <= set(CATALOGUE)
    for name in CATALOGUE:
        assert NAME.fullmatch(name), name
        number = f"{name[0].upper()}{int(name[1:3])}"
        assert re.match(rf"# Failure catalogue {number}\b", entry_of(name)), name


def test_what_was_and_what_mends_it_stand_side_by_side():
    """One without the other shows no difference."""
    for name in CATALOGUE:
        entry, _, kind = name.rpartition("-")
        if kind in {"historic", "fixed"}:
            other = {"historic": "fixed", "fixed": "historic"}[kind]
            assert f"{entry}-{other}" in CATALOGUE, name


@pytest.mark.parametrize("name", RUNS)
def test_the_outcome_is_the_published_one(shared, name):
    ran = shared.ran(name)
    failed = [line for line in ran.verdict["expectations"] if not line["held"]]
    assert ran.verdict["held"] is True, failed
    assert ran.verdict["expectations"], "a scenario that expects nothing proves nothing"
    assert all(fault["took_effect"] for fault in ran.faults)
    assert ran.verdict["unsent_present"] == 0


def test_a_scenario_of_the_catalogue_can_fail(shared):
    """The historic outcome is not the fixed one: each fails the expectations of the other."""
    was, now = (shared.ran(name).verdict for name in QUICK)
    assert was["readers"]["resurrected"] > 0 == now["readers"]["resurrected"]
    assert was["records"]["early_tombstones"] > 0 == now["records"]["early_tombstones"]
