"""The keys of mirrors."""

from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema

from sim.scenario.schema.types import Duration, Strict, Words, setting_properties


def _config_schema() -> WithJsonSchema:
    properties: dict[str, Any] = setting_properties("mirror")
    for client in ("consumer", "producer"):
        known = setting_properties(client)
        properties |= {f"{client}.{name}": schema for name, schema in known.items()}
    return WithJsonSchema(
        {"type": "object", "additionalProperties": False, "properties": properties}
    )


class MirrorModel(Strict):
    """A mirror of one topic of the scenario's own cluster to another cluster (MirrorMaker 2)."""

    name: str
    topic: str
    to: str = Field(..., description="a cluster of clusters")
    groups: Words = Field(default=(), description="groups whose offsets are translated")
    at: Literal["source", "target"] = Field("target", description="in whose region it runs")
    start: Duration = 0
    config: Annotated[dict[str, object], _config_schema()] = Field(default_factory=dict)
