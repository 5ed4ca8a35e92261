"""The controller: state machine on top of the metadata quorum.

Every controller replays committed records. The active one decides: an operation reads the state
with its own uncommitted records, yields records and a response, and the response is sent when the
records are committed. When the leadership is lost, pending responses become NOT_CONTROLLER, and the
state is again the committed one.

Left out: the limit of 10,000 records in a batch.

Source: ``org.apache.kafka.controller.QuorumController`` (4.1); KIP-500, KIP-631.
"""

from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple, assert_never

from sim.error_codes import ErrorCode
from sim.ids import NO_EPOCH, LeaderEpoch, NodeId, Offset
from sim.protocol.controller.admin import (
    alter_configs,
    create_partitions,
    delete_topics,
    elect_leaders,
)
from sim.protocol.controller.brokers import (
    BrokerState,
    Sessions,
    fence,
    heartbeat,
    register,
    unregister,
)
from sim.protocol.controller.elections import ElectionKind
from sim.protocol.controller.features import (
    bootstrap_records,
    is_new,
    register_controller,
    update_features,
)
from sim.protocol.controller.log_dirs import assign_replicas
from sim.protocol.controller.mutation_quotas import MUTATION_RATE, MutationQuota, MutationQuotas
from sim.protocol.controller.partitions import alter_partition, queries_logs, sweep
from sim.protocol.controller.quotas import alter_client_quotas
from sim.protocol.controller.reassignment import alter_reassignments
from sim.protocol.controller.rights import tokens
from sim.protocol.controller.rights.requests import RIGHTS_REQUESTS, decide
from sim.protocol.controller.topics import allocate_producer_ids, create_topics
from sim.protocol.controller.trace_rows import deletion_of, is_unclean, rows_of
from sim.protocol.controller.types import (
    CommittedRows,
    ControllerConfig,
    ControllerEffect,
    ControllerEvent,
    Decision,
    HeartbeatArrived,
)
from sim.protocol.controller.unclean_recovery import TIMER as RECOVERY_TIMER
from sim.protocol.controller.unclean_recovery import UncleanRecovery
from sim.protocol.effects import CancelTimer, Reply, SetTimer
from sim.protocol.events import (
    Flushed,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    TimerFired,
)
from sim.protocol.kraft.types import (
    AppendMetadata,
    Committed,
    LeadershipChanged,
    SnapshotLoaded,
    VotersProposed,
)
from sim.protocol.messages.admin import (
    AlterClientQuotasRequest,
    AlterPartitionReassignmentsRequest,
    CreatePartitionsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
    UnregisterBrokerRequest,
    UpdateFeaturesRequest,
)
from sim.protocol.messages.base import Request, Response
from sim.protocol.messages.cluster import (
    AllocateProducerIdsRequest,
    AlterPartitionRequest,
    AssignReplicasToDirsRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    ControllerRegistrationRequest,
    CreateTopicsRequest,
)
from sim.protocol.messages.leader_epochs import GetReplicaLogInfoResponse
from sim.protocol.messages.raft_groups import RaftLeadersRequest
from sim.protocol.messages.raft_membership import DecommissionBrokerRequest
from sim.protocol.metadata.image import MetadataImage
from sim.protocol.metadata.records import MetadataRecord, NoOpRecord
from sim.protocol.metadata.versions import (
    DIRECTORY_ASSIGNMENT,
    FEATURE,
    implied,
    is_at_least,
)
from sim.trace.rows.cluster import Throttles
from sim.units import MS, Micros

CONTROLLER_REQUESTS: Final[tuple[type[Request], ...]] = (
    BrokerRegistrationRequest,
    BrokerHeartbeatRequest,
    AlterPartitionRequest,
    AllocateProducerIdsRequest,
    AssignReplicasToDirsRequest,
    RaftLeadersRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    CreatePartitionsRequest,
    IncrementalAlterConfigsRequest,
    AlterClientQuotasRequest,
    *RIGHTS_REQUESTS,
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    UnregisterBrokerRequest,
    UpdateFeaturesRequest,
    ControllerRegistrationRequest,
    DecommissionBrokerRequest,
)
"""Requests that the active controller answers; those of Raft groups in a subclass."""

_LIMITED = (CreateTopicsRequest, DeleteTopicsRequest, CreatePartitionsRequest)
"""Requests under mutation quotas (KIP-599)."""

