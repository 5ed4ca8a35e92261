"""Answers to the questions of ``logquake init``; light, for ``--help``."""

from dataclasses import dataclass
from enum import StrEnum


class Fails(StrEnum):
    """Failures of the question "what fails"."""

    BROKER = "broker"
    ZONE = "zone"
    DISK = "disk"
    NETWORK = "network"
    CONTROLLER = "controller"
    NOTHING = "nothing"


class Acks(StrEnum):
    """Values of ``acks``."""

    ALL = "all"
    LEADER = "1"
    NONE = "0"


@dataclass(frozen=True, slots=True)
class InitOptions:
    """The options of ``logquake init``; ``None`` where the user is to be asked."""

    source: str | None
    brokers: int | None
    zones: int
    acks: Acks | None
    fails: Fails | None
    force: bool
