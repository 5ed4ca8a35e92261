"""The entries of ``faults:`` as strict types."""

from typing import Annotated, Literal, TypeAlias

from pydantic import (
    Field,
)

from sim.scenario.schema.quotas import QuotaModel
from sim.scenario.schema.types import Bandwidth, Duration, Moment, Strict, Words, config_schema


class _FaultModel(Strict):
    at: Moment | None = Field(
        None, description="an instant; a window, as in 20s..40s, from which the seed draws it"
    )


class RecurringModel(_FaultModel):
    """A fault of components that fail by themselves."""

    mtbf: Duration | None = Field(
        None, description="instead of at: mean time between failures of each component"
    )
    mttr: Duration | None = Field(None, description="instead of for: mean time to repair")


class LastingModel(RecurringModel):
    """A fault that may last, and be repeated."""

    for_: Duration | None = Field(None, alias="for")
    every: Duration | None = Field(None, description="from one beginning to the next")
    times: Annotated[int, Field(ge=2, le=10_000, description="how often in all")] | None = None


class NodeFaultModel(LastingModel):
    """Something happens to a process or a host."""

    do: Literal["crash", "controlled-shutdown", "pause", "no-file-descriptors"]
    target: Words


class PowerLossModel(LastingModel):
    """A host or a rack loses power."""

    do: Literal["power-loss"]
    target: Words
    unflushed: Literal["by chance", "lost"] = Field(
        "by chance", description="whether a part of what was not written back reached the disk"
    )


class RestartModel(RecurringModel):
    """A process is started at once."""

    do: Literal["restart"]
    target: Words


class RollingRestartModel(_FaultModel):
    """Servers are restarted one after the other."""

    do: Literal["rolling-restart"]
    target: Words
    down: Duration = Field(0, description="how long each one is down")
    settle: Duration = Field(0, description="how long to wait when each one is back in sync")


class SlowCpuModel(LastingModel):
    """A server's threads take ``factor`` times as long."""

    do: Literal["slow-cpu"]
    target: Words
    factor: Annotated[int, Field(ge=2, le=1_000_000)]


class LoadSurgeModel(LastingModel):
    """Producers send ``factor`` times as much."""

    do: Literal["load-surge"]
    target: Words
    factor: Annotated[int, Field(ge=2, le=1_000)]


class _LinkModel(LastingModel):
    between: Words
    and_: Words | None = Field(None, alias="and", description="default: everyone else")
    one_way: bool = Field(default=False, alias="one-way")


class PartitionModel(_LinkModel):
    """A silent cut."""

    do: Literal["partition"]


class DelayModel(_LinkModel):
    """Messages take longer."""

    do: Literal["delay"]
    message: Words | None = Field(None, description="default: every kind")
    by: Duration


class LossModel(_LinkModel):
    """Segments get lost."""

    do: Literal["loss"]
    ratio: Annotated[float, Field(gt=0, lt=1, strict=False)]


class BandwidthModel(_LinkModel):
    """Links carry less."""

    do: Literal["bandwidth"]
    to: Bandwidth


class MessageFaultModel(LastingModel):
    """One kind of message, one way."""

    do: Literal["hold", "drop"]
    message: Words
    from_: Words = Field(..., alias="from")
    to: Words | None = Field(None, description="default: everyone else")
    count: Annotated[int, Field(ge=1, description="default: all")] | None = None


class ClockJumpModel(LastingModel):
    """A host's clock jumps."""

    do: Literal["clock-jump"]
    target: Words
    by: Duration
    direction: Literal["forward", "backward"] = "forward"


class DiskFaultModel(LastingModel):
    """A disk misbehaves."""

    do: Literal["stalled-disk", "failed-disk", "full-disk", "lying-flush"]
    target: Words
    directory: Annotated[int, Field(ge=0)] = 0


class SlowDiskModel(LastingModel):
    """A disk takes ``factor`` times as long."""

    do: Literal["slow-disk"]
    target: Words
    factor: Annotated[int, Field(ge=2, le=1_000_000)]
    directory: Annotated[int, Field(ge=0)] = 0


