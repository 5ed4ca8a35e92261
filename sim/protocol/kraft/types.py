"""Words of the metadata quorum: roles, settings, what is durable, events and effects.

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
"""No vote given."""


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
    """Timers and sizes, with Kafka's defaults; ``controller.quorum.*`` where not said otherwise."""

    election_timeout_us: Micros = 1 * SECOND
    """Each use draws from [T, 2T)."""
    fetch_timeout_us: Micros = 2 * SECOND
    election_backoff_max_us: Micros = 1 * SECOND
    request_timeout_us: Micros = 2 * SECOND
    retry_backoff_us: Micros = 20 * MS
    append_linger_us: Micros = 25 * MS
    """How long the controller's records wait for more; control records do not."""
    batch_bytes_max: Bytes = 8 * MIB
    """A constant in Kafka."""
    fetch_max_wait_us: Micros = 500 * MS
    """A constant in Kafka."""
    fetch_max_bytes: Bytes = 8 * MIB
    """A constant in Kafka."""
    clean_interval_us: Micros = 60 * SECOND
    """How often old snapshots are looked for; a constant in Kafka."""
    checks_quorum: bool = True
    """Whether a leader without fetches from a majority resigns (KAFKA-15489)."""
    wakes_on_commit: bool = True
    """Whether a move of the high watermark answers fetches that wait (KIP-1166)."""

    @property
    def check_quorum_us(self) -> Micros:
        """How long a leader goes on without fetches from a majority: 1.5 fetch timeouts."""
        return self.fetch_timeout_us * 3 // 2

    @property
    def begin_quorum_us(self) -> Micros:
        """How often a leader introduces itself to voters that have not answered."""
        return self.fetch_timeout_us // 2


@dataclass(frozen=True, slots=True)
class QuorumState:
    """What a member must remember across restarts: the ``quorum-state`` file."""

    epoch: LeaderEpoch = 0
    leader: NodeId = NO_LEADER
    voted_for: NodeId = NOBODY
    voted_directory: str = ""
    """``directory.id`` of whom it voted for; empty: unknown, or nobody."""


# -- events ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class QuorumStarted:
    """The process has loaded its log and state, and begins."""


@dataclass(frozen=True, slots=True)
class AppendMetadata:
    """The active controller's records, for one batch; also its effect that asks for it.

    They may wait for others to share the batch: :mod:`sim.protocol.kraft.batch_accumulator`.
    Dropped if this member does not lead the epoch any more: the controller is told by
    :class:`LeadershipChanged`.
    """

    epoch: LeaderEpoch
    base_offset: Offset
    records: tuple[MetadataRecord, ...]
    appended_us: Micros
    """When the controller decided on them; the quorum's thread may be busy since then."""


@dataclass(frozen=True, slots=True)
class Resign:
    """Give up leadership in good order: at a shutdown, or when the controller renounces."""


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
"""What happens to a quorum machine."""


# -- effects --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PersistQuorumState:
    """Write the state and fsync it; effects behind it wait."""

    state: QuorumState
    kraft_version: int = 0
    """1 once this member has read who votes in a dynamic quorum: the file looks different."""


@dataclass(frozen=True, slots=True)
class VotersProposed:
    """The leader wants this record appended; also the event that tells the active controller.

    The controller gives out the offsets of its epoch, so it is the one to append.
    """

    epoch: LeaderEpoch
    record: VotersRecord


@dataclass(frozen=True, slots=True)
class Committed:
    """Records in [base_offset, end_offset) are committed; told once each, in order."""

    base_offset: Offset
    end_offset: Offset
    records: tuple[LoggedRecord, ...]
    size_bytes: Bytes = 0
    """Bytes of the batches that hold them."""


@dataclass(frozen=True, slots=True)
class SnapshotLoaded:
    """The state starts anew from a snapshot; :class:`Committed` goes on from its offset.

    Told at the start of a process that has a snapshot, and when the log was cut away under it.
    """

    snapshot: SnapshotId
    records: tuple[MetadataRecord, ...]


@dataclass(frozen=True, slots=True)
class LeadershipChanged:
    """The member's epoch or leader changed.

    ``is_leader`` becomes true only when this member leads and everything below its epoch, and its
    own LeaderChange record, is committed and told; ``log_end_offset`` is where it may append next.
    """

    epoch: LeaderEpoch
    leader: NodeId
    is_leader: bool
    log_end_offset: Offset = -1


@dataclass(frozen=True, slots=True)
class Halt:
    """The process must stop: a promise of the log was broken under it (Kafka's fatal fault)."""

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
"""What a quorum machine may ask of its host, which must hold back events while effects wait."""
