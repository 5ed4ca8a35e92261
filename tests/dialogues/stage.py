"""Where a dialogue is played: the real machines, and every message that is under way between them.

Nothing is delivered before a line says so. A decision takes no time, a disk none either; a
controller's records are committed as it writes them, and each broker applies them when a line says
so. Brokers that run send heartbeats while time passes, unless a line silences them.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from sim.error_codes import ErrorCode
from sim.ids import TRANSACTIONS_TOPIC, TopicPartition
from sim.protocol import effects as fx
from sim.protocol.broker.replication.config import ReplicaManagerConfig
from sim.protocol.broker.replication.events import (
    ControllerChanged,
    MetadataApplied,
    RegisteredWithEpoch,
)
from sim.protocol.broker.replication.replica_manager import ReplicaManager
from sim.protocol.controller.controller import Controller
from sim.protocol.controller.types import CommittedRows, ControllerConfig
from sim.protocol.coordinator.group.context import GroupConfig
from sim.protocol.coordinator.group.coordinator import GroupCoordinator
from sim.protocol.coordinator.log import (
    AppendRecords,
    PartitionElected,
    PartitionLoading,
    RecordsAppended,
)
from sim.protocol.coordinator.transaction.config import TransactionConfig
from sim.protocol.coordinator.transaction.coordinator import TransactionCoordinator
from sim.protocol.coordinator.transaction.records import (
    MetadataPublished,
    ProducerIdAllocated,
    ProducerIdRequested,
)
from sim.protocol.events import (
    Flushed,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    TimerFired,
)
from sim.protocol.kraft.log import LoggedRecord
from sim.protocol.kraft.raft import Quorum
from sim.protocol.kraft.types import (
    AppendMetadata,
    Committed,
    LeadershipChanged,
    QuorumConfig,
    QuorumStarted,
)
from sim.protocol.messages.cluster import (
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    CreateTopicsRequest,
    NewTopic,
)
from sim.protocol.messages.data import FetchRequest, FetchResponse
from sim.protocol.metadata.image import MetadataImage
from sim.protocol.metadata.records import LeaderChangeMessage, MetadataRecord
from sim.units import SECOND
from tests.dialogues.words import record_text, text_of
from tests.log.list_log import ListLog
from tests.protocol.kraft.quorum_kit import OneRecordLog

CONTROLLER = 3001
COORDINATOR = 9

Batch: TypeAlias = tuple[LoggedRecord, ...]
HEARTBEAT_US = 2 * SECOND


@dataclass
class Letter:
    """A message under way."""

    sender: str
    to: str
    text: str
    line: int
    """Line at which it was sent."""
    connection: str = ""
    """Which of the connections between the two, and in which direction."""
    token: int = -1
    """Of the request that has not arrived; -1 for answers and records."""
    deliver: Callable[[], None] = lambda: None
    lose: Callable[[], None] = lambda: None
    """What happens when the connection breaks."""


@dataclass
class Process:
    """A server of the stage; its log and checkpoint outlive the machine."""

    name: str
    node: int
    machine: Any = None
    timers: dict[str, int] = field(default_factory=dict)
    logs: dict[TopicPartition, Any] = field(default_factory=dict)
    checkpoint: dict[TopicPartition, int] = field(default_factory=dict)
    image: MetadataImage = field(default_factory=MetadataImage)
    commits: deque[Batch] = field(default_factory=deque)
    """Batches of records that the controller has committed and it has not applied."""
    beats: bool = True
    incarnation: int = 0


@dataclass
class Asked:
    """A request, until it is answered."""

    sender: str
    to: str
    correlation: int
    request: object
    channel: str = ""


class Stage:
    """Processes by name, letters under way, and one clock."""

    def __init__(self) -> None:
        self.now = 0
        self.line = 0
        self.processes: dict[str, Process] = {}
        self.letters: list[Letter] = []
        self.topics: dict[str, str] = {}
        self._committed: list[Batch] = []
        self._asked: dict[int, Asked] = {}
        self._token = 0
        self._transactions = TransactionConfig()
        self._gates = True
        """Whether high watermarks wait for min.insync.replicas (KAFKA-15583)."""
        self._next_producer_id = 1_000
        self._sessions: dict[tuple[str, int], int] = {}
        """Numbers of fetch sessions in this dialogue, by the server and its own number."""
        self._epochs: dict[str, int] = {}
        """Broker epochs."""
        self._is_quiet = False
        """Whether what is asked and answered is part of the setting, not of the dialogue."""

    # -- the setting ------------------------------------------------------------------------------

    def cluster(
        self, brokers: tuple[int, ...], *, elr: bool, transaction_version: int, gates: bool
    ) -> None:
        """A controller and brokers that are registered and unfenced."""
        self._gates = gates
        self._transactions = TransactionConfig(version=transaction_version)
        config = ControllerConfig(elr=elr, transaction_version=transaction_version)
        machine = Controller(CONTROLLER, lambda: 0.0, config)
        self.processes["controller"] = Process("controller", CONTROLLER, machine)
        first = LoggedRecord(0, 1, LeaderChangeMessage(CONTROLLER, (CONTROLLER,), ()))
        self._committed = [(first,)]
        self.give("controller", Committed(0, 1, (first,)))
        self.give("controller", LeadershipChanged(1, CONTROLLER, is_leader=True, log_end_offset=1))
        for broker in brokers:
            self._join(Process(f"broker-{broker}", broker))
        for broker in brokers:
            self.start(f"broker-{broker}")
            self.serve(f"broker-{broker}")

    def _join(self, process: Process) -> None:
        self.processes[process.name] = process
        self._quietly(process.name, _registration(process.node))
        self._quietly(process.name, _heartbeat(process.node))

    def topic(
        self, name: str, replicas: tuple[tuple[int, ...], ...], configs: dict[str, str]
    ) -> None:
        """A topic, which all brokers know."""
        wanted = NewTopic(name, len(replicas), 0, tuple(configs.items()), replicas)
        self._quietly("admin", CreateTopicsRequest((wanted,)))
        for process in self.processes.values():
            if process.name.startswith("broker"):
                while process.commits:
                    self._apply(process)

    def quorum(self, voters: dict[int, tuple[int, ...]]) -> None:
        """Voters of a metadata quorum, each with the epochs of the records in its log.

        The first of them has the shortest election timeout.
        """
        names = tuple(voters)
        for place, (node, epochs) in enumerate(voters.items()):
            part = place / len(voters)
            config = QuorumConfig(append_linger_us=0)
            log = OneRecordLog(*epochs)
            machine = Quorum(node, names, log, lambda part=part: part, config=config)
            name = f"controller-{node}"
            self.processes[name] = Process(name, node, machine)
        for node in names:
            self.give(f"controller-{node}", QuorumStarted())

    def groups(self, topics: dict[str, int], config: GroupConfig) -> None:
        """A coordinator of all groups; the topics have so many partitions."""
        image = MetadataImage()
        image.topic_ids = {topic: topic for topic in topics}
        image.topic_names = {topic: topic for topic in topics}
        image.partition_counts = dict(topics)
        self._coordinator(GroupCoordinator(COORDINATOR, 1, config, lambda: image))

    def transactions(self) -> None:
        """A coordinator of all transactions: a broker that leads ``__transaction_state``."""
        self._join(Process("coordinator", COORDINATOR))
        self.topic(TRANSACTIONS_TOPIC, ((COORDINATOR,),), {})
        self._coordinator(TransactionCoordinator(COORDINATOR, 0, self._transactions))
        image = self.processes["controller"].machine.image.copy()
        self.give("coordinator", MetadataPublished(image))

    def _coordinator(self, machine: Any) -> None:
        process = self.processes.setdefault("coordinator", Process("coordinator", COORDINATOR))
        process.machine = machine
        for partition in range(50):
            self.give("coordinator", PartitionLoading(partition, 1))
            self.give("coordinator", PartitionElected(partition, 1, ()))

    # -- what a line may do -----------------------------------------------------------------------

    def ask(self, sender: str, to: str, request: Any) -> None:
        """A client's request, or a broker's that its lifecycle sends, arrives."""
        if isinstance(request, BrokerHeartbeatRequest):
            request = self._heartbeat_of(self.processes[sender], request)
        if isinstance(request, FetchRequest):
            request = self._with_real_session(to, request)
        self._token += 1
        self._asked[self._token] = Asked(sender, to, -1, request)
        self.give(to, RequestReceived(self._token, sender, request))

    def give(self, name: str, event: object) -> None:
        """An event reaches a process, which decides."""
        process = self.processes[name]
        if process.machine is not None:
            for effect in process.machine.handle(event, self.now):
                self._perform(process, effect)

    def start(self, name: str) -> None:
        """A broker's process starts from what its disk has."""
        process = self.processes[name]
        process.incarnation += 1
        process.beats = True
        process.image = MetadataImage()
        process.commits = deque(self._committed)
        process.machine = ReplicaManager(
            process.node,
            ReplicaManagerConfig(transaction=self._transactions, gates_high_watermark=self._gates),
            lambda place, *_: process.logs.setdefault(place, ListLog()),
            dict(process.checkpoint),
        )
        for effect in process.machine.start(self.now):
            self._perform(process, effect)

    def serve(self, name: str) -> None:
        """A registered broker applies all that is committed, and begins to lead and follow."""
        process = self.processes[name]
        self.give(name, RegisteredWithEpoch(self._epochs[name]))
        self.give(name, ControllerChanged(CONTROLLER))
        while process.commits:
            self._replay(process)
        self._publish(process)

    def stop(self, name: str) -> None:
        """A process is killed: nobody hears from it, and what it was asked fails."""
        process = self.processes[name]
        process.checkpoint = process.machine.high_watermarks()
        process.machine = None
        process.timers.clear()
        process.commits.clear()
        self.letters = [letter for letter in self.letters if letter.sender != name]
        under_way = [letter.token for letter in self.letters if letter.to == name]
        for token, asked in list(self._asked.items()):
            if asked.to == name and token not in under_way:
                del self._asked[token]
                self._fail(asked)

    def apply(self, name: str, text: str) -> str:
        """A broker applies the next record; "" or the record that is the next instead."""
        process = self.processes[name]
        self._skip(process)
        found = self._text(process.commits[0]) if process.commits else "nothing"
        if found == text:
            self._apply(process)
            return ""
        return found

    def wait(self, duration: int) -> None:
        """Time passes; timers fire in their order, and brokers that run send heartbeats."""
        until = self.now + duration
        while True:
            due = [(at, p.name, t) for p in self.processes.values() for t, at in p.timers.items()]
            due.append((self._next_beat(), "", ""))
            at, name, timer = min(due)
            if at > until:
                self.now = until
                return
            self.now = max(self.now, at)
            if name:
                del self.processes[name].timers[timer]
                self.give(name, TimerFired(timer))
            else:
                self._beat()

    def left_over(self) -> list[Letter]:
        """Messages that were sent and of which no line speaks, records among them."""
        found = list(self.letters)
        for process in self.processes.values():
            self._skip(process)
            for batch in process.commits:
                text = self._text(batch)
                if text and process.machine is not None:
                    found.append(Letter("controller", process.name, text, self.line))
        return found

    # -- inside -----------------------------------------------------------------------------------

    def _next_beat(self) -> int:
        if "controller" not in self.processes:
            return 1 << 62
        return (self.now // HEARTBEAT_US + 1) * HEARTBEAT_US

    def _beat(self) -> None:
        for process in self.processes.values():
            if process.beats and process.machine is not None and process.name in self._epochs:
                self._quietly(process.name, _heartbeat(process.node))

    def _heartbeat_of(self, process: Process, request: Any) -> BrokerHeartbeatRequest:
        image = self.processes["controller"].machine.image
        wants = request.want_fence, request.want_shut_down
        epoch = self._epochs[process.name]
        return BrokerHeartbeatRequest(request.broker, epoch, image.offset - 1, *wants)

    def _quietly(self, sender: str, request: object) -> None:
        self._is_quiet = True
        self.ask(sender, "controller", request)
        self._is_quiet = False

    def _perform(self, process: Process, effect: Any) -> None:
        match effect:
            case fx.Send():
                self._send(process, effect)
            case fx.Reply():
                self._reply(process, effect)
            case fx.SetTimer():
                process.timers[effect.name] = effect.at
            case fx.CancelTimer():
                process.timers.pop(effect.name, None)
            case fx.Flush(token=int()):
                self.give(process.name, Flushed(effect.token))
            case AppendMetadata():
                self._commit(effect)
            case AppendRecords():
                self.give(process.name, RecordsAppended(effect.token, ErrorCode.NONE))
            case ProducerIdRequested():
                self._next_producer_id += 1
                given = ProducerIdAllocated(effect.token, self._next_producer_id - 1)
                self.give(process.name, given)
            case CommittedRows():
                pass

    def _commit(self, effect: AppendMetadata) -> None:
        base = effect.base_offset
        records: tuple[MetadataRecord, ...] = effect.records
        logged = tuple(LoggedRecord(base + i, effect.epoch, r) for i, r in enumerate(records))
        self._committed.append(logged)
        for record in records:
            if hasattr(record, "topic_id") and hasattr(record, "name"):
                self.topics[record.topic_id] = record.name
        for process in self.processes.values():
            if process.name.startswith("broker-") and process.machine is not None:
                process.commits.append(logged)
        self.give("controller", Committed(base, base + len(logged), logged))

    def _send(self, process: Process, effect: fx.Send) -> None:
        self._token += 1
        token = self._token
        to = next(p.name for p in self.processes.values() if p.node == effect.to)
        asked = Asked(process.name, to, effect.correlation, effect.request, effect.channel)
        self._asked[token] = asked
        self._post(
            process.name,
            to,
            effect.request,
            f"requests {effect.channel}",
            token,
            lambda: self.give(to, RequestReceived(token, process.name, asked.request)),
            lambda: self._fail(self._asked.pop(token)),
        )

    def _reply(self, process: Process, effect: fx.Reply) -> None:
        asked = self._asked.pop(effect.token, None)
        if asked is None:
            return
        self._note_registration(asked, effect.response)
        if effect.response is None or (self._is_quiet and process.name == "controller"):
            return
        answer = effect.response
        self._post(
            process.name,
            asked.sender,
            answer,
            f"answers {asked.channel}",
            -1,
            lambda: self._answered(asked, answer),
            lambda: self._fail(asked),
        )

    def _note_registration(self, asked: Asked, response: object) -> None:
        if isinstance(response, BrokerRegistrationResponse):
            self._epochs[asked.sender] = response.broker_epoch

    def _answered(self, asked: Asked, answer: object) -> None:
        if asked.correlation >= 0:
            server = self.processes[asked.to].node
            self.give(asked.sender, ResponseReceived(server, asked.correlation, answer))
        elif isinstance(asked.request, BrokerRegistrationRequest):
            self.serve(asked.sender)

    def _fail(self, asked: Asked) -> None:
        if asked.correlation >= 0:
            server, error = self.processes[asked.to].node, ErrorCode.NETWORK_EXCEPTION
            self.give(asked.sender, RequestFailed(server, asked.correlation, error))

    def _post(
        self,
        sender: str,
        to: str,
        message: object,
        connection: str,
        token: int,
        deliver: Callable[[], None],
        lose: Callable[[], None],
    ) -> None:
        text = text_of(self._with_short_session(sender, to, message))
        self.letters.append(Letter(sender, to, text, self.line, connection, token, deliver, lose))

    def _with_short_session(self, sender: str, to: str, message: object) -> object:
        """A fetch with its session's number on the stage: 1 for the first that is opened."""
        if isinstance(message, FetchResponse) and message.session_id:
            key = sender, message.session_id
            short = self._sessions.setdefault(key, len(self._sessions) + 1)
            return FetchResponse(message.error, short, message.results)
        if isinstance(message, FetchRequest) and message.session_epoch > 0:
            return replace(message, session_id=self._sessions.get((to, message.session_id), 0))
        return message

    def _with_real_session(self, to: str, request: FetchRequest) -> FetchRequest:
        known = {short: real for (server, real), short in self._sessions.items() if server == to}
        return replace(request, session_id=known.get(request.session_id, request.session_id))

    def _skip(self, process: Process) -> None:
        """Batches that no dialogue is about are applied with those before them."""
        while process.commits and not self._text(process.commits[0]):
            self._replay(process)

    def _text(self, batch: Batch) -> str:
        texts = [record_text(logged.record, self.topics) for logged in batch]
        return "; ".join(text for text in texts if text)

    def _replay(self, process: Process) -> None:
        for logged in process.commits.popleft():
            process.image.replay(logged.offset, logged.epoch, logged.record)

    def _apply(self, process: Process) -> None:
        self._replay(process)
        self._skip(process)
        self._publish(process)

    def _publish(self, process: Process) -> None:
        image = process.image
        changed, reconfigured = image.take_changed(), image.take_reconfigured()
        self.give(process.name, MetadataApplied(image.copy(), changed, reconfigured))


def _registration(broker: int) -> BrokerRegistrationRequest:
    return BrokerRegistrationRequest(broker, "first", "", -1, (f"dir-{broker}",))


def _heartbeat(broker: int) -> BrokerHeartbeatRequest:
    return BrokerHeartbeatRequest(broker, -1, -1, want_fence=False, want_shut_down=False)
