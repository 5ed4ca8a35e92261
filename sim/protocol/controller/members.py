"""Membership of brokers in a cluster of Raft groups: joining, draining, removed.

A broker that registers for the first time in a cluster with partitions is *joining* until it has
its share of the replicas. A decommissioned one is *draining* until no group has it as a member;
then it is *removed*: its id never comes back. That is written into the metadata log, so that the
next controller continues.

Left out: recommission, maintenance mode, brokers that are decommissioned because they have been
away for long.

Source: Redpanda v25.1 ``cluster/{members_table,members_backend,partition_balancer_backend}.cc``.
"""

from collections.abc import Callable

from sim.error_codes import ErrorCode
from sim.ids import NodeId
from sim.protocol.controller.partition_balancer import (
    Away,
    BalancerConfig,
    BalancerRules,
    Plan,
    moves_under_way,
    plan,
)
from sim.protocol.controller.types import Decision
from sim.protocol.messages.raft_membership import (
    DecommissionBrokerRequest,
    DecommissionBrokerResponse,
)
from sim.protocol.metadata.image import MetadataImage
from sim.protocol.metadata.records import (
    BROKER_RESOURCE,
    DRAINING,
    JOINING,
    MEMBERSHIP,
    REMOVED,
    ConfigRecord,
    MetadataRecord,
    UnregisterBrokerRecord,
)
from sim.units import Micros


class Members:
    """Membership at an active controller.

    Args:
        config: Settings.
        unit: Draws, uniform in [0, 1).
        rules: The balancer's rules.
    """

    def __init__(
        self, config: BalancerConfig, unit: Callable[[], float], rules: BalancerRules
    ) -> None:
        self._config = config
        self._unit = unit
        self._rules = rules
        self._heard: dict[NodeId, Micros] = {}
        self.under_way = 0
        """Moves in progress when the last plan was made."""

    def activated(self, image: MetadataImage, now: Micros) -> None:
        """Activates: counts every broker as heard from now."""
        self._heard = dict.fromkeys(image.brokers, now)
        self.under_way = moves_under_way(image)

    def note_contact(self, broker: NodeId, now: Micros) -> None:
        """Notes a contact of a broker."""
        self._heard[broker] = now

    def joined(self, image: MetadataImage, broker: NodeId) -> tuple[MetadataRecord, ...]:
        """Records for a broker that registers: only if there are replicas to give it."""
        if broker in image.brokers or not image.partitions:
            return ()
        return (_membership(broker, JOINING),)

    def decommission(self, image: MetadataImage, request: DecommissionBrokerRequest) -> Decision:
        """Decommissions a broker; a second request changes nothing."""
        broker = request.broker
        if broker not in image.brokers:
            error = ErrorCode.BROKER_ID_NOT_REGISTERED
            return Decision((), DecommissionBrokerResponse(error))
        records: tuple[MetadataRecord, ...] = ()
        if image.memberships.get(broker) != DRAINING:
            records = (_membership(broker, DRAINING),)
        return Decision(records, DecommissionBrokerResponse(ErrorCode.NONE))

    def is_due(self, image: MetadataImage) -> bool:
        """True if so many moves have ended that the next plan is made before its time."""
        left = self.under_way * (1 - self._config.drop_threshold)
        return self.under_way > 0 and moves_under_way(image) <= left

    def plan(self, image: MetadataImage, now: Micros) -> Plan:
        """Plan of moves at this instant."""
        away = tuple(sorted(b for b in image.brokers if not image.is_active(b)))
        limit = now - self._config.availability_timeout_us
        # Brokers without a contact have registered with this controller.
        timed_out = tuple(b for b in away if self._heard.get(b, now) < limit)
        return plan(image, self._config, Away(away, timed_out), self._unit, self._rules)

    def completed_members(self, image: MetadataImage, made: Plan) -> tuple[MetadataRecord, ...]:
        """Records for members whose joining or draining is complete."""
        records: list[MetadataRecord] = []
        for broker, value in image.memberships.items():
            if value == JOINING and made.is_even:
                records.append(_membership(broker, None))
            elif value == DRAINING and self._rules.is_drained(image, broker):
                epoch = image.brokers[broker].epoch
                records.append(UnregisterBrokerRecord(broker, epoch))
                records.append(_membership(broker, REMOVED))
        return tuple(records)


def has_cause(image: MetadataImage) -> bool:
    """True if a broker is joining or draining."""
    return any(value != REMOVED for value in image.memberships.values())


def _membership(broker: NodeId, value: str | None) -> ConfigRecord:
    return ConfigRecord(BROKER_RESOURCE, str(broker), MEMBERSHIP, value)