_MOVES = (CreatePartitionsRequest, AlterPartitionReassignmentsRequest, ElectLeadersRequest)
"""Requests that brokers of 2.8 do not have on their listeners in KRaft mode."""

_TIMERS = ("fence", "no-op", "preferred", "unclean", RECOVERY_TIMER, tokens.TIMER)
_DEFAULTS = ControllerConfig()


class _Pending(NamedTuple):
    """A response that is pending until the offset is committed."""

    offset: Offset
    token: int
    request: Request
    response: Response


class Controller:
    """One controller process; active while it leads the quorum."""

    def __init__(
        self, node: NodeId, unit: Callable[[], float], config: ControllerConfig = _DEFAULTS
    ) -> None:
        """Creates a standby with an empty image.

        Args:
            node: Its ``node.id``.
            unit: Draws for replica placement and topic ids, uniform in [0, 1).
            config: Settings.
        """
        self.node = node
        self.config = config
        self.committed = MetadataImage(file=config.file.of(node), features=implied(config.features))
        """State after every record committed by now."""
        self._unit = unit
        quotas = config.mutation_quotas
        self._mutations = None if quotas is None else MutationQuotas(quotas)
        self._quota: MutationQuota | None = None
        """Quota of the current request's client."""
        self._working: MetadataImage | None = None
        self._epoch: LeaderEpoch = NO_EPOCH
        self._pending: deque[_Pending] = deque()
        self._sessions = Sessions(config.session_timeout_us)
        self._recovery = UncleanRecovery(config.unclean_recovery_timeout_us)
        self._reviews = False
        """True if something has changed for the recoveries."""
        self._now: Micros = 0
        self._out: list[ControllerEffect] = []

    @property
    def is_active(self) -> bool:
        """True if it is the active controller."""
        return self._working is not None

    @property
    def image(self) -> MetadataImage:
        """State of decisions: while active, with uncommitted records."""
        return self.committed if self._working is None else self._working

    def handle(self, event: ControllerEvent, now: Micros) -> list[ControllerEffect]:
        """Handles an event; returns effects in order."""
        self._now = now
        out = self._out = []
        match event:
            case RequestReceived():
                self._on_request(event)
            case Committed():
                self._on_committed(event)
            case SnapshotLoaded():
                self._on_snapshot(event)
            case TimerFired():
                self._on_timer(event.name)
            case LeadershipChanged():
                self._on_leadership(event)
            case VotersProposed():
                if event.epoch == self._epoch:
                    self._write((event.record,))
            case HeartbeatArrived():
                self._note_contact(event.broker, event.broker_epoch)
            case ResponseReceived():
                assert isinstance(event.response, GetReplicaLogInfoResponse)
                self._recovery.answered(event.correlation, event.response, now)
                self._reviews = True
            case RequestFailed():
                self._recovery.failed(event.correlation, now)
                self._reviews = True
            case Flushed():
                message = f"the controller flushes nothing: {event}"
                raise AssertionError(message)
            case _:
                assert_never(event)
        self._recover()
        return out

    def _recover(self) -> None:
        """Asks replicas for their logs, and elects the longest (KIP-966, part 2)."""
        while self._reviews and self._working is not None and queries_logs(self._working):
            self._reviews = False
            records, effects = self._recovery.review(self._working, self._now)
            self._out.extend(effects)
            self._write(tuple(records))

    # -- the quorum -------------------------------------------------------------------------------

    def _on_committed(self, event: Committed) -> None:
        image = self.committed
        for offset, epoch, record in event.records:
            deleted = deletion_of(self.node, record, image)
            unclean = is_unclean(record, image)
            image.replay(offset, epoch, record)
            rows = deleted or rows_of(self.node, record, image, unclean=unclean)
            if rows:
                self._out.append(CommittedRows(offset, rows))
        image.changed.clear()
        pending = self._pending
        while pending and pending[0].offset < event.end_offset:
            answer = pending.popleft()
            self._out.append(Reply(answer.token, answer.response))

    def _on_snapshot(self, event: SnapshotLoaded) -> None:
        """The snapshot's records were committed, and received, before it was written."""
        assert self._working is None, "an active controller has applied everything"
        self.committed.load(event.snapshot.offset, event.snapshot.epoch, event.records)
        self.committed.changed.clear()

    def _on_leadership(self, event: LeadershipChanged) -> None:
        if self._working is not None:
            self._renounce()
        if event.is_leader:
            self._activate(event)

    def _activate(self, event: LeadershipChanged) -> None:
        """Becomes active. Every unfenced broker gets a new session: no contact of it is known.

        A fenced one gets none, so that a new process of it registers at once (KAFKA-19130).

        Source: ``ClusterControlManager.activate``.
        """
        assert self.committed.offset == event.log_end_offset, "a new leader has applied everything"
        config = self.config
        image = self._working = self.committed.copy()
        self._epoch = event.epoch
        self._sessions = Sessions(self.config.session_timeout_us)
        self._recovery = UncleanRecovery(self.config.unclean_recovery_timeout_us)
        self._reviews = True
        for broker, registration in image.brokers.items():
            self._sessions.registered(broker)
            if not registration.fenced:
                self._sessions.touch(broker, registration.epoch, self._now)
        if is_new(image):
            self._write(bootstrap_records(config))
        self._set_timer("fence", config.fence_interval_us)
        if config.no_op_interval_us:
            self._set_timer("no-op", config.no_op_interval_us)
        self._set_timer("unclean", config.unclean_interval_us)
        if config.auto_leader_rebalance:
            self._set_timer("preferred", config.preferred_interval_us)
        if config.tokens is not None:
            self._set_timer(tokens.TIMER, config.tokens.check_interval_ms * MS)

    def _renounce(self) -> None:
        """Reverts to the committed state; pending requests fail with NOT_CONTROLLER."""
        self._working = None
        pending, self._pending = self._pending, deque()
        for answer in pending:
            response = answer.request.refused(ErrorCode.NOT_CONTROLLER)
            self._out.append(Reply(answer.token, response))
        self._out.extend(CancelTimer(name) for name in _TIMERS)

    def _knows_directories(self, image: MetadataImage) -> bool:
        """By the release, too: scenarios may mix behaviours of several."""
        release = {FEATURE: self.config.metadata_version}
        return any(is_at_least(each, DIRECTORY_ASSIGNMENT) for each in (release, image.features))

    # -- operations -------------------------------------------------------------------------------

    def _on_request(self, event: RequestReceived) -> None:
        request = event.request
        image = self._working
        if image is None:
            response = request.refused(ErrorCode.NOT_CONTROLLER)
            self._out.append(Reply(event.token, response))
            return
        shuts_down = False
        self._quota = self._quota_of(event)
        match request:
            case BrokerHeartbeatRequest():
                self._note_contact(request.broker, request.broker_epoch)
                decision, state = heartbeat(
                    image,
                    self._sessions,
                    request,
                    says_shutdown=self.config.checks_eligibility,
                    needed=None
                    if self.config.unfences_at_registration
                    else self.committed.offset - 1,
                )
                shuts_down = state is BrokerState.CONTROLLED_SHUTDOWN
            case AlterPartitionRequest():
                decision = alter_partition(
                    image,
                    request,
                    checks_eligibility=self.config.checks_eligibility,
                    bumps=self.config.bumps_for_leaders,
                )
            case BrokerRegistrationRequest():
                decision = register(
                    image,
                    self._sessions,
                    request,
                    next_offset=image.offset,
                    now=self._now,
                    knows_directories=self._knows_directories(image),
                    founded=self.config.features,
                )
            case UnregisterBrokerRequest():
                decision = unregister(image, request)
            case ControllerRegistrationRequest():
                decision = register_controller(image, request)
            case AllocateProducerIdsRequest():
                decision = allocate_producer_ids(image, request)
            case AssignReplicasToDirsRequest():
                decision = assign_replicas(image, request)
            case _:
                decision = self._administer(image, request)
        self._write(decision.records)
        if shuts_down and isinstance(request, BrokerHeartbeatRequest):
            self._sessions.begin_shutdown(request.broker, image.offset - 1)
        assert decision.response is not None
        self._note_throttle(event)
        self._release(event.token, request, decision.response)

    def _administer(self, image: MetadataImage, request: Request) -> Decision:
        spreads, quota = self.config.rack_aware, self._quota
        if isinstance(request, _MOVES) and not self.config.knows_moves:
            return Decision((), request.refused(ErrorCode.UNSUPPORTED_VERSION))
        match request:
            case CreateTopicsRequest():
                return create_topics(image, request, self._unit, rack_aware=spreads, quota=quota)
            case DeleteTopicsRequest():
                return delete_topics(image, request, enabled=self.config.delete_topics, quota=quota)
            case CreatePartitionsRequest():
                return create_partitions(
                    image, request, self._unit, rack_aware=spreads, quota=quota
                )
            case IncrementalAlterConfigsRequest():
                return alter_configs(image, request)
            case AlterClientQuotasRequest():
                return alter_client_quotas(image, request)
            case _ if isinstance(request, RIGHTS_REQUESTS):
                return decide(self.config, image, self.committed, request, self._now)
            case AlterPartitionReassignmentsRequest():
                return alter_reassignments(image, request)
            case ElectLeadersRequest():
                self._reviews = True
                return elect_leaders(image, request, self._recovery.force)
            case UpdateFeaturesRequest():
                return update_features(image, self.node, self.config, request)
            case _:
                message = f"not a request to the controller: {request}"
                raise AssertionError(message)

    def _quota_of(self, event: RequestReceived) -> MutationQuota | None:
        """Mutation quota of a client; ``None``: none."""
        if self._mutations is None or not isinstance(event.request, _LIMITED):
            return None
        self._mutations.update(self.committed.client_quotas)
        return self._mutations.of(event.client, self._now)

    def _note_throttle(self, event: RequestReceived) -> None:
        """Writes a client's throttling to the trace."""
        quota, self._quota = self._quota, None
        if quota is None or self._mutations is None or quota.throttle_us == 0:
            return
        self._out.append(
            Throttles.row(
                self.node,
                client=event.client,
                client_id=self._mutations.client_id(event.client),
                request=type(event.request).__name__[:-7],
                quota=MUTATION_RATE,
                throttle_us=quota.throttle_us,
            )
        )

    def _note_contact(self, broker: NodeId, epoch: LeaderEpoch) -> None:
        registration = None if self._working is None else self._working.brokers.get(broker)
        if registration is not None and registration.epoch == epoch:
            self._sessions.touch(broker, epoch, self._now)

    def _write(self, records: tuple[MetadataRecord, ...]) -> None:
        """Applies records to the working state, and asks the quorum to append them."""
        image = self._working
        if image is None or not records:
            return
        base = image.offset
        for record in records:
            image.replay(image.offset, self._epoch, record)
        image.changed.clear()
        self._reviews = True
        self._out.append(AppendMetadata(self._epoch, base, records, self._now))

    def _release(self, token: int, request: Request, response: Response) -> None:
        """Answers when everything is committed that the decision may have read."""
        assert self._working is not None
        last = self._working.offset - 1
        if last < self.committed.offset:
            self._out.append(Reply(token, response))
        else:
            self._pending.append(_Pending(last, token, request, response))

    # -- periodic tasks ---------------------------------------------------------------------------

    def _set_timer(self, name: str, delay: Micros) -> None:
        self._out.append(SetTimer(name, self._now + delay))

    def _on_timer(self, name: str) -> None:
        image = self._working
        if image is None:
            return
        config = self.config
        if name == "no-op":
            self._write((NoOpRecord(),))
            self._set_timer(name, config.no_op_interval_us)
        elif name == "fence":
            self._fence_stale(image)
        elif name == RECOVERY_TIMER:
            self._reviews = True
        elif name == tokens.TIMER and config.tokens is not None:
            most = config.tokens.sweep_max
            removals = tokens.swept(self.committed.tokens, self._now, most)
            self._write(removals)
            full = most is not None and len(removals) >= most
            self._set_timer(name, 0 if full else config.tokens.check_interval_ms * MS)
        elif name == "preferred":
            self._sweep(image, name, ElectionKind.PREFERRED, config.preferred_interval_us)
        else:
            self._sweep(image, name, ElectionKind.UNCLEAN, config.unclean_interval_us)

    def _fence_stale(self, image: MetadataImage) -> None:
        """Fences one broker whose session has expired; runs again at once while there are more."""
        expired = self._sessions.take_expired(self._now)
        if expired is not None:
            broker, epoch = expired
            registration = image.brokers.get(broker)
            is_current = registration is not None and registration.epoch == epoch
            if registration is not None and is_current and not registration.fenced:
                self._write(fence(image, registration))
        more = self._sessions.has_expired(self._now)
        self._set_timer("fence", 0 if more else self.config.fence_interval_us)

    def _sweep(
        self, image: MetadataImage, name: str, kind: ElectionKind, interval_us: Micros
    ) -> None:
        records = sweep(image, kind, self.config.elections_max)
        self._write(records)
        full = len(records) >= self.config.elections_max
        self._set_timer(name, 0 if full else interval_us)
