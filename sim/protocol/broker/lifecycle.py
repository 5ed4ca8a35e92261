"""A broker's registration and heartbeats (``BrokerLifecycleManager``).

    STARTING  -> RECOVERY   caught up, by the controller's heartbeat response
    RECOVERY  -> RUNNING    the logs are loaded, and the controller has unfenced the broker
    any       -> PENDING_CONTROLLED_SHUTDOWN -> SHUTTING_DOWN   on SIGTERM, and when it is granted

A broker that is fenced, or cannot reach the controller, only sends heartbeats: it does not stop
serving. How a request finds the active controller is :mod:`sim.protocol.broker.controller_channel`.

Left out: unclean stops, as when all log directories fail, are the process's.

Source: ``kafka.server.BrokerLifecycleManager``, ``NodeToControllerChannelManager`` (4.1); KIP-500.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from sim.error_codes import ErrorCode
from sim.ids import NO_LEADER, BrokerEpoch, NodeId, Offset
from sim.protocol import effects as fx
from sim.protocol.broker.controller_channel import (
    POLL_TIMER,
    ChannelEffect,
    ChannelTimeouts,
    ControllerChannel,
    RequestGivenUp,
    RequestTimeout,
)
from sim.protocol.broker.resend import Resend, ResendPolicy, ResendTimes
from sim.protocol.events import (
    Flushed,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    TimerFired,
)
from sim.protocol.messages.cluster import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from sim.protocol.metadata.versions import SUPPORTED, SupportedFeatures
from sim.units import MS, SECOND, Micros

CHANNEL = "heartbeat"
"""The connection that registration and heartbeats use."""

DIRECTORY_TIMER = "directory/"
"""Prefix of the timer of a failed log directory; its id follows."""


class LifecycleState(StrEnum):
    """States of a broker process, as in Kafka's ``BrokerState``."""

    NOT_RUNNING = "NOT_RUNNING"
    STARTING = "STARTING"
    RECOVERY = "RECOVERY"
    RUNNING = "RUNNING"
    PENDING_CONTROLLED_SHUTDOWN = "PENDING_CONTROLLED_SHUTDOWN"
    SHUTTING_DOWN = "SHUTTING_DOWN"


@dataclass(frozen=True, slots=True)
class LifecycleConfig:
    """Settings, with Kafka's defaults."""

    heartbeat_interval_us: Micros = 2 * SECOND
    """``broker.heartbeat.interval.ms``."""
    session_timeout_us: Micros = 9 * SECOND
    """``broker.session.timeout.ms``."""
    registration_timeout_us: Micros = 60 * SECOND
    """``initial.broker.registration.timeout.ms``."""
    starting_interval_us: Micros = 10 * MS
    """Between heartbeats while STARTING; a constant in Kafka."""
    first_shutdown_interval_us: Micros = 50 * MS
    """Before the second heartbeat of a controlled shutdown; a constant in Kafka."""
    directory_failure_timeout_us: Micros = 30 * SECOND
    """``log.dir.failure.timeout.ms``: time until a failed directory must be acknowledged."""
    shutdown_timeout_us: Micros = 300 * SECOND
    """Time of a controlled shutdown until the broker stops anyway."""
    resend: ResendPolicy = ResendPolicy.INTERVAL
    """Wait after an error of the controller: the behaviour ``broker.resend``."""
    request_timeout: RequestTimeout = RequestTimeout.INTERVAL
    """Timeout of a silent controller: the behaviour ``broker.request_timeout``."""


@dataclass(frozen=True, slots=True)
class Introduction:
    """Data of a broker's registration."""

    broker: NodeId
    incarnation: str
    rack: str
    directories: tuple[str, ...]
    previous_broker_epoch: BrokerEpoch
    """From the clean-shutdown marker; -1 without one."""
    features: SupportedFeatures = SUPPORTED
    """Features that its release supports."""


# -- events ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LifecycleStarted:
    """The process has opened its logs and begins to register."""


@dataclass(frozen=True, slots=True)
class ControllerKnown:
    """This broker's own observer knows a quorum leader (or, with NO_LEADER, none)."""

    controller: NodeId


