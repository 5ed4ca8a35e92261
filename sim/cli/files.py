"""``logquake dump`` and ``logquake doctor``."""

# ruff: noqa: PLC0415 - log files are read by two commands only

import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal, NamedTuple

import typer

from sim.cli.commands.dump_options import DumpArguments
from sim.cli.exits import ExitCode, exit_codes
from sim.cli.screen import console, escaped, json_text, say
from sim.errors import SimulationError
from sim.trace.kept import check_kept_around
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


class DoctorLine(NamedTuple):
    """One line of ``logquake doctor``."""

    level: Literal["ok", "warning", "error"]
    subject: str
    message: str


def dump_command(given: DumpArguments) -> None:
    """Print files of a log directory; complaints go to standard error when all are printed."""
    with exit_codes():
        _check(given)
        from sim.inspect.dump import DumpOptions, shown
        from sim.inspect.dump_checks import Complaints
        from sim.inspect.dump_records import DECODERS

        options = DumpOptions(
            print_data=given.print_data,
            deep=given.deep,
            decoder=next((name for name in DECODERS if name in given.decoders), None),
            skip_record_metadata=given.skip_record_metadata,
            max_bytes=given.max_bytes,
            index_sanity_only=given.index_sanity_only,
            verify_index_only=given.verify_index_only,
            max_message_bytes=given.max_message_bytes,
        )
        complaints = Complaints()
        for file in given.files:
            for line in shown(file, options, complaints):
                if given.as_json:
                    fields = {"file": str(file), "kind": line.kind, **line.fields}
                    typer.echo(json_text(fields))
                else:
                    say(line.text)
        for text in complaints.lines:
            say(text, err=True)


def _check(given: DumpArguments) -> None:
    if not given.files:
        raise SimulationError("no file given; give files of a log directory")
    if given.classes:
        raise SimulationError(
            f"{', '.join(given.classes)}: there are no Java classes here; without one, keys and "
            "values are printed as text"
        )
    if "remote-log-metadata" in given.decoders:
        raise SimulationError(
            "--remote-log-metadata-decoder: events of remote segments are not printed"
        )
    if len(given.decoders) > 1:
        options = " and ".join(f"--{name}-decoder" for name in given.decoders)
        raise SimulationError(f"{options}: a file has records of one kind; give one of them")
    for file in given.files:
        if not file.is_file():
            check_kept_around(file)
            raise SimulationError(f"{file}: no such file; give a file of a log directory")


def doctor_command(directory: Path | None, *, as_json: bool) -> None:
    """Print findings; exits with 2 if one is an error."""
    with exit_codes():
        findings = list(environment() if directory is None else _log_directories(directory))
        out = console()
        colours = {"ok": "green", "warning": "yellow", "error": "red"}
        for finding in findings:
            if as_json:
                typer.echo(json_text(finding._asdict()))
                continue
            colour = colours[finding.level]
            text = escaped(f"{finding.subject}: {finding.message}")
            out.print(f"[{colour}]{finding.level:8}[/{colour}] {text}")
        if any(finding.level == "error" for finding in findings):
            raise typer.Exit(ExitCode.BAD_INPUT)


def environment() -> Iterator[DoctorLine]:
    """Check that this machine can run and report."""
    found = ".".join(map(str, sys.version_info[:3]))
    enough = sys.version_info[:2] >= PYTHON_MIN
    yield DoctorLine("ok" if enough else "error", "Python", f"{found}; 3.11 or newer is needed")
    for name in _LIBRARIES:
        yield _library(name, "error")
    for name in _ANALYSIS:
        yield _library(name, "warning")
    yield from _java()
    free = shutil.disk_usage(Path.cwd()).free
    level: Literal["ok", "warning"] = "ok" if free >= FREE_BYTES_MIN else "warning"
    yield DoctorLine(level, "disk space", f"{show_bytes(free)} free here")


def _library(name: str, when_missing: Literal["warning", "error"]) -> DoctorLine:
    try:
        return DoctorLine("ok", name, version(name))
    except PackageNotFoundError:
        use = "run" if when_missing == "error" else "report"
        return DoctorLine(when_missing, name, f"not installed; needed to {use}")


def _java() -> Iterator[DoctorLine]:
    if find_spec("pyspark") is None:
        yield DoctorLine("warning", "Java", "not looked for, as pyspark is missing")
        return
    from analysis.spark import class_archive
    from analysis.spark.java import find

    try:
        java = find()
    except Exception as error:  # noqa: BLE001 - whatever is wrong with Java, the doctor says it
        yield DoctorLine("warning", "Java", f"{error}")
        return
    yield DoctorLine("ok", "Java", f"{java.version} from {java.source}")
    size = class_archive.size(java)
    if size:
        message = f"kept, {show_bytes(size)}, in {class_archive.place(java)}"
    else:
        message = (
            "not kept; `logquake report RUN_DIR --prepare` keeps them, and reports start sooner"
        )
    yield DoctorLine("ok", "Java's classes", message)


def _log_directories(directory: Path) -> Iterator[DoctorLine]:
    if not directory.is_dir():
        check_kept_around(directory)
        raise SimulationError(f"{directory}: no such directory; give a log directory of a broker")
    from sim.inspect.doctor import examine, log_directories

    findings = examine(directory)
    for finding in findings:
        yield DoctorLine(finding.severity, str(finding.path), finding.message)
    if not findings:
        for examined in log_directories(directory):
            yield DoctorLine("ok", str(examined), "every file is as Kafka would leave it")
