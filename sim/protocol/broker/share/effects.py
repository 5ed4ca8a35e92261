"""The effects of a broker's share partitions: requests, answers, timers, rows and sessions."""

from dataclasses import dataclass
from typing import TypeAlias

from sim.protocol import effects as fx
from sim.trace.emit import Emit


@dataclass(frozen=True, slots=True)
class ShareSessionOpened:
    """Effect: the client with this token has a share session, which ends with its connection."""

    token: int
    group: str
    member_id: str


ShareEffect: TypeAlias = (
    fx.Send | fx.Reply | fx.SetTimer | fx.CancelTimer | Emit | ShareSessionOpened
)
"""What the share partitions of a broker ask of it."""

Effects: TypeAlias = list[ShareEffect]
"""Where the effects of one decision go, in the order in which they are performed."""
