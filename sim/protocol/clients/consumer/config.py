"""A consumer's settings: Kafka's, in microseconds and bytes, with Kafka's defaults.

Each field names its Kafka setting. Settings without effect on the model (deserializers, security,
buffers of the socket) are absent.

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
"""Limit of records of a poll."""


@dataclass(frozen=True, slots=True)
class ConsumerConfig:
    """A consumer's settings; ``group_id`` is empty for one without a group."""

    topics: tuple[str, ...]
    """Subscribed to in a group; without one, all their partitions are assigned."""
    pattern: str = ""
    """Regular expression of the topics that it subscribes to instead; empty: none."""
    group_id: str = ""
    """``group.id``."""
    group_protocol: str = "classic"
    """``group.protocol``: ``classic``, or ``consumer`` (KIP-848)."""
    group_remote_assignor: str = ""
    """``group.remote.assignor``: the coordinator's assignor; empty for its default."""
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
    share_record_limit: bool = False
    """``share.acquire.mode``: record_limit, so that ``max.poll.records`` is an exact bound."""
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
    """True if the application calls ``commitSync`` after it has processed a poll's records."""
    commit_async: bool = False
    """As before, but ``commitAsync``, and ``commitSync`` once, before it closes the consumer."""
    auto_offset_reset: ResetPolicy = "latest"
    """``auto.offset.reset``."""
    names_epochs: bool = True
    """True if fetches carry the known leader epoch (KIP-320); not a setting."""
    validates: bool = True
    """True if positions are validated when another leader is known (KIP-320); not a setting."""
    tracks_epochs: bool = True
    """True if it knows the leader epochs of its metadata, and ignores older ones (KAFKA-7738); not
    a setting."""
    commits_epochs: bool = True
    """True if commits carry the leader epoch of the last record (KIP-320); not a setting."""
    sends_generation: bool = True
    """True if a joining member sends its former generation (KIP-792); not a setting."""
    isolation_level: str = "read_uncommitted"
    """``isolation.level``: ``read_committed`` skips undecided and aborted records."""
    check_crcs: bool = True
    """``check.crcs``: a batch whose bytes differ from its checksum is an error of the poll."""
    client_rack: str = ""
    """``client.rack``."""
    request_timeout_us: Micros = 30 * SECOND
    """``request.timeout.ms``."""
    api_timeout_us: Micros = 60 * SECOND
    """``default.api.timeout.ms``: time of a ``commitSync``'s retries."""
    retry_backoff_us: Micros = 100 * MS
    """``retry.backoff.ms``."""
    retry_backoff_us_max: Micros = 1 * SECOND
    """``retry.backoff.max.ms``; before 3.7 it is ``retry.backoff.ms``."""
    metadata_age_us_max: Micros = 5 * MINUTE
    """``metadata.max.age.ms``."""
    require_stable: bool = True
    """True if it waits for the end of transactions that hold offsets of its group (KIP-447)."""
    processing_us: Micros = 0
    """Processing time of each record before the next poll; not a Kafka setting."""

    def __post_init__(self) -> None:
        assert self.topics or self.pattern, "a consumer reads at least one topic"
        assert self.group_id or not self.pattern, "subscriptions are of groups"
        assert 0 < self.poll_records_max < LARGEST_POLL, "max.poll.records must be positive"
        assert self.heartbeat_interval_us < self.session_timeout_us, (
            "heartbeat.interval.ms must be below session.timeout.ms"
        )
        assert self.commit_after_processing or not self.commit_async, "both are after processing"

    @property
    def cooperates(self) -> bool:
        """True if all its assignors are cooperative: partitions that do not move stay (KIP-429)."""
        return all(name in COOPERATIVE for name in self.partition_assignment_strategy)

    @property
    def auto_commits(self) -> bool:
        """True if the client commits positions on its own."""
        return self.enable_auto_commit and bool(self.group_id) and not self.commit_after_processing

    @property
    def commits_at_close(self) -> bool:
        """True if positions are committed once more before the group is left."""
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
