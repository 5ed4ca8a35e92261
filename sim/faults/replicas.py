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
from sim.log.directory.damage import CUT_CHECKPOINTS, CUT_FILES
from sim.log.store.stored_file import Rot


class ReplicaDamage(Instant):
    """Removes or damages one replica's files."""

    def __init__(self, broker: Broker, partition: TopicPartition, fault: "_Damaged") -> None:
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

    @property
    def place(self) -> TopicPartition | None:
        """The partition."""
        return self.partition


class _Damaged(_ReplicaFault):
    """A replica's files are lost or damaged while their process is down."""

    way: ClassVar[str]
    """Way in which the broker's files are damaged, see :mod:`sim.nodes.broker.replica_faults`."""
    stream: ClassVar[str] = ""
    """Of the chance in it, if not its kind's."""
    done: ClassVar[str]
    """Effect as text."""

    def on(self, names: tuple[str, ...], site: Site) -> ReplicaDamage | None:
        """Action on the first of these brokers."""
        broker = site.world.broker(names[0])
        if broker is None or self.partition is None:
            return None
        return ReplicaDamage(broker, self.partition, self)


class LostReplica(_Damaged):
    """The files of one replica of one topic partition are removed."""

    kind = "lost-replica"
    proof = "the replica was there"
    way = "remove"
    done = "files removed"
    takes_copies = True


class CorruptReplica(_Damaged):
    """A bit flips in one replica's files of one topic partition."""

    kind = "corrupt-replica"
    proof = "the replica held bytes"
    way = "flip a bit"
    stream = "corruption"  # the name of the kind that was there first
    done = "a bit flipped"
    damage = "a bit flipped"


class TornWrite(_Damaged):
    """Kill -9 in the middle of an append to one replica; the process starts again at once."""

    kind = "torn-write"
    proof = "the replica held a batch to tear"
    may_break = "nothing: that batch was never acknowledged"
    way = "tear"
    done = "last batch torn"
    damage = "the last batch was torn"


class MisdirectedWrite(_Damaged):
    """A page meant for another place of the disk overwrites a page of one replica."""

    kind = "misdirected-write"
    proof = "the page was another one"
    may_break = f"{ONE_COPY}; in an older segment it is found when somebody reads it"
    way = "overwrite"
    done = "a page overwritten"
    damage = "a page was overwritten by a write for another file"


class _Cut(Instant):
    """Cuts the end of a file."""

    def __init__(self, broker: Broker, partition: TopicPartition, fault: "CutFile") -> None:
        self._broker = broker
        self._partition = partition
        self._fault = fault
        self._done = ""

    def begin(self) -> None:
        """Cuts it."""
        self._done = self._broker.cut_file(self._partition, self._fault.file, self._fault.size)

    def evidence(self) -> Evidence:
        """True if the file had a byte."""
        where = f"{self._partition} on {self._broker.name}"
        if not self._done:
            return Evidence(took_effect=False, effect=f"no {self._fault.file} of {where} to cut")
        return Evidence(took_effect=True, effect=f"{self._done} cut: {where}")


@dataclass(frozen=True, kw_only=True)
class CutFile(_ReplicaFault):
    """The last bytes of one file of a replica, or of its log directory, are lost."""

    kind = "cut-file"
    proof = "the file had bytes"
    damage = "the end of a file was cut"
    file: str = field(
        default="log",
        metadata=key("file", "word", "the newest of its kind",
                     words=(*CUT_FILES, *CUT_CHECKPOINTS)),
    )  # fmt: skip
    size: int = field(metadata=key("bytes", "whole", "how many", low=1, high=1 << 30))

    def on(self, names: tuple[str, ...], site: Site) -> _Cut | None:
        """Action on the first of these brokers."""
        broker = site.world.broker(names[0])
        assert self.partition is not None, "the scenario has resolved it"
        return None if broker is None else _Cut(broker, self.partition, self)


class _Decay(Instant):
    """Flips bits, and asks later whether anybody has read them."""

    def __init__(self, broker: Broker, partition: TopicPartition, fault: "BitRot") -> None:
        self._broker = broker
        self._partition = partition
        self._fault = fault
        self._found: tuple[str, Rot] | None = None

    def begin(self) -> None:
        """Flips them."""
        fault = self._fault
        self._found = self._broker.let_rot(self._partition, fault.segment, fault.bits, fault.kind)

    def evidence(self) -> Evidence:
        """True if somebody has read them since."""
        where = f"{self._partition} on {self._broker.name}"
        if self._found is None:
            return Evidence(took_effect=False, effect=f"no byte of {where} on the platter")
        name, rot = self._found
        text = f"bits rotted in bytes {rot.start} to {rot.end - 1} of {name}: {where}"
        if not rot.reads:
            return Evidence(took_effect=False, effect=f"{text}; nobody has read them")
        return Evidence(took_effect=True, effect=f"{text}; read {rot.reads} times since")


@dataclass(frozen=True, kw_only=True)
class BitRot(_ReplicaFault):
    """Bits flip in a page of one replica that memory has no more; only a reader notices."""

    kind = "bit-rot"
    proof = "the page was read afterwards: by a follower, a consumer, the cleaner or recovery"
    may_break = f"{ONE_COPY}; found when somebody reads it"
    damage = "bits rotted on the platter"
    segment: str = field(
        default="oldest", metadata=key("segment", "word", words=("oldest", "newest", "any"))
    )
    bits: int = field(default=1, metadata=key("bits", "whole", low=1, high=4_096))

    def on(self, names: tuple[str, ...], site: Site) -> _Decay | None:
        """Action on the first of these brokers."""
        broker = site.world.broker(names[0])
        assert self.partition is not None, "the scenario has resolved it"
        return None if broker is None else _Decay(broker, self.partition, self)


REPLICA_FAULTS: Final[tuple[type[Fault], ...]] = (
    LostReplica, CorruptReplica, TornWrite, MisdirectedWrite, CutFile, BitRot,
)  # fmt: skip
