"""Truncation rules by the names that a scenario uses."""

from collections.abc import Mapping
from typing import Final

from sim.protocol.broker.truncation.divergence import KIP_320, Truncation
from sim.protocol.broker.truncation.high_watermark import TruncateToHighWatermark
from sim.protocol.broker.truncation.kip101 import Kip101
from sim.protocol.broker.truncation.kip279 import Kip279

TRUNCATIONS: Final[Mapping[str, Truncation]] = {
    rule.name: rule for rule in (KIP_320, Kip279(), Kip101(), TruncateToHighWatermark())
}
"""All rules; the first is that of Kafka 4.1."""