class WipedDiskModel(RecurringModel):
    """Log directories come back empty."""

    do: Literal["wiped-disk"]
    target: Words
    directory: Annotated[int, Field(ge=0, description="default: all of them")] | None = None


class ReplicaFaultModel(RecurringModel):
    """One replica of one topic partition is lost or damaged."""

    do: Literal["lost-replica", "corrupt-replica", "torn-write", "misdirected-write"]
    target: str
    partition: str | None = Field(None, description="default: the partition the target names")


class TopicOperationModel(_FaultModel):
    """The administrator deletes a topic, or makes it anew as the scenario has it."""

    do: Literal["create-topic", "delete-topic"]
    topic: str


class CreatePartitionsModel(_FaultModel):
    """The administrator gives a topic more partitions."""

    do: Literal["create-partitions"]
    topic: str
    count: Annotated[int, Field(ge=2, le=10_000, description="partitions in all")]


class AlterConfigModel(_FaultModel):
    """The administrator changes settings of a topic."""

    do: Literal["alter-config"]
    topic: str
    config: Annotated[dict[str, object], config_schema("topic"), Field(min_length=1)]


class ReassignModel(_FaultModel):
    """The administrator moves a partition."""

    do: Literal["reassign"]
    partition: str
    replicas: Words


class CancelReassignmentModel(_FaultModel):
    """The administrator calls off a reassignment."""

    do: Literal["cancel-reassignment"]
    partition: str


class ElectLeaderModel(_FaultModel):
    """The administrator asks for an election."""

    do: Literal["elect-leader"]
    partition: str
    election: Literal["preferred", "unclean"]


class DeleteRecordsModel(_FaultModel):
    """The administrator deletes records of a partition."""

    do: Literal["delete-records"]
    partition: str
    before: Annotated[int, Field(ge=0)] | Literal["high-watermark"]


class AlterReplicaLogDirsModel(_FaultModel):
    """The administrator moves a replica within a broker."""

    do: Literal["alter-replica-log-dirs"]
    partition: str
    broker: str
    to: Annotated[int, Field(ge=0, description="number of the log directory, from 0")]


_Choice = Annotated[
    NodeFaultModel
    | PowerLossModel
    | RestartModel
    | SlowCpuModel
    | LoadSurgeModel
    | PartitionModel
    | DelayModel
    | LossModel
    | BandwidthModel
    | MessageFaultModel
    | ClockJumpModel
    | DiskFaultModel
    | SlowDiskModel
    | WipedDiskModel
    | ReplicaFaultModel,
    Field(discriminator="do"),
]


class OneOfModel(RecurringModel):
    """One of several, by the seed."""

    do: Literal["one-of"]
    of: Annotated[list[_Choice], Field(min_length=1, max_length=100)]


class AlterClientQuotasModel(_FaultModel, QuotaModel):
    """The administrator sets or removes quotas of clients."""

    do: Literal["alter-client-quotas"]


class VoterChangeModel(_FaultModel):
    """The administrator changes who votes on metadata."""

    do: Literal["add-controller", "remove-controller"]
    target: Words


class MemberChangeModel(_FaultModel):
    """The administrator changes which brokers belong to the cluster."""

    do: Literal["add-broker", "decommission"]
    target: Words


FaultModel: TypeAlias = Annotated[
    NodeFaultModel
    | PowerLossModel
    | RestartModel
    | RollingRestartModel
    | SlowCpuModel
    | LoadSurgeModel
    | PartitionModel
    | DelayModel
    | LossModel
    | BandwidthModel
    | MessageFaultModel
    | ClockJumpModel
    | DiskFaultModel
    | SlowDiskModel
    | WipedDiskModel
    | ReplicaFaultModel
    | TopicOperationModel
    | CreatePartitionsModel
    | AlterConfigModel
    | ReassignModel
    | CancelReassignmentModel
    | ElectLeaderModel
    | DeleteRecordsModel
    | AlterReplicaLogDirsModel
    | OneOfModel
    | AlterClientQuotasModel
    | VoterChangeModel
    | MemberChangeModel,
    Field(discriminator="do"),
]
