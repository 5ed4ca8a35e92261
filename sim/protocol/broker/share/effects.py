"""Effects of a broker's share partitions: requests, responses, timers, rows and sessions."""

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
"""Union of the effects."""

Effects: TypeAlias = list[ShareEffect]
"""List that receives the effects of one decision, in order."""
