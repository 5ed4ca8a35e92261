"""Compiles the packages that a record batch passes through, with mypyc, into ``build/compiled``.

Run by ``make setup`` and ``make compile``. Each package is a library of its own, so that a change
in one module regenerates and recompiles its package and what depends on its interface, and nothing
else. Without a C compiler or Python's headers nothing is compiled, and the simulator runs from its
sources: the same bytes, at half the speed.
"""

import argparse
import io
import json
import os
import shutil
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from functools import cache
from itertools import groupby
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
CACHE: Final = "build/mypy"
"""What mypyc keeps of modules that have not changed."""

GENERATED: Final = "build/c"
"""Directory of the C files, and of what was made of each."""

PACKAGES: Final = (
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
"""Modules beside the packages."""

OPTIMISATION: Final = "1"
"""gcc's level: 2 and 3 compile for minutes longer, and what they make is no faster here."""

COMPILER_FLAGS: Final = ("-fcommon", "-fvisibility=hidden")
"""mypyc defines the tables of imported libraries in a header, hence in each C file of a library;
and what no other library sees is called without a detour through the table of symbols."""


def sources() -> list[str]:
    """Files to compile, relative to the checkout, in a fixed order."""
    files = [f"sim/{name}.py" for name in ALONE]
    for package in PACKAGES:
        files += sorted(
            file.relative_to(ROOT).as_posix()
            for file in (ROOT / "sim" / package).rglob("*.py")
            if file.name != "__init__.py"
        )
    return files


def libraries(files: Sequence[str]) -> list[tuple[list[str], str | None]]:
    """Files of each folder, and the name of the library that they become."""

    def folder(file: str) -> str:
        return file.rpartition("/")[0]

    return [
        (list(members), "logquake_" + name.replace("/", "_"))
        for name, members in groupby(sorted(files, key=folder), key=folder)
    ]


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


def compile_packages() -> None:
    """Bring ``build/compiled`` to the present sources.

    Raises:
        SystemExit: If mypyc refuses a source; what it says is printed.
        CCompilerError: If the C compiler fails.
    """
    # Without its manifest nothing of what is changed below is imported.
    (COMPILED / MANIFEST).unlink(missing_ok=True)
    files = sources()
    digests = {file: digest((ROOT / file).read_bytes()) for file in files}
    with said_only_if_it_fails():
        try:
            extensions = generate(files)
        except ValueError:
            # What mypyc 2.4 keeps of a class does not say which attributes have a bit for being
            # defined (``ClassIR.bitmap_attrs``): a changed module that reads one cannot be made.
            shutil.rmtree(CACHE)
            extensions = generate(files)
    manifest = {
        "soabi": sysconfig.get_config_var("SOABI"),
        "modules": build(extensions),
        "sources": digests,
    }
    write_whole(COMPILED / MANIFEST, manifest)


def generate(files: Sequence[str]) -> list[Extension]:
    """Let mypyc write C for what has changed since its cache was written."""
    from mypyc.build import mypycify  # noqa: PLC0415 - heavy, and not needed to see what is missing

    return mypycify(
        ["--no-warn-unused-ignores", f"--cache-dir={CACHE}", *files],
        opt_level=OPTIMISATION,
        debug_level="0",
        multi_file=True,
        target_dir=GENERATED,
        separate=libraries(files),
    )


def write_whole(file: Path, content: Mapping[str, object]) -> None:
    """Write a JSON file, whole or not at all."""
    unfinished = file.with_name(f"{file.name}.tmp")
    unfinished.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    unfinished.replace(file)


class Made:
    """What earlier runs made, and the digest of all that each file was made of."""

    def __init__(self, file: Path) -> None:
        """Read the digests of earlier runs, if there are any.

        Args:
            file: JSON, path of a made file to its digest.
        """
        self._file = file
        self.digests: dict[str, str] = {}
        if file.is_file():
            self.digests = json.loads(file.read_text(encoding="utf-8"))

    def bring(self, made: str, made_of: str, make: Callable[[], object]) -> None:
        """Make a file if it is absent or was made of something else."""
        if self.digests.get(made) == made_of and Path(made).is_file():
            return
        self.digests.pop(made, None)
        make()
        self.digests[made] = made_of

    def save(self) -> None:
        """Write the digests."""
        write_whole(self._file, self.digests)


@dataclass(frozen=True, slots=True)
class Job:
    """A C file to compile."""

    source: str
    object_file: str
    include: tuple[str, ...]
    arguments: tuple[str, ...]
    headers: tuple[str, ...]

    def made_of(self) -> str:
        """Digest of the C file, the generated headers that it may include, and the arguments."""
        files = [digest_of(file) for file in (self.source, *self.headers)]
        return digest(repr((self.include, self.arguments, files)).encode())


@cache
def digest_of(file: str) -> str:
    """Digest of a generated file; a header is part of hundreds of C files."""
    return digest(Path(file).read_bytes())


def is_library(extension: Extension) -> bool:
    """True for a package's library, false for the module that only names a part of one."""
    return str(extension.name).endswith("__mypyc")


def runtime_files() -> list[str]:
    """C files of mypyc's own runtime: a library that was not generated again needs its own too.

    mypyc names, for all libraries alike, only the files that the packages of this run need.
    """
    return sorted(
        str(file) for file in Path(GENERATED).glob("*.c") if not file.name.startswith("__native")
    )


def build(extensions: Sequence[Extension]) -> dict[str, str]:
    """Compile the C files that differ, side by side, and link the modules; their files by name."""
    compiler = new_compiler()
    customize_compiler(compiler)
    python = sysconfig.get_path("include")
    made = Made(Path(GENERATED) / "made.json")
    runtime = runtime_files()
    parts = {
        extension.name: sorted({*extension.sources, *(runtime if is_library(extension) else ())})
        for extension in extensions
    }
    jobs = {
        source: Job(
            source,
            str(Path(GENERATED) / "objects" / source) + ".o",
            (*extension.include_dirs, python),
            (*extension.extra_compile_args, *COMPILER_FLAGS),
            tuple(extension.depends),
        )
        for extension in extensions
        for source in parts[extension.name]
    }

    def compile_job(job: Job) -> None:
        def make() -> None:
            (result,) = compiler.compile(
                [job.source],
                output_dir=str(Path(GENERATED) / "gcc"),
                include_dirs=list(job.include),
                extra_postargs=list(job.arguments),
            )
            Path(job.object_file).parent.mkdir(parents=True, exist_ok=True)
            Path(result).replace(job.object_file)

        made.bring(job.object_file, job.made_of(), make)

    def link(extension: Extension) -> tuple[str, str]:
        file = extension.name.replace(".", "/") + sysconfig.get_config_var("EXT_SUFFIX")
        library = str(COMPILED / file)
        objects = [jobs[source].object_file for source in parts[extension.name]]
        made_of = digest(repr([made.digests[name] for name in objects]).encode())
        made.bring(library, made_of, lambda: compiler.link_shared_object(objects, library))
        return extension.name, file

    try:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(compile_job, jobs.values()))
            return dict(pool.map(link, extensions))
    finally:
        made.save()


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


def compile_or_start_over() -> None:
    """Compile what has changed; if that fails, everything.

    Of a library that has not changed mypyc's cache keeps less than it knew: a call of an
    enumeration in another library may then become C that no compiler takes.

    Raises:
        CCompilerError: If a C compiler refuses it from nothing, too; SystemExit if mypyc does.
    """
    try:
        compile_packages()
    except (SystemExit, CCompilerError):
        kept = [path for path in (ROOT / CACHE, ROOT / GENERATED) if path.exists()]
        if not kept:
            raise
        sys.stderr.write("compiling everything again: what is kept does not go together\n")
        for path in kept:
            shutil.rmtree(path)
        compile_packages()


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
    sys.stderr.write("compiling what has changed of the simulator (minutes at first)\n")
    try:
        compile_or_start_over()
    except (SystemExit, CCompilerError) as error:
        sys.stderr.write(f"the simulator runs from its sources, slower: mypyc failed ({error})\n")
        return int(demanded)
    return 0


if __name__ == "__main__":
    sys.exit(main())
