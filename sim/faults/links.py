"""Faults of links: partition, delay, loss, bandwidth; and of single kinds of message.

A cut drops nothing that a socket has accepted: TCP retransmits it when the link is back. Only data
of a closed or timed-out connection is lost. A message that is held has left its host, and arrives
when it is released, also if its sender has closed the connection or ended meanwhile.

Source: TCP's retransmission (RFC 6298).
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

from sim.faults.action import Action, Evidence
from sim.faults.fault import LATE, NOTHING, Fault, Hits, TargetFault, key
from sim.faults.resolve import Site
from sim.faults.surface import Broker, Network, RuleHandle, World
from sim.faults.target import Target
from sim.ids import NO_LEADER, NodeId, server_name
from sim.substrate.links import LinkRule
from sim.units import Micros

_EVERYONE: Final = "default: everyone else"


class LinkRules:
    """Link rules of one fault, one for each direction."""

    def __init__(self, network: Network, rules: Sequence[LinkRule], verb: str) -> None:
        self._network = network
        self._rules = rules
        self._verb = verb
        self._handles: list[RuleHandle] = []

    def begin(self) -> None:
        """Adds the rules."""
        self._handles = [self._network.add_rule(rule) for rule in self._rules]

    def heal(self) -> bool:
        """Removes the rules."""
        for handle in self._handles:
            handle.remove()
        return True

    def evidence(self) -> Evidence:
        """Messages that a rule has affected."""
        affected = sum(handle.affected for handle in self._handles)
        return Evidence(affected > 0, f"{affected} messages {self._verb}")


class OnLinks(Fault):
    """A fault of messages between two sides of hosts."""

    may_break = LATE
    one_way = True
    verb: ClassVar[str]
    """Effect on messages, as text."""

    @abstractmethod
    def rule(self, name: str, senders: frozenset[str], receivers: frozenset[str]) -> LinkRule:
        """Rule of one direction."""

    def action(self, site: Site) -> tuple[Action | None, str]:
        """Its rules, and both sides at this instant."""
        some, others = site.sides(self.targets, self.peers)
        if not some or not others:
            return None, ""
        about = f"{', '.join(self.messages)}: " if self.messages else ""
        ways = [(some, others)] if self.one_way else [(some, others), (others, some)]
        name = f"{self.kind} faults[{self.index}]"
        rules = [self.rule(name, frozenset(left), frozenset(right)) for left, right in ways]
        resolved = f"{about}{', '.join(some)} {self._arrow} {', '.join(others)}"
        return LinkRules(site.world.network, rules, self.verb), resolved

    @property
    def target_text(self) -> str:
        """Both sides."""
        left = ", ".join(target.text for target in self.targets)
        if not self.peers:
            return left
        return f"{left} {self._arrow} {', '.join(target.text for target in self.peers)}"

    @property
    def _arrow(self) -> str:
        return "->" if self.one_way else "<->"


@dataclass(frozen=True, kw_only=True)
class _LinkFault(OnLinks):
    """A fault of links."""

    targets: tuple[Target, ...] = field(metadata=key("between", "side"))
    peers: tuple[Target, ...] = field(default=(), metadata=key("and", "side", _EVERYONE))
    one_way: bool = field(default=False, metadata=key("one-way", "flag"))


class NetworkPartition(_LinkFault):
    """A silent cut of the links between two sides, or one way only."""

    kind = "partition"
    proof = "messages were held back"
    may_break = f"{NOTHING}; with acks=1 what a leader that is cut off still acknowledges"
    verb = "held back"

    def rule(self, name: str, senders: frozenset[str], receivers: frozenset[str]) -> LinkRule:
        """A cut."""
        return LinkRule(name, senders, receivers, cut=True)


@dataclass(frozen=True, kw_only=True)
class Delay(_LinkFault):
    """Every message on the links takes longer, or every one of some kinds."""

    kind = "delay"
    proof = "messages were delayed"
    verb = "delayed"
    messages: tuple[str, ...] = field(
        default=(), metadata=key("message", "messages", "default: every kind")
    )
    by_us: Micros = field(metadata=key("by", "duration", low=1))

    def rule(self, name: str, senders: frozenset[str], receivers: frozenset[str]) -> LinkRule:
        """A delay of each message, one way."""
        kinds = frozenset(self.messages)
        return LinkRule(name, senders, receivers, delay_us=self.by_us, kinds=kinds)


@dataclass(frozen=True, kw_only=True)
class Loss(_LinkFault):
    """A share of the segments on the links is lost and sent again."""

    kind = "loss"
    proof = "messages were retransmitted"
    verb = "sent again"
    ratio: float = field(metadata=key("ratio", "ratio"))

    def rule(self, name: str, senders: frozenset[str], receivers: frozenset[str]) -> LinkRule:
        """Lost segments."""
        return LinkRule(name, senders, receivers, loss=self.ratio)


@dataclass(frozen=True, kw_only=True)
class Bandwidth(_LinkFault):
    """All messages on the links share this much, in both directions or one."""

    kind = "bandwidth"
    proof = "messages were slowed down"
    verb = "slowed down"
    bytes_per_s: int = field(metadata=key("to", "bandwidth"))

    def rule(self, name: str, senders: frozenset[str], receivers: frozenset[str]) -> LinkRule:
        """A narrow link."""
        return LinkRule(name, senders, receivers, bandwidth_bits=self.bytes_per_s * 8)


@dataclass(frozen=True, kw_only=True)
class _MessageFault(OnLinks):
    """A fault of one kind of message, one way."""

    messages: tuple[str, ...] = field(metadata=key("message", "messages"))
    targets: tuple[Target, ...] = field(metadata=key("from", "side"))
    peers: tuple[Target, ...] = field(default=(), metadata=key("to", "side", _EVERYONE))
    count: int | None = field(default=None, metadata=key("count", "whole", "default: all", low=1))

    def rule(self, name: str, senders: frozenset[str], receivers: frozenset[str]) -> LinkRule:
        """Messages that are held or lost."""
        return LinkRule(
            name, senders, receivers, hold=isinstance(self, Hold), drop=isinstance(self, Drop),
            kinds=frozenset(self.messages), count=self.count or 0,
        )  # fmt: skip


class Hold(_MessageFault):
    """One kind of message from some to others waits until healed, and what follows it."""

    kind = "hold"
    proof = "a message was held"
    verb = "held"


class Drop(_MessageFault):
    """One kind of message from some to others is lost, and its connection breaks."""

    kind = "drop"
    proof = "a message was lost"
    may_break = f"{LATE}; without idempotence a retry makes duplicates, or another order"
    verb = "lost"


@dataclass(frozen=True, kw_only=True)
class Duplicate(OnLinks):
    """One kind of request is delivered once more, `later` than it was sent.

    TCP delivers each byte of a connection once. A server gets a request twice when it lay in the
    socket of a connection that the client has given up: the client sends it again elsewhere, and
    both are decided upon. Here the second is the copy, and nobody waits for its answer.
    """

    kind = "duplicate"
    proof = "a server got a request a second time"
    may_break = f"{NOTHING}; without idempotence a repeated ProduceRequest makes duplicates"
    one_way = True
    verb = "delivered twice"
    messages: tuple[str, ...] = field(metadata=key("message", "requests"))
    targets: tuple[Target, ...] = field(metadata=key("from", "side"))
    peers: tuple[Target, ...] = field(default=(), metadata=key("to", "side", _EVERYONE))
    later_us: Micros = field(metadata=key("later", "duration", low=1))
    count: int | None = field(default=None, metadata=key("count", "whole", "default: all", low=1))

    def rule(self, name: str, senders: frozenset[str], receivers: frozenset[str]) -> LinkRule:
        """Requests that are repeated."""
        kinds = frozenset(self.messages)
        count = self.count or 0
        return LinkRule(name, senders, receivers, repeat_us=self.later_us, kinds=kinds, count=count)


class WrongNames:
    """A broker's advertised name means another broker, or nobody."""

    def __init__(self, world: World, broker: Broker, other: NodeId) -> None:
        self._world = world
        self._node = broker.node_id
        self._other = other
        self._before = 0
        self._after: int | None = None

    def begin(self) -> None:
        """Makes the name wrong."""
        self._before = self._misled()
        self._world.misname(self._node, self._other)

    def heal(self) -> bool:
        """Makes it right."""
        self._world.misname(self._node, None)
        self._after = self._misled()
        return True

    def evidence(self) -> Evidence:
        """Connections that clients began meanwhile."""
        misled = (self._misled() if self._after is None else self._after) - self._before
        where = "nobody" if self._other == NO_LEADER else server_name(self._other)
        return Evidence(misled > 0, f"{misled} connections of clients led to {where}")

    def _misled(self) -> int:
        return self._world.misled.get(self._node, 0)


@dataclass(frozen=True, kw_only=True)
class WrongAdvertisedName(TargetFault):
    """Clients that connect to a broker by its advertised name reach another one, or nobody."""

    kind = "wrong-advertised-name"
    proof = "a client connected, or tried to"
    may_break = LATE
    hits: ClassVar[Hits] = "broker"
    targets: tuple[Target, ...] = field(metadata=key("target", "target"))
    other: NodeId | None = field(
        default=None, metadata=key("means", "broker", "default: nobody, as of an unknown host")
    )

    def on(self, names: tuple[str, ...], site: Site) -> WrongNames | None:
        """Action on this broker."""
        broker = site.world.broker(names[0])
        other = NO_LEADER if self.other is None else self.other
        return None if broker is None else WrongNames(site.world, broker, other)


LINK_FAULTS: Final[tuple[type[Fault], ...]] = (
    NetworkPartition, Delay, Loss, Bandwidth, Hold, Drop, Duplicate,
    WrongAdvertisedName,
)  # fmt: skip
