"""Versions of Apache Kafka that a scenario may name: ``cluster.kafka``.

A version chooses what each behaviour was then (see :mod:`sim.scenario.behaviours.registry`), in
the first release of its line: "3.4" is 3.4.0, "0.10" is 0.10.0.0. It decides which settings there
are and their defaults (:mod:`sim.scenario.settings.facts`), read in the last release of the line.
The control plane is KRaft's, of 3.3 before there was one, or that of ZooKeeper with
``cluster.zookeeper``.
"""

from typing import Final

VERSIONS: Final = (
    "0.10", "0.11", "1.0", "1.1", "2.0", "2.1", "2.2", "2.3", "2.4", "2.5", "2.6", "2.7", "2.8",
    "3.0", "3.1", "3.2", "3.3", "3.4", "3.5", "3.6", "3.7", "3.8", "3.9", "4.0", "4.1",
    "4.2", "4.3",
)  # fmt: skip
"""In the order of their releases."""

DEFAULT: Final = "4.3"
"""Version of a scenario that names none."""


def is_since(version: str, first: str) -> bool:
    """True if the version is the first one, or newer."""
    return VERSIONS.index(version) >= VERSIONS.index(first)


def before(version: str) -> str:
    """The version before it; empty for the first one."""
    place = VERSIONS.index(version)
    return VERSIONS[place - 1] if place else ""
