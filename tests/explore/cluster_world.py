"""Three brokers and three controllers, their wires, their disks and one clock, all at your call.

Nothing happens by itself: a caller delivers a message, lets a timer fire, takes a process away, or
lets the cluster run undisturbed for a while. Connections keep their order; which one moves next is
the caller's choice. After each event the promises of ``cluster_promises.py`` are looked at.
"""

from collections import deque
from dataclasses import dataclass, field

from sim.error_codes import ErrorCode
from sim.protocol import effects as fx
from sim.protocol.broker import lifecycle as life
from sim.protocol.broker.replication.events import (
    ControllerChanged,
    MetadataApplied,
    RegisteredWithEpoch,
)
from sim.protocol.controller.types import HeartbeatArrived
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
    Halt,
    LeadershipChanged,
    PersistQuorumState,
    QuorumStarted,
    Resign,
)
from sim.protocol.messages.admin import ElectLeadersRequest
from sim.protocol.messages.cluster import BrokerHeartbeatRequest, CreateTopicsRequest, NewTopic
from sim.protocol.messages.data import FetchRequest, ListOffsetsRequest, ProduceRequest
from sim.protocol.messages.leader_epochs import OffsetForLeaderEpochRequest
from sim.protocol.messages.quorum import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    QuorumFetchRequest,
    VoteRequest,
)
from sim.units import SECOND
from tests.explore.brokers import P
from tests.explore.cluster_nodes import BROKERS, VOTERS, BrokerNode, ControllerNode, Node, Plan
from tests.explore.cluster_promises import Broken, Promises
from tests.log.list_log import ListBatch

_MACHINE_OF = {
    **dict.fromkeys(
        (VoteRequest, BeginQuorumEpochRequest, EndQuorumEpochRequest, QuorumFetchRequest), "quorum"
    ),
    **dict.fromkeys((FetchRequest, ListOffsetsRequest, OffsetForLeaderEpochRequest), "replicas"),
}
STEPS_MAX = 20_000
"""More events than this in one calm are a loop without an end."""


@dataclass
class Asked:
    """One request of a machine, until its answer or its failure is delivered."""

    number: int
    machine: str
    correlation: int
    request: object
    deadline: int


@dataclass
class Wire:
    """One connection: requests are served one by one, in their order."""

    sender: int
    to: int
    requests: deque = field(default_factory=deque)
    serving: tuple | None = None
    """The token and the request that the server works on."""
    answers: deque = field(default_factory=deque)
    """(number, request, answer or ``None``) on their way back."""

    def break_off(self) -> None:
        """Every open request fails; answers that were on their way are lost."""
        open_ = [asked for _, asked, _ in self.answers]
        if self.serving is not None:
            open_.append(self.serving[1])
        open_ += self.requests
        self.requests.clear()
        self.serving = None
        self.answers = deque((asked.number, asked, None) for asked in open_)

    def deadline(self) -> int | None:
        """When the sender gives up its oldest request that has no answer yet."""
        waiting = [] if self.serving is None else [self.serving[1].deadline]
        waiting += [asked.deadline for asked in self.requests]
        waiting += [asked.deadline for _, asked, answer in self.answers if answer is not None]
        return min(waiting, default=None)


