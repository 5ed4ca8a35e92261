"""Targets of faults: a name or a role."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from sim.ids import TopicPartition

TargetKind: TypeAlias = Literal[
    "node", "rack", "leader", "follower", "controller leader", "zookeeper leader",
    "random broker", "random rack", "all brokers", "all controllers", "each",
]  # fmt: skip
"""Resolution of a target."""


@dataclass(frozen=True, slots=True)
class Target:
    """Target of a fault; roles are resolved when the fault starts."""

    kind: TargetKind
    text: str
    """As written in the scenario."""
    names: tuple[str, ...] = ()
    """The printed names, for ``node`` and ``rack``; known before the run."""
    partition: TopicPartition | None = None
    """For ``leader`` and ``follower``."""
    parts: tuple["Target", ...] = ()
    """For ``each``: the components that fail on their own."""

    @property
    def is_role(self) -> bool:
        """True if it can only be resolved in the running cluster."""
        return self.kind not in {"node", "rack", "all brokers", "all controllers", "each"}


TARGET_FORMS: Final[tuple[str, ...]] = (
    "broker-1",
    "controller-1",
    "rack a",
    "leader of orders-0",
    "follower of orders-0",
    "group coordinator of billing",
    "transaction coordinator of shop",
    "controller leader",
    "zookeeper leader",
    "random broker",
    "random rack",
    "all brokers",
    "all controllers",
    "each broker (with mtbf)",
    "a client's name",
)
"""Examples of every form of target."""
