"""A follower's fetch loop for one leader: one request in flight, many partitions.

Source: ``AbstractFetcherThread``, ``ReplicaFetcherThread``, ``RemoteLeaderEndPoint``; KIP-227.
"""

from dataclasses import dataclass

from sim.ids import NO_EPOCH, BrokerEpoch, LeaderEpoch, NodeId, Offset, TopicPartition
from sim.protocol.assignors.registry import java_string_hash
from sim.protocol.messages.data import FetchPartition, FetchRequest
from sim.units import MIB, MS, NEVER, SECOND, Bytes, Micros


@dataclass(frozen=True, slots=True)
class FetcherConfig:
    """Kafka's ``replica.fetch.*`` settings."""

    wait_max_us: Micros = 500 * MS
    min_bytes: Bytes = 1
    partition_bytes_max: Bytes = MIB
    response_bytes_max: Bytes = 10 * MIB
    backoff_us: Micros = 1 * SECOND
    socket_timeout_us: Micros = 30 * SECOND
    fetchers_per_leader: int = 1
    """``num.replica.fetchers``."""


@dataclass(slots=True)
class FetchState:
    """State of a follower's fetch of one partition."""

    offset: Offset
    leader_epoch: LeaderEpoch
    last_epoch: LeaderEpoch
    log_start: Offset = 0
    """This follower's log start, which its fetches carry."""
    requested: bool = False
    """True if a request has listed it; a response to an earlier request does not count."""
    truncating: bool = False
    """True if an epoch end must be looked up first (before KIP-320)."""
    lag: Offset = -1
    """Offsets up to the leader's high watermark in its last response; -1 if unknown, and where
    replication is not throttled."""