class ClusterWorld:
    """Everything; a fresh one is empty, :meth:`in_service` brings it up."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.now = 0
        self.nodes: dict[int, Node] = {b: BrokerNode(b) for b in BROKERS}
        self.nodes |= {v: ControllerNode(v) for v in VOTERS}
        self.wires: dict[tuple[int, int, str], Wire] = {}
        self.isolated: tuple[int, ...] = ()
        self.records = 0
        self.promises = Promises(self.nodes)
        self._count = 0
        self._tokens: dict[int, tuple] = {}
        self._soon: deque = deque()

    def in_service(self) -> "ClusterWorld":
        """Start everything, create the topic, and wait until every broker is in sync."""
        for node in self.nodes:
            self.start(node)
        self.calm(8 * SECOND)
        configs = (("min.insync.replicas", str(self.plan.min_in_sync)),)
        topic = NewTopic("orders", 1, 3, configs, (BROKERS,))
        self.ask_controller(CreateTopicsRequest((topic,)))
        self.calm(2 * SECOND)
        assert self.promises.partition.in_sync == BROKERS
        return self

    # -- what a caller may do ---------------------------------------------------------------------

    def start(self, number: int) -> None:
        """A process starts from what its disk has."""
        node = self.nodes[number]
        node.start(self.plan)
        if isinstance(node, BrokerNode):
            self._perform(node, "replicas", node.replicas.start(self.now))
            self._tell(node, "quorum", QuorumStarted())
            self._tell(node, "lifecycle", life.LifecycleStarted())
        else:
            self._tell(node, "quorum", QuorumStarted())
        self._settle(node)

    def stop(self, number: int, kept: float | None = None) -> None:
        """A process is killed; with ``kept``, its machine loses power, and what was not flushed."""
        node = self.nodes[number]
        process = node.epoch if isinstance(node, BrokerNode) else -1
        node.stop()
        if kept is not None and node.lose_power(kept) and number in BROKERS:
            self.promises.lost_records(number, process)
        for wire in self.wires.values():
            if wire.to == number:
                wire.break_off()
            elif wire.sender == number:
                wire.break_off()
                wire.answers.clear()
        self._settle(node)

    def break_off(self, key: tuple[int, int, str]) -> None:
        """A connection breaks."""
        self.wires[key].break_off()

    def produce(self, broker: int) -> None:
        """A client writes one record with acks=all."""
        self.records += 1
        batch = ListBatch(first_record=self.records, crc=self.records)
        self._ask(self.nodes[broker], "replicas", ProduceRequest(-1, SECOND, ((P, batch),)))

    def ask_controller(self, request: object) -> None:
        """An administrator asks the active controller that was elected last; nobody if none is."""
        active = self.active()
        if active is not None:
            self._ask(active, "controller", request)

    def elect_preferred(self) -> None:
        """An administrator wants the first replica to lead."""
        self.ask_controller(ElectLeadersRequest("preferred", (P,)))

    def resign(self) -> None:
        """The active controller hands over."""
        active = self.active()
        if active is not None:
            self._tell(active, "quorum", Resign())
            self._settle(active)

    def heartbeat(self, broker: int) -> None:
        """A broker's next heartbeat comes at once."""
        node = self.nodes[broker]
        for timer in ("heartbeat", "controller"):
            if node.timers.pop(("lifecycle", timer), None) is not None:
                self._tell(node, "lifecycle", TimerFired(timer))
                self._settle(node)

    def active(self) -> ControllerNode | None:
        """The active controller of the latest epoch."""
        active = [self.nodes[v] for v in VOTERS if self.nodes[v].is_active]
        return max(active, key=lambda node: node.quorum.epoch, default=None)

    def movable(self, *, forced: bool) -> list[tuple[int, tuple]]:
        """What can happen without time passing: (number, what), oldest first.

        ``forced``: also that a slow broker applies metadata.
        """
        found: list = []
        isolated = self.isolated
        for key, wire in self.wires.items():
            if wire.sender in isolated or wire.to in isolated:
                continue
            if wire.answers:
                found.append((wire.answers[0][0], ("answer", key)))
            elif wire.requests and wire.serving is None and self._takes_requests(wire.to):
                found.append((wire.requests[0].number, ("request", key)))
        for node in self.nodes.values():
            if node.disk is not None:
                found.append((node.disk[3], ("disk", node.id)))
            if isinstance(node, BrokerNode) and node.pending and (forced or not node.is_slow):
                found.append((node.pending[0][0], ("apply", node.id)))
        found.sort()
        return found

    def _takes_requests(self, server: int) -> bool:
        """False of a broker that is up and waits to be unfenced; one that is down refuses."""
        node = self.nodes[server]
        return not (isinstance(node, BrokerNode) and node.is_up and not node.serves)

    def move(self, what: tuple) -> None:
        """One of :meth:`movable` happens."""
        kind, key = what
        if kind == "answer":
            self._answered(self.wires[key])
        elif kind == "request":
            self._arrived(self.wires[key])
        elif kind == "disk":
            self._durable(self.nodes[key])
        else:
            self._apply(self.nodes[key])

    def deliver(self, count: int, group: tuple[int, ...]) -> None:
        """The oldest things that can happen among these nodes do, so many of them."""
        for _ in range(count):
            movable = [m for m in self.movable(forced=False) if _concerns(m[1], group)]
            if not movable:
                return
            self.move(movable[0][1])

    def calm(self, duration: int) -> None:
        """Everything goes on for a while, messages without delay."""
        until = self.now + duration
        for _ in range(STEPS_MAX):
            movable = self.movable(forced=False)
            if movable:
                self.move(movable[0][1])
            elif not self._pass_time(until):
                return
        raise AssertionError(f"no end of events at {self.now}")

    def silence(self, duration: int) -> None:
        """Time passes and timers fire, but nothing is delivered and no disk works."""
        until = self.now + duration
        while self._pass_time(until):
            pass

    # -- time -------------------------------------------------------------------------------------

    def _pass_time(self, until: int) -> bool:
        """To the next timer, which fires; false if that is after the instant."""
        due: list = [
            (at, 0, node.id, *name)
            for node in self.nodes.values()
            for name, at in node.timers.items()
        ]
        for key, wire in self.wires.items():
            deadline = wire.deadline()
            if deadline is not None:
                due.append((deadline, 1, *key))
        first = min(due, default=None)
        if first is None or first[0] > until:
            self.now = until
            return False
        self.now = max(self.now, first[0])
        key = first[2:]
        if first[1]:
            self.wires[key].break_off()
            return True
        node = self.nodes[key[0]]
        del node.timers[key[1:]]
        self._tell(node, key[1], TimerFired(key[2]))
        self._settle(node)
        return True

    # -- messages ---------------------------------------------------------------------------------

    def _arrived(self, wire: Wire) -> None:
        asked = wire.requests.popleft()
        server = self.nodes[wire.to]
        if not server.is_up:
            wire.answers.append((self._next(), asked, None))
            return
        token = self._next()
        wire.serving = token, asked
        self._tokens[token] = wire, asked.request
        if isinstance(asked.request, BrokerHeartbeatRequest):
            who = asked.request
            self._tell(server, "controller", HeartbeatArrived(who.broker, who.broker_epoch))
        client = f"broker-{wire.sender}" if wire.sender in BROKERS else str(wire.sender)
        machine = _MACHINE_OF.get(type(asked.request), "controller")
        self._tell(server, machine, RequestReceived(token, client, asked.request))
        self._settle(server)

    def _answered(self, wire: Wire) -> None:
        _, asked, answer = wire.answers.popleft()
        node = self.nodes[wire.sender]
        if answer is None:
            error = ErrorCode.NETWORK_EXCEPTION
            event: object = RequestFailed(wire.to, asked.correlation, error)
        else:
            event = ResponseReceived(wire.to, asked.correlation, answer)
        self._tell(node, asked.machine, event)
        self._settle(node)

    def _ask(self, node: Node, machine: str, request: object) -> None:
        token = self._next()
        self._tokens[token] = None, request
        self._tell(node, machine, RequestReceived(token, "shop", request))
        self._settle(node)

    def _next(self) -> int:
        self._count += 1
        return self._count

    # -- machines ---------------------------------------------------------------------------------

    def _tell(self, node: Node, machine: str, event: object) -> None:
        if machine == "quorum" and node.disk is not None:
            node.backlog.append(event)
        elif node.is_up:
            effects = node.machines[machine].handle(event, self.now)
            if machine == "quorum":
                self.promises.quorum_decided(node)
                if node.id in VOTERS:
                    # What takes the place of a cut tail is not flushed because the tail was.
                    node.flushed = min(node.flushed, node.metadata_log.log_end_offset)
            self._perform(node, machine, effects)

    def _settle(self, node: Node) -> None:
        """What machines of the node want of each other happens; then promises are looked at."""
        while self._soon:
            to, machine, event = self._soon.popleft()
            self._tell(to, machine, event)
        self.promises.look(node)

    def _perform(self, node: Node, machine: str, effects: list, start: int = 0) -> None:
        for at in range(start, len(effects)):
            effect = effects[at]
            voter = machine == "quorum" and node.id in VOTERS
            if voter and isinstance(effect, PersistQuorumState | fx.Flush):
                node.disk = effects, at, node.metadata_log.log_end_offset, self._next()
                return
            self._do(node, machine, effect)

    def _durable(self, node: Node) -> None:
        effects, at, end, _ = node.disk
        node.disk = None
        effect = effects[at]
        if isinstance(effect, PersistQuorumState):
            node.state = effect.state
            self.promises.persisted(node, effect.state)
        else:
            node.flushed = min(end, node.metadata_log.log_end_offset)
        self._perform(node, "quorum", effects, at + 1)
        while node.backlog and node.disk is None:
            self._tell(node, "quorum", node.backlog.popleft())
        self._settle(node)

    def _do(self, node: Node, machine: str, effect: object) -> None:
        match effect:
            case fx.Send():
                wire = self.wires.setdefault(
                    (node.id, effect.to, effect.channel), Wire(node.id, effect.to)
                )
                deadline = self.now + effect.timeout_us
                wire.requests.append(
                    Asked(self._next(), machine, effect.correlation, effect.request, deadline)
                )
            case fx.Close() | fx.Disconnect():
                self.wires.pop((node.id, effect.to, effect.channel), None)
            case fx.Reply():
                self._reply(node, effect)
            case fx.SetTimer():
                node.timers[machine, effect.name] = effect.at
            case fx.CancelTimer():
                node.timers.pop((machine, effect.name), None)
            case fx.Flush():
                node.log.flush()
                if effect.token is not None:
                    self._soon.append((node, machine, Flushed(effect.token)))
            case Halt():
                raise Broken("the log below the high watermark stays", effect.reason)
            case _:
                self._do_more(node, effect)

    def _do_more(self, node: Node, effect: object) -> None:
        match effect:
            case Committed():
                self.promises.committed(node, effect)
                if isinstance(node, BrokerNode):
                    node.pending.append((self._next(), effect))
                else:
                    self._tell(node, "controller", effect)
            case LeadershipChanged() if isinstance(node, BrokerNode):
                self._tell(node, "lifecycle", life.ControllerKnown(effect.leader))
                self._tell(node, "replicas", ControllerChanged(effect.leader))
            case LeadershipChanged():
                self._tell(node, "controller", effect)
            case AppendMetadata():
                self._soon.append((node, "quorum", effect))
            case life.Registered():
                self._tell(node, "replicas", RegisteredWithEpoch(effect.broker_epoch))
            case life.CaughtUp():
                assert node.is_published, "what is reported as applied is published"
                self._soon.append((node, "lifecycle", life.ReadyToUnfence()))

    def _reply(self, node: Node, effect: fx.Reply) -> None:
        wire, request = self._tokens.pop(effect.token)
        self.promises.answered(node, request, effect.response)
        if wire is not None and wire.serving is not None and wire.serving[0] == effect.token:
            wire.answers.append((self._next(), wire.serving[1], effect.response))
            wire.serving = None

    # -- metadata ---------------------------------------------------------------------------------

    def _apply(self, node: BrokerNode) -> None:
        _, committed = node.pending.popleft()
        for logged in committed.records:
            node.image.replay(logged.offset, logged.epoch, logged.record)
        if node.is_published or node.image.offset >= node.quorum.high_watermark:
            node.is_published = True  # registered or not, as since 3.5
            self._publish(node)
        self._settle(node)

    def _publish(self, node: BrokerNode) -> None:
        image = node.image
        changed = image.take_changed()
        replica = node.replicas.replicas.get(P)
        if not self.plan.repeats and replica is not None and P in image.partitions:
            # Without the race of Kafka's own that a search of the data plane alone has found.
            known = replica.partition_epoch == image.partitions[P].partition_epoch
            changed = () if known else changed
        # A copy: what is replayed and not yet published is not the broker's state.
        event = MetadataApplied(image.copy(), changed, image.take_reconfigured())
        self._tell(node, "replicas", event)


def _concerns(what: tuple, group: tuple[int, ...]) -> bool:
    """Whether only nodes of the group have to do with it."""
    kind, key = what
    return (key[0] in group and key[1] in group) if kind in {"answer", "request"} else key in group
