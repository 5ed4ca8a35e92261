"""Processes of clients: lines on their standard input direct them."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import IO, cast

from sim.errors import SimulationError
from sim.rehearsal import launcher
from sim.rehearsal.servers import Note, RealProcess


class ClientProcess(RealProcess):
    """Our own program with clients of Kafka's in it, which ends with its input.

    Args:
        name: Of the process.
        command: What is run.
        log: File for what it says on standard error.
        note: Called at each change of its state.
        events: File in which it writes its rows.
    """

    def __init__(
        self, name: str, command: Sequence[str], log: Path, note: Note, events: Path
    ) -> None:
        super().__init__(name, command, log, note)
        self.events = events

    def spawn(self) -> "subprocess.Popen[bytes]":
        """Starts the program, with pipes."""
        with self.log.open("ab") as said:
            return subprocess.Popen(  # noqa: S603 - our own program
                launcher.command(self.command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
            )

    def order(self, *words: str) -> list[list[str]]:
        """Gives an order; returns the lines of the answer, as fields.

        Raises:
            SimulationError: If the process has ended.
        """
        assert self.process is not None, "it was started"
        into, out = cast("IO[bytes]", self.process.stdin), cast("IO[bytes]", self.process.stdout)
        found: list[list[str]] = []
        try:
            into.write("\t".join(words).encode() + b"\n")
            into.flush()
            while line := out.readline().decode():
                if line == ".\n":
                    return found
                found.append(line.rstrip("\n").split("\t"))
        except BrokenPipeError:
            pass
        raise SimulationError(f"the clients' process {self.name} has ended; it said: {self.tail()}")

    def kill(self) -> None:
        """Ends it for good."""
        super().kill()
        if self.process is not None:
            for stream in (self.process.stdin, self.process.stdout):
                if stream is not None:
                    stream.close()
