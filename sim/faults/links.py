"""Faults of links: partition, delay, loss, bandwidth; and of single kinds of message.

A cut drops nothing that a socket has accepted: TCP sends it again when the link is back. What is
lost is what a closed or timed-out connection carried. A message that is held has left its host, and
arrives when it is released, also if its sender has closed the connection or ended meanwhile.

Source: TCP's retransmission (RFC 6298).
"""

from collections.abc import Sequence

from sim.faults.action import Evidence
from sim.faults.spec import Fault
from sim.faults.surface import Network, RuleHandle
from sim.substrate.network import LinkRule

_VERBS = {
    "partition": "held back",
    "delay": "delayed",
    "loss": "sent again",
    "bandwidth": "slowed down",
    "hold": "held",
    "drop": "lost",
}


class LinkFault:
    """One rule for each direction between two sides of hosts."""

    def __init__(
        self, network: Network, fault: Fault, senders: Sequence[str], receivers: Sequence[str]
    ) -> None:
        self._network = network
        self._kind = fault.kind
        ways = (
            [(senders, receivers)]
            if fault.one_way
            else [
                (senders, receivers),
                (receivers, senders),
            ]
        )
        self._rules = [
            LinkRule(
                f"{fault.kind} faults[{fault.index}]",
                frozenset(some),
                frozenset(others),
                cut=fault.kind == "partition",
                delay_us=fault.by_us,
                loss=fault.ratio,
                bandwidth_bits=fault.bandwidth_bits,
                hold=fault.kind == "hold",
                drop=fault.kind == "drop",
                kinds=frozenset(fault.messages),
                count=fault.count,
            )
            for some, others in ways
        ]
        self._handles: list[RuleHandle] = []

    def begin(self) -> None:
        """Put the rules in force."""
        self._handles = [self._network.add_rule(rule) for rule in self._rules]

    def heal(self) -> bool:
        """Take the rules away."""
        for handle in self._handles:
            handle.remove()
        return True

    def evidence(self) -> Evidence:
        """Whether a message met a rule."""
        affected = sum(handle.affected for handle in self._handles)
        verb = _VERBS[self._kind]
        return Evidence(affected > 0, f"{affected} messages {verb}")
