"""Loss of power: hosts go dark, and what their page caches had not written back is gone.

Source: the failure catalogue B1 to B4.
"""

from collections.abc import Sequence

from sim.faults.action import Evidence
from sim.faults.surface import Host
from sim.units import Bytes, show_bytes


class PowerLoss:
    """Some hosts lose power; healing boots them.

    Args:
        hosts: Which ones.
        spares_none: Whether nothing that was not written back reached a platter by chance.
    """

    def __init__(self, hosts: Sequence[Host], *, spares_none: bool = False) -> None:
        self._hosts = hosts
        self._spares_none = spares_none
        self._darkened: list[Host] = []
        self._lost: Bytes = 0

    def begin(self) -> None:
        """Cut the power of every target that has it."""
        for host in self._hosts:
            if host.powered:
                self._darkened.append(host)
                self._lost += host.power_off(spares_none=self._spares_none)

    def heal(self) -> bool:
        """Boot what this fault darkened and nobody else has booted since."""
        for host in self._darkened:
            if not host.powered:
                host.power_on()
        return True

    def evidence(self) -> Evidence:
        """Whether a host had power; how much page cache was lost."""
        if not self._darkened:
            return Evidence(took_effect=False, effect="had no power")
        names = ", ".join(host.name for host in self._darkened)
        lost = show_bytes(self._lost)
        return Evidence(took_effect=True, effect=f"{names} went dark; {lost} of page cache lost")
