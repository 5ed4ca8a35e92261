"""A broker's control plane in ZooKeeper mode: session, registration, controller requests.

One machine for each broker. It registers as an ephemeral node, tries to become controller, drives
the controller's events while it is the controller, and handles LeaderAndIsr, UpdateMetadata and
StopReplica of the active controller, fenced by the controller's epoch and by its own broker epoch.
Replicas are not here: :class:`LeaderAndIsrApplied` passes their new roles to the broker's process.

ISR changes go to the controller as AlterPartition (since 2.7), or are written to ZooKeeper by the
leader, conditionally on the cached version, and announced in batches (:class:`IsrUpdate`). A write
that is refused is dropped with the cached version kept: only a LeaderAndIsr brings a new one.

``resumes`` is the behaviour before 1.1: an event in progress when the session ended continues in
the next session with its old state, and the broker resigns at its end.

Approximate: a broker whose former session still has its node tries again each second, where Kafka's
process ends and is started again.

Source: ``kafka.server.{KafkaServer,ReplicaManager}``, ``kafka.zk.KafkaZkClient``,
``kafka.server.ZkAlterPartitionManager`` and ``ZkIsrManager`` (2.6 to 3.9).
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import assert_never

from sim.error_codes import ErrorCode
from sim.ids import BrokerEpoch, NodeId, TopicPartition
from sim.protocol import effects as fx
from sim.protocol import events as ev
from sim.protocol.broker.replication.events import IsrWritesRequested
from sim.protocol.messages.base import Request, Response
from sim.protocol.zk_mode.administration.configs import UNCLEAN, ConfigManager, Submission
from sim.protocol.zk_mode.broker_types import (
    ISR_CHECK_US,
    REGISTER_AGAIN_US,
    IsrUpdate,
    LogDirFailed,
    Registered,
    ShutDownGranted,
    ShutdownRequested,
    ZkBrokerConfig,
    ZkBrokerEvent,
)
from sim.protocol.zk_mode.channels import TIMER as CHANNEL_TIMER
from sim.protocol.zk_mode.channels import ControllerChannels
from sim.protocol.zk_mode.controller import ZkController
from sim.protocol.zk_mode.controller_types import FIRST_REBALANCE_US, ControllerMoved
from sim.protocol.zk_mode.effects import Effects
from sim.protocol.zk_mode.isr import IsrWriter
from sim.protocol.zk_mode.requests import TO_CONTROLLER, event_of
from sim.protocol.zk_mode.roles import BrokerRoles
from sim.protocol.zk_mode.shutdown import TIMER as SHUTDOWN_TIMER
from sim.protocol.zk_mode.shutdown import ControlledShutdown
from sim.protocol.zk_mode.states import Steps
from sim.protocol.zk_mode.znodes import (
    ADMIN_ROOTS,
    BROKER_IDS,
    CONFIG_CHANGES,
    CONTROLLER,
    ISR_CHANGES,
    LOG_DIR_EVENTS,
    ROOTS,
    TOPIC_DELETIONS,
    TOPICS,
    BrokerInfo,
    ControlResponse,
    LeaderAndIsrRequest,
    StopReplicaRequest,
    UpdateMetadataRequest,
    broker_path,
    partition_of,
)
from sim.protocol.zookeeper.session import (
    SESSION_TIMERS,
    Moved,
    OperationAnswered,
    SessionEvent,
    SessionState,
    WatchFired,
    ZkOperation,
    ZkSession,
)
from sim.protocol.zookeeper.tree import (
    Create,
    SessionId,
    ZkCode,
    ZkOutcome,
)
from sim.units import Micros

_DEFAULTS = ZkBrokerConfig()


def _no_chance() -> float:
    return 0.0


class _Event:
    """An event of the controller's thread, which handles one after the other."""

    __slots__ = ("refuse", "steps")

    def __init__(self, steps: Steps, refuse: Callable[[], None] | None) -> None:
        self.steps = steps
        self.refuse = refuse


