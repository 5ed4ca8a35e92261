"""Calls of applications to their consumers, and the tool for groups, as entries of the calendar.

Source: ``KafkaConsumer.{seek,seekToBeginning,seekToEnd,offsetsForTimes,pause,resume}``;
``kafka-consumer-groups``.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final, Literal

from sim.faults.action import Evidence, Instant
from sim.faults.fault import LATE, Fault, Hits, Span, TargetFault, key
from sim.faults.operations import AS_MEANT, evidence_of
from sim.faults.resolve import Site
from sim.faults.surface import Operation, Reader, World
from sim.ids import NO_OFFSET, Offset, TopicPartition
from sim.protocol.clients.admin.group_tool import GroupCommand, ResetOffsets
from sim.protocol.messages.data import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from sim.protocol.messages.group_admin import DeleteGroupsRequest, OffsetDeleteRequest
from sim.units import Micros, timestamp_ms

_BILLION: Final = 1_000_000_000


class _Calls:
    """Calls of some applications, and the partitions that they have met."""

    def __init__(self, readers: Sequence[Reader]) -> None:
        self._readers = readers
        self._numbers: list[tuple[Reader, int]] = []

    def make(
        self,
        what: Literal["seek", "pause"],
        partitions: tuple[TopicPartition, ...],
        offset: Offset = NO_OFFSET,
        timestamp: int | None = None,
    ) -> None:
        """Lets every application that runs call."""
        for reader in self._readers:
            if reader.running:
                self._numbers.append((reader, reader.call(what, partitions, offset, timestamp)))

    def undo(self, partitions: tuple[TopicPartition, ...]) -> None:
        """Lets every application that runs resume the partitions."""
        for reader in self._readers:
            if reader.running:
                reader.call("resume", partitions)

    def evidence(self, done: str) -> Evidence:
        """True if a call has met a partition that was assigned."""
        if not self._numbers:
            return Evidence(took_effect=False, effect="the application was not running")
        answers = [reader.called(number) for reader, number in self._numbers]
        met = [str(place) for places in answers for place in places or ()]
        if met:
            return Evidence(took_effect=True, effect=f"{done} {', '.join(met)}")
        if None in answers:
            return Evidence(took_effect=False, effect="the application has not polled since")
        return Evidence(took_effect=False, effect="nothing to do: not assigned, or so before")


class Seeking(Instant):
    """Applications seek.

    Args:
        fault: Where to.
        readers: Their consumers.
        timestamp: Of the offset that is sought; ``None``: it is given.
    """

    def __init__(self, fault: "Seek", readers: Sequence[Reader], timestamp: int | None) -> None:
        self._fault = fault
        self._timestamp = timestamp
        self._calls = _Calls(readers)

    def begin(self) -> None:
        """Calls seek, seekToBeginning, seekToEnd, or offsetsForTimes and seek."""
        to = self._fault.to
        offset = to if isinstance(to, int) else NO_OFFSET
        self._calls.make("seek", self._fault.partitions, offset, self._timestamp)

    def evidence(self) -> Evidence:
        """True if a partition was assigned."""
        return self._calls.evidence("sought in")


class Pausing:
    """Applications pause partitions; healing resumes them."""

    def __init__(self, partitions: tuple[TopicPartition, ...], readers: Sequence[Reader]) -> None:
        self._partitions = partitions
        self._calls = _Calls(readers)

    def begin(self) -> None:
        """Calls pause."""
        self._calls.make("pause", self._partitions)

    def heal(self) -> bool:
        """Calls resume."""
        self._calls.undo(self._partitions)
        return True

    def evidence(self) -> Evidence:
        """True if a partition was assigned, and not paused before."""
        return self._calls.evidence("paused")


@dataclass(frozen=True, kw_only=True)
class _OfApplications(TargetFault):
    """A call of applications to their consumers."""

    hits: ClassVar[Hits] = "consumer"
    partitions: tuple[TopicPartition, ...] = field(metadata=key("partitions", "partitions"))

    def readers(self, names: tuple[str, ...], site: Site) -> list[Reader]:
        """The consumers of these names."""
        found = [site.world.reader(name) for name in names]
        return [reader for reader in found if reader is not None]


@dataclass(frozen=True, kw_only=True)
class Seek(_OfApplications):
    """The application seeks to an offset, `beginning` or `end`, or to a record's `datetime`."""

    kind = "seek"
    proof = "a partition was assigned to the consumer"
    may_break = "nothing: records that it jumps over are not read, those before it again"
    span: ClassVar[Span] = "instant"
    alternatives: ClassVar[tuple[str, ...]] = ("to", "datetime")
    to: int | Literal["beginning", "end"] | None = field(default=None, metadata=key("to", "seek"))
    datetime: Micros | None = field(
        default=None, metadata=key("datetime", "duration", "instant of the run")
    )

    def on(self, names: tuple[str, ...], site: Site) -> Seeking:
        """Action on these consumers."""
        return Seeking(self, self.readers(names, site), _timestamp(self.to, self.datetime))

    @property
    def place(self) -> object:
        """Its partitions."""
        return self.partitions


