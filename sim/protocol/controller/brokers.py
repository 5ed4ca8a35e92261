"""The controller's part for brokers: registration, sessions, fencing, controlled shutdown.

Left out: cluster ids and listeners in a registration.

Source: ``org.apache.kafka.controller.{ClusterControlManager,BrokerHeartbeatManager}``,
``ReplicationControlManager.processBrokerHeartbeat`` (4.1); KIP-500, KIP-631, KIP-966.
"""

from collections.abc import Mapping
from enum import Enum, auto

from sim.error_codes import ErrorCode
from sim.ids import NO_OFFSET, BrokerEpoch, NodeId, Offset
from sim.protocol.controller.features import lacking_feature
from sim.protocol.controller.log_dirs import directories_cordoned, directories_offline
from sim.protocol.controller.partitions import (
    has_elr,
    leader_and_isr_updates,
    leads_something,
    partitions_where,
)
from sim.protocol.controller.types import Decision
from sim.protocol.messages.admin import UnregisterBrokerRequest, UnregisterBrokerResponse
from sim.protocol.messages.cluster import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from sim.protocol.metadata.image import BrokerRegistration, MetadataImage
from sim.protocol.metadata.records import (
    FENCE,
    UNFENCE,
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from sim.units import Micros


class BrokerState(Enum):
    """``BrokerControlState``: state of a broker at the active controller."""

    FENCED = auto()
    UNFENCED = auto()
    CONTROLLED_SHUTDOWN = auto()
    SHUTDOWN_NOW = auto()


class Sessions:
    """Broker sessions of one activation: last contacts, applied metadata offsets."""

    def __init__(self, timeout_us: Micros) -> None:
        self._timeout_us = timeout_us
        self._contacts: dict[tuple[NodeId, BrokerEpoch], Micros] = {}
        self._metadata_offsets: dict[NodeId, Offset] = {}
        self._shutdown_offsets: dict[NodeId, Offset] = {}

    def touch(self, broker: NodeId, epoch: BrokerEpoch, now: Micros) -> None:
        """Notes a contact of the broker's process of this epoch."""
        self._contacts[broker, epoch] = now

    def is_valid(self, broker: NodeId, epoch: BrokerEpoch, now: Micros) -> bool:
        """True if the session has not expired; a clean shutdown does not end it."""
        contact = self._contacts.get((broker, epoch))
        return contact is not None and now <= contact + self._timeout_us

    def take_expired(self, now: Micros) -> tuple[NodeId, BrokerEpoch] | None:
        """Removes one expired session, the smallest broker id first; ``None`` if there is none."""
        for key in sorted(self._contacts):
            if now > self._contacts[key] + self._timeout_us:
                del self._contacts[key]
                return key
        return None

    def has_expired(self, now: Micros) -> bool:
        """True if a session has expired."""
        return any(now > contact + self._timeout_us for contact in self._contacts.values())

    def registered(self, broker: NodeId) -> None:
        """Resets the state of a new process: nothing applied, no shutdown."""
        self._metadata_offsets[broker] = NO_OFFSET
        self._shutdown_offsets.pop(broker, None)

    def forget(self, broker: NodeId) -> None:
        """Removes the broker's sessions."""
        for key in [key for key in self._contacts if key[0] == broker]:
            del self._contacts[key]

    def note_offset(self, broker: NodeId, offset: Offset) -> None:
        """Notes the broker's metadata offset."""
        self._metadata_offsets[broker] = offset

    def begin_shutdown(self, broker: NodeId, offset: Offset) -> None:
        """Notes the offset that others must apply before the broker stops; the first counts."""
        self._shutdown_offsets.setdefault(broker, offset)

    def shutdown_offset(self, broker: NodeId) -> Offset | None:
        """Offset of :meth:`begin_shutdown`."""
        return self._shutdown_offsets.get(broker)

    def lowest_active_offset(self, image: MetadataImage) -> Offset | None:
        """Smallest metadata offset among active brokers; ``None`` without any."""
        return min(
            (
                self._metadata_offsets.get(broker, NO_OFFSET)
                for broker, registration in image.brokers.items()
                if not registration.fenced and broker not in self._shutdown_offsets
            ),
            default=None,
        )


def register(
    image: MetadataImage,
    sessions: Sessions,
    request: BrokerRegistrationRequest,
    *,
    next_offset: Offset,
    now: Micros,
    knows_directories: bool = True,
    founded: Mapping[str, int] | None = None,
) -> Decision:
    """Registers a broker process.

    While the session of another incarnation is valid the error is DUPLICATE_BROKER_REGISTRATION, so
    a fast restart waits for the old session to expire, even after a clean shutdown.

    A broker that does not support a finalized level is refused with UNSUPPORTED_VERSION;
    ``founded`` has the levels with which the cluster was formatted.

    Source: ``ClusterControlManager.registerBroker``; KIP-966 for unclean shutdowns.
    """
    if founded is not None and lacking_feature(image, founded, request.features):
        return Decision((), request.refused(ErrorCode.UNSUPPORTED_VERSION))
    broker = request.broker
    old = image.brokers.get(broker)
    same_process = old is not None and old.incarnation == request.incarnation
    if old is not None and not same_process and sessions.is_valid(broker, old.epoch, now):
        return Decision((), request.refused(ErrorCode.DUPLICATE_BROKER_REGISTRATION))
    records: list[MetadataRecord] = []
    if not same_process:
        # One that was unregistered is not known to have stopped in good order.
        clean = old is not None and old.epoch == request.previous_broker_epoch
        records.extend(_registered_again(image, broker, clean=clean))
    epoch = old.epoch if old is not None and same_process else next_offset
    records.append(
        RegisterBrokerRecord(
            broker,
            request.incarnation,
            epoch,
            request.rack,
            fenced=True,
            directories=request.directories if knows_directories else (),
            features=request.features,
        )
    )
    sessions.touch(broker, epoch, now)
    if not same_process:
        sessions.registered(broker)
    return Decision(tuple(records), BrokerRegistrationResponse(ErrorCode.NONE, epoch))


def heartbeat(
    image: MetadataImage,
    sessions: Sessions,
    request: BrokerHeartbeatRequest,
    *,
    says_shutdown: bool = True,
    needed: Offset | None = None,
) -> tuple[Decision, BrokerState | None]:
    """Handles a heartbeat, whose contact the caller has noted.

    A broker is caught up that has the offset ``needed``: that of its registration, or before 3.3
    the last one that is committed, which it may never reach while records come (KAFKA-13959).

    Without ``says_shutdown`` a controlled shutdown is not written into the metadata, as before
    KIP-841, so the broker counts as any other until it is fenced.

    Returns:
        Records and response, and the broker's next state; ``None`` for a refused heartbeat.
    """
    broker = request.broker
    registration = image.brokers.get(broker)
    if registration is None or registration.epoch != request.broker_epoch:
        return Decision((), request.refused(ErrorCode.STALE_BROKER_EPOCH)), None
    present = current_state(registration, sessions)
    caught_up = request.metadata_offset >= (
        registration.registered_at if needed is None else needed
    )
    following = next_state(image, sessions, request, present, caught_up=caught_up)
    records: list[MetadataRecord] = []
    if following is not present:
        records.extend(_transition(image, registration, following, says_shutdown))
    else:
        # Directories wait for the next heartbeat, or a partition might change twice in one batch.
        records.extend(directories_offline(image, registration, request))
    records.extend(directories_cordoned(image, registration, request))
    sessions.note_offset(broker, request.metadata_offset)
    response = BrokerHeartbeatResponse(
        ErrorCode.NONE,
        is_caught_up=caught_up,
        is_fenced=following in {BrokerState.FENCED, BrokerState.SHUTDOWN_NOW},
        should_shut_down=following is BrokerState.SHUTDOWN_NOW,
    )
    return Decision(tuple(records), response), following


def current_state(registration: BrokerRegistration, sessions: Sessions) -> BrokerState:
    """State of the broker before the heartbeat."""
    if registration.fenced:
        return BrokerState.FENCED
    if sessions.shutdown_offset(registration.broker) is not None:
        return BrokerState.CONTROLLED_SHUTDOWN
    return BrokerState.UNFENCED


def next_state(
    image: MetadataImage,
    sessions: Sessions,
    request: BrokerHeartbeatRequest,
    present: BrokerState,
    *,
    caught_up: bool,
) -> BrokerState:
    """State of the broker after the heartbeat.

    Source: ``BrokerHeartbeatManager.calculateNextBrokerState``.
    """
    broker = request.broker
    if present is BrokerState.FENCED:
        if request.want_shut_down:
            return BrokerState.SHUTDOWN_NOW
        return BrokerState.UNFENCED if caught_up and not request.want_fence else present
    if present is BrokerState.UNFENCED:
        if request.want_fence:
            return BrokerState.SHUTDOWN_NOW if request.want_shut_down else BrokerState.FENCED
        if not request.want_shut_down:
            return present
        leads = leads_something(image, broker)
        return BrokerState.CONTROLLED_SHUTDOWN if leads else BrokerState.SHUTDOWN_NOW
    if leads_something(image, broker):
        return present
    lowest = sessions.lowest_active_offset(image)
    needed = sessions.shutdown_offset(broker)
    if lowest is not None and needed is not None and lowest < needed:
        return present
    return BrokerState.SHUTDOWN_NOW


def fence(image: MetadataImage, registration: BrokerRegistration) -> tuple[MetadataRecord, ...]:
    """Fences a broker: removes it from every ISR, and elects other leaders.

    Source: ``ReplicationControlManager.handleBrokerFenced``.
    """
    broker = registration.broker
    partitions = partitions_where(image, lambda r: broker in r.in_sync)
    return (
        *leader_and_isr_updates(image, partitions, remove=broker),
        BrokerRegistrationChangeRecord(broker, registration.epoch, fenced=FENCE),
    )


def unregister(image: MetadataImage, request: UnregisterBrokerRequest) -> Decision:
    """Removes a broker's registration, and the broker from every ISR; its replicas stay its own.

    A process that runs gets no message: its heartbeats are refused from then on, and it registers
    again only when it is restarted.

    Source: ``ReplicationControlManager.{unregisterBroker,handleBrokerUnregistered}`` (4.1).
    """
    broker = request.broker
    registration = image.brokers.get(broker)
    if registration is None:
        return Decision((), request.refused(ErrorCode.BROKER_ID_NOT_REGISTERED))
    in_isr = partitions_where(image, lambda r: broker in r.in_sync)
    return Decision(
        (
            *leader_and_isr_updates(image, in_isr, remove=broker),
            UnregisterBrokerRecord(broker, registration.epoch),
        ),
        UnregisterBrokerResponse(ErrorCode.NONE),
    )


def _transition(
    image: MetadataImage,
    registration: BrokerRegistration,
    following: BrokerState,
    says_shutdown: bool,  # noqa: FBT001 - private, and said by name where it is chosen
) -> tuple[MetadataRecord, ...]:
    broker, epoch = registration.broker, registration.epoch
    match following:
        case BrokerState.FENCED:
            return fence(image, registration)
        case BrokerState.SHUTDOWN_NOW:
            return () if registration.fenced else fence(image, registration)
        case BrokerState.UNFENCED:
            leaderless = partitions_where(image, lambda r: r.leader < 0)
            return (
                BrokerRegistrationChangeRecord(broker, epoch, fenced=UNFENCE),
                *leader_and_isr_updates(image, leaderless, add=broker),
            )
        case BrokerState.CONTROLLED_SHUTDOWN:
            partitions = partitions_where(image, lambda r: broker in r.in_sync)
            moves = leader_and_isr_updates(image, partitions, remove=broker)
            if registration.in_controlled_shutdown or not says_shutdown:
                return tuple(moves)
            change = BrokerRegistrationChangeRecord(broker, epoch, in_controlled_shutdown=1)
            return (change, *moves)


def _registered_again(image: MetadataImage, broker: NodeId, *, clean: bool) -> list[MetadataRecord]:
    """A known broker has a new process: leaves ISRs, and ELRs too if it may have lost data."""
    in_isr = partitions_where(image, lambda r: broker in r.in_sync)
    if clean or not has_elr(image):
        return [*leader_and_isr_updates(image, in_isr, remove=broker)]
    in_elr = partitions_where(image, lambda r: broker in r.eligible)
    return [
        *leader_and_isr_updates(image, in_isr, unclean=broker),
        *leader_and_isr_updates(image, in_elr, unclean=broker),
    ]
