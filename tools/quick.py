"""Checks what a change can have broken, in about a minute: ``make quick``.

Style, floors and types of everything, then the tests nearest to the files that have changed since
the last commit (without changes: those of the last commit). Nearest are the tests in the folder
that mirrors a changed module's package: first those that import the module, then those that import
one that imports it, and so on. Dialogues and the tests of KIPs are near to all of the protocol.
Tests in other folders that import it simulate whole clusters; they are counted, and ``make test``
runs them.
"""

import ast
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Final

import grimp

ROOT: Final = Path(__file__).resolve().parents[1]
PACKAGES: Final = ("sim", "analysis")
FILES_MAX: Final = 24
"""Test files of one turn; more take longer than a minute on two cores."""

ALWAYS: Final = "tests/test_house.py"

OF_THE_PROTOCOL: Final = ("tests/dialogues/", "tests/kips/")
"""Folders of fast tests of machines together, which mirror no package."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Test files to run, nearest first, and how many more test what has changed."""

    files: tuple[str, ...]
    left_out: int


def choose(
    changed: Iterable[str],
    imports: Mapping[str, frozenset[str]],
    importers: Mapping[str, Sequence[frozenset[str]]],
    limit: int = FILES_MAX,
) -> Choice:
    """Choose test files for changed files.

    Args:
        changed: Paths of files, relative to the project, with slashes.
        imports: Modules that each test file imports, its helpers' imports included.
        importers: Of each module that has changed, those that import it, then those that import
            one of these, and so on.
        limit: The largest number of test files.
    """
    paths = list(changed)
    modules = {module_of(path) for path in paths if path.endswith(".py")}
    rings = [ring for module in modules for ring in enumerate(importers.get(module, ()))]
    around = [names for _, names in sorted(rings, key=itemgetter(0))]
    texts = {path.rpartition("/")[0] for path in paths if path.endswith(".txt")}
    own = [path for path in imports if path in paths or path.rpartition("/")[0] in texts]
    near = [path for path, names in imports.items() if names & modules]
    direct = frozenset().union(*(names for place, names in rings if place == 0))
    far = [path for path, names in imports.items() if names & direct]
    mirrors = tuple(mirror_of(path) for path in paths if path.endswith(".py"))
    if any(path.startswith("sim/protocol/") for path in paths):
        mirrors += OF_THE_PROTOCOL
    further = [
        path
        for ring in around
        for path, names in imports.items()
        if names & ring and path.startswith(mirrors)
    ]
    found = list(dict.fromkeys((*own, *near, *far, *further)))
    files = [path for path in found if path in own or path.startswith(mirrors)][:limit]
    return Choice(tuple(files), len(found) - len(files))


def mirror_of(path: str) -> str:
    """The folder of tests of a module's package: ``tests/log/`` for ``sim/log/store/files.py``.

    A package of ``sim.protocol`` has one of its own.
    """
    top, *inside = path.split("/")[:-1] or [""]
    if top != "sim":
        return f"tests/{top}/"
    depth = 2 if inside[:1] == ["protocol"] else 1
    return "/".join(("tests", *inside[:depth], ""))


def module_of(path: str) -> str:
    """The dotted name of a Python file: ``sim/log/store/files.py`` is ``sim.log.store.files``."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def imports_of_tests(root: Path) -> dict[str, frozenset[str]]:
    """Modules that each test file imports, directly or through helpers among the tests."""
    direct = {
        path.relative_to(root).as_posix(): frozenset(_imported(path))
        for path in sorted((root / "tests").rglob("*.py"))
    }
    by_module = {module_of(path): names for path, names in direct.items()}
    return {
        path: _with_helpers(names, by_module)
        for path, names in direct.items()
        if path.rpartition("/")[2].startswith("test_")
    }


def changed_files(root: Path) -> list[str]:
    """Files that differ from the last commit, new ones too; without any, those of that commit."""
    since = _git(root, "diff", "--name-only", "HEAD")
    fresh = _git(root, "ls-files", "--others", "--exclude-standard")
    return since + fresh or _git(root, "show", "--name-only", "--format=", "HEAD")


def _with_helpers(names: frozenset[str], by_module: Mapping[str, frozenset[str]]) -> frozenset[str]:
    found: dict[str, None] = {}
    open_names = sorted(names)
    while open_names:
        name = open_names.pop()
        if name not in found:
            found[name] = None
            open_names += sorted(by_module.get(name, frozenset()))
    return frozenset(found)


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _git(root: Path, *words: str) -> list[str]:
    ran = subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True)
    return ran.stdout.splitlines()


def importers(changed: Sequence[str]) -> dict[str, list[frozenset[str]]]:
    """Rings of importers of each module that has changed."""
    graph = grimp.build_graph(*PACKAGES, cache_dir=str(ROOT / ".import_linter_cache"))
    modules = [module_of(path) for path in changed if path.endswith(".py")]
    return {
        module: rings(module, graph.find_modules_that_directly_import)
        for module in modules
        if module in graph.modules
    }


def rings(module: str, importers_of: Callable[[str], Iterable[str]]) -> list[frozenset[str]]:
    """Modules that import one, then those that import one of these, each in the nearest ring."""
    known, found = {module}, list[frozenset[str]]()
    ring = frozenset(known)
    while ring:
        ring = frozenset(each for name in ring for each in importers_of(name)) - known
        known |= ring
        found.append(ring)
    return found[:-1]


def _run(command: str, *words: str) -> None:
    sys.stdout.write(f"{' '.join((command, *words[:4]))}\n")
    sys.stdout.flush()
    program = Path(sys.executable).with_name(command)
    done = subprocess.run([program, *words], cwd=ROOT, check=False)
    if done.returncode:
        sys.exit(done.returncode)


def main() -> None:
    """Run the checks; the first one that fails ends it with its own exit code."""
    changed = changed_files(ROOT)
    _run("ruff", "check", "--quiet")
    _run("ruff", "format", "--check", "--quiet")
    _run("mypy", "--no-error-summary")
    _run("lint-imports")
    choice = choose(changed, imports_of_tests(ROOT), importers(changed))
    files = [*choice.files, *([] if ALWAYS in choice.files else [ALWAYS])]
    marks = "not slow and not night and not kafka and not spark"
    _run("pytest", "-x", "-q", "-n", "2", "--dist", "worksteal", "-m", marks, *files)
    if choice.left_out:
        more = f"{choice.left_out} more test files are near what has changed"
        sys.stdout.write(f"{more}: make test runs them\n")


if __name__ == "__main__":
    main()
