"""Scope of a number in a run. Light: a scenario is read without the simulator."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sim.ids import server_name
from sim.units import LONG_AGO, NEVER, Micros, show_duration


@dataclass(frozen=True, slots=True)
class Scope:
    """Scope of a number; a part that is left at its default excludes nothing."""

    topic: str = ""
    partition: int = -1
    """Together with ``topic``."""
    group: str = ""
    producer: str = ""
    clients: tuple[str, ...] = ()
    """Printed names of that producer's processes."""
    from_us: Micros = LONG_AGO
    to_us: Micros = NEVER
    """Exclusive."""
    brokers: tuple[int, ...] = ()
    """The two whose logs are compared."""

    @property
    def has_window(self) -> bool:
        """True if it has a window of time."""
        return self.from_us > LONG_AGO or self.to_us < NEVER

    def __str__(self) -> str:
        words = []
        if self.topic:
            one = self.partition >= 0
            words.append(f"{self.topic}-{self.partition}" if one else f"topic {self.topic}")
        if self.group:
            words.append(f"group {self.group}")
        if self.producer:
            words.append(f"producer {self.producer}")
        if self.brokers:
            words.append(" and ".join(server_name(broker) for broker in self.brokers))
        if self.has_window:
            words.append(f"during {show_duration(self.from_us)}..{show_duration(self.to_us)}")
        return ", ".join(words)


EVERYTHING: Final = Scope()
"""The whole run."""


def pair_name(brokers: Sequence[int]) -> str:
    """``broker-1, broker-3``: the key of ``divergence``."""
    return ", ".join(server_name(broker) for broker in brokers)
