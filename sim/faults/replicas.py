"""Faults of one replica of one topic partition: its files are lost or damaged.

Source: the failure catalogue B8, B9.
"""

from dataclasses import dataclass, field
from typing import ClassVar, Final

from sim.faults.action import Evidence, Instant
from sim.faults.fault import ONE_COPY, Fault, Hits, Span, TargetFault, key
from sim.faults.resolve import Site
from sim.faults.surface import Broker
from sim.faults.target import Target
from sim.ids import TopicPartition


class ReplicaDamage(Instant):
    """Removes or damages one replica's files."""

    def __init__(self, broker: Broker, partition: TopicPartition, fault: "_ReplicaFault") -> None:
        self._broker = broker
        self._partition = partition
        self._fault = fault
        self._done = False

    def begin(self) -> None:
        """Removes or damages the files."""
        fault = self._fault
        stream = fault.stream or fault.kind
        self._done = self._broker.damage_replica(fault.way, self._partition, stream)

    def evidence(self) -> Evidence:
        """True if there was a replica with bytes in it."""
        where = f"{self._partition} on {self._broker.name}"
        if not self._done:
            return Evidence(took_effect=False, effect=f"no bytes of {where}, or no space")
        return Evidence(took_effect=True, effect=f"{self._fault.done}: {where}")


@dataclass(frozen=True, kw_only=True)
class _ReplicaFault(TargetFault):
    """One replica of one topic partition is lost or damaged."""

    may_break = ONE_COPY
    span: ClassVar[Span] = "instant"
    hits: ClassVar[Hits] = "replica"
    targets: tuple[Target, ...] = field(metadata=key("target", "target"))
    partition: TopicPartition | None = field(
        default=None,
        metadata=key("partition", "replica", "default: the partition the target names"),
    )
    """Never ``None`` once the scenario is read."""
    way: ClassVar[str]
    """Way in which the broker's files are damaged, see :mod:`sim.nodes.broker.replica_faults`."""
    stream: ClassVar[str] = ""
    """Of the chance in it, if not its kind's."""
    done: ClassVar[str]
    """Effect as text."""

    @property
    def place(self) -> TopicPartition | None:
        """The partition."""
        return self.partition

    def on(self, names: tuple[str, ...], site: Site) -> ReplicaDamage | None:
        """Action on the first of these brokers."""
        broker = site.world.broker(names[0])
        if broker is None or self.partition is None:
            return None
        return ReplicaDamage(broker, self.partition, self)


class LostReplica(_ReplicaFault):
    """The files of one replica of one topic partition are removed."""

    kind = "lost-replica"
    proof = "the replica was there"
    way = "remove"
    done = "files removed"
    takes_copies = True


class CorruptReplica(_ReplicaFault):
    """A bit flips in one replica's files of one topic partition."""

    kind = "corrupt-replica"
    proof = "the replica held bytes"
    way = "flip a bit"
    stream = "corruption"  # the name of the kind that was there first
    done = "a bit flipped"
    damage = "a bit flipped"


class TornWrite(_ReplicaFault):
    """Kill -9 in the middle of an append to one replica; the process starts again at once."""

    kind = "torn-write"
    proof = "the replica held a batch to tear"
    may_break = "nothing: that batch was never acknowledged"
    way = "tear"
    done = "last batch torn"
    damage = "the last batch was torn"


class MisdirectedWrite(_ReplicaFault):
    """A page meant for another place of the disk overwrites a page of one replica."""

    kind = "misdirected-write"
    proof = "the page was another one"
    may_break = f"{ONE_COPY}; in an older segment it is found when somebody reads it"
    way = "overwrite"
    done = "a page overwritten"
    damage = "a page was overwritten by a write for another file"


REPLICA_FAULTS: Final[tuple[type[Fault], ...]] = (
    LostReplica, CorruptReplica, TornWrite, MisdirectedWrite,
)  # fmt: skip
