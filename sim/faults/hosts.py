"""Faults of what a server has to work with: its CPU, its file descriptors, its disks as a whole.

Source: the failure catalogue A10, A11, D3; ``EMFILE`` in accept(2) and open(2).
"""

from collections.abc import Sequence

from sim.faults.action import Evidence
from sim.faults.spec import Fault
from sim.faults.surface import Disk, Host, Process, World


class SlowCpu:
    """Threads of some servers take several times as long.

    A host that two faults slow at once is as slow as the later one says, until that is healed.
    """

    def __init__(self, hosts: Sequence[Host], fault: Fault) -> None:
        self._hosts = hosts
        self._factor = fault.factor
        self._before = 0

    def begin(self) -> None:
        """Slow them down."""
        self._before = self._slowed()
        for host in self._hosts:
            host.slow_cpu(self._factor)

    def heal(self) -> bool:
        """Back to their speed."""
        for host in self._hosts:
            host.slow_cpu(1)
        return True

    def evidence(self) -> Evidence:
        """How much work took longer."""
        slowed = self._slowed() - self._before
        return Evidence(slowed > 0, f"{slowed} pieces of work took longer")

    def _slowed(self) -> int:
        return sum(host.work_slowed for host in self._hosts)


class NoFileDescriptors:
    """Processes reach the limit of open files: no file is made, no connection accepted."""

    def __init__(self, hosts: Sequence[Host]) -> None:
        self._hosts = hosts
        self._before = 0

    def begin(self) -> None:
        """Nothing more can be opened."""
        self._before = self._refused()
        for host in self._hosts:
            host.exhaust_descriptors()

    def heal(self) -> bool:
        """The limit was raised: what waits in the backlog is accepted."""
        for host in self._hosts:
            host.free_descriptors()
        return True

    def evidence(self) -> Evidence:
        """How often a file or a connection was refused."""
        refused = self._refused() - self._before
        return Evidence(refused > 0, f"{refused} files and connections could not be opened")

    def _refused(self) -> int:
        return sum(host.descriptors_refused for host in self._hosts)


class WipedDisk:
    """Log directories come back empty, while their process is down for a moment."""

    def __init__(self, world: World, names: Sequence[str], fault: Fault) -> None:
        self._processes: list[tuple[Process, list[Disk]]] = []
        for name in names:
            disks = list(world.host_of(name).disks)
            if not fault.all_directories:
                disks = disks[fault.directory : fault.directory + 1]
            self._processes.append((world.nodes[name], disks))
        self._wiped: list[str] = []

    def begin(self) -> None:
        """Kill what runs, swap the disks, start again what ran."""
        for process, disks in self._processes:
            was_running = process.running
            if was_running:
                process.crash()
            files = sum(disk.swap() for disk in disks)
            if files:
                self._wiped.append(f"{process.name} ({files} files)")
            if was_running:
                process.start()

    def heal(self) -> bool:
        """Nothing to do."""
        return True

    def evidence(self) -> Evidence:
        """Whose files are gone."""
        if not self._wiped:
            return Evidence(took_effect=False, effect="there were no files")
        return Evidence(took_effect=True, effect=f"wiped {', '.join(self._wiped)}")
