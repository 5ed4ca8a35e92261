"""What every test shares: the amount of searching, the time zone, who shares a worker."""

import os
import time
import zlib

import pytest
from hypothesis import HealthCheck, settings

from tools import tenth

# The machine may be slow and shared: no example has a deadline, and none is "too slow".
_PATIENT = (HealthCheck.too_slow,)
settings.register_profile("dev", max_examples=50, deadline=None, suppress_health_check=_PATIENT)
settings.register_profile(
    "ci",
    max_examples=300,
    deadline=None,
    derandomize=True,
    print_blob=True,
    database=None,
    suppress_health_check=_PATIENT,
)
settings.register_profile(
    "night", max_examples=5_000, deadline=None, suppress_health_check=_PATIENT
)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev")
)

# Planted defects change classes, which compiled ones do not allow; test_compiled.py compares both.
os.environ.setdefault("LOGQUAKE_PURE", "1")

# For this process and for those that tests start, Spark's among them.
os.environ["TZ"] = "UTC"
time.tzset()
os.environ.setdefault("MPLBACKEND", "agg")


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--tenth``: of the long tests only those whose turn it is."""
    words = "run the tenth of the tests whose turn it is at this commit (tools/tenth.py)"
    parser.addoption("--tenth", action="store_true", help=words)


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say which tenth was chosen."""
    if not config.getoption("tenth"):
        return None
    turn = tenth.turn()
    return f"tenth: turn {turn}, part {turn % tenth.PARTS} of 0..{tenth.PARTS - 1}"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what has another turn, and put tests into groups; xdist reads them after this."""
    if config.getoption("tenth"):
        part = tenth.turn() % tenth.PARTS
        left = [item for item in items if tenth.part_of(item.nodeid) != part]
        items[:] = [item for item in items if tenth.part_of(item.nodeid) == part]
        config.hook.pytest_deselected(items=left)
    _put_into_groups(items)


def _put_into_groups(items: list[pytest.Item]) -> None:
    """With ``--dist loadgroup``: files stay together, and few workers have a Spark session.

    The fast tests have one. The long ones, hundreds of reports, are shared out among two.
    """
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(_group(item)))


def _group(item: pytest.Item) -> str:
    if item.get_closest_marker("spark") is None:
        return item.path.stem
    if not any(item.get_closest_marker(name) for name in ("slow", "night")):
        return "spark"
    return f"spark-{zlib.crc32(item.nodeid.encode()) % 2}"