class Fetcher:
    """One fetcher thread: its partitions of one leader, and its session there."""

    __slots__ = (
        "_changed",
        "_delayed",
        "_forgotten",
        "_held",
        "_is_fenced",
        "config",
        "correlation",
        "fetcher_id",
        "leader",
        "partitions",
        "session_epoch",
        "session_id",
    )

    def __init__(
        self, leader: NodeId, fetcher_id: int, config: FetcherConfig, *, is_fenced: bool = True
    ) -> None:
        self._is_fenced = is_fenced
        self.leader = leader
        self.fetcher_id = fetcher_id
        self.config = config
        self.partitions: dict[TopicPartition, FetchState] = {}
        self.correlation = -1
        """Correlation id of the fetch in flight; -1 without one."""
        self.session_id = 0
        self.session_epoch = 0
        self._changed: dict[TopicPartition, None] = {}
        self._delayed: dict[TopicPartition, Micros] = {}
        self._forgotten: dict[TopicPartition, None] = {}
        self._held: dict[TopicPartition, None] = {}

    @property
    def channel(self) -> str:
        """The fetcher's own connection."""
        return f"fetcher-{self.fetcher_id}"

    def add(self, partition: TopicPartition, state: FetchState) -> None:
        """Begins to fetch a partition, or begins again."""
        self.partitions[partition] = state
        self._changed[partition] = None
        self._delayed.pop(partition, None)
        self._held.pop(partition, None)
        self._forgotten.pop(partition, None)

    def remove(self, partition: TopicPartition) -> None:
        """Stops fetching a partition."""
        if self.partitions.pop(partition, None) is not None:
            self._changed.pop(partition, None)
            self._delayed.pop(partition, None)
            self._forgotten[partition] = None

    def in_epoch(self, partition: TopicPartition, epoch: LeaderEpoch) -> None:
        """The next fetch of the partition carries another leader epoch; an open one is void."""
        state = self.partitions[partition]
        if state.leader_epoch != epoch:
            state.leader_epoch = epoch
            state.requested = False
            if partition not in self._delayed:
                self._changed[partition] = None

    def starts_at(self, partition: TopicPartition, log_start: Offset) -> None:
        """The follower's log start has moved: the next fetch carries it."""
        self.partitions[partition].log_start = log_start
        if partition not in self._delayed:
            self._changed[partition] = None

    def moved(self, partition: TopicPartition, offset: Offset, last_epoch: LeaderEpoch) -> None:
        """The next fetch of the partition is from another offset."""
        state = self.partitions[partition]
        state.offset = offset
        state.last_epoch = last_epoch
        self._changed[partition] = None
        self._delayed.pop(partition, None)

    def delay(self, partition: TopicPartition, until: Micros) -> None:
        """Delays a partition until the instant; it leaves the session meanwhile."""
        self._delayed[partition] = until
        self._held.pop(partition, None)
        self._changed.pop(partition, None)
        self._forgotten[partition] = None

    def hold(self, partition: TopicPartition, now: Micros) -> None:
        """Leaves a throttled partition out, unless it is delayed anyway.

        It is checked again with the next fetch of others, at the latest after the back-off.
        """
        until = self._delayed.get(partition)
        if until is None:
            self.delay(partition, now + self.config.backoff_us)
            self._held[partition] = None
        elif partition in self._held and until <= now:
            self._delayed[partition] = now + self.config.backoff_us

    def held(self) -> list[TopicPartition]:
        """Partitions that a throttle has left out, still unchanged."""
        return [p for p in self._held if p in self._delayed]

    def release(self, partition: TopicPartition) -> None:
        """A throttled partition may be fetched again."""
        self._held.pop(partition, None)
        self._delayed[partition] = 0

    def reopen(self) -> None:
        """The session is closed: the next fetch opens another and lists everything."""
        self.session_epoch = 0
        self._forgotten.clear()
        self._changed = {p: None for p in self.partitions if p not in self._delayed}

    def wake_up_at(self) -> Micros:
        """Time at which the next delayed partition may be fetched again; NEVER without any."""
        return min(self._delayed.values(), default=NEVER)

    def next_request(self, replica: NodeId, epoch: BrokerEpoch, now: Micros) -> FetchRequest | None:
        """Next fetch; ``None`` if no partition may be fetched now."""
        if self._delayed:
            self._wake(now)
        if len(self._delayed) == len(self.partitions):
            return None
        listed = tuple([self._fetch_item(p, self.partitions[p]) for p in self._changed])
        forgotten: tuple[TopicPartition, ...] = ()
        if self._forgotten and self.session_epoch > 0:
            # Partitions left out and back before any request are not forgotten topics.
            forgotten = tuple([p for p in self._forgotten if p not in self._changed])
        self._changed.clear()
        self._forgotten.clear()
        config = self.config
        return FetchRequest(
            replica,
            epoch,
            config.wait_max_us,
            config.min_bytes,
            config.response_bytes_max,
            self.session_id,
            self.session_epoch,
            listed,
            forgotten,
        )

    def _wake(self, now: Micros) -> None:
        for partition in [p for p, until in self._delayed.items() if until <= now]:
            del self._delayed[partition]
            self._changed[partition] = None
            self._forgotten.pop(partition, None)

    def answered(self, session_id: int) -> None:
        """A fetch was answered within its session: the next one has the next epoch.

        Without a session (id 0) the next fetch is a full one.
        """
        self.correlation = -1
        self.session_id = session_id
        if session_id == 0:
            self.reopen()
        else:
            self.session_epoch += 1

    def _fetch_item(self, partition: TopicPartition, state: FetchState) -> FetchPartition:
        state.requested = True
        return FetchPartition(
            partition,
            state.offset,
            state.leader_epoch if self._is_fenced else NO_EPOCH,
            state.last_epoch if self._is_fenced else NO_EPOCH,
            state.log_start,
            self.config.partition_bytes_max,
        )


def fetcher_id_of(partition: TopicPartition, count: int) -> int:
    """Number of the partition's fetcher, of so many.

    Source: ``AbstractFetcherManager.getFetcherId``, ``Utils.abs``.
    """
    mixed = 31 * java_string_hash(partition.topic) + partition.partition
    return abs(_int32(mixed)) % count


def _int32(value: int) -> int:
    value &= 0xFFFFFFFF
    if value == 1 << 31:
        return 0
    return value - (1 << 32) if value >= 1 << 31 else value
