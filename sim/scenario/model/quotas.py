"""Quotas of clients as strict types."""

from typing import Annotated, Final, Literal, TypeAlias

from pydantic import BeforeValidator, Field, WithJsonSchema

from sim.scenario.model.types import Strict, refuse
from sim.scenario.text import quantities as q

DEFAULT_ENTITY: Final = "<default>"
"""The name of every client-id, or every user, without a quota of its own."""


def _bytes_a_second(value: object) -> int:
    """Kafka's own plain number, or a quantity with its unit."""
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    try:
        return q.parse_bandwidth(value)
    except q.QuantityError as error:
        hint = f"{error.allowed}, or Kafka's whole number of bytes"
        raise refuse(error.found, hint) from None


ByteRate: TypeAlias = Annotated[
    int, BeforeValidator(_bytes_a_second), WithJsonSchema({"type": ["integer", "string"]})
]
QuotaKey: TypeAlias = Literal[
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
    "connection_creation_rate",
]


class QuotaModel(Strict, frozen=True):
    """One entity's quotas, each of them on each broker; ``<default>`` for all others."""

    client_id: str | None = Field(None, alias="client.id")
    user: str | None = None
    ip: str | None = Field(None, description="the host of a client or a server, by its name")
    producer_byte_rate: ByteRate | None = None
    consumer_byte_rate: ByteRate | None = None
    request_percentage: Annotated[float, Field(gt=0, le=1_000_000, strict=False)] | None = Field(
        None, description="of one thread; 200 is two threads"
    )
    controller_mutation_rate: Annotated[float, Field(gt=0, le=1_000_000, strict=False)] | None = (
        Field(None, description="partitions made or deleted a second")
    )
    connection_creation_rate: Annotated[int, Field(ge=1, le=2**31 - 2)] | None = Field(
        None, description="new connections a second from one address"
    )
    remove: list[QuotaKey] = Field(default_factory=list)
