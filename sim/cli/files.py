"""``logquake dump`` and ``logquake doctor``."""

# ruff: noqa: PLC0415 - log files are read by two commands only

import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

import typer
from rich.markup import escape

from sim.cli.answers import ExitCode, exit_codes
from sim.cli.terminal import console
from sim.errors import SimulationError
from sim.units import GIB, show_bytes

PYTHON_MIN: Final = (3, 11)
"""Oldest Python that runs this."""

FREE_BYTES_MIN: Final = 2 * GIB
"""Less free space than this may not hold a run of the main job."""

_LIBRARIES: Final = (
    "simpy", "networkx", "numpy", "pyarrow", "pydantic", "PyYAML", "typer", "rich", "crc32c",
    "cramjam",
)  # fmt: skip
_ANALYSIS: Final = ("pyspark", "pandas", "matplotlib")


Decoder: TypeAlias = Literal["cluster-metadata", "offsets", "transaction-log", "share-group-state"]
"""What records are decoded as."""


class Finding(NamedTuple):
    """One line of ``logquake doctor``."""

    level: Literal["ok", "warning", "error"]
    subject: str
    message: str


def dump_command(
    files: Sequence[Path], *, deep: bool, print_data: bool, decoders: Mapping[Decoder, bool]
) -> None:
    """Print files of a log directory."""
    with exit_codes():
        chosen = [name for name, asked in decoders.items() if asked]
        if len(chosen) > 1:
            options = " and ".join(f"--{name}-decoder" for name in chosen)
            raise SimulationError(f"{options}: a file has records of one kind; give one of them")
        for file in files:
            if not file.is_file():
                raise SimulationError(f"{file}: no such file; give a file of a log directory")
        from sim.log.dump import dump

        decoder = chosen[0] if chosen else None
        for file in files:
            for line in dump(file, print_data=print_data, deep=deep, decoder=decoder):
                typer.echo(line)


def doctor_command(directory: Path | None) -> None:
    """Print findings; exits with 2 if one is an error."""
    with exit_codes():
        findings = list(environment() if directory is None else _log_directory(directory))
        out = console()
        colours = {"ok": "green", "warning": "yellow", "error": "red"}
        for finding in findings:
            colour = colours[finding.level]
            text = escape(f"{finding.subject}: {finding.message}")
            out.print(f"[{colour}]{finding.level:8}[/{colour}] {text}")
        if any(finding.level == "error" for finding in findings):
            raise typer.Exit(ExitCode.BAD_INPUT)


def environment() -> Iterator[Finding]:
    """Whether this machine can run and report."""
    found = ".".join(map(str, sys.version_info[:3]))
    enough = sys.version_info[:2] >= PYTHON_MIN
    yield Finding("ok" if enough else "error", "Python", f"{found}; 3.11 or newer is needed")
    for name in _LIBRARIES:
        yield _library(name, "error")
    for name in _ANALYSIS:
        yield _library(name, "warning")
    yield _java()
    free = shutil.disk_usage(Path.cwd()).free
    level: Literal["ok", "warning"] = "ok" if free >= FREE_BYTES_MIN else "warning"
    yield Finding(level, "disk space", f"{show_bytes(free)} free here")


def _library(name: str, when_missing: Literal["warning", "error"]) -> Finding:
    try:
        return Finding("ok", name, version(name))
    except PackageNotFoundError:
        use = "run" if when_missing == "error" else "report"
        return Finding(when_missing, name, f"not installed; needed to {use}")


def _java() -> Finding:
    if find_spec("pyspark") is None:
        return Finding("warning", "Java", "not looked for, as pyspark is missing")
    from analysis.java import find

    try:
        java = find()
    except Exception as error:  # noqa: BLE001 - whatever is wrong with Java, the doctor says it
        return Finding("warning", "Java", f"{error}")
    return Finding("ok", "Java", f"{java.version} from {java.source}")


def _log_directory(directory: Path) -> Iterator[Finding]:
    if not directory.is_dir():
        raise SimulationError(f"{directory}: no such directory; give a log directory of a broker")
    from sim.log.doctor import examine

    findings = examine(directory)
    for finding in findings:
        level: Literal["warning", "error"] = "error" if finding.severity == "error" else "warning"
        yield Finding(level, str(finding.path), finding.message)
    if not findings:
        yield Finding("ok", str(directory), "every file is as Kafka would leave it")
