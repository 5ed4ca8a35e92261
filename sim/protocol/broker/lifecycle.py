"""A broker's registration and heartbeats: how it comes into service, stays, and leaves.

    STARTING  -> RECOVERY   the controller says that the broker has applied its own registration
    RECOVERY  -> RUNNING    the logs are loaded, and the controller has unfenced the broker
    any       -> PENDING_CONTROLLED_SHUTDOWN -> SHUTTING_DOWN   it wants to stop, and may

A broker that is fenced, or cannot reach the controller, only keeps on asking: it does not stop
serving.

Left out: unclean reasons to stop, such as all log directories failing, are the host's.

Source: ``kafka.server.BrokerLifecycleManager``, ``NodeToControllerChannelManager`` (4.1); KIP-500.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from sim.error_codes import ErrorCode
from sim.ids import NO_LEADER, BrokerEpoch, NodeId, Offset
from sim.protocol import effects as fx
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
from sim.units import MS, SECOND, Micros

CHANNEL = "heartbeat"
"""The connection that registration and heartbeats use."""


DIRECTORY_TIMER = "directory/"
"""Begins the name of the timer of a failed log directory; its id follows."""


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
    """``broker.session.timeout.ms``; a request is given up after half of it."""
    registration_timeout_us: Micros = 60 * SECOND
    """``initial.broker.registration.timeout.ms``."""
    starting_interval_us: Micros = 10 * MS
    """Between heartbeats while STARTING; a constant in Kafka."""
    first_shutdown_interval_us: Micros = 50 * MS
    """Before the second heartbeat of a controlled shutdown; a constant in Kafka."""
    retry_us: Micros = 100 * MS
    """Before asking again who the controller is; a constant in Kafka."""
    directory_failure_timeout_us: Micros = 30 * SECOND
    """``log.dir.failure.timeout.ms``: how long a failed directory may stay untold."""
    shutdown_timeout_us: Micros = 300 * SECOND
    """How long a controlled shutdown may take before the broker stops anyway."""


@dataclass(frozen=True, slots=True)
class Introduction:
    """What a process tells of itself when it registers."""

    broker: NodeId
    incarnation: str
    rack: str
    directories: tuple[str, ...]
    previous_broker_epoch: BrokerEpoch
    """From the clean-shutdown marker; -1 without one."""


# -- events ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LifecycleStarted:
    """The process has opened its logs and begins to register."""


@dataclass(frozen=True, slots=True)
class ControllerKnown:
    """This broker's own observer knows a quorum leader (or, with NO_LEADER, knows none)."""

    controller: NodeId


@dataclass(frozen=True, slots=True)
class ReadyToUnfence:
    """Logs are recovered and the first metadata is applied."""


@dataclass(frozen=True, slots=True)
class ShutDownWanted:
    """The process was asked to stop (SIGTERM)."""


@dataclass(frozen=True, slots=True)
class DirectoriesFailed:
    """Log directories that failed since the start, all of them; told to the controller at once."""

    directories: tuple[str, ...]


LifecycleEvent = (
    LifecycleStarted
    | ControllerKnown
    | ReadyToUnfence
    | ShutDownWanted
    | DirectoriesFailed
    | RequestReceived
    | ResponseReceived
    | RequestFailed
    | TimerFired
    | Flushed
)
"""What happens to a lifecycle machine."""


# -- effects --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Registered:
    """The controller has committed the registration; fetches carry the epoch from now on."""

    broker_epoch: BrokerEpoch


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """The broker has applied its own registration: answer with :class:`ReadyToUnfence`."""


@dataclass(frozen=True, slots=True)
class Unfenced:
    """In service: listen to clients from now on. Said once."""


@dataclass(frozen=True, slots=True)
class ShutDownGranted:
    """The broker may stop: nothing depends on it, or it waited long enough. Said once."""


@dataclass(frozen=True, slots=True)
class RegistrationFailed:
    """No registration within the timeout: the process must stop."""

    @property
    def reason(self) -> str:
        """What to say of it."""
        return "not registered within initial.broker.registration.timeout.ms"


@dataclass(frozen=True, slots=True)
class DirectoryFailureUntold:
    """The controller has not acknowledged a directory's failure in time: the process must stop."""

    directory: str

    @property
    def reason(self) -> str:
        """What to say of it."""
        return (
            f"no controller heard within log.dir.failure.timeout.ms that log directory "
            f"{self.directory} is offline"
        )


Fatal = RegistrationFailed | DirectoryFailureUntold

LifecycleEffect = (
    fx.Effect
    | Registered
    | CaughtUp
    | Unfenced
    | ShutDownGranted
    | RegistrationFailed
    | DirectoryFailureUntold
)
"""What a lifecycle machine may ask of its host."""

_DEFAULTS = LifecycleConfig()


