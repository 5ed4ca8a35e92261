"""Compiles the rooms that a batch passes through, with mypyc, into ``build/compiled``.

Run by ``make setup`` and ``make compile``. Without a C compiler or Python's headers nothing is
compiled, and the simulator runs from its sources: the same bytes, at half the speed.
"""

import argparse
import io
import json
import os
import shutil
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Final

from setuptools._distutils.ccompiler import new_compiler
from setuptools._distutils.errors import CCompilerError
from setuptools._distutils.sysconfig import customize_compiler
from setuptools.extension import Extension

from sim.compiled import MANIFEST, compiled_modules, digest

ROOT: Final = Path(__file__).resolve().parents[1]
BUILD: Final = ROOT / "build"
COMPILED: Final = BUILD / "compiled"
ROOMS: Final = (
    "checking",
    "inspect",
    "log",
    "nodes",
    "protocol",
    "records",
    "substrate",
    "trace",
    "wire",
)
ALONE: Final = ("error_codes", "errors", "ids", "kernel", "rng", "units")
"""Modules beside the rooms."""

OPTIMISATION: Final = "1"
"""gcc's level: 2 and 3 compile for minutes longer, and what they make is no faster here."""


def sources() -> list[str]:
    """Files to compile, relative to the checkout, in a fixed order."""
    files = [f"sim/{name}.py" for name in ALONE]
    for room in ROOMS:
        files += sorted(
            file.relative_to(ROOT).as_posix()
            for file in (ROOT / "sim" / room).rglob("*.py")
            if file.name != "__init__.py"
        )
    return files


def missing() -> str:
    """What this machine lacks, or nothing."""
    if sys.implementation.name != "cpython":
        return f"mypyc compiles for CPython, and this is {sys.implementation.name}"
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
    if shutil.which(compiler) is None:
        return f"there is no C compiler ({compiler}); on Debian: apt install gcc"
    if not Path(sysconfig.get_path("include"), "Python.h").is_file():
        return "Python's headers are not there; on Debian: apt install python3-dev"
    return ""


def compile_rooms() -> None:
    """Make ``build/compiled`` anew.

    Raises:
        SystemExit: If mypyc refuses a source; what it says is printed.
        CCompilerError: If the C compiler fails.
    """
    from mypyc.build import mypycify  # noqa: PLC0415 - heavy, and not needed to see what is missing

    shutil.rmtree(COMPILED, ignore_errors=True)
    files = sources()
    digests = {file: digest((ROOT / file).read_bytes()) for file in files}
    with said_only_if_it_fails():
        extensions = mypycify(
            ["--no-warn-unused-ignores", *files],
            opt_level=OPTIMISATION,
            debug_level="0",
            multi_file=True,
            target_dir="build/c",
            group_name="logquake_rooms",
        )
    manifest = {
        "soabi": sysconfig.get_config_var("SOABI"),
        "modules": build(extensions),
        "sources": digests,
    }
    # Last, and whole or not at all: without it nothing of the above is imported.
    unfinished = COMPILED / f"{MANIFEST}.tmp"
    unfinished.write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    unfinished.replace(COMPILED / MANIFEST)


def build(extensions: Sequence[Extension]) -> dict[str, str]:
    """Compile the C files side by side and link the modules; their files by name."""
    compiler = new_compiler()
    customize_compiler(compiler)
    headers = sysconfig.get_path("include")

    def object_of(job: tuple[str, tuple[str, ...], tuple[str, ...]]) -> str:
        source, include, arguments = job
        made: list[str] = compiler.compile(
            [source],
            output_dir="build/c",
            include_dirs=[*include, headers],
            extra_postargs=list(arguments),
        )
        return made[0]

    jobs = dict.fromkeys(
        (source, tuple(extension.include_dirs), tuple(extension.extra_compile_args))
        for extension in extensions
        for source in extension.sources
    )
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = dict(zip((job[0] for job in jobs), pool.map(object_of, jobs), strict=True))
    modules = {}
    for extension in extensions:
        file = extension.name.replace(".", "/") + sysconfig.get_config_var("EXT_SUFFIX")
        modules[extension.name] = file
        compiler.link_shared_object(
            [objects[source] for source in extension.sources], str(COMPILED / file)
        )
    return modules


@contextmanager
def said_only_if_it_fails() -> Iterator[None]:
    """Hold back what is printed; mypyc remarks on every generator expression."""
    said = io.StringIO()
    try:
        with redirect_stdout(said):
            yield
    except BaseException:
        sys.stderr.write(said.getvalue())
        raise


def main() -> int:
    """Compile if it can be done and has not been done; 1 if it was demanded and cannot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--demand", action="store_true", help="fail if it cannot be done")
    demanded = parser.parse_args().demand
    os.chdir(ROOT)
    if compiled_modules(ROOT, COMPILED)[0]:
        return 0
    lacks = missing()
    if lacks:
        sys.stderr.write(f"the simulator runs from its sources, slower: {lacks}\n")
        return int(demanded)
    sys.stderr.write("compiling the rooms of the simulator (some minutes)\n")
    try:
        compile_rooms()
    except (SystemExit, CCompilerError) as error:
        sys.stderr.write(f"the simulator runs from its sources, slower: mypyc failed ({error})\n")
        return int(demanded)
    return 0


if __name__ == "__main__":
    sys.exit(main())
