"""What the command does with a mutant: its exit code, within its time, and where it wrote."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner

from sim.cli import app
from sim.cli.exits import DEFECT

VALIDATE_S = 10
"""A file is understood or refused within this real time; the slowest here takes a third of it."""

RUN_S = 15
"""After so long a run is asked to stop, as Ctrl-C would; what it simulates may simply be long."""

PATIENCE_S = 30
"""And so long it may take to write down what it has."""


class Hangs(BaseException):
    """Neither an answer nor an end. Not an Exception: nobody may catch it on the way."""


@dataclass(frozen=True)
class Answer:
    """What came of one command."""

    code: int
    output: str
    was_stopped: bool = False

    @property
    def fault(self) -> str:
        """What is wrong with it; empty if nothing is."""
        if self.was_stopped and self.code == 130:
            return ""
        if self.code not in (0, 1, 2):
            return f"exit code {self.code}: {self.output[-800:]}"
        if "Traceback" in self.output or DEFECT in self.output:
            return self.output[-800:]
        if self.code == 2 and not self.output.strip():
            return "refused without a word"
        return ""


class Watched:
    """Notes every file that Python opens to write, and every name it makes or removes."""

    def __init__(self) -> None:
        self.home: Path | None = None
        self.outside: list[str] = []
        sys.addaudithook(self._hear)

    @contextmanager
    def within(self, home: Path) -> Iterator[None]:
        """While a command works; it may write below the directory alone."""
        self.home, self.outside = home.resolve(), []
        try:
            yield
        finally:
            self.home = None

    def _hear(self, event: str, args: tuple) -> None:
        if self.home is None:
            return
        if event == "open":
            path, mode, flags = args
            writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) or set(str(mode)) & set("wax+")
            names = [path] if writes else []
        elif event in ("os.mkdir", "os.rmdir", "os.remove", "os.truncate", "shutil.rmtree"):
            names = [args[0]]
        elif event in ("os.rename", "os.link", "os.symlink"):
            names = list(args[:2])
        else:
            return
        for name in names:
            if isinstance(name, str | bytes | os.PathLike):
                path = Path(os.path.abspath(os.fsdecode(name)))  # noqa: PTH100 - no link is followed
                if not path.is_relative_to(self.home) and not _is_python_own(path):
                    self.outside.append(f"{event} {path}")


def _is_python_own(path: Path) -> bool:
    kept = sys.pycache_prefix  # where a first import makes directories for its byte code
    return (
        "__pycache__" in path.parts
        or path == Path(os.devnull)
        or (kept is not None and path.is_relative_to(kept))
    )


WATCHED = Watched()


def validate(file: Path) -> Answer:
    """``logquake validate`` in this process."""
    with _within(VALIDATE_S, f"validate {file.name}"):
        done = CliRunner().invoke(app, ["validate", str(file)])
    return Answer(done.exit_code, done.output)


def run(file: Path, out: Path) -> Answer:
    """``logquake run`` in this process; asked to stop when its time is over."""
    stopped = []

    def ask(_number: int, _frame: object) -> None:
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            raise Hangs(f"no run that could be stopped had begun after {RUN_S} s")
        stopped.append(True)
        signal.signal(signal.SIGALRM, _give_up)
        signal.setitimer(signal.ITIMER_REAL, PATIENCE_S)
        signal.raise_signal(signal.SIGTERM)

    with _alarm(RUN_S, ask):
        words = ["run", str(file), "--out", str(out), "--trace", "facts"]
        done = CliRunner().invoke(app, words)
    return Answer(done.exit_code, done.output, bool(stopped))


@contextmanager
def _within(seconds: int, what: str) -> Iterator[None]:
    def give_up(_number: int, _frame: object) -> None:
        raise Hangs(f"{what}: no answer in {seconds} s")

    with _alarm(seconds, give_up):
        yield


def _give_up(_number: int, _frame: object) -> None:
    raise Hangs(f"asked to stop, and did not within {PATIENCE_S} s")


@contextmanager
def _alarm(seconds: int, ring: object) -> Iterator[None]:
    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
