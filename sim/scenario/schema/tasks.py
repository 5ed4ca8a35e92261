"""The keys of tasks: applications that read, process and write."""

from typing import Annotated, Literal

from pydantic import Field

from sim.scenario.model.types import ConfigSchema, Count, Duration, Size, Strict, Words


class ProcessorModel(Strict):
    """Tasks alike, members of one group: each reads, makes outputs of what it read, and commits."""

    name: str
    topics: Words
    output: str
    count: Count = 1
    outputs: Annotated[int, Field(ge=1, le=1_000, description="of each input record")] = 1
    processing: Duration = 0
    commits: Literal["after", "before", "auto"] = Field(
        "after",
        description="when input is committed: after its outputs, before they are made, or by "
        "enable.auto.commit while a worker makes them",
    )
    record_size: Size = Field(1_024, alias="record.size")
    start: Duration = 0
    stop: Duration | None = None
    rack: str | None = None
    config: Annotated[dict[str, object], ConfigSchema("streams", ("consumer", "producer"))] = Field(
        default_factory=dict
    )
