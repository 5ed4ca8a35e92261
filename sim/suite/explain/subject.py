"""Subjects of explanations: a record, an offset, or an outage; and the copies of a record."""

from dataclasses import dataclass
from typing import Final

from sim.checking.partition import LOSSES
from sim.ids import server_name
from sim.units import Micros

GAPS: Final = ("outage", "unread", "wait")
"""Kinds of subjects that are stretches of time, of a partition and of no record."""


@dataclass(frozen=True, slots=True)
class Subject:
    """Subject of an explanation: a record, an offset, or an outage."""

    kind: str
    """As in a verdict; or ``late`` (it came through), ``aborted`` (its transaction was), ``ok``
    (never acknowledged); or of a partition ``outage`` (nobody could write), ``unread`` (nobody got
    what was written), ``wait`` (too short for either)."""
    topic: str
    partition: int
    producer: str = ""
    record: int = -1
    offset: int = -1
    from_us: Micros = 0
    for_us: Micros = 0
    group: str = ""
    """Of the tasks that read it, if it is about their outputs."""

    def __str__(self) -> str:
        where = f"{self.topic}-{self.partition}"
        if self.record >= 0:
            return f"record {self.record} of {self.producer} in {where}"
        return f"offset {self.offset} of {where}" if self.offset >= 0 else where


@dataclass(frozen=True, slots=True)
class Copy:
    """One copy of a record in one log, and what became of it."""

    broker: int
    offset: int
    epoch: int
    as_leader: bool
    since_us: Micros
    until_us: Micros | None
    """``None``: to the end."""
    ended_by: str = ""

    @property
    def name(self) -> str:
        """The broker's printed name."""
        return server_name(self.broker)

    def holds_at(self, at: Micros) -> bool:
        """True if it was there."""
        return self.since_us <= at and (self.until_us is None or at < self.until_us)


def is_storage_loss(copy: Copy) -> bool:
    """True if a copy ended because its bytes were missing, and nobody had decided that."""
    return (
        copy.ended_by in {"recovery", "hole"} or copy.ended_by.removeprefix("truncation:") in LOSSES
    )