@dataclass(frozen=True, slots=True)
class ReadyToUnfence:
    """Logs are recovered and the first metadata is applied."""


@dataclass(frozen=True, slots=True)
class ControlledShutdownRequested:
    """The process has got SIGTERM."""


@dataclass(frozen=True, slots=True)
class DirectoriesFailed:
    """All log directories that failed since the start; reported to the controller at once."""

    directories: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DirectoriesCordoned:
    """Log directories that get no new replicas from now on; reported to the controller at once.

    Source: ``BrokerLifecycleManager.propagateDirectoryCordoned`` (4.3); KIP-1066.
    """

    directories: tuple[str, ...]


LifecycleEvent = (
    LifecycleStarted
    | DirectoriesCordoned
    | ControllerKnown
    | ReadyToUnfence
    | ControlledShutdownRequested
    | DirectoriesFailed
    | RequestReceived
    | ResponseReceived
    | RequestFailed
    | TimerFired
    | Flushed
)
"""Events of a lifecycle machine."""


# -- effects --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Registered:
    """The controller has committed the registration; fetches carry the epoch from now on."""

    broker_epoch: BrokerEpoch


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """The broker has applied its own registration: to be answered by :class:`ReadyToUnfence`."""


@dataclass(frozen=True, slots=True)
class Unfenced:
    """Unfenced: clients are served from now on. Emitted once."""


@dataclass(frozen=True, slots=True)
class ShutDownGranted:
    """The broker may stop: controlled shutdown is granted or timed out. Emitted once."""


@dataclass(frozen=True, slots=True)
class RegistrationFailed:
    """No registration within the timeout: the process must stop."""

    @property
    def reason(self) -> str:
        """Reason as text."""
        return "not registered within initial.broker.registration.timeout.ms"


@dataclass(frozen=True, slots=True)
class DirectoryFailureUnacknowledged:
    """The controller has not acknowledged a directory's failure in time: the process must stop."""

    directory: str

    @property
    def reason(self) -> str:
        """Reason as text."""
        return (
            f"no controller heard within log.dir.failure.timeout.ms that log directory "
            f"{self.directory} is offline"
        )


Fatal = RegistrationFailed | DirectoryFailureUnacknowledged

LifecycleEffect = (
    fx.Effect
    | Registered
    | CaughtUp
    | Unfenced
    | ShutDownGranted
    | RegistrationFailed
    | DirectoryFailureUnacknowledged
)
"""Effects of a lifecycle machine."""

_DEFAULTS = LifecycleConfig()


def middle() -> float:
    """Returns the middle of all draws, for a machine without a stream."""
    return 0.5  # a function of a module, so that a machine can be copied by pickling


