"""The settings of a producer, in microseconds and bytes, with Kafka's names and defaults (4.1).

Left out: interceptors.

Source: ``clients/producer/ProducerConfig.java``.
"""

from collections.abc import Callable
from dataclasses import dataclass

from sim.errors import SimulationError
from sim.ids import NodeId
from sim.protocol.clients.producer.events import Connections
from sim.protocol.clients.producer.partitioner import MakePartitioner
from sim.units import KIB, MIB, MINUTE, MS, NEVER, SECOND, Bytes, Micros

ACKS_ALL = -1
"""``acks=all``."""

RETRIES_MAX = (1 << 31) - 1
"""``retries`` by default: bounded by ``delivery.timeout.ms`` alone."""


@dataclass(frozen=True, slots=True)
class ProducerConfig:
    """Settings of one producer; fields are Kafka's names, ``_us`` for ``.ms``.

    Raises:
        SimulationError: On combinations that Kafka's client refuses at its start.
    """

    acks: int = ACKS_ALL
    enable_idempotence: bool = True
    batch_size: Bytes = 16 * KIB
    linger_us: Micros = 5 * MS
    buffer_memory: Bytes = 32 * MIB
    max_block_us: Micros = MINUTE
    max_request_size: Bytes = MIB
    retries: int = RETRIES_MAX
    delivery_timeout_us: Micros = 2 * MINUTE
    """``NEVER`` before 2.1 (KIP-91): requests and retries have their bounds, batches have none."""
    request_timeout_us: Micros = 30 * SECOND
    retry_backoff_us: Micros = 100 * MS
    retry_backoff_max_us: Micros = SECOND
    """``retry.backoff.max.ms``; before 3.7 it is ``retry.backoff.ms``."""
    max_in_flight_requests_per_connection: int = 5
    skips_backoff_on_leader_hint: bool = True
    """True if a refused batch does not wait once a newer leader is known (since 3.7, KIP-951)."""
    splits_batches: bool = True
    """True if batches that are too large for their leader are split (since 0.11, KIP-126)."""
    halves_parts: bool = True
    """True if a part that is too large again is halved (since 4.2, KAFKA-8350)."""
    retries_refused_identity: bool = True
    """True if a producer without a right to its id asks again (since 3.6, KAFKA-13668)."""
    tracks_epochs: bool = True
    """True if metadata have leader epochs, and older ones are ignored (since 2.2, KAFKA-7738)."""
    metadata_max_age_us: Micros = 5 * MINUTE
    partitioner_adaptive_partitioning_enable: bool = True
    partitioner_ignore_keys: bool = False
    partitioner_class: MakePartitioner | None = None
    """``None``: by the key's hash, or sticky (KIP-794)."""
    compression_type: str = "none"
    compression_level: int = 0
    """Level of the type in use, in the codec's own scale; ignored for none and snappy."""
    transactional_id: str = ""
    """Empty: without transactions."""
    transaction_timeout_us: Micros = MINUTE

    def __post_init__(self) -> None:
        if self.acks not in (-1, 0, 1):
            raise SimulationError(f"acks: must be all, 1 or 0, not {self.acks}")
        if self.max_in_flight_requests_per_connection < 1:
            raise SimulationError("max.in.flight.requests.per.connection: must be at least 1")
        if self.idempotent and self.max_in_flight_requests_per_connection > 5:
            raise SimulationError(
                "max.in.flight.requests.per.connection: at most 5 with enable.idempotence, not "
                f"{self.max_in_flight_requests_per_connection}"
            )
        if self.transactional_id and not self.idempotent:
            raise SimulationError("transactional.id: needs acks=all, retries and idempotence")
        if self.delivery_timeout_us < self.linger_us + self.request_timeout_us:
            raise SimulationError(
                "delivery.timeout.ms: must be at least linger.ms + request.timeout.ms"
            )

    @property
    def times_delivery(self) -> bool:
        """True if ``delivery.timeout.ms`` bounds a batch's whole time."""
        return self.delivery_timeout_us < NEVER

    @property
    def idempotent(self) -> bool:
        """True if batches are numbered: silently off unless acks=all and retries > 0."""
        return self.enable_idempotence and self.acks == ACKS_ALL and self.retries > 0


@dataclass(frozen=True, slots=True)
class ProducerSetup:
    """The beginning of a producer's client library in one process.

    Attributes:
        topic: Where its records go.
        config: Kafka's settings.
        connections: Which connections are established.
        unit: Chance, uniform in [0, 1).
        bootstrap: ``bootstrap.servers``; at least one.
        clock_offset: What the host's clock shows beyond the scenario's, in microseconds.
        next_records: Per partition, the first record number not used by an earlier process.
        refused_records: The same for records without a partition.
        first_correlation: Requests are numbered from here.
        first_transaction: Transactions are numbered from here.
    """

    topic: str
    config: ProducerConfig
    connections: Connections
    unit: Callable[[], float]
    bootstrap: tuple[NodeId, ...]
    clock_offset: Callable[[], Micros]
    next_records: tuple[int, ...] = ()
    refused_records: int = 0
    first_correlation: int = 0
    first_transaction: int = 0
