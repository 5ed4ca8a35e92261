"""Topics of a scenario."""

from typing import Annotated, ClassVar, TypeAlias

from pydantic import Field

from sim.ids import NodeId
from sim.scenario.model.types import (
    NOT_WRITTEN,
    ConfigSchema,
    GivenSettings,
    Pairs,
    Settings,
    Strict,
)

Assignment: TypeAlias = tuple[tuple[NodeId, ...], ...]
"""Replicas of each partition, the preferred leader first."""


class TopicModel(Strict, frozen=True):
    """A topic, made before the workload begins."""

    behind: ClassVar[Pairs] = (("replicas", "config"),)

    partitions: Annotated[int, Field(ge=1, le=10_000)] = 1
    replication_factor: Annotated[int, Field(ge=1, le=1_000)] = Field(
        ..., alias="replication.factor"
    )
    replicas: list[list[str]] | None = Field(
        None, description="brokers of each partition, the preferred leader first"
    )
    config: Annotated[GivenSettings, ConfigSchema("topic")] = Field(default_factory=dict)


class TopicSpec(TopicModel, frozen=True):
    """A topic with its name; its settings are its own, else the broker's, else Kafka's default."""

    name: str = NOT_WRITTEN
    assignment: Assignment = NOT_WRITTEN
    """Empty: the controller places the replicas."""
    config: Settings
