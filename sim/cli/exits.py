"""Exit codes, and the one way in which a command fails.

0 held, 1 an expectation failed, 2 bad input, 3 no progress, 4 defect in the simulator,
5 not deterministic, 130 interrupted.
"""

import errno
import os
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from importlib.metadata import version
from pathlib import Path
from typing import Final

import typer

from sim.cli.screen import json_text, say
from sim.errors import InvariantBroken, NoProgress, SimulationError
from sim.lifetime import was_interrupted


class ExitCode(IntEnum):
    """Exit codes, on which scripts may rely."""

    HELD = 0
    EXPECTATION_FAILED = 1
    BAD_INPUT = 2
    NO_PROGRESS = 3
    DEFECT = 4
    NOT_DETERMINISTIC = 5
    INTERRUPTED = 130


DEFECT: Final = "This is a defect of Logquake, not of your scenario"
"""Beginning of every message of exit code 4."""


@dataclass(slots=True)
class Case:
    """Subject of a command, as far as it is known: a report of a defect has to name it."""

    scenario: Path | None = None
    seed: int | None = None
    directory: Path | None = None
    """Of the run, or of several."""


@contextmanager
def exit_codes(case: Case | None = None) -> Iterator[None]:
    """Turn whatever goes wrong inside into one message on standard error and an exit code.

    Only a defect of the simulator shows a traceback: it is for those who repair it.

    Args:
        case: What the command is about; it may be filled in while the command runs.
    """
    about = Case() if case is None else case
    try:
        yield
    except NoProgress as error:
        raise failed(str(error), ExitCode.NO_PROGRESS) from None
    except SimulationError as error:
        raise failed(str(error), ExitCode.BAD_INPUT) from None
    except InvariantBroken as error:
        raise defect(str(error), about) from None
    except KeyboardInterrupt:
        raise failed("interrupted", ExitCode.INTERRUPTED) from None
    except (BrokenPipeError, typer.Exit):
        raise
    except OSError as error:
        raise failed(_machine(error), _machine_code(error)) from None
    except Exception as error:  # noqa: BLE001 - the last place that can say what happened
        if was_interrupted():  # the other side of a connection was left in the middle of an answer
            raise failed("interrupted", ExitCode.INTERRUPTED) from None
        traceback.print_exc(file=sys.stderr)
        raise defect(f"{type(error).__name__}: {error}", about) from None


def failed(message: str, code: ExitCode) -> typer.Exit:
    """Say it on standard error; the exception to raise."""
    say(message, err=True)
    return typer.Exit(code)


def defect(found: str, case: Case) -> typer.Exit:
    """Say that Logquake is wrong, what to send, and where the run lies; the exception to raise.

    Args:
        found: What was found: the first violation, or the error.
        case: What the command was about.
    """
    scenario = "the scenario" if case.scenario is None else case.scenario.as_posix()
    seed = "the seed" if case.seed is None else f"seed {case.seed}"
    where = "no run directory was written"
    card = "what stands above"
    if case.directory is not None and case.directory.exists():
        where = f"the run lies in {case.directory.as_posix()}"
        card = "verdict.json of the run directory if it is there, or else what stands above"
        if case.scenario is None:
            scenario = "scenario.yaml of the run directory"
    return failed(
        f"{found}\n{DEFECT}.\nPlease send: {scenario}, {seed}, version {version('logquake')}, and "
        f"{card}; {where}.",
        ExitCode.DEFECT,
    )


def say_json(value: Mapping[str, object] | Sequence[object]) -> None:
    """An answer for programs, on standard output."""
    typer.echo(json_text(value, indent=2))


def _machine(error: OSError) -> str:
    where = f"{_name(error.filename)}: " if error.filename else ""
    if error.errno == errno.ENOSPC:
        return f"{where}this machine's disk is full; the run directory is left incomplete"
    return f"{where}{error.strerror or error}"


def _name(filename: object) -> str:
    return os.fsdecode(filename) if isinstance(filename, bytes) else str(filename)


def _machine_code(error: OSError) -> ExitCode:
    return ExitCode.INTERRUPTED if error.errno == errno.ENOSPC else ExitCode.BAD_INPUT
