"""The rules of the house that a package keeps, not a file: its size, its doors, its names."""

import ast
from collections import Counter
from collections.abc import Iterable, Iterator

from tools.house import Finding, Source, imports

MODULES_MAX = 20
"""Modules of a package, ``__init__`` aside."""


def crowded_packages(sources: Iterable[Source]) -> Iterator[Finding]:
    """A package has at most ``MODULES_MAX`` modules: more need packages below it."""
    modules = Counter(
        source.path.rpartition("/")[0]
        for source in sources
        if not source.path.endswith("__init__.py")
    )
    for package, count in modules.items():
        if count > MODULES_MAX:
            yield Finding(package, 1, f"{count} modules; {MODULES_MAX} are allowed: divide it")


def unreachable(packages: list[Source], doors: tuple[str, ...]) -> Iterator[Finding]:
    """Every module is imported by another one, or is one of the doors.

    Args:
        packages: All source files of the packages.
        doors: Dotted names of modules that people or tools call directly.
    """
    imported: dict[str, None] = {}
    for source in packages:
        own = _module_name(source.path)
        for _, names in imports(source.tree):
            imported.update(dict.fromkeys(name for name in names if name != own))
    for source in packages:
        name = _module_name(source.path)
        if not source.path.endswith("__init__.py") and name not in imported and name not in doors:
            yield Finding(source.path, 1, f"nothing imports {name}")


def shaded_modules(packages: Iterable[Source]) -> Iterator[Finding]:
    """A package's ``__init__`` gives no module's name to something else.

    What ``package.name`` is would depend on whether that module was imported before.
    """
    files = {source.path: source for source in packages}
    for path, source in files.items():
        folder, is_package, _ = path.rpartition("/__init__.py")
        if not is_package:
            continue
        for line, name, origin in _given_names(source.tree):
            own = (f"{folder}/{name}.py", f"{folder}/{name}/__init__.py")
            if origin != _module_name(path) and any(module in files for module in own):
                sentence = f"{name} of {origin} hides the module {folder}/{name}: rename one"
                yield Finding(path, line, sentence)


def _given_names(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """Names that a module takes from another one: line, name here, module it comes from."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield node.lineno, alias.asname or alias.name, node.module


def _module_name(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
