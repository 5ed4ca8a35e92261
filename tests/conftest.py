"""What every test shares: the amount of searching, the time zone, who shares a worker."""

import os
import signal
import time
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from tools import long_tests, tenth

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

# Under nohup, or in the background of a shell, the tests and what they start would ignore the
# signals whose effect they look at.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# For this process and for those that tests start, Spark's among them.
os.environ["TZ"] = "UTC"
time.tzset()
os.environ.setdefault("MPLBACKEND", "agg")


_BEGAN = time.monotonic()

_OPEN_FILES_AT_MOST = 256


def _keep_real_files() -> list[Any]:
    """Sets of real files that tests have opened; those of compiled classes are not seen."""
    # Which form is imported depends on the variable above.
    from sim.log.store.platter import RealFiles  # noqa: PLC0415

    kept: list[Any] = []
    first = RealFiles.__init__

    def noted(self: RealFiles, root: Path, *, late: bool = False) -> None:
        first(self, root, late=late)
        kept.append(self)

    RealFiles.__init__ = noted
    return kept


_real_files = _keep_real_files() if os.environ["LOGQUAKE_PURE"] == "1" else []


@pytest.fixture(scope="module", autouse=True)
def closed_files() -> Iterator[None]:
    """Close the files of logs that tests leave as a crash would: a worker runs thousands."""
    yield
    for files in _real_files:
        files.close()
    _real_files.clear()
    descriptors = Path("/proc/self/fd")
    count = len(list(descriptors.iterdir())) if descriptors.is_dir() else 0
    assert count <= _OPEN_FILES_AT_MOST, f"tests of this worker hold {count} files open"


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--tenth``: of the long tests those whose turn it is; ``--minutes``: what they take."""
    words = "run the tenth of the tests whose turn it is at this commit (tools/tenth.py)"
    parser.addoption("--tenth", action="store_true", help=words)
    words = "begin no test that would not end within so many minutes; 0: no limit"
    parser.addoption("--minutes", type=float, default=0, help=words)


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say which tenth was chosen."""
    if not config.getoption("tenth"):
        return None
    turn = tenth.turn()
    return f"tenth: turn {turn}, part {turn % tenth.PARTS} of 0..{tenth.PARTS - 1}"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what was measured to be long, and leave out what has another turn.

    What comes first is another test in each round of turns.
    """
    long = long_tests.listed()
    for item in items:
        if item.nodeid in long:
            item.add_marker(pytest.mark.slow)
    if config.getoption("tenth"):
        turn = tenth.turn()
        part = turn % tenth.PARTS
        left = [item for item in items if tenth.part_of(item.nodeid) != part]
        items[:] = [item for item in items if tenth.part_of(item.nodeid) == part]
        items.sort(
            key=lambda item: zlib.crc32(f"{turn // tenth.PARTS} {about(item.nodeid)}".encode())
        )
        config.hook.pytest_deselected(items=left)


def about(nodeid: str) -> str:
    """What a test is about, a scenario mostly; without parameters the test itself."""
    return nodeid.partition("[")[2] or nodeid


_begun: list[str] = []


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Begin no test when the time is up, nor one that says that it needs more than what is left.

    What needs more than the whole of it is begun if its round begins with it, or it would never be.
    """
    minutes = item.config.getoption("minutes")
    if not minutes:
        return
    left = minutes - (time.monotonic() - _BEGAN) / 60
    marker = item.get_closest_marker("minutes")
    needed = marker.args[0] if marker else 0
    if left <= 0:
        pytest.skip(f"left for a later landing: {minutes:g} minutes are over")
    if needed > left and _begun:
        pytest.skip(
            f"left for a later landing: it takes {needed:g} minutes, and {left:.1f} are left"
        )
    _begun.append(item.nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """Share the tests out among workers, see :class:`Groups`."""
    return Groups(config, log)


class Groups(LoadScopeScheduling):
    """Tests that can share something share a worker.

    Of the fast tests those of a file stay together, and one worker has a Spark session. Of the
    long ones, which are mostly about one scenario each, those of the same one stay together. Real
    clusters are started for a file.

    Groups by marker (``--dist loadgroup``) have no effect: xdist 3.8 renames tests, which pytest 9
    ignores.
    """

    def _assign_work_unit(self, node: WorkerController) -> None:
        """Give what needs Spark away first: it takes longest."""
        if "spark" in self.workqueue:
            self.workqueue.move_to_end("spark", last=False)
        super()._assign_work_unit(node)

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        is_long = "not slow" not in self.config.option.markexpr
        if is_long and not file.startswith("tests/kafka/"):
            return f"long-{zlib.crc32(about(nodeid).encode()) % 32}"
        return "spark" if _needs_spark(self.config.rootpath / file) else file


@cache
def _needs_spark(file: Path) -> bool:
    return "mark.spark" in file.read_text(encoding="utf-8")