class PausePartitions(_OfApplications):
    """The application pauses partitions: its consumer stays a member, and fetches none of them."""

    kind = "pause-partitions"
    proof = "a partition was assigned to the consumer, and not paused"
    may_break = LATE

    def on(self, names: tuple[str, ...], site: Site) -> Pausing:
        """Action on these consumers."""
        return Pausing(self.partitions, self.readers(names, site))


def _timestamp(to: int | str | None, datetime: Micros | None) -> int | None:
    """Timestamp of ListOffsets, in milliseconds since 1970; ``None`` for a given offset."""
    if datetime is not None:
        return timestamp_ms(datetime)
    if to in {"beginning", "earliest"}:
        return EARLIEST_TIMESTAMP
    return LATEST_TIMESTAMP if to in {"end", "latest"} else None


class RunGroupTool(Instant):
    """Runs ``kafka-consumer-groups`` once.

    Args:
        world: The cluster.
        command: Of the tool.
    """

    def __init__(self, world: World, command: GroupCommand) -> None:
        self._world = world
        self._command = command
        self._operation: Operation | None = None

    def begin(self) -> None:
        """Starts the tool."""
        self._operation = self._world.administrator.run_group_tool(self._command)

    def evidence(self) -> Evidence:
        """True if the coordinator has carried it out."""
        return evidence_of(self._operation)


@dataclass(frozen=True, kw_only=True)
class _OfGroup(Fault):
    """A run of the tool for one group."""

    may_break = AS_MEANT
    span: ClassVar[Span] = "operation"
    group: str = field(metadata=key("group", "group"))

    @property
    def target_text(self) -> str:
        """The group."""
        return self.group

    @abstractmethod
    def command(self, at_us: Micros) -> GroupCommand:
        """Command of the tool that is run at this instant."""

    def action(self, site: Site) -> tuple[RunGroupTool, str]:
        """Action that runs the tool, and the group."""
        return RunGroupTool(site.world, self.command(site.now())), self.group


@dataclass(frozen=True, kw_only=True)
class ResetGroupOffsets(_OfGroup):
    """The administrator resets offsets of a group, which the tool refuses while it has members."""

    kind = "reset-offsets"
    proof = "the group's coordinator has committed the new offsets"
    may_break = "nothing: records that it jumps over are not read, those before it again"
    alternatives: ClassVar[tuple[str, ...]] = ("to", "datetime", "duration", "shift")
    partitions: tuple[TopicPartition, ...] = field(metadata=key("partitions", "partitions"))
    to: int | Literal["earliest", "latest", "current"] | None = field(
        default=None, metadata=key("to", "reset")
    )
    datetime: Micros | None = field(
        default=None, metadata=key("datetime", "duration", "instant of the run")
    )
    duration: Micros | None = field(
        default=None, metadata=key("duration", "duration", "before the instant of the reset")
    )
    shift: int | None = field(
        default=None,
        metadata=key("shift", "whole", "records, back if below 0", low=-_BILLION, high=_BILLION),
    )

    @property
    def place(self) -> object:
        """Its partitions."""
        return self.partitions

    def command(self, at_us: Micros) -> ResetOffsets:
        """With an offset, a timestamp or a shift."""
        group, places = self.group, self.partitions
        if self.shift is not None:
            return ResetOffsets(group, places, "shift", self.shift)
        if self.to == "current":
            return ResetOffsets(group, places, "current")
        if isinstance(self.to, int):
            return ResetOffsets(group, places, "offset", self.to)
        instant = self.datetime if self.duration is None else max(at_us - self.duration, 0)
        timestamp = _timestamp(self.to, instant)
        assert timestamp is not None, "one of the keys is given"
        return ResetOffsets(group, places, "timestamp", timestamp)


@dataclass(frozen=True, kw_only=True)
class DeleteOffsets(_OfGroup):
    """The administrator deletes offsets of a group, but of topics that a member subscribes to."""

    kind = "delete-offsets"
    proof = "the group's coordinator has committed it"
    may_break = "nothing: the group begins there by auto.offset.reset"
    partitions: tuple[TopicPartition, ...] = field(metadata=key("partitions", "partitions"))

    @property
    def place(self) -> object:
        """Its partitions."""
        return self.partitions

    def command(self, at_us: Micros) -> OffsetDeleteRequest:  # noqa: ARG002 - whenever it is
        """Of these partitions."""
        return OffsetDeleteRequest(self.group, self.partitions)


class DeleteGroup(_OfGroup):
    """The administrator deletes a group with its offsets, which is refused while it has members."""

    kind = "delete-group"
    proof = "the group's coordinator has committed it"
    may_break = "nothing: the group begins by auto.offset.reset"

    def command(self, at_us: Micros) -> DeleteGroupsRequest:  # noqa: ARG002 - whenever it is
        """Of this group."""
        return DeleteGroupsRequest(self.group)


CONSUMER_FAULTS: Final[tuple[type[Fault], ...]] = (
    Seek, PausePartitions, ResetGroupOffsets, DeleteOffsets, DeleteGroup,
)  # fmt: skip