class BrokerLifecycle:
    """Registration and heartbeats of one broker process."""

    def __init__(
        self,
        introduction: Introduction,
        controllers: tuple[NodeId, ...],
        applied_offset: Callable[[], Offset],
        config: LifecycleConfig = _DEFAULTS,
        first_wait_us: Micros | None = None,
        unit: Callable[[], float] = middle,
    ) -> None:
        """Creates a machine that has not begun.

        Args:
            introduction: Data of its registration.
            controllers: All controllers, tried in turn until one is known.
            applied_offset: Offset of the last metadata record that the broker has applied, -1 for
                none; called at each heartbeat.
            config: Settings.
            first_wait_us: From the heartbeat that brings it into service to the next one, in place
                of the interval: where it is in its beat after a long history, which then need not
                be simulated.
            unit: Draws the jitter of waits after errors, from [0, 1).
        """
        self.introduction = introduction
        self.config = config
        self.state = LifecycleState.NOT_RUNNING
        self.broker_epoch: BrokerEpoch = -1
        self._applied_offset = applied_offset
        self._ready = False
        self._first_wait_us = first_wait_us
        interval, session = config.heartbeat_interval_us, config.session_timeout_us
        self._after_error = Resend(ResendTimes(config.resend, interval, session), unit)
        self._failed_directories: tuple[str, ...] = ()
        self._cordoned_directories: tuple[str, ...] | None = None
        """``None`` where none ever is: the controller is not sent that there are none."""
        self._sent_directories: tuple[str, ...] = ()
        self._acknowledged_directories: tuple[str, ...] = ()
        timeouts = ChannelTimeouts.of(config.request_timeout, interval, session)
        self._channel = ControllerChannel(CHANNEL, controllers, timeouts)
        self._give_up_at: Micros = 0
        self._pending_answers = 0
        self._again = False
        self._now: Micros = 0
        self._out: list[LifecycleEffect] = []

    def handle(self, event: LifecycleEvent, now: Micros) -> list[LifecycleEffect]:
        """Handles an event; returns effects in order."""
        self._now = now
        out = self._out = []
        match event:
            case ResponseReceived():
                self._on_response(event)
            case TimerFired():
                self._on_timer(event.name)
            case RequestFailed():
                self._on_failure(event)
            case ControllerKnown():
                self._on_controller(event.controller)
            case LifecycleStarted():
                self.state = LifecycleState.STARTING
                self._give_up_at = now + self.config.registration_timeout_us
                self._communicate()
            case ReadyToUnfence():
                self._ready = True
                self._communicate()
            case DirectoriesFailed():
                self._on_directories(event.directories)
            case DirectoriesCordoned():
                self._cordoned_directories = event.directories
                if self.broker_epoch >= 0:
                    self._communicate()
            case ControlledShutdownRequested():
                self._on_shut_down()
            case RequestReceived() | Flushed():
                message = f"not an event of the lifecycle: {event}"
                raise AssertionError(message)
            case _:
                assert_never(event)
        return out

    # -- requests ----------------------------------------------------------------------------------

    def _communicate(self) -> None:
        """Registers, or sends a heartbeat; if a request is open, right after its response."""
        if self.state in {LifecycleState.NOT_RUNNING, LifecycleState.SHUTTING_DOWN}:
            return
        if self._channel.is_busy:
            self._again = True
            return
        self._again = False
        self._perform(self._channel.submit(self._request(), self._now))

    def _request(self) -> BrokerRegistrationRequest | BrokerHeartbeatRequest:
        who = self.introduction
        if self.broker_epoch < 0:
            return BrokerRegistrationRequest(
                who.broker,
                who.incarnation,
                who.rack,
                who.previous_broker_epoch,
                who.directories,
                who.features,
            )
        self._sent_directories = self._failed_directories
        return BrokerHeartbeatRequest(
            who.broker,
            self.broker_epoch,
            self._applied_offset(),
            want_fence=not self._ready,
            want_shut_down=self.state is LifecycleState.PENDING_CONTROLLED_SHUTDOWN,
            offline_directories=self._failed_directories,
            # Until it has caught up, its settings may be old.
            cordoned_directories=None
            if self.state is LifecycleState.STARTING
            else self._cordoned_directories,
        )

    def _communicate_in(self, delay: Micros) -> None:
        if self._again:
            self._communicate()
        else:
            self._out.append(fx.SetTimer("heartbeat", self._now + delay))

    def _on_directories(self, directories: tuple[str, ...]) -> None:
        """Reports to the controller at once; its acknowledgement has a timeout."""
        at = self._now + self.config.directory_failure_timeout_us
        for directory in directories:
            if directory not in self._failed_directories:
                self._out.append(fx.SetTimer(f"{DIRECTORY_TIMER}{directory}", at))
        self._failed_directories = directories
        self._communicate()

    def _on_controller(self, controller: NodeId) -> None:
        """Notes a new controller; it is used once the present one fails to respond."""
        self._channel.learn(controller)
        if controller != NO_LEADER and self._channel.is_waiting:
            self._resend()

    def _resend(self) -> None:
        """Sends the outstanding request again, unless it is too old."""
        if not self._gave_up():
            self._perform(self._channel.resend(self._now))

    def _perform(self, effects: list[ChannelEffect]) -> None:
        for effect in effects:
            if isinstance(effect, RequestGivenUp):
                self._communicate_after_error()
            else:
                self._out.append(effect)

    # -- outcomes ----------------------------------------------------------------------------------

    def _on_timer(self, name: str) -> None:
        if name == "heartbeat":
            if not self._channel.is_busy:
                self._communicate()
        elif name == POLL_TIMER:
            if self._channel.is_waiting:
                self._resend()
        elif name.startswith(DIRECTORY_TIMER):
            directory = name.removeprefix(DIRECTORY_TIMER)
            if directory not in self._acknowledged_directories:
                self._out.append(DirectoryFailureUnacknowledged(directory))
        elif self.state is LifecycleState.PENDING_CONTROLLED_SHUTDOWN:
            self._stop()

    def _on_failure(self, event: RequestFailed) -> None:
        if not self._channel.is_of(event.correlation):
            return
        if event.error.is_authentication:
            self._channel.reject()
            if not self._gave_up():
                self._communicate_after_error()
        else:
            self._resend()

    def _on_response(self, event: ResponseReceived) -> None:
        if not self._channel.is_of(event.correlation):
            return
        response = event.response
        match response:
            case BrokerRegistrationResponse():
                self._on_registered(response)
            case BrokerHeartbeatResponse():
                self._on_heartbeat(response)
            case _:
                message = f"not an answer to the lifecycle: {response}"
                raise AssertionError(message)

    def _on_not_controller(self) -> None:
        if not self._gave_up():
            self._perform(self._channel.refuse(self._now))

    def _on_registered(self, response: BrokerRegistrationResponse) -> None:
        if response.error is ErrorCode.NOT_CONTROLLER:
            self._on_not_controller()
            return
        self._channel.complete()
        if response.error is ErrorCode.NONE:
            self._after_error.succeeded()
            self.broker_epoch = response.broker_epoch
            self._out.append(Registered(response.broker_epoch))
            self._communicate()
        elif not self._gave_up():
            # DUPLICATE_BROKER_REGISTRATION: the session of the process before has to end first.
            self._communicate_after_error()

    def _communicate_after_error(self) -> None:
        """Tries again, never at once."""
        self._again = False
        self._communicate_in(self._after_error.failed())

    def _gave_up(self) -> bool:
        if self.broker_epoch >= 0 or self._now < self._give_up_at:
            return False
        self.state = LifecycleState.SHUTTING_DOWN
        self._out.append(RegistrationFailed())
        return True

    def _on_heartbeat(self, response: BrokerHeartbeatResponse) -> None:
        config = self.config
        if response.error is ErrorCode.NOT_CONTROLLER:
            self._on_not_controller()
            return
        self._channel.complete()
        if response.error is not ErrorCode.NONE:
            self._communicate_after_error()
            return
        self._after_error.succeeded()
        self._acknowledged_directories = self._sent_directories
        delay = config.heartbeat_interval_us
        if self.state is LifecycleState.STARTING:
            delay = config.starting_interval_us
            if response.is_caught_up:
                self.state = LifecycleState.RECOVERY
                self._out.append(CaughtUp())
        elif self.state is LifecycleState.RECOVERY and not response.is_fenced:
            self.state = LifecycleState.RUNNING
            self._out.append(Unfenced())
            if self._first_wait_us is not None:
                delay = self._first_wait_us
        elif self.state is LifecycleState.PENDING_CONTROLLED_SHUTDOWN:
            if response.should_shut_down:
                self._stop()
                return
            self._pending_answers += 1
            if self._pending_answers == 1:
                delay = config.first_shutdown_interval_us
        self._communicate_in(delay)

    def _on_shut_down(self) -> None:
        if self.state in {LifecycleState.RUNNING, LifecycleState.RECOVERY}:
            self.state = LifecycleState.PENDING_CONTROLLED_SHUTDOWN
            at = self._now + self.config.shutdown_timeout_us
            self._out.append(fx.SetTimer("shutdown", at))
            self._communicate()
        elif self.state is not LifecycleState.PENDING_CONTROLLED_SHUTDOWN:
            self._stop()

    def _stop(self) -> None:
        if self.state is LifecycleState.SHUTTING_DOWN:
            return
        self.state = LifecycleState.SHUTTING_DOWN
        self._out.append(fx.CancelTimer("heartbeat"))
        self._out.append(fx.CancelTimer("shutdown"))
        self._out.append(ShutDownGranted())
