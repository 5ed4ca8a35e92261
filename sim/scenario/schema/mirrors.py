"""The keys of mirrors."""

from typing import Annotated, Literal

from pydantic import Field

from sim.scenario.model.types import ConfigSchema, Duration, Strict, Words


class MirrorModel(Strict):
    """A mirror of one topic of the scenario's own cluster to another cluster (MirrorMaker 2)."""

    name: str
    topic: str
    to: str = Field(..., description="a cluster of clusters")
    groups: Words = Field(default=(), description="groups whose offsets are translated")
    at: Literal["source", "target"] = Field("target", description="in whose region it runs")
    start: Duration = 0
    config: Annotated[dict[str, object], ConfigSchema("mirror", ("consumer", "producer"))] = Field(
        default_factory=dict
    )
