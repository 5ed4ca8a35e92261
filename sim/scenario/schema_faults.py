"""The entries of ``faults:`` as strict types."""

from typing import Annotated, Literal, TypeAlias

from pydantic import (
    Field,
)

from sim.scenario.schema_types import Bandwidth, Duration, Strict, Words, config_schema


class _FaultModel(Strict):
    at: Duration


class NodeFaultModel(_FaultModel):
    """Something happens to a process or a host."""

    do: Literal["crash", "controlled-shutdown", "pause", "power-loss"]
    target: str
    for_: Duration | None = Field(None, alias="for")


class RestartModel(_FaultModel):
    """A process is started at once."""

    do: Literal["restart"]
    target: str


class _LinkModel(_FaultModel):
    between: Words
    and_: Words | None = Field(None, alias="and", description="default: everyone else")
    one_way: bool = Field(default=False, alias="one-way")
    for_: Duration | None = Field(None, alias="for")


class PartitionModel(_LinkModel):
    """A silent cut."""

    do: Literal["partition"]


class DelayModel(_LinkModel):
    """Messages take longer."""

    do: Literal["delay"]
    by: Duration


class LossModel(_LinkModel):
    """Segments get lost."""

    do: Literal["loss"]
    ratio: Annotated[float, Field(gt=0, lt=1, strict=False)]


class BandwidthModel(_LinkModel):
    """Links carry less."""

    do: Literal["bandwidth"]
    to: Bandwidth


class MessageFaultModel(_FaultModel):
    """One kind of message, one way."""

    do: Literal["hold", "drop"]
    message: Words
    from_: Words = Field(..., alias="from")
    to: Words | None = Field(None, description="default: everyone else")
    count: Annotated[int, Field(ge=1, description="default: all")] | None = None
    for_: Duration | None = Field(None, alias="for")


class ClockJumpModel(_FaultModel):
    """A host's clock jumps."""

    do: Literal["clock-jump"]
    target: str
    by: Duration
    direction: Literal["forward", "backward"] = "forward"
    for_: Duration | None = Field(None, alias="for")


class DiskFaultModel(_FaultModel):
    """A disk misbehaves."""

    do: Literal["stalled-disk", "failed-disk", "full-disk"]
    target: str
    directory: Annotated[int, Field(ge=0)] = 0
    for_: Duration | None = Field(None, alias="for")


class SlowDiskModel(_FaultModel):
    """A disk takes ``factor`` times as long."""

    do: Literal["slow-disk"]
    target: str
    factor: Annotated[int, Field(ge=2, le=1_000_000)]
    directory: Annotated[int, Field(ge=0)] = 0
    for_: Duration | None = Field(None, alias="for")


class ReplicaFaultModel(_FaultModel):
    """One replica of one topic partition is lost or corrupted."""

    do: Literal["lost-replica", "corrupt-replica"]
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


FaultModel: TypeAlias = Annotated[
    NodeFaultModel
    | RestartModel
    | PartitionModel
    | DelayModel
    | LossModel
    | BandwidthModel
    | MessageFaultModel
    | ClockJumpModel
    | DiskFaultModel
    | SlowDiskModel
    | ReplicaFaultModel
    | TopicOperationModel
    | CreatePartitionsModel
    | AlterConfigModel
    | ReassignModel
    | CancelReassignmentModel
    | ElectLeaderModel
    | DeleteRecordsModel
    | AlterReplicaLogDirsModel,
    Field(discriminator="do"),
]
