"""Types of the metadata quorum: roles, settings, durable state, events and effects.

Source: KIP-595, KIP-996; ``org.apache.kafka.raft.{QuorumState,QuorumConfig,ElectionState}`` (4.1).
"""

from dataclasses import dataclass
from enum import StrEnum

from sim.ids import NO_LEADER, LeaderEpoch, NodeId, Offset, SnapshotId
from sim.protocol import effects as fx
from sim.protocol import events as ev
from sim.protocol.kraft.log import LoggedRecord
from sim.protocol.metadata.records import MetadataRecord, VotersRecord
from sim.units import MIB, MS, SECOND, Bytes, Micros

NOBODY: NodeId = -1
"""Id for no vote."""


class Role(StrEnum):
    """A member's role; values are the words of the trace.

    Unattached, prospective, candidate, leader, follower and resigned are Kafka's. A broker is only
    ever unattached or follower, which the trace shows as ``observer``.
    """

    UNATTACHED = "unattached"
    PROSPECTIVE = "prospective"
    CANDIDATE = "candidate"
    LEADER = "leader"
    FOLLOWER = "follower"
    RESIGNED = "resigned"


@dataclass(frozen=True, slots=True)
class QuorumConfig:
    """Timers and sizes, with Kafka's defaults; mostly ``controller.quorum.*``."""

    election_timeout_us: Micros = 1 * SECOND
    """Each use draws from [T, 2T)."""
    fetch_timeout_us: Micros = 2 * SECOND
    election_backoff_max_us: Micros = 1 * SECOND
    request_timeout_us: Micros = 2 * SECOND
    retry_backoff_us: Micros = 20 * MS
    append_linger_us: Micros = 25 * MS
    """Linger of the controller's records; control records have none."""
    batch_bytes_max: Bytes = 8 * MIB
    """A constant in Kafka."""
    fetch_max_wait_us: Micros = 500 * MS
    """A constant in Kafka."""
    fetch_max_bytes: Bytes = 8 * MIB
    """``controller.quorum.fetch.max.bytes`` (4.3); before, a constant."""
    snapshot_max_bytes: Bytes = 8 * MIB
    """``controller.quorum.fetch.snapshot.max.bytes`` (4.3); before, a constant."""
    clean_interval_us: Micros = 60 * SECOND
    """Interval of the check for old snapshots; a constant in Kafka."""
    checks_quorum: bool = True
    """True if a leader without fetches from a majority resigns (KAFKA-15489)."""
    auto_joins: bool = False
    """``controller.quorum.auto.join.enable`` (KIP-1186, 4.2): a controller adds itself."""
    wakes_on_commit: bool = True
    """True if an advance of the high watermark answers parked fetches (KIP-1166)."""
    pre_votes: bool = True
    """True if a voter becomes prospective before it becomes candidate (KIP-996)."""
    refuses_while_fetching: bool = True
    """True if a follower that has fetched from its leader refuses pre-votes (KIP-996)."""

    @property
    def check_quorum_us(self) -> Micros:
        """Time without fetches from a majority until a leader resigns: 1.5 fetch timeouts."""
        return self.fetch_timeout_us * 3 // 2

    @property
    def begin_quorum_us(self) -> Micros:
        """Interval of BeginQuorumEpoch to voters that have not answered."""
        return self.fetch_timeout_us // 2


@dataclass(frozen=True, slots=True)
class QuorumState:
    """Durable state of a member: the ``quorum-state`` file."""

    epoch: LeaderEpoch = 0
    leader: NodeId = NO_LEADER
    voted_for: NodeId = NOBODY
    voted_directory: str = ""
    """``directory.id`` of the voted candidate; empty: unknown, or none."""


# -- events ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class QuorumStarted:
    """The process has loaded its log and state, and begins."""


@dataclass(frozen=True, slots=True)
class AppendMetadata:
    """The active controller's records, for one batch; also the effect that requests it.

    They may linger: :mod:`sim.protocol.kraft.batch_accumulator`. Dropped if this member does not
    lead the epoch any more: the controller gets :class:`LeadershipChanged`.
    """

    epoch: LeaderEpoch
    base_offset: Offset
    records: tuple[MetadataRecord, ...]
    appended_us: Micros
    """Time of the controller's decision; the quorum's thread may be busy since then."""


@dataclass(frozen=True, slots=True)
class Resign:
    """Resigns in good order: at a shutdown, or when the controller renounces."""


QuorumEvent = (
    QuorumStarted
    | AppendMetadata
    | Resign
    | ev.RequestReceived
    | ev.ResponseReceived
    | ev.RequestFailed
    | ev.TimerFired
    | ev.Flushed
)
"""Events of a quorum machine."""


# -- effects --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PersistQuorumState:
    """Writes the state and fsyncs it; later effects wait."""

    state: QuorumState
    kraft_version: int = 0
    """1 once this member has read the voters of a dynamic quorum: the file format differs."""


@dataclass(frozen=True, slots=True)
class VotersProposed:
    """The leader's record for the active controller to append; also the event that passes it on.

    The controller assigns the offsets of its epoch, so it is the one to append.
    """

    epoch: LeaderEpoch
    record: VotersRecord


@dataclass(frozen=True, slots=True)
class Committed:
    """Records in [base_offset, end_offset) are committed; emitted once each, in order."""

    base_offset: Offset
    end_offset: Offset
    records: tuple[LoggedRecord, ...]
    size_bytes: Bytes = 0
    """Bytes of the batches that hold them."""


@dataclass(frozen=True, slots=True)
class SnapshotLoaded:
    """The state is replaced by a snapshot; :class:`Committed` continues from its offset.

    Emitted at the start of a process that has a snapshot, and when the log was restarted at one.
    """

    snapshot: SnapshotId
    records: tuple[MetadataRecord, ...]


@dataclass(frozen=True, slots=True)
class LeadershipChanged:
    """The member's epoch or leader changed.

    ``is_leader`` becomes true only when this member leads and every record below its epoch, and its
    own LeaderChange record, is committed and emitted; ``log_end_offset`` is where it may append
    next.
    """

    epoch: LeaderEpoch
    leader: NodeId
    is_leader: bool
    log_end_offset: Offset = -1


@dataclass(frozen=True, slots=True)
class Halt:
    """The process must halt: the log's guarantees were broken (Kafka's fatal fault handler)."""

    reason: str


QuorumEffect = (
    fx.Effect
    | fx.Flush
    | PersistQuorumState
    | Committed
    | SnapshotLoaded
    | LeadershipChanged
    | VotersProposed
    | Halt
)
"""Effects of a quorum machine; its process must hold back events while effects wait."""
