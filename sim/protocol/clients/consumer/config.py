"""A consumer's settings: Kafka's, in microseconds and bytes, with Kafka's defaults.

Each field names the Kafka setting it stands for. Settings without effect on what is modelled
(deserializers, security, buffers of the socket) are absent.

Source: ``org.apache.kafka.clients.consumer.ConsumerConfig`` (4.1).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from sim.ids import NodeId
from sim.protocol.assignors.registry import COOPERATIVE
from sim.units import KIB, MIB, MINUTE, MS, SECOND, Bytes, Micros

ResetPolicy = Literal["latest", "earliest", "none"]
"""``auto.offset.reset``; ``by_duration`` is not modelled."""

LARGEST_POLL = 1 << 31
"""No poll returns more records than this."""


@dataclass(frozen=True, slots=True)
class ConsumerConfig:
    """What a consumer is told at its start; ``group_id`` is empty for one without a group."""

    topics: tuple[str, ...]
    """Subscribed to in a group; without one, all their partitions are assigned."""
    group_id: str = ""
    """``group.id``."""
    group_protocol: str = "classic"
    """``group.protocol``: ``classic``, or ``consumer`` (KIP-848)."""
    group_remote_assignor: str = ""
    """``group.remote.assignor``: the coordinator's to use; empty leaves the choice to it."""
    partition_assignment_strategy: tuple[str, ...] = ("range", "cooperative-sticky")
    """``partition.assignment.strategy``, in the order of choice."""
    group_instance_id: str = ""
    """``group.instance.id``; empty for a dynamic member."""
    session_timeout_us: Micros = 45 * SECOND
    """``session.timeout.ms``."""
    heartbeat_interval_us: Micros = 3 * SECOND
    """``heartbeat.interval.ms``."""
    poll_interval_us_max: Micros = 5 * MINUTE
    """``max.poll.interval.ms``; also the rebalance timeout."""
    poll_records_max: int = 500
    """``max.poll.records``."""
    fetch_bytes_min: Bytes = 1
    """``fetch.min.bytes``."""
    fetch_wait_us_max: Micros = 500 * MS
    """``fetch.max.wait.ms``."""
    fetch_bytes_max: Bytes = 50 * MIB
    """``fetch.max.bytes``."""
    partition_fetch_bytes_max: Bytes = 1_024 * KIB
    """``max.partition.fetch.bytes``."""
    enable_auto_commit: bool = True
    """``enable.auto.commit``; of no effect without a group."""
    auto_commit_interval_us: Micros = 5 * SECOND
    """``auto.commit.interval.ms``."""
    commit_after_processing: bool = False
    """The application calls ``commitSync`` when it has processed what a poll returned."""
    commit_async: bool = False
    """As before, but ``commitAsync``, and ``commitSync`` once, before it closes the consumer."""
    auto_offset_reset: ResetPolicy = "latest"
    """``auto.offset.reset``."""
    names_epochs: bool = True
    """Whether fetches say which leader epoch is believed in (KIP-320); not a setting."""
    validates: bool = True
    """Whether positions are validated when another leader is known (KIP-320); not a setting."""
    tracks_epochs: bool = True
    """Whether it knows the leader epochs of its metadata, and takes no older ones (KAFKA-7738); not
    a setting."""
    commits_epochs: bool = True
    """Whether commits name the leader epoch of what was read last (KIP-320); not a setting."""
    tells_generation: bool = True
    """Whether a member that joins names the generation it was in (KIP-792); not a setting."""
    isolation_level: str = "read_uncommitted"
    """``isolation.level``: ``read_committed`` leaves out what is undecided or aborted."""
    client_rack: str = ""
    """``client.rack``."""
    request_timeout_us: Micros = 30 * SECOND
    """``request.timeout.ms``."""
    api_timeout_us: Micros = 60 * SECOND
    """``default.api.timeout.ms``: how long a ``commitSync`` is tried again."""
    retry_backoff_us: Micros = 100 * MS
    """``retry.backoff.ms``."""
    retry_backoff_us_max: Micros = 1 * SECOND
    """``retry.backoff.max.ms``."""
    metadata_age_us_max: Micros = 5 * MINUTE
    """``metadata.max.age.ms``."""
    require_stable: bool = True
    """Whether it waits for the end of transactions that hold offsets of its group (KIP-447)."""
    processing_us: Micros = 0
    """What the application spends on each record before it polls again; not a Kafka setting."""

    def __post_init__(self) -> None:
        assert self.topics, "a consumer reads at least one topic"
        assert 0 < self.poll_records_max < LARGEST_POLL, "max.poll.records must be positive"
        assert self.heartbeat_interval_us < self.session_timeout_us, (
            "heartbeat.interval.ms must be below session.timeout.ms"
        )
        assert self.commit_after_processing or not self.commit_async, "both are after processing"

    @property
    def cooperates(self) -> bool:
        """Whether the member keeps what does not move: if all its assignors can (KIP-429)."""
        return all(name in COOPERATIVE for name in self.partition_assignment_strategy)

    @property
    def auto_commits(self) -> bool:
        """Whether positions are committed by the client itself."""
        return self.enable_auto_commit and bool(self.group_id) and not self.commit_after_processing

    @property
    def commits_at_close(self) -> bool:
        """Whether positions are committed once more before the group is left."""
        return self.auto_commits or (self.commit_async and bool(self.group_id))


@dataclass(frozen=True, slots=True)
class ConsumerSetup:
    """The beginning of a consumer's client library in one process.

    Attributes:
        name: ``client.id``.
        config: Kafka's settings.
        bootstrap: ``bootstrap.servers``; at least one.
        unit: Chance, uniform in [0, 1), for jitter and the choice of a broker to ask.
    """

    name: str
    config: ConsumerConfig
    bootstrap: tuple[NodeId, ...]
    unit: Callable[[], float]
