"""The controller of a cluster whose partitions are Raft groups.

It decides topics and replicas, and records leaders that groups report; it elects none, and brokers
that come or leave change no partition. A leader epoch is the group's term: a term whose leader was
never reported is recorded as one without a leader.

It also moves replicas on its own: see :mod:`sim.protocol.controller.partition_balancer`.

A partition that moves has both its old and its new replicas until its group has moved: the group's
leader reports that, too.

Source: Redpanda v25.1 ``cluster/{controller,partition_leaders_table,topic_updates_dispatcher}.cc``.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

from sim.error_codes import ErrorCode
from sim.ids import NO_LEADER, LeaderEpoch, NodeId, TopicPartition
from sim.protocol.controller.controller import Controller
from sim.protocol.controller.elections import Assignment, ElectionKind, with_assignment
from sim.protocol.controller.members import Members, has_cause
from sim.protocol.controller.partition_balancer import RULES, BalancerRules, moves_under_way
from sim.protocol.controller.reassignment import ReassignmentRefused, reassignments
from sim.protocol.controller.topics import directory_for
from sim.protocol.controller.types import ControllerConfig, Decision
from sim.protocol.effects import Reply
from sim.protocol.events import RequestReceived
from sim.protocol.kraft.types import LeadershipChanged
from sim.protocol.messages.admin import AlterPartitionReassignmentsRequest
from sim.protocol.messages.base import Request
from sim.protocol.messages.cluster import BrokerHeartbeatRequest, BrokerRegistrationRequest
from sim.protocol.messages.raft_groups import RaftLeadersRequest, RaftLeadersResponse
from sim.protocol.messages.raft_membership import DecommissionBrokerRequest
from sim.protocol.metadata.image import MetadataImage, PartitionRegistration
from sim.protocol.metadata.records import (
    REMOVED,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
)
from sim.protocol.raft_groups.membership import Nodes
from sim.units import Micros

BALANCE = "balance"
"""Timer of the next plan; set while there is cause for one."""

_DEFAULTS = ControllerConfig(raft=True)


class RaftController(Controller):
    """One controller process of such a cluster.

    Args:
        node: Its ``node.id``.
        unit: Draws, uniform in [0, 1).
        config: Settings.
        rules: The balancer's rules.
    """

    def __init__(
        self,
        node: NodeId,
        unit: Callable[[], float],
        config: ControllerConfig = _DEFAULTS,
        rules: BalancerRules = RULES,
    ) -> None:
        super().__init__(node, unit, config)
        self._members = Members(config.balancer, unit, rules)

    def _on_request(self, event: RequestReceived) -> None:
        request = event.request
        image = self._working
        if image is None:
            super()._on_request(event)
            return
        if isinstance(request, BrokerRegistrationRequest):
            self._register(image, event, request)
        elif isinstance(request, BrokerHeartbeatRequest):
            was_active = image.is_active(request.broker)
            super()._on_request(event)
            if not was_active and image.is_active(request.broker) and has_cause(image):
                self._set_timer(BALANCE, 0)
        else:
            super()._on_request(event)

    def _register(
        self, image: MetadataImage, event: RequestReceived, request: BrokerRegistrationRequest
    ) -> None:
        """Registers a broker that comes back at once: no session has to expire before.

        A decommissioned one is refused.
        """
        broker = request.broker
        if image.memberships.get(broker) == REMOVED:
            refused = request.refused(ErrorCode.BROKER_ID_NOT_REGISTERED)
            self._out.append(Reply(event.token, refused))
            return
        self._sessions.forget(broker)
        super()._write(self._members.joined(image, broker))
        super()._on_request(event)

    def _administer(self, image: MetadataImage, request: Request) -> Decision:
        if isinstance(request, AlterPartitionReassignmentsRequest):
            decision = reassignments(image, request, group_change)
            super()._write(decision.records)
            return Decision((), decision.response)
        if isinstance(request, DecommissionBrokerRequest):
            decision = self._members.decommission(image, request)
            super()._write(decision.records)
            if has_cause(image):
                self._set_timer(BALANCE, 0)
            return Decision((), decision.response)
        if not isinstance(request, RaftLeadersRequest):
            return super()._administer(image, request)
        sender = image.brokers.get(request.broker)
        if sender is None or sender.epoch != request.broker_epoch:
            return Decision((), RaftLeadersResponse(ErrorCode.STALE_BROKER_EPOCH))
        super()._write(new_leaders(image, request))
        if has_cause(image) and self._members.is_due(image):
            self._set_timer(BALANCE, 0)
        return Decision((), RaftLeadersResponse(ErrorCode.NONE))

    # -- balancing ---------------------------------------------------------------------------------

    def _activate(self, event: LeadershipChanged) -> None:
        super()._activate(event)
        image = self._working
        assert image is not None, "it is active"
        self._members.activated(image, self._now)
        self._plan_later(image)

    def _note_contact(self, broker: NodeId, epoch: LeaderEpoch) -> None:
        super()._note_contact(broker, epoch)
        self._members.note_contact(broker, self._now)

    def _on_timer(self, name: str) -> None:
        if name != BALANCE:
            super()._on_timer(name)
        elif self._working is not None:
            self._balance(self._working)

    def _balance(self, image: MetadataImage) -> None:
        plan = self._members.plan(image, self._now)
        targets: list[tuple[TopicPartition, Nodes | None]] = [(p, None) for p in plan.cancelled]
        targets += plan.moves.items()
        changes = [group_change(image, p, image.partitions[p], target) for p, target in targets]
        super()._write(tuple(change for change in changes if change is not None))
        super()._write(self._members.completed_members(image, plan))
        self._members.under_way = moves_under_way(image)
        self._plan_later(image)

    def _plan_later(self, image: MetadataImage) -> None:
        if has_cause(image) or self.config.balancer.mode == "continuous":
            self._set_timer(BALANCE, self.config.balancer.tick_us)

    def _write(self, records: tuple[MetadataRecord, ...]) -> None:
        kept = (without_election(record) for record in records)
        super()._write(tuple(record for record in kept if record is not None))

    def _sweep(
        self, image: MetadataImage, name: str, kind: ElectionKind, interval_us: Micros
    ) -> None:
        """Only fencing is swept: brokers balance leaders, and there are no unclean elections."""


def new_leaders(
    image: MetadataImage, request: RaftLeadersRequest
) -> tuple[PartitionChangeRecord, ...]:
    """Records of leaders that a broker reports; none for old terms."""
    records: list[PartitionChangeRecord] = []
    for led in request.leaders:
        registration = image.partitions.get(led.partition)
        if registration is None or request.broker not in registration.replicas:
            continue
        change = PartitionChangeRecord(
            led.partition.partition, registration.topic_id, leader=request.broker
        )
        # A leader that is no longer a voter leads until it has handed over.
        counted = (*led.voters, request.broker) if led.voters else ()
        voters = tuple(b for b in registration.replicas if b in counted)
        missed = led.term - registration.leader_epoch - 1
        if missed >= 0:
            records.extend([replace(change, leader=NO_LEADER)] * missed)
            is_news = sorted(voters) != sorted(registration.in_sync)
            records.append(replace(change, in_sync=voters) if voters and is_news else change)
        if led.has_arrived:
            records.extend(_moved(registration, replace(change, leader=None), voters))
    return tuple(records)


def _moved(
    registration: PartitionRegistration, change: PartitionChangeRecord, voters: Nodes
) -> Iterable[PartitionChangeRecord]:
    """The group has moved: replicas that are no longer voters are removed."""
    target = tuple(b for b in registration.replicas if b not in registration.removing)
    if (registration.adding or registration.removing) and voters == target:
        record = with_assignment(registration, change, Assignment(target))
        yield replace(record, in_sync=target)


def group_change(
    image: MetadataImage,
    partition: TopicPartition,
    registration: PartitionRegistration,
    target: Nodes | None,
) -> PartitionChangeRecord | None:
    """Record of a partition's move; ``target``: ``None`` cancels a move.

    No replica is removed before the group has moved, not even when the move is cancelled: those
    that were being added may be voters by then.

    Raises:
        ReassignmentRefused: If there is nothing to cancel.
    """
    held = registration.replicas
    if target is None:
        if not registration.adding:
            raise ReassignmentRefused(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
        target = tuple(b for b in held if b not in registration.adding)
    removing = tuple(sorted(b for b in held if b not in target))
    adding = tuple(sorted(b for b in target if b not in held or b in registration.adding))
    change = PartitionChangeRecord(partition.partition, registration.topic_id)
    assignment = Assignment(target + removing, removing, adding)
    record = with_assignment(
        registration, change, assignment, lambda broker: directory_for(image, broker)
    )
    return None if record == change else record


def without_election(record: MetadataRecord) -> MetadataRecord | None:
    """The record without decisions that groups make; ``None`` if nothing is left.

    These are the leader, the ISR, and the end of a move: Kafka's controller would end it as soon as
    the ISR has all target replicas, whenever it changes the partition.
    """
    if isinstance(record, PartitionRecord):
        return replace(record, leader=NO_LEADER)
    if not isinstance(record, PartitionChangeRecord):
        return record
    left = replace(
        record,
        in_sync=None,
        leader=None,
        replicas=None,
        removing=None,
        adding=None,
        # They are listed in the order of the replicas.
        directories=record.directories if record.replicas is None else None,
        recovering=None,
        eligible=None,
        last_known_eligible=None,
    )
    empty = PartitionChangeRecord(record.partition, record.topic_id)
    return None if left == empty else left