class ZkBroker:
    """One broker process."""

    def __init__(
        self,
        node: NodeId,
        servers: tuple[NodeId, ...],
        config: ZkBrokerConfig = _DEFAULTS,
        unit: Callable[[], float] = _no_chance,
    ) -> None:
        """Creates a broker without a session.

        Args:
            node: ``broker.id``.
            servers: The ensemble; the broker's id selects the first to try.
            config: Settings.
            unit: Draws of placement, uniform in [0, 1).
        """
        self.node = node
        self.config = config
        self._unit = unit
        self.session = ZkSession(servers, node, self._correlate, config.session)
        channels = ControllerChannels(
            node, self._correlate, broker_epochs=config.controller.broker_epochs
        )
        self.controller = ZkController(node, config.controller, channels)
        self.broker_epoch: BrokerEpoch = -1
        self._roles = BrokerRoles(node)
        self.replicas = self._roles.replicas
        """Partitions that it leads and follows, with cached versions."""
        self.metadata = self._roles.metadata
        """Metadata for clients."""
        self._registered: SessionId = 0
        self._correlation = 0
        self._now: Micros = 0
        self._out: list[fx.Effect] = []
        self._effects: Effects = []
        self._events: deque[_Event] = deque()
        self._current: _Event | None = None
        self._tag = 0
        self._asks: list[ZkOperation] = []
        self._outcomes: list[ZkOutcome] = []
        self._is_cut_off = False
        """True if the session of the event in progress has ended, and the event waits for the next
        one."""
        self._isr = IsrWriter(node, self.replicas, lambda: -1 - self._correlate())
        self._configs = ConfigManager(node, lambda: -1 - self._correlate())
        self._took_over = -1
        self._shutdown = ControlledShutdown(node, config, self._correlate)

    @property
    def controller_epoch(self) -> int:
        """Largest controller epoch of a request."""
        return self._roles.controller_epoch

    @property
    def is_controller(self) -> bool:
        """True if it is the active controller."""
        return self.controller.active

    @property
    def skipped_isr_updates(self) -> int:
        """Count of "Cached zkVersion not equal to that in zookeeper, skip updating ISR"."""
        return self._isr.skipped

    @property
    def idle(self) -> bool:
        """True if no event of the controller is pending, and every broker has responded."""
        return self._current is None and not self._events and self.controller.channels.idle

    def begin(self, now: Micros, found: Iterable[TopicPartition] | None = None) -> Effects:
        """Starts the process; ``found``: its logs, where a log directory has failed before."""
        self._enter(now)
        self._roles.found = None if found is None else dict.fromkeys(found)
        self.session.start(self._out)
        return self._leave()

    def handle(self, event: ZkBrokerEvent, now: Micros) -> Effects:
        """Handles an event; returns effects in order."""
        self._enter(now)
        match event:
            case ev.ResponseReceived():
                self._on_response(event)
            case ev.RequestFailed():
                self._on_failure(event.correlation)
            case ev.NotificationReceived() | ev.ConnectionLost():
                self._on_session_events(self.session.unrequested(event, now, self._out))
            case ev.RequestReceived():
                self._on_request(event.token, event.request)
            case ev.TimerFired():
                self._on_timer(event.name)
            case IsrUpdate() | IsrWritesRequested():
                self._write_isr(event)
            case LogDirFailed():
                self._roles.offline.update(dict.fromkeys(event.offline))
                announcement = Create(
                    f"{LOG_DIR_EVENTS}/log_dir_event_", self.node, sequential=True
                )
                self.session.submit(0, [ZkOperation(announcement)], now, self._out)
            case ShutdownRequested():
                to, epoch = self.controller.controller, self.broker_epoch
                self._shutdown.begin(to, epoch, now, self._effects)
            case ev.Flushed():
                pass  # it writes no log
            case _:
                assert_never(event)
        return self._leave()

    def _enter(self, now: Micros) -> None:
        self._now = now
        self._out = []
        self._effects = self.controller.out = []

    def _leave(self) -> Effects:
        """Ends an event's handling: writes to ZooKeeper come first, then requests to brokers.

        A broker that may shut down ends its session, so that its timeout need not pass.
        """
        if any(isinstance(effect, ShutDownGranted) for effect in self._effects):
            self.session.close(self._out)
        return [*self._out, *self._effects]

    def _correlate(self) -> int:
        self._correlation += 1
        return self._correlation

    # -- routing ----------------------------------------------------------------------------------

    def _on_response(self, event: ev.ResponseReceived) -> None:
        correlation, response = event.correlation, event.response
        if self.session.owns(correlation):
            self._on_session_events(
                self.session.answered(correlation, response, self._now, self._out)
            )
        elif self.controller.channels.owns(correlation):
            self._on_control_answer(correlation, response)
        elif self._shutdown.owns(correlation):
            self._shutdown.answered(response, self._now, self._effects)

    def _on_control_answer(self, correlation: int, response: Response) -> None:
        controller = self.controller
        broker, request = controller.channels.answered(correlation, self._effects)
        assert isinstance(response, ControlResponse)
        if controller.active and isinstance(request, StopReplicaRequest) and request.deleted:
            self._add(controller.deletion.answered(broker, request, response))
        elif controller.active and isinstance(request, LeaderAndIsrRequest) and response.errors:
            self._add(controller.log_dirs.reported(broker, [p for p, _ in response.errors]))

    def _on_failure(self, correlation: int) -> None:
        if self.session.owns(correlation):
            self._on_session_events(self.session.failed(correlation, self._now, self._out))
        elif self.controller.channels.owns(correlation):
            self.controller.channels.failed(correlation, self._now, self._effects)
        elif self._shutdown.owns(correlation):
            self._shutdown.failed(self._now, self._effects)

    def _on_timer(self, name: str) -> None:
        if name in SESSION_TIMERS:
            self._on_session_events(self.session.timer(name, self._now, self._out))
        elif name == "register":
            self._add(self._register())
        elif name == "isr":
            self._announce_isr_changes()
        elif name == SHUTDOWN_TIMER:
            to, epoch = self.controller.controller, self.broker_epoch
            self._shutdown.send(to, epoch, self._now, self._effects)
        elif name == "preferred":
            if self.controller.active:
                self._add(self.controller.rebalance())
                self._set_timer(name, self.config.controller.preferred_interval_us)
        elif name.startswith(CHANNEL_TIMER):
            self.controller.channels.retry(name, self._effects)

    def _on_request(self, token: int, request: Request) -> None:
        match request:
            case LeaderAndIsrRequest() | UpdateMetadataRequest() | StopReplicaRequest():
                lost = self.session.state is not SessionState.CONNECTED
                breaks_off = lost and self.config.breaks_off
                response = self._roles.handle(
                    request, self.broker_epoch, self._effects, breaks_off=breaks_off
                )
                self._effects.append(fx.Reply(token, response))
            case _:
                assert isinstance(request, TO_CONTROLLER), f"not for the control plane: {request}"
                self._on_controllers(token, request)

    def _set_timer(self, name: str, delay: Micros) -> None:
        self._effects.append(fx.SetTimer(name, self._now + delay))

    # -- the session ------------------------------------------------------------------------------

    def _on_session_events(self, news: list[SessionEvent]) -> None:
        for item in news:
            if isinstance(item, OperationAnswered):
                self._on_outcome(item)
            elif isinstance(item, Moved):
                self._on_session(item.state)
            else:
                self._on_watch(item)

    def _on_session(self, state: SessionState) -> None:
        """A new session registers and tries to become controller; a lost one resigns."""
        if state is SessionState.CLOSED:
            if not self._is_cut_off:
                self.controller.resign()
                self._drop_events()
            self.session.start(self._out)
        elif state is SessionState.CONNECTED and self.session.session != self._registered:
            self._registered = self.session.session
            if self._is_cut_off:
                self.session.submit(
                    self._tag, self._asks[len(self._outcomes) :], self._now, self._out
                )
                self._events.append(_Event(self._step_down(), None))
            else:
                self._add(self._register())

    def _step_down(self) -> Steps:
        """Resigns: the event that outlived the session has ended, as have those after it."""
        self._is_cut_off = False
        self.controller.resign()
        yield from self._register()

    def _on_watch(self, watched: WatchFired) -> None:
        controller, path = self.controller, watched.path
        if path == CONFIG_CHANGES:
            self._submit(self._configs.announced())
        elif path == CONTROLLER:
            self._add(controller.controller_changed(self.session.session))
        elif not controller.active:
            return
        elif path == BROKER_IDS:
            self._add(controller.brokers_changed())
        elif path == TOPICS:
            self._add(controller.topics_changed())
        elif path == ISR_CHANGES:
            self._add(controller.isr_changed())
        elif path == LOG_DIR_EVENTS:
            self._add(controller.log_dirs.announced())
        elif path == TOPIC_DELETIONS:
            self._add(controller.deletion.marked())
        elif (partition := partition_of(path)) is not None:
            self._add(controller.reassignment.isr_changed(partition))
        elif path.startswith(f"{TOPICS}/"):
            self._add(controller.topic_modified(path[len(TOPICS) + 1 :]))

    def _register(self) -> Steps:
        """Registers the broker, then tries to become controller."""
        roots = ROOTS + (ADMIN_ROOTS if self.config.controller.is_administered else ())
        if self.config.controller.several_directories:
            roots = (*roots, LOG_DIR_EVENTS)
        yield [ZkOperation(Create(path, None)) for path in roots]
        info = BrokerInfo(self.node, self.config.rack)
        (made,) = yield [ZkOperation(Create(broker_path(self.node), info, ephemeral=True))]
        if made.node is None:
            self._set_timer("register", REGISTER_AGAIN_US)
            return
        self.broker_epoch = made.node.created
        self._effects.append(Registered(self.broker_epoch))
        self._set_timer("isr", ISR_CHECK_US)
        if self.config.controller.is_administered:
            self._submit(self._configs.started())
        yield from self.controller.become_controller(self.session.session)

    # -- the event thread -------------------------------------------------------------------------

    def _add(self, steps: Steps, refuse: Callable[[], None] | None = None) -> None:
        """Queues an event; ``refuse`` is called if it is dropped unanswered."""
        self._events.append(_Event(steps, refuse))
        if self._current is None:
            self._next()

    def _next(self) -> None:
        while self._current is None and self._events:
            self._current = self._events.popleft()
            self._continue(None)

    def _continue(self, outcomes: list[ZkOutcome] | None) -> None:
        """Continues the event in progress to its next operations, or to its end."""
        event = self._current
        assert event is not None
        steps = event.steps
        try:
            asks = next(steps) if outcomes is None else steps.send(outcomes)
            while not asks:
                asks = steps.send([])
        except StopIteration:
            self._current = None
            self._rebalance_later()
            return
        except ControllerMoved:
            follow = self.controller.controller_changed(self.session.session)
            if self._is_cut_off:
                follow = self._step_down()
            self.controller.resign()
            self._drop_events()
            self._add(follow)
            return
        self._tag += 1
        self._asks = asks
        self._outcomes = []
        self.session.submit(self._tag, asks, self._now, self._out)

    def _rebalance_later(self) -> None:
        """Schedules the first rebalance of a new controller."""
        controller = self.controller
        if controller.active and controller.epoch != self._took_over:
            self._took_over = controller.epoch
            if self.config.controller.auto_leader_rebalance:
                self._set_timer("preferred", FIRST_REBALANCE_US)

    def _drop_events(self) -> None:
        dropped = list(self._events) if self._current is None else [self._current, *self._events]
        self._current = None
        self._events = deque()
        self._tag += 1
        for event in dropped:
            if event.refuse is not None:
                event.refuse()

    def _on_outcome(self, answered: OperationAnswered) -> None:
        if self._configs.owns(answered.tag):
            self._on_configs(answered)
            return
        if answered.tag < 0:
            self._isr.written(answered.tag, answered.outcome, self._now, self._effects)
            return
        if answered.tag != self._tag or self._current is None:
            return
        if answered.outcome.code is ZkCode.SESSION_EXPIRED:
            self._is_cut_off = self.config.resumes
            return  # the news of the session's end follows
        self._outcomes.append(answered.outcome)
        if len(self._outcomes) == len(self._asks):
            self._continue(self._outcomes)
            self._next()

    # -- settings ---------------------------------------------------------------------------------

    def _submit(self, submission: Submission | None) -> None:
        if submission is not None:
            self.session.submit(*submission, self._now, self._out)

    def _on_configs(self, answered: OperationAnswered) -> None:
        """Settings were read; the controller elects again where unclean elections are enabled."""
        submission, read = self._configs.answered(*answered)
        self._submit(submission)
        self._effects.extend(read)
        controller = self.controller
        for configs in read:
            was, enabled = controller.unclean, (dict(configs.configs).get(UNCLEAN) == "true")
            if not configs.topic:
                value = self._configs.setting(UNCLEAN)
                controller.unclean = was if value is None else value == "true"
                enabled = controller.unclean and not was
            if enabled and controller.active:
                self._add(controller.unclean_enabled(configs.topic))

    def _on_controllers(self, token: int, request: Request) -> None:
        """Requests that only the controller answers."""

        def answer(response: Response) -> None:
            self._effects.append(fx.Reply(token, response))

        def refuse() -> None:
            answer(request.refused(ErrorCode.NOT_CONTROLLER))

        if self.controller.active:
            self._add(event_of(self.controller, request, answer, self._unit), refuse)
        else:
            refuse()

    # -- ISR changes, before 2.7 ------------------------------------------------------------------

    def _write_isr(self, event: IsrUpdate | IsrWritesRequested) -> None:
        if isinstance(event, IsrUpdate):
            write = self._isr.write_of(event)
            writes = [] if write is None else [write]
        else:
            writes = self._isr.writes_of(event, self._effects)
        for tag, operation in writes:
            self.session.submit(tag, [operation], self._now, self._out)

    def _announce_isr_changes(self) -> None:
        """Source: ``ReplicaManager.maybePropagateIsrChanges`` (before 2.7)."""
        self._set_timer("isr", ISR_CHECK_US)
        operation = self._isr.announcement(self._now)
        if operation is not None:
            self.session.submit(0, [operation], self._now, self._out)
