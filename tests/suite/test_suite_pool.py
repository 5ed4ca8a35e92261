"""Workers that do one task after the other."""

import weakref
from typing import Any

import pytest

from sim.suite.pool import pool

_EARLIER: list["weakref.ref[Any]"] = []


class _Node:
    """A node that knows itself, as those of a run know each other."""

    def __init__(self) -> None:
        self.peer = self


def _run(_task, _should_stop):
    """How many nodes of earlier tasks are still there."""
    alive = sum(ref() is not None for ref in _EARLIER)
    _EARLIER.append(weakref.ref(_Node()))
    return alive


@pytest.mark.parametrize("apart", [False, True], ids=["in this process", "in a worker"])
def test_what_a_run_held_is_free_when_the_next_one_begins(apart):
    _EARLIER.clear()
    with pool(1, apart=apart) as some:
        assert [alive for _, alive in some.results(_run, range(5), lambda: False)] == [0] * 5
