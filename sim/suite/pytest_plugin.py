"""Scenario files as tests: ``pytest scenarios/`` runs each of them, with each seed.

A YAML file is taken for a scenario if it has a claim; what a run left beside its card is not. What
takes time is imported when a scenario runs, so that other people's tests start as fast as before.
"""

# ruff: noqa: PLC0415 - a plugin is loaded by every pytest there is, whether it has scenarios or not

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from sim.suite.outcome import Outcome

_CLAIM: Final = re.compile(rb"^claim\s*:", re.MULTILINE)
_HELP: Final = "seeds of scenario files, such as 1..5; default: each file's own"


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--logquake-seeds``, and the same in the configuration file."""
    group = parser.getgroup("logquake", "scenarios of Apache Kafka clusters")
    group.addoption("--logquake-seeds", metavar="SEEDS", default="", help=_HELP)
    parser.addini("logquake_seeds", _HELP, default="")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> "ScenarioFile | None":
    """Take YAML files that are scenarios."""
    if file_path.suffix not in (".yaml", ".yml") or (file_path.parent / "run.json").exists():
        return None
    if not _CLAIM.search(file_path.read_bytes()):
        return None
    file: ScenarioFile = ScenarioFile.from_parent(parent, path=file_path)
    return file


class ScenarioFile(pytest.File):
    """One scenario: a test for each seed."""

    def collect(self) -> Iterator["ScenarioItem"]:
        """The tests; a file that cannot be run is an error with its line."""
        from sim.errors import SimulationError
        from sim.suite.plan import parse_seeds, plan

        chosen = self.config.getoption("--logquake-seeds") or self.config.getini("logquake_seeds")
        runs = self.config.rootpath / "runs" / "check"
        try:
            jobs = plan([self.path], parse_seeds(chosen) if chosen else (), runs)
        except SimulationError as error:
            raise self.CollectError(str(error)) from None
        for job in jobs:
            item: ScenarioItem = ScenarioItem.from_parent(self, name=f"seed-{job.seed}")
            item.job = job
            yield item


class ScenarioItem(pytest.Item):
    """One run."""

    job: Any
    """The run to be made, a :class:`sim.suite.plan.Job`; its module is imported late."""

    def runtest(self) -> None:
        """Run it.

        Raises:
            DidNotHold: If it did not hold, or did not come to a verdict.
        """
        from sim.suite.work import execute

        outcome = execute(self.job)
        if outcome.status != "held":
            raise DidNotHold(outcome)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *_: Any) -> str:  # noqa: ANN401 - pytest has a style there that we do not use
        """Expectations and findings, without a stack of Python's."""
        if isinstance(excinfo.value, DidNotHold):
            return str(excinfo.value)
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int, str]:
        """File, line and name, as pytest shows them."""
        return self.path, 0, f"{self.path.name}, {self.name}"


class DidNotHold(Exception):  # noqa: N818 - it is an answer
    """A scenario's run was no pass. ``args``: what came of it."""

    def __init__(self, outcome: "Outcome") -> None:
        super().__init__(outcome)
        self.outcome = outcome

    def __str__(self) -> str:
        outcome = self.outcome
        lines = [f"{outcome.path}, seed {outcome.seed}: {outcome.status}", *outcome.failures]
        if outcome.directory:
            lines.append(f"see {outcome.directory}")
        return "\n".join(lines)
