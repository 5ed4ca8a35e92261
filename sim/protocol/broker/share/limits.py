"""Settings of a group's share partitions: locks, deliveries, records in flight.

Source: ``ShareGroupConfig``, ``GroupConfig``, ``ShareGroupConfigProvider`` (4.3).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sim.units import MS, SECOND, Micros


@dataclass(frozen=True, slots=True)
class ShareLimits:
    """A broker's settings for the share partitions of a group; defaults are Kafka's."""

    lock_us: Micros = 30 * SECOND
    """``share.record.lock.duration.ms`` of the group, or the brokers'
    ``group.share.record.lock.duration.ms``."""
    deliveries_max: int = 5
    """``share.delivery.count.limit``, likewise."""
    in_flight_max: int = 2_000
    """``share.partition.max.record.locks``, likewise: a bound for new records, in whole batches."""
    renews: bool = True
    """``share.renew.acknowledge.enable`` of the group."""
    isolates: bool = False
    """True if records that are given back again and again are delivered in ever smaller numbers,
    at last alone (KAFKA-17541, 4.2); not a setting."""
    counts: bool = False
    """True if the number of completed records in flight is written with their states (KIP-1226,
    4.2); not a setting."""

    def of_group(self, configs: Mapping[str, str]) -> "ShareLimits":
        """These for a group that has settings of its own.

        Source: ``ShareGroupConfigProvider`` (4.3).
        """
        lock = configs.get("share.record.lock.duration.ms")
        deliveries = configs.get("share.delivery.count.limit")
        in_flight = configs.get("share.partition.max.record.locks")
        renews = configs.get("share.renew.acknowledge.enable")
        return replace(
            self,
            lock_us=self.lock_us if lock is None else int(lock) * MS,
            deliveries_max=self.deliveries_max if deliveries is None else int(deliveries),
            in_flight_max=self.in_flight_max if in_flight is None else int(in_flight),
            renews=self.renews if renews is None else renews == "true",
        )

    def alone(self, deliveries: int, size: int) -> int:
        """Largest number of records of so many deliveries that are acquired together; 0: any.

        Args:
            deliveries: Of the first of them, so far.
            size: Number of records that were acquired with it when it was new.

        Source: ``SharePartition.acquireSubsetBatchRecords`` (4.2).
        """
        threshold = max(2, -(-self.deliveries_max // 2))
        if not self.isolates or deliveries < threshold:
            return 0
        if deliveries == self.deliveries_max - 1 and self.deliveries_max > 2:
            return 1
        return max(1, size >> (deliveries - threshold + 1))
