"""Chooses the form in which packages are imported: sources, or modules compiled by mypyc.

`tools/compile_packages.py` compiles the packages that a batch passes through into
``build/compiled`` of the checkout, with a manifest; a compiled wheel has them in ``built``
(`tools/wheel.py`). They are imported instead of the sources if, and only if, each of them was made
of exactly the present source, for this interpreter. Both forms decide alike and leave the same
bytes; only the speed differs. The environment variable
``LOGQUAKE_PURE=1`` selects the sources: tests that plant defects need classes that can be changed.
"""

import hashlib
import json
import os
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Final

PURE_VARIABLE: Final = "LOGQUAKE_PURE"
"""Environment variable that selects the sources if it is set to anything but 0 or nothing."""

MANIFEST: Final = "manifest.json"
"""Name of the file that maps compiled modules to their sources."""


class CompiledFinder(MetaPathFinder):
    """Finds the compiled form of a module."""

    def __init__(self, modules: Mapping[str, Path]) -> None:
        """Serves these modules, by their full names."""
        self.modules = modules

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002 - the interface
        target: ModuleType | None = None,  # noqa: ARG002 - the interface
    ) -> ModuleSpec | None:
        """The compiled module, if there is one of that name."""
        file = self.modules.get(fullname)
        if file is None:
            return None
        return spec_from_file_location(
            fullname, file, loader=ExtensionFileLoader(fullname, str(file))
        )


def digest(source: bytes) -> str:
    """A source's digest in the manifest."""
    return hashlib.blake2b(source, digest_size=16).hexdigest()


def compiled_modules(root: Path, directory: Path) -> tuple[dict[str, Path], str]:
    """Modules that may be imported in their compiled form, and the reason if there are none.

    Args:
        root: The checkout: directory that holds the package ``sim``.
        directory: Where the compiled modules are.

    Returns:
        Files by module name; if it is empty, the reason for users.
    """
    try:
        manifest = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        # Executors of a cluster import the packages from a zip file.
        return {}, "nothing is compiled"
    if manifest["soabi"] != sysconfig.get_config_var("SOABI"):
        return {}, f"compiled for {manifest['soabi']}"
    for name, compiled_from in manifest["sources"].items():
        source = root / name
        if not source.is_file() or digest(source.read_bytes()) != compiled_from:
            return {}, f"{name} was changed since it was compiled"
    return {name: directory / file for name, file in manifest["modules"].items()}, ""


def selects_sources() -> bool:
    """True if the environment selects the sources."""
    return os.environ.get(PURE_VARIABLE, "0") not in ("", "0")


def activate(root: Path) -> str:
    """Imports compiled packages from now on, if they are there and of these sources.

    Returns:
        The reason for using the sources, or "".
    """
    if selects_sources():
        return f"{PURE_VARIABLE} is set"
    modules, reason = compiled_modules(root, root / "build" / "compiled")
    if not modules:
        modules, in_wheel = compiled_modules(root, root / "sim" / "built")
        reason = in_wheel if (root / "sim" / "built").is_dir() else reason
    if modules:
        sys.meta_path.insert(0, CompiledFinder(modules))
    return reason


WHY_SOURCES: Final = activate(Path(__file__).resolve().parents[1])
"""Reason for which this process uses the sources; empty if it uses compiled packages."""
