"""Hatch's hook for wheels: with ``LOGQUAKE_WHEEL=compiled`` a wheel has the compiled packages too.

Without it a wheel is the same for every interpreter and machine, and needs no compiler. A compiled
wheel is for one interpreter and one kind of machine; where it does not fit, the simulator runs from
its sources. ``python -m build`` asks for what compiling needs; ``docs/guide/install.md`` has both.
"""

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

VARIABLE: Final = "LOGQUAKE_WHEEL"
"""Environment variable that selects the form: ``pure``, the default, or ``compiled``."""

_FORMS: Final = ("pure", "compiled")
_TOOLS: Final = ("mypy", "setuptools", "types-PyYAML", "pandas-stubs", "types-networkx")
"""What mypyc needs beside the project's own dependencies; the stubs are for its types."""

_PIN: Final = re.compile(r"^([\w.-]+)==([^\s;]+)", re.MULTILINE)
_END: Final = re.compile(r"[^\w.-]")


def form() -> str:
    """The form that the environment selects.

    Raises:
        ValueError: For any other.
    """
    found = os.environ.get(VARIABLE, "") or _FORMS[0]
    if found not in _FORMS:
        raise ValueError(f"{VARIABLE}: found {found!r}; allowed: {', '.join(_FORMS)}")
    return found


class WheelHook(BuildHookInterface[Any]):
    """Compiles, and puts what was compiled where :mod:`sim.compiled` looks for it."""

    def dependencies(self) -> list[str]:
        """What an isolated build has to install first, in the versions of the lock."""
        if form() == "pure" or self.target_name != "wheel":
            return []
        lock = (Path(self.root) / "constraints.txt").read_text(encoding="utf-8")
        pins = {name.lower(): version for name, version in _PIN.findall(lock)}
        names = [_END.split(each)[0] for each in self.metadata.core.dependencies]
        return [f"{name}=={pins[name.lower()]}" for name in (*names, *_TOOLS)]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Adds the compiled packages to a compiled wheel; an editable install has the checkout's.

        Raises:
            CalledProcessError: If nothing could be compiled; the compiler has said why.
        """
        if form() == "pure" or version == "editable":
            return
        root = Path(self.root)
        pure = os.environ | {"LOGQUAKE_PURE": "1"}
        subprocess.run(
            [sys.executable, "-m", "tools.compile_packages", "--demand"],
            cwd=root,
            env=pure,
            check=True,
        )
        compiled = root / "build" / "compiled"
        suffix = sysconfig.get_config_var("EXT_SUFFIX")
        for file in sorted(compiled.rglob("*")):
            if file.name == "manifest.json" or file.name.endswith(suffix):
                place = file.relative_to(compiled).as_posix()
                build_data["force_include"][str(file)] = f"sim/built/{place}"
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
