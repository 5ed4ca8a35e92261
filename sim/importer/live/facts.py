"""Answers of a running cluster as plain facts: nothing here knows a client or a scenario."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

Place: TypeAlias = tuple[str, int]
"""A partition: topic and number."""

UNSAID: Final = "(hidden)"
"""In place of a setting's value that the broker keeps for itself (``is_sensitive``)."""

_SHOWN: Final = 5


def some_of(names: Sequence[object]) -> str:
    """The first names, and the number of others: ``a, b, c, d, e and 7 more``."""
    first = ", ".join(str(name) for name in names[:_SHOWN])
    return f"{first} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else first


@dataclass(frozen=True, slots=True)
class BrokerFacts:
    """A registered broker."""

    node: int
    rack: str = ""
    configs: Mapping[str, str] | None = None
    """Settings that are not Kafka's default; ``None``: it is down, or does not say them."""
    is_up: bool = True
    version: tuple[int, ...] = ()
    """Of Kafka, as far as the requests that it knows show it."""


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """Replicas of a partition."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    """-1: it has none."""
    moving: bool = False
    """A reassignment is under way."""


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """A topic."""

    name: str
    partitions: Mapping[int, PartitionFacts]
    internal: bool = False
    configs: Mapping[str, str] | None = field(default_factory=dict)
    """Overrides; ``None``: not known."""


@dataclass(frozen=True, slots=True)
class MemberFacts:
    """A member of a group."""

    client: str = ""
    """Its ``client.id``."""
    instance: str = ""
    """Its ``group.instance.id``."""
    topics: tuple[str, ...] = ()
    """That it subscribed to; of a pattern those that it was assigned."""


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """A group, as its coordinator describes it."""

    name: str
    kind: str
    """``classic``, ``consumer`` (KIP-848), ``share``, ``streams``."""
    protocol: str = "consumer"
    """Of a classic group: ``consumer``, ``connect``, ..., or empty for offsets alone."""
    state: str = ""
    assignor: str = ""
    members: tuple[MemberFacts, ...] = ()
    coordinator: int = -1
    """The broker that answers for it."""


@dataclass(frozen=True, slots=True)
class QuotaFacts:
    """Quotas of one entity."""

    entity: tuple[tuple[str, str | None], ...]
    """Kind (``user``, ``client-id``, ``ip``) and name; ``None`` for all others."""
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Sample:
    """Offsets and sizes at one instant, as far as they were answered."""

    ends_s: float = 0.0
    """Instant of the ends, in seconds of a steady clock."""
    committed_s: float = 0.0
    ends: Mapping[Place, int] = field(default_factory=dict)
    """Offset behind the last record that consumers may read."""
    starts: Mapping[Place, int] = field(default_factory=dict)
    sizes: Mapping[Place, int] = field(default_factory=dict)
    """Bytes of the leader's log, or of any replica's where the leader does not say."""
    committed: Mapping[str, Mapping[Place, int]] = field(default_factory=dict)
    """Committed offsets of each group."""


@dataclass(slots=True)
class ClusterFacts:
    """Everything that was answered, and a line for each thing that was not."""

    cluster: str = ""
    """Its id."""
    brokers: list[BrokerFacts] = field(default_factory=list)
    topics: list[TopicFacts] = field(default_factory=list)
    groups: list[GroupFacts] = field(default_factory=list)
    quotas: list[QuotaFacts] = field(default_factory=list)
    voters: tuple[int, ...] = ()
    """Controllers that vote; none: it is not known, or ZooKeeper's."""
    is_dynamic: bool = False
    """The quorum's voters are a record of the metadata log (KIP-853)."""
    samples: list[Sample] = field(default_factory=list)
    """At the beginning and at the end of the measurement."""
    gaps: list[str] = field(default_factory=list)
    """Each thing that was not answered, why, and what to do."""
