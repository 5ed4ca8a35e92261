"""Exit codes, and the one way in which a command fails.

0 held, 1 an expectation failed, 2 bad input, 3 no progress, 4 defect in the simulator,
5 not deterministic, 130 interrupted.
"""

import errno
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import IntEnum
from json import dumps

import typer

from sim.errors import InvariantBroken, NoProgress, SimulationError


class ExitCode(IntEnum):
    """What a script may rely on."""

    HELD = 0
    EXPECTATION_FAILED = 1
    BAD_INPUT = 2
    NO_PROGRESS = 3
    DEFECT = 4
    NOT_DETERMINISTIC = 5
    INTERRUPTED = 130


@contextmanager
def exit_codes() -> Iterator[None]:
    """Turn whatever goes wrong inside into one message on standard error and an exit code.

    Only a defect of the simulator shows a traceback: it is for whoever mends it.
    """
    try:
        yield
    except NoProgress as error:
        raise failed(str(error), ExitCode.NO_PROGRESS) from None
    except SimulationError as error:
        raise failed(str(error), ExitCode.BAD_INPUT) from None
    except InvariantBroken as error:
        raise failed(str(error), ExitCode.DEFECT) from None
    except KeyboardInterrupt:
        raise failed("interrupted", ExitCode.INTERRUPTED) from None
    except (BrokenPipeError, typer.Exit):
        raise
    except OSError as error:
        raise failed(_machine(error), _machine_code(error)) from None
    except Exception as error:  # noqa: BLE001 - the last place that can say what happened
        traceback.print_exc(file=sys.stderr)
        message = f"a defect in the simulator: {type(error).__name__}: {error}"
        raise failed(message, ExitCode.DEFECT) from None


def failed(message: str, code: ExitCode) -> typer.Exit:
    """Say it on standard error; the exception to raise."""
    typer.echo(message, err=True)
    return typer.Exit(code)


def say_json(value: Mapping[str, object] | Sequence[object]) -> None:
    """An answer for programs, on standard output."""
    typer.echo(dumps(value, indent=2, ensure_ascii=False))


def _machine(error: OSError) -> str:
    where = f"{error.filename}: " if error.filename else ""
    if error.errno == errno.ENOSPC:
        return f"{where}this machine's disk is full; the run directory is left incomplete"
    return f"{where}{error.strerror or error}"


def _machine_code(error: OSError) -> ExitCode:
    return ExitCode.INTERRUPTED if error.errno == errno.ENOSPC else ExitCode.BAD_INPUT
