"""Rules in force on links, and what they hold.

Source: turmoil's rules for faults as verdicts on packets.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from sim.rng import Streams
from sim.substrate.distributions import Delays
from sim.substrate.links import (
    PACKET_BYTES,
    RETRANSMISSION_US_MAX,
    LinkRule,
    Message,
    NetworkSpec,
    retransmission_us,
)
from sim.substrate.topology import Topology
from sim.units import LONG_AGO, SECOND, Bytes, Micros

HELD: Micros = -1
"""A verdict: the message waits until a rule is removed."""

DROPPED: Micros = -2
"""A verdict: the message is lost, and its connection with it."""


class _Rules(Protocol):
    """Port to the network that rules are installed in."""

    def remove_rule(self, handle: "RuleHandle") -> None:
        """Removes a rule."""


class _Held(Protocol):
    """Port to a held pipe."""

    def release(self) -> None:
        """Resumes."""


@dataclass(slots=True)
class RuleHandle:
    """An installed rule. ``affected`` counts the messages that it held back or slowed."""

    rule: LinkRule
    _network: "_Rules"
    affected: int = 0
    repeated: int = 0
    """Messages that are repeated, arrived or not."""
    free_at: Micros = LONG_AGO
    """Instant at which the shared bandwidth is free again."""
    holding: "list[_Held]" = field(default_factory=list)
    """Pipes whose first waiting message it holds."""

    def meets(self, item: "Waiting") -> bool:
        """True if the rule matches this message; counts it unless already held."""
        rule = self.rule
        if not rule.concerns(item.message):
            return False
        return not rule.count or self.affected < rule.count or item.held_by == rule.name

    def repeats(self, item: "Waiting") -> bool:
        """True if the rule repeats this message; counts it."""
        rule = self.rule
        if not rule.repeat_us or not rule.concerns(item.message):
            return False
        if rule.count and self.repeated >= rule.count:
            return False
        self.repeated += 1
        return True

    def queue(self, size: Bytes, start: Micros) -> Micros:
        """Delay that the shared bandwidth adds to a message."""
        if not self.rule.bandwidth_bits:
            return 0
        free = max(self.free_at, start) + -(-size * 8 * SECOND // self.rule.bandwidth_bits)
        self.free_at = free
        return free - start

    def remove(self) -> None:
        """Heals; harmless when done twice."""
        self._network.remove_rule(self)


@dataclass(slots=True)
class Interface:
    """A host's network card: sends one byte after the other."""

    bandwidth_bits: int
    """In bits per second, each way."""
    free_at: Micros = LONG_AGO
    sent_bytes: Bytes = 0
    powered: bool = True
    power_losses: int = 0
    received_at: Micros = LONG_AGO
    """Instant until which its switch sends to it."""

    def receive(self, size: Bytes, sent_at: Micros) -> Micros:
        """Queues at the port of the switch before a slower interface; returns when it has it."""
        start = max(self.received_at, sent_at)
        self.received_at = start - (-size * 8 * SECOND // self.bandwidth_bits)
        return self.received_at


@dataclass(slots=True)
class Waiting:
    """A message that a socket holds back."""

    message: Message | None
    control: Callable[[], None] | None
    size: Bytes
    sent_us: Micros
    held_by: str
    correlation: int = 0
    opens: bool = False
    """True for a segment that opens a connection, which has another timer."""
    is_on_its_way: bool = False
    """True if it has left its host: the network holds it, independent of the sender."""


@dataclass(slots=True)
class Route:
    """One direction between two hosts, with the rules now in force on it."""

    sender: str
    receiver: str
    delays: Delays
    unit: Callable[[], float]
    version: int = -1
    rules: tuple[RuleHandle, ...] = ()

    def loss_delay(self, loss: float, item: Waiting) -> Micros:
        """Delay of a message by retransmissions of lost packets, in us; 0 if none is lost."""
        if loss <= 0.0:
            return 0
        packets = -(-item.size // PACKET_BYTES)
        arrives = (1.0 - loss) ** packets
        delay = made = 0
        timeout = retransmission_us(0, opens=item.opens)
        while self.unit() >= arrives and timeout < RETRANSMISSION_US_MAX:
            delay += timeout
            made += 1
            timeout = retransmission_us(made, opens=item.opens)
            arrives = 1.0 - loss
        return delay

    def verdict(
        self, rules: tuple[RuleHandle, ...], item: Waiting, now: Micros, pipe: _Held
    ) -> Micros | None:
        """Verdict on a message by rules: extra delay, ``None`` for a cut, HELD or DROPPED.

        Args:
            rules: Those in force.
            item: The message.
            now: The present instant.
            pipe: To be released when a rule that holds the message is removed.
        """
        extra = 0
        for handle in rules:
            rule = handle.rule
            if rule.repeat_us or not handle.meets(item):
                continue
            if rule.cut:
                handle.affected += 1
                item.held_by = rule.name
                return None
            if rule.hold or rule.drop:
                handle.affected += item.held_by != rule.name
                item.held_by = rule.name
                if rule.drop:
                    return DROPPED
                handle.holding.append(pipe)
                return HELD
            delay = rule.delay_us + self.loss_delay(rule.loss, item)
            delay += handle.queue(item.size, now)
            if delay:
                handle.affected += 1
                item.held_by = rule.name
                extra += delay
        return extra


class Routes:
    """Routes between hosts, and the rules in force on them."""

    def __init__(self, streams: Streams, spec: NetworkSpec) -> None:
        self.topology = Topology(spec)
        self._streams = streams
        self._routes: dict[tuple[str, str], Route] = {}
        self._rules: list[RuleHandle] = []
        self.version = 0

    def add_rule(self, rule: LinkRule) -> RuleHandle:
        """Installs a rule; rules add up."""
        handle = RuleHandle(rule, self)
        self._rules.append(handle)
        self.version += 1
        return handle

    def remove_rule(self, handle: RuleHandle) -> None:
        """Removes a rule; harmless when done twice."""
        if handle in self._rules:
            self._rules.remove(handle)
            self.version += 1
            held, handle.holding = handle.holding, []
            for pipe in held:
                pipe.release()

    def route(self, sender: str, receiver: str) -> Route:
        """The route from one host to another."""
        route = self._routes.get((sender, receiver))
        if route is None:
            unit = self._streams.named(f"network/{sender}->{receiver}").unit
            delays = Delays(self.topology.spread(sender, receiver), unit)
            loss_unit = self._streams.named(f"network/{sender}->{receiver}/loss").unit
            route = self._routes[sender, receiver] = Route(sender, receiver, delays, loss_unit)
        return route

    def rules_on(self, route: Route) -> tuple[RuleHandle, ...]:
        """The rules now in force on a route."""
        if route.version != self.version:
            route.version = self.version
            route.rules = tuple(
                h
                for h in self._rules
                if route.sender in h.rule.senders and route.receiver in h.rule.receivers
            )
        return route.rules
