"""A broker's settings for share partitions, in microseconds; defaults are Kafka's.

Source: ``ShareGroupConfig``, ``GroupConfig``.
"""

from dataclasses import dataclass, field

from sim.protocol.broker.share.limits import ShareLimits
from sim.units import SECOND, Micros


@dataclass(frozen=True, slots=True)
class ShareConfig:
    """Settings of share partitions; the coordinator's are in its ``GroupConfig``."""

    limits: ShareLimits = field(default_factory=ShareLimits)
    sessions_max: int = 2_000
    """``group.share.max.share.sessions``."""
    request_timeout_us: Micros = 30 * SECOND
    """``request.timeout.ms`` of brokers."""
    from_earliest: tuple[str, ...] = ()
    """Groups with ``share.auto.offset.reset`` earliest; for others it is latest."""
