"""Noise of the machine during a rehearsal: how late a process wakes that asked to sleep."""

import threading
import time
from typing import Final

_SLEEP_S: Final = 0.01


class Sleeper:
    """A thread that sleeps for 10 ms, over and over, and notes how late it wakes.

    Its time includes waits for this process's own interpreter, of a few milliseconds at most.
    """

    def __init__(self) -> None:
        self._late_us: list[int] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sleeper", daemon=True)

    def start(self) -> None:
        """Begins to measure."""
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            due = time.monotonic_ns() + int(_SLEEP_S * 1e9)
            time.sleep(_SLEEP_S)
            self._late_us.append(max(0, time.monotonic_ns() - due) // 1_000)

    def report(self) -> dict[str, int]:
        """Ends the measurement; ``samples``, and p50, p99 and maximum of the delay in us."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        late = sorted(self._late_us)
        if not late:
            return {"samples": 0}
        return {
            "samples": len(late),
            "p50_us": late[len(late) // 2],
            "p99_us": late[len(late) * 99 // 100],
            "max_us": late[-1],
        }