class BrokerLifecycle:
    """One broker process's registration and heartbeats."""

    def __init__(
        self,
        introduction: Introduction,
        controllers: tuple[NodeId, ...],
        applied_offset: Callable[[], Offset],
        config: LifecycleConfig = _DEFAULTS,
        first_wait_us: Micros | None = None,
    ) -> None:
        """Make a machine that has not begun.

        Args:
            introduction: What it registers with.
            controllers: Every controller, to be tried in turn while none is known.
            applied_offset: Offset of the last metadata record that the broker has applied, -1 for
                none; asked at each heartbeat.
            config: Settings.
            first_wait_us: From the heartbeat that brings it into service to the next one, in
                place of the interval: where it is in its beat after a long history, which then
                need not be simulated.
        """
        self.introduction = introduction
        self.config = config
        self.state = LifecycleState.NOT_RUNNING
        self.broker_epoch: BrokerEpoch = -1
        self._controllers = controllers
        self._applied_offset = applied_offset
        self._controller: NodeId = NO_LEADER
        self._known: NodeId = NO_LEADER
        self._turn = 0
        self._ready = False
        self._first_wait_us = first_wait_us
        self._failed_directories: tuple[str, ...] = ()
        self._sent_directories: tuple[str, ...] = ()
        self._told_directories: tuple[str, ...] = ()
        self._asked: NodeId = NO_LEADER
        self._open: int | None = None
        self._correlation = 0
        self._give_up_at: Micros = 0
        self._pending_answers = 0
        self._again = False
        self._now: Micros = 0
        self._out: list[LifecycleEffect] = []

    def handle(self, event: LifecycleEvent, now: Micros) -> list[LifecycleEffect]:
        """Decide."""
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
            case ShutDownWanted():
                self._on_shut_down()
            case RequestReceived() | Flushed():
                message = f"nobody asks the lifecycle: {event}"
                raise AssertionError(message)
            case _:
                assert_never(event)
        return out

    # -- asking -----------------------------------------------------------------------------------

    def _communicate(self) -> None:
        """Register, or send a heartbeat; if a request is open, at once after its answer."""
        if self.state in {LifecycleState.NOT_RUNNING, LifecycleState.SHUTTING_DOWN}:
            return
        if self._open is not None:
            self._again = True
            return
        self._again = False
        to = self._controller
        if to == NO_LEADER:
            to = self._controllers[self._turn % len(self._controllers)]
        self._correlation += 1
        self._open = self._correlation
        self._out.append(
            fx.Send(to, self._open, self._request(), self.config.session_timeout_us // 2, CHANNEL)
        )

    def _request(self) -> BrokerRegistrationRequest | BrokerHeartbeatRequest:
        who = self.introduction
        if self.broker_epoch < 0:
            return BrokerRegistrationRequest(
                who.broker, who.incarnation, who.rack, who.previous_broker_epoch, who.directories
            )
        self._sent_directories = self._failed_directories
        return BrokerHeartbeatRequest(
            who.broker,
            self.broker_epoch,
            self._applied_offset(),
            want_fence=not self._ready,
            want_shut_down=self.state is LifecycleState.PENDING_CONTROLLED_SHUTDOWN,
            offline_directories=self._failed_directories,
        )

    def _communicate_in(self, delay: Micros) -> None:
        if self._again:
            self._communicate()
        else:
            self._out.append(fx.SetTimer("heartbeat", self._now + delay))

    def _on_directories(self, directories: tuple[str, ...]) -> None:
        """Tell the controller at once; give it a while to say that it has understood."""
        at = self._now + self.config.directory_failure_timeout_us
        for directory in directories:
            if directory not in self._failed_directories:
                self._out.append(fx.SetTimer(f"{DIRECTORY_TIMER}{directory}", at))
        self._failed_directories = directories
        self._communicate()

    def _on_controller(self, controller: NodeId) -> None:
        """News of the quorum count once the controller that is asked now fails to answer."""
        self._known = controller
        if self._controller == NO_LEADER and controller != NO_LEADER:
            self._controller = controller
            if self._open is None:
                self._communicate()

    # -- what came of it --------------------------------------------------------------------------

    def _on_timer(self, name: str) -> None:
        if name == "heartbeat":
            if self._open is None:
                self._communicate()
        elif name.startswith(DIRECTORY_TIMER):
            directory = name.removeprefix(DIRECTORY_TIMER)
            if directory not in self._told_directories:
                self._out.append(DirectoryFailureUntold(directory))
        elif self.state is LifecycleState.PENDING_CONTROLLED_SHUTDOWN:
            self._stop()

    def _on_failure(self, event: RequestFailed) -> None:
        if event.correlation == self._open:
            self._open = None
            self._asked = event.sender
            self._look_elsewhere()

    def _on_response(self, event: ResponseReceived) -> None:
        if event.correlation != self._open:
            return
        self._open = None
        self._asked = event.sender
        response = event.response
        match response:
            case BrokerRegistrationResponse():
                self._on_registered(response)
            case BrokerHeartbeatResponse():
                self._on_heartbeat(response)
            case _:
                message = f"not an answer to the lifecycle: {response}"
                raise AssertionError(message)

    def _look_elsewhere(self) -> None:
        """The controller asked does not answer, or is none: try the next one soon."""
        self._controller = NO_LEADER if self._known == self._asked else self._known
        self._turn += 1
        if not self._gave_up():
            self._again = False
            self._communicate_in(self.config.retry_us)

    def _on_registered(self, response: BrokerRegistrationResponse) -> None:
        if response.error is ErrorCode.NONE:
            self._controller = self._asked
            self.broker_epoch = response.broker_epoch
            self._out.append(Registered(response.broker_epoch))
            self._communicate()
        elif response.error is ErrorCode.NOT_CONTROLLER:
            self._look_elsewhere()
        elif not self._gave_up():
            # DUPLICATE_BROKER_REGISTRATION: the session of the process before has to end first.
            self._communicate_in(self.config.heartbeat_interval_us)

    def _gave_up(self) -> bool:
        if self.broker_epoch >= 0 or self._now < self._give_up_at:
            return False
        self.state = LifecycleState.SHUTTING_DOWN
        self._out.append(RegistrationFailed())
        return True

    def _on_heartbeat(self, response: BrokerHeartbeatResponse) -> None:
        config = self.config
        if response.error is ErrorCode.NOT_CONTROLLER:
            self._look_elsewhere()
            return
        delay = config.heartbeat_interval_us
        if response.error is ErrorCode.NONE:
            self._controller = self._asked
            self._told_directories = self._sent_directories
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
