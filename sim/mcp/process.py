"""A command in a process of its own, as on a command line: its answer, progress and end.

The process ends when the call is cancelled, when a limit is reached, and when the server ends: its
standard input is a pipe that closes then (:mod:`sim.lifetime`).
"""

import json
import os
import subprocess  # for its constants; anyio starts the process
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from shlex import join
from typing import Final

import anyio
from anyio.abc import ByteReceiveStream, Process, TaskGroup
from anyio.to_thread import run_sync

import sim
from sim.errors import SimulationError
from sim.lifetime import ENDS_WITH_INPUT
from sim.mcp.answers import Plain
from sim.mcp.limits import Limits
from sim.mcp.workspace import SCRATCH, Workspace
from sim.progress import REPORTS_PROGRESS, Step, of_line
from sim.units import SECOND, show_bytes, show_duration

OnStep = Callable[[Step], Awaitable[None]]

ANSWERED: Final = (0, 1)
"""Exit codes with an answer: it held, or it did not."""

_GRACE_S: Final = 10.0
"""Time that a command has to leave its directory readable; then it is killed."""

_LOOK_EVERY_S: Final = 2.0
_LAST_WORDS_S: Final = 5.0
_MESSAGE_MAX: Final = 8_000


@dataclass(slots=True)
class Finished:
    """A command that has ended."""

    out: bytearray = field(default_factory=bytearray)
    err: list[str] = field(default_factory=list)
    """Lines of standard error, without those of progress."""
    code: int = 0
    stopped: str = ""
    """The limit that ended it."""


class Slots:
    """Places for simulations at one time; further calls wait in their order.

    Args:
        jobs: How many there are.
    """

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self._free = anyio.Semaphore(jobs)
        self._next = anyio.Lock()

    @asynccontextmanager
    async def taken(self, count: int, on_step: OnStep) -> AsyncIterator[None]:
        """Wait for ``count`` places and keep them for a block."""
        if not count:
            yield
            return
        if self._free.value < count or self._next.locked():
            await on_step(Step(0, None, "waiting for another call to end"))
        taken = 0
        try:
            async with self._next:
                while taken < count:
                    await self._free.acquire()
                    taken += 1
            yield
        finally:
            for _ in range(taken):
                self._free.release()


class Commands:
    """Runs commands within the limits.

    Args:
        workspace: The root is their working directory, and holds their temporary files.
        limits: Of each call.
        slots: Places for them.
    """

    def __init__(self, workspace: Workspace, limits: Limits, slots: Slots) -> None:
        self._workspace = workspace
        self._limits = limits
        self._slots = slots

    @property
    def jobs(self) -> int:
        """Simulations at one time."""
        return self._slots.jobs

    async def answer(self, words: Sequence[str], on_step: OnStep, *, places: int = 1) -> Plain:
        """Run a command with ``--json``, and read its answer.

        Args:
            words: The command without ``logquake``.
            on_step: Gets its progress.
            places: How many simulations it runs at one time; none waits for nobody.

        Raises:
            SimulationError: If it has no answer, with its own message; or a limit ended it.
        """
        async with self._slots.taken(places, on_step):
            if places:
                self._limits.check_disk(await run_sync(self._workspace.used))
            done = await self._execute([words[0], "--json", *words[1:]], on_step)
        message = "\n".join(done.err).strip()[-_MESSAGE_MAX:]
        if done.stopped:
            raise SimulationError(f"{done.stopped}; it left what it had: {command(words)}")
        if done.code not in ANSWERED or not done.out:
            raise SimulationError(message or f"exit code {done.code}: {command(words)}")
        found: Plain = json.loads(bytes(done.out))
        return found

    async def _execute(self, words: Sequence[str], on_step: OnStep) -> Finished:
        process = await anyio.open_process(
            [sys.executable, "-P", "-m", "sim", ENDS_WITH_INPUT, REPORTS_PROGRESS, *words],
            stdin=subprocess.PIPE,
            cwd=self._workspace.root,
            env=self._environment(),
        )
        done = Finished()
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._guard, process, done)
                await _listen(process, done, on_step, group)
                group.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await _end(process)
                await process.aclose()
        done.code = await process.wait()
        return done

    async def _guard(self, process: Process, done: Finished) -> None:
        """End the process when it has taken too long, or too much space."""
        seconds = self._limits.time_us / SECOND
        deadline = anyio.current_time() + seconds
        while not done.stopped:
            await anyio.sleep(min(_LOOK_EVERY_S, seconds))
            if anyio.current_time() >= deadline:
                limit = show_duration(self._limits.time_us)
                done.stopped = f"stopped after {limit} of real time (--max-time of logquake mcp)"
            elif await run_sync(self._workspace.used) > self._limits.disk_bytes:
                limit = show_bytes(self._limits.disk_bytes)
                done.stopped = f"stopped at {limit} of files (--max-disk of logquake mcp)"
        await _end(process)

    def _environment(self) -> dict[str, str]:
        """The same program, wherever its working directory is."""
        house = str(Path(sim.__file__).parents[1])
        before = os.environ.get("PYTHONPATH", "")
        return os.environ | {
            "PYTHONPATH": f"{house}{os.pathsep}{before}" if before else house,
            "TMPDIR": str(self._workspace.root / SCRATCH),
        }


def command(words: Sequence[str]) -> str:
    """The command line, quoted as POSIX has it."""
    return join(["logquake", *words])


async def _listen(process: Process, done: Finished, on_step: OnStep, group: TaskGroup) -> None:
    """Collect what the process writes until it has ended."""
    assert process.stdout is not None
    assert process.stderr is not None
    all_read = anyio.Event()
    readers = _collect(process.stdout, done.out), _lines(process.stderr, done.err, on_step)
    left = len(readers)

    async def read(reader: Awaitable[None]) -> None:
        nonlocal left
        await reader
        left -= 1
        if not left:
            all_read.set()

    for reader in readers:
        group.start_soon(read, reader)
    await process.wait()
    with anyio.move_on_after(_LAST_WORDS_S):  # its children may still hold the pipes
        await all_read.wait()


async def _collect(stream: ByteReceiveStream, found: bytearray) -> None:
    async for chunk in stream:
        found += chunk


async def _lines(stream: ByteReceiveStream, messages: list[str], on_step: OnStep) -> None:
    rest = b""
    async for chunk in stream:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            text = line.decode(errors="replace")
            step = of_line(text)
            if step is None:
                messages.append(text)
            else:
                await on_step(step)
    if rest:
        messages.append(rest.decode(errors="replace"))


async def _end(process: Process) -> None:
    """Ask it to end, as Ctrl-C does; kill it if it does not."""
    if process.returncode is not None:
        return
    process.terminate()
    with anyio.move_on_after(_GRACE_S):
        await process.wait()
    if process.returncode is None:
        process.kill()
        await process.wait()
