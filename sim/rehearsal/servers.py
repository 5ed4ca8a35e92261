"""Real processes of a rehearsal: servers, which faults kill, stop, freeze and start.

A process ends with the command, however that ends (:mod:`sim.rehearsal.launcher`).
"""

import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from sim.faults.surface import SettingChange
from sim.ids import NodeId, TopicPartition
from sim.log.store.stored_file import Rot
from sim.rehearsal import launcher
from sim.rehearsal.disks import remove_replica
from sim.units import Bytes

STOP_S: Final = 60
"""Patience with a process that is to end."""

_TAIL: Final = 3_000

Note = Callable[[str, str, int], None]
"""Called with a process's name, its new state, and how often it has started."""


class RealProcess:
    """A program of this machine under a name of the scenario.

    Args:
        name: Printed name.
        command: What is run.
        log: File for what it says; a new start adds to it.
        note: Called at each change of its state.
    """

    def __init__(self, name: str, command: Sequence[str], log: Path, note: Note) -> None:
        self.name = name
        self.log = log
        self.running = False
        self.paused = False
        self.tearing_down = False
        self.starting = False
        self.spare = False
        self.incarnation = 0
        self.exits: list[str] = []
        """Ends of the process that nobody ordered."""
        self.command = list(command)
        """Command line, without its launcher."""
        self._note = note
        self.process: subprocess.Popen[bytes] | None = None
        """The present one, or the last."""
        self._is_stopping = False

    @property
    def pid(self) -> int:
        """Number of the process; -1 if it does not run."""
        return -1 if self.process is None or not self.running else self.process.pid

    def start(self) -> None:
        """Starts it."""
        assert not self.running, f"{self.name} runs already"
        self.process = self.spawn()
        self.running = True
        self.paused = False
        self._is_stopping = False
        self.incarnation += 1
        self._say("started")

    def spawn(self) -> "subprocess.Popen[bytes]":
        """Starts the program."""
        with self.log.open("ab") as said:
            return subprocess.Popen(  # noqa: S603 - Kafka's own program
                launcher.command(self.command),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
            )

    def crash(self) -> None:
        """``kill -9``; returns when it has ended."""
        self._end(signal.SIGKILL)
        self._say("crashed")

    def lose_power(self) -> None:
        """``kill -9`` with its host's power."""
        self._end(signal.SIGKILL)
        self._say("powered_off")

    def shut_down(self) -> None:
        """SIGTERM; :meth:`look` finds its end."""
        self._signal(signal.SIGTERM)
        self._is_stopping = True

    def pause(self) -> None:
        """SIGSTOP."""
        self._signal(signal.SIGSTOP)
        self.paused = True
        self._say("paused")

    def resume(self) -> None:
        """SIGCONT."""
        self._signal(signal.SIGCONT)
        self.paused = False
        self._say("resumed")

    def look(self) -> None:
        """Finds out whether it has ended, if it ran."""
        if not self.running or self.process is None or self.process.poll() is None:
            return
        self.running = False
        self.paused = False
        if not self._is_stopping:
            self.exits.append(f"{self.name} ended on its own, code {self.process.returncode}")
        self._say("stopped" if self._is_stopping else "crashed")

    def freeze(self) -> None:
        """SIGSTOP before the end of the rehearsal, without a note."""
        if self.running:
            self._signal(signal.SIGSTOP)

    def kill(self) -> None:
        """Ends it for good, without a note."""
        if self.running:
            self._end(signal.SIGKILL)

    def tail(self) -> str:
        """The end of what it has said."""
        text = self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""
        return text[-_TAIL:]

    def _signal(self, number: int) -> None:
        if self.process is not None and self.process.poll() is None:
            os.kill(self.process.pid, number)

    def _end(self, number: int) -> None:
        self._signal(number)
        if self.process is not None:
            self.process.wait(STOP_S)
        self.running = False
        self.paused = False

    def _say(self, state: str) -> None:
        self._note(self.name, state, self.incarnation)


class RealBroker(RealProcess):
    """A broker's process, with its log directories.

    Args:
        node: ``node.id``.
        directories: ``log.dirs``.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log: Path,
        note: Note,
        *,
        node: NodeId,
        directories: Sequence[Path],
    ) -> None:
        super().__init__(name, command, log, note)
        self.node_id = node
        self.directories = tuple(directories)
        self.setting_changes: Sequence[SettingChange] = ()

    def damage_replica(self, way: str, partition: TopicPartition, stream: str) -> bool:  # noqa: ARG002 - the interface
        """Kills the process if it runs, deletes a replica's files, and starts it again."""
        assert way == "remove", f"damage ({way}) is refused before a rehearsal starts"
        was_running = self.running
        if was_running:
            self.crash()
        done = remove_replica(self.directories, partition)
        if was_running:
            self.start()
        return done

    def arrivals(self, partition: TopicPartition, directory: int) -> int:
        """Refused."""
        raise AssertionError(f"a move of {partition} to {directory} is refused")

    def cut_file(self, partition: TopicPartition, file: str, size: Bytes) -> str:
        """Refused."""
        raise AssertionError(f"a cut of {file} of {partition} by {size} is refused")

    def let_rot(
        self, partition: TopicPartition, which: str, bits: int, stream: str
    ) -> tuple[str, Rot] | None:
        """Refused."""
        raise AssertionError(f"rot of {partition} ({which}, {bits}, {stream}) is refused")
