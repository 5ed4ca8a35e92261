"""Limits of one call, held against a scenario before it runs and against its process while it does.

The defaults are stated in ``docs/mcp.md`` and changed by options of ``logquake mcp``.
"""

from dataclasses import dataclass

from sim.errors import SimulationError
from sim.scenario.run.summary import Summary
from sim.units import Bytes, Micros, show_bytes, show_duration


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that one call may take; each is named by the option that changes it."""

    simulated_us: Micros
    """Simulated time of one run's workload."""
    records: int
    """Records that the producers of one run mean to send."""
    time_us: Micros
    """Real time of a call, without its wait for others."""
    disk_bytes: Bytes
    """Size of the root directory, earlier runs included."""
    runs: int
    """Runs of one sweep or verdict."""

    def check_scenario(self, found: Summary) -> None:
        """Check that one run of a scenario is small enough.

        Raises:
            SimulationError: If it is not; with the option that allows more.
        """
        if found.run_us > self.simulated_us:
            raise SimulationError(
                f"run.for: {show_duration(found.run_us)} of simulated time; allowed: at most "
                f"{show_duration(self.simulated_us)} (--max-simulated of logquake mcp); shorten it"
            )
        if found.records_at_most > self.records:
            raise SimulationError(
                f"producers: {found.records_at_most:,} records in all; allowed: at most "
                f"{self.records:,} (--max-records of logquake mcp); lower rate or count, or "
                "shorten run.for"
            )

    def check_runs(self, count: int, what: str) -> None:
        """Check the number of runs of one call.

        Raises:
            SimulationError: If they are too many.
        """
        if count > self.runs:
            raise SimulationError(
                f"{what}: {count:,} runs; allowed: at most {self.runs:,} (--max-runs of logquake "
                "mcp); fewer values or fewer seeds"
            )

    def check_disk(self, used: Bytes) -> None:
        """Check that the root directory is not full.

        Raises:
            SimulationError: If it is; runs that nobody needs have to be removed.
        """
        if used >= self.disk_bytes:
            raise SimulationError(
                f"the root directory holds {show_bytes(used)}; allowed: at most "
                f"{show_bytes(self.disk_bytes)} (--max-disk of logquake mcp); remove earlier runs"
            )

    def as_text(self) -> str:
        """All of them in one sentence."""
        return (
            f"One run may have {show_duration(self.simulated_us)} of simulated time and "
            f"{self.records:,} records, one call {show_duration(self.time_us)} of real time and "
            f"{self.runs:,} runs; all files together {show_bytes(self.disk_bytes)}."
        )
