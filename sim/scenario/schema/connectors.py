"""The keys of connectors."""

from typing import Annotated, Literal

from pydantic import Field

from sim.scenario.model.types import (
    ConfigSchema,
    Count,
    Duration,
    Rate,
    Size,
    Strict,
    Words,
)


class ConnectorModel(Strict):
    """A connector: a source writes an external log to a topic, a sink delivers topics elsewhere."""

    name: str
    kind: Literal["source", "sink"]
    topics: Words = Field(..., description="of a source one, which it writes to")
    tasks: Count = 1
    rate: Rate | None = Field(None, description="source: external records, for each task")
    record_size: Size = Field(1_024, alias="record.size", description="source")
    poll: Duration = Field(500_000, description="source: from one poll to the next")
    batch: Count = Field(2_048, description="source: records that a poll returns at most")
    stop: Duration | None = Field(None, description="source: from then on no record appears")
    processing: Duration = Field(0, description="sink: time that each record takes")
    buffer: Annotated[int, Field(ge=0, le=1_000_000)] = Field(
        0, description="sink: records that a task collects before it writes"
    )
    delivery: Literal["at-least-once", "exactly-once"] = Field(
        "at-least-once", description="sink: whether the external system keeps offsets"
    )
    start: Duration = 0
    rack: str | None = None
    config: Annotated[dict[str, object], ConfigSchema("connect", ("consumer", "producer"))] = Field(
        default_factory=dict
    )
