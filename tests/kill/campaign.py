"""Kills a command at drawn instants of its life, and says what it left that it should not have.

Usage: python -m tests.kill.campaign COMMAND KILLS SEED DIRECTORY. Prints a line for each wrong.
Every command has a directory and a place for temporary files of its own, and is the leader of a
session: only processes of that session are looked for, and killed.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from sim.errors import SimulationError
from sim.locks import check_free
from tests.scenarios.run_kit import ROOT, text_of

PATIENCE_S = 120
"""How long what a killed process started may take to end; a Java process stops in order."""

CLEAN_EVERY = 5
"""After so many kills the command is let through; between them each start meets what was left."""

TINY = {
    "lasts": "2s", "producer": {"rate": "100/s"},
    "topic": {"partitions": 1, "replication.factor": 1, "config": {}},
    "cluster": {"brokers": 1, "controllers": 1}, "expect": {"lost_acked": 0},
}  # fmt: skip

LOGQUAKE = (sys.executable, "-m", "sim")
COMMANDS = {
    "run": (*LOGQUAKE, "run", "tiny.yaml", "--out", "out"),
    "run --force": (*LOGQUAKE, "run", "tiny.yaml", "--out", "out", "--force"),
    "run --keep": (*LOGQUAKE, "run", "tiny.yaml", "--out", "out", "--force", "--keep", "verdict"),
    "check": (*LOGQUAKE, "check", "tiny.yaml", "--seeds", "1..4", "--jobs", "2", "--no-cache"),
    "check --twice": (*LOGQUAKE, "check", "tiny.yaml", "--twice", "--no-cache"),
    "explore": (*LOGQUAKE, "explore", "tiny.yaml", "--vary", "acks=1,all", "--seeds", "12",
                "--out", "out"),
    "report": (*LOGQUAKE, "report", "out"),
}  # fmt: skip


@dataclass
class Campaign:
    """A command that is killed again and again in one directory.

    Args:
        place: An empty directory.
        command: Words of it.
        seed: Of the instants.
    """

    place: Path
    command: tuple[str, ...]
    seed: int = 1
    wrong: list[str] = field(default_factory=list)
    ends: Counter = field(default_factory=Counter)
    """How often a process ended by its kill, by a signal that it heard, or before."""

    def __post_init__(self) -> None:
        self.chance = random.Random(f"{self.command[3:]}/{self.seed}")
        self.home, self.tmp = self.place / "home", self.place / "tmp"
        for directory in (self.home, self.tmp):
            directory.mkdir(parents=True)
        (self.home / "tiny.yaml").write_text(text_of(**TINY))
        self.environment = os.environ | {
            "PYTHONPATH": str(ROOT), "TMPDIR": str(self.tmp), "LOGQUAKE_PURE": "1",
        }  # fmt: skip
        self.signals = cycle((signal.SIGKILL, signal.SIGTERM, signal.SIGKILL, signal.SIGHUP))
        self.resumes = "explore" in self.command
        self.refuses = "run" in self.command and "--force" not in self.command

    def kills(self, count: int) -> "Campaign":
        """Kill it so many times, and let it through now and then, and at the end."""
        lasts = self.through("first")
        for number in range(1, count + 1):
            if (self.resumes or self.refuses) and (self.home / "out").exists():
                shutil.rmtree(self.home / "out")
            self.kill(f"kill {number}", lasts)
            if number % CLEAN_EVERY == 0 or number == count:
                self.through(f"after kill {number}")
        return self

    def start(self) -> "subprocess.Popen[str]":
        self.began_ns = time.time_ns()
        return subprocess.Popen(
            self.command, cwd=self.home, env=self.environment, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def kill(self, name: str, lasts: float) -> None:
        """Start it, and kill it at an instant of its life, or after its first rows."""
        number = next(self.signals)
        wait = self.chance.random() * lasts
        with self.start() as process:
            if self.resumes:
                self.first_rows(process)
                wait /= 8
            try:
                process.wait(wait)
            except subprocess.TimeoutExpired:
                process.send_signal(number)
            _, err = process.communicate()
        name = f"{name}, {number.name} after {wait:.2f} of {lasts:.2f} s"
        code = process.returncode
        # Python itself has no handler in its first tenths of a second; nothing is made then.
        self.ends[code] += 1
        if code not in (0, 130, -number):
            self.wrong.append(f"{name}: ended with {code}: {err[-500:]}")
        self.look(name, process.pid, heard=code == 130)

    def first_rows(self, process: "subprocess.Popen[str]") -> None:
        while process.poll() is None and not list(self.home.glob("out/results/*.parquet")):
            time.sleep(0.05)

    def look(self, name: str, session: int, *, heard: bool) -> None:
        """Processes, locks, and whether files can be read."""
        for pid, words in self.left(session):
            self.wrong.append(f"{name}: still runs: {pid} {words}")
            os.kill(pid, signal.SIGKILL)
        for lock in self.home.rglob("*.lock"):
            if "disks" in lock.parts:
                continue  # a simulated broker's
            try:
                check_free(lock)
            except SimulationError as error:
                self.wrong.append(f"{name}: {error}")
        for card in (*self.home.rglob("run.json"), *self.home.rglob("sweep.json")):
            json.loads(card.read_text())
        if heard and self.command[3] in ("run", "check"):
            for part in self.parts():
                try:
                    pq.read_schema(part)
                except pa.ArrowInvalid as error:
                    self.wrong.append(f"{name}: {part.relative_to(self.home)}: {error}")

    def parts(self) -> list[Path]:
        """Files of the runs that the last process began; earlier ones are as a kill left them."""
        cards = [c for c in self.home.rglob("run.json") if c.stat().st_mtime_ns >= self.began_ns]
        return [part for card in cards for part in card.parent.rglob("part-*.parquet")]

    def left(self, session: int) -> list[tuple[int, str]]:
        """Processes of a session whose leader has ended, after some patience."""
        until = time.monotonic() + PATIENCE_S
        while (found := in_session(session)) and time.monotonic() < until:
            time.sleep(0.1)
        return found

    def through(self, name: str) -> float:
        """Let the command end; its seconds."""
        began = time.monotonic()
        out = self.home / "out"
        is_taken = (out / "run.json").exists()
        if "report" in self.command and name == "first":
            made = (*COMMANDS["run"], "--force")
            subprocess.run(
                made, cwd=self.home, env=self.environment, check=True, capture_output=True
            )
        with self.start() as process:
            _, err = process.communicate()
        if self.refuses and is_taken:
            if process.returncode != 2 or "add --force" not in err:
                self.wrong.append(f"{name}: {process.returncode}, not a refusal: {err[-500:]}")
            shutil.rmtree(out)
            return self.through(name)
        if process.returncode != 0:
            self.wrong.append(f"{name}: went not through: {process.returncode}: {err[-500:]}")
        self.look(name, process.pid, heard=True)
        strays = [*self.tmp.iterdir(), *self.home.rglob("*.tmp"), *self.home.rglob(".report-*")]
        strays += [p for p in self.home.rglob("*.lock") if "disks" not in p.parts]
        self.wrong += [f"{name}: left {path.relative_to(self.place)}" for path in strays]
        if "run" in self.command and not json.loads((out / "run.json").read_text())["complete"]:
            self.wrong.append(f"{name}: not complete")
        return time.monotonic() - began


def in_session(session: int) -> list[tuple[int, str]]:
    """Processes of a session, but for those that have ended and wait for a parent's look.

    A killed process whose first thread has ended is a zombie, too (proc(5)), while its other
    threads are ending; until then it holds its files and locks.
    """
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            told = (entry / "stat").read_text().rpartition(")")[2].split()
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        state, threads = told[0], int(told[17])
        if int(told[3]) == session and (state != "Z" or threads > 1):
            found.append((int(entry.name), words[-120:]))
    return found


if __name__ == "__main__":
    asked, count, drawn, where = sys.argv[1:]
    campaign = Campaign(Path(where).resolve(), COMMANDS[asked], int(drawn)).kills(int(count))
    for line in campaign.wrong:
        sys.stdout.write(f"{line}\n")
    sys.stdout.write(f"{asked}: {count} kills, {len(campaign.wrong)} wrong, {campaign.ends}\n")
