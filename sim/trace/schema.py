"""The tables of a trace: plain data, standard library only.

One row is one fact. ``t_us`` is the instant of the fact in microseconds since the scenario's zero;
the cluster boots before zero. A table of level ``facts`` is written at every tracing level and
makes up the trace digest; a table of level ``detail`` is written at level ``detail`` (the default)
only.

Records are known by (producer index, topic, partition, record number): a producer numbers the
records it sends to each partition from 0, so every batch is a contiguous range of numbers.
"""

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

VERSION: Final = 1
"""Of this schema. A reader refuses a trace of another version."""

ColumnType = Literal["int8", "int32", "int64", "string", "bool", "list<int32>"]
Level = Literal["facts", "detail"]


class Column(NamedTuple):
    """One column: its name carries its unit; ``meaning`` says the rest."""

    name: str
    type: ColumnType
    meaning: str


@dataclass(frozen=True, slots=True)
class Table:
    """One table; ``row`` says what one row is."""

    name: str
    level: Level
    row: str
    columns: tuple[Column, ...]

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names in order."""
        return tuple(column.name for column in self.columns)


_T = Column("t_us", "int64", "instant of the fact")
_TOPIC = Column("topic", "string", "topic name")
_PARTITION = Column("partition", "int32", "partition number")
_BROKER = Column("broker", "int32", "broker id")
_RECORDS = (
    Column("producer_index", "int32", "which producer made the records; -1 for internal records"),
    Column("first_record", "int64", "that producer's number of the first record in this partition"),
    Column("record_count", "int32", "records in the batch"),
)
_BATCH = (
    Column("base_offset", "int64", "offset of the first record"),
    Column("last_offset", "int64", "offset of the last record, inclusive"),
    Column("leader_epoch", "int32", "leader epoch stamped on the batch"),
)

TABLES: Final[tuple[Table, ...]] = (
    Table(
        "client_batches",
        "facts",
        "a batch whose outcome its producer learned, or never learned before the end",
        (
            _T,
            Column("producer", "string", "name of the producer"),
            Column("producer_index", "int32", "its number, as written into record values"),
            _TOPIC,
            _PARTITION,
            Column("first_record", "int64", "number of the first record in this partition"),
            Column("record_count", "int32", "records in the batch"),
            Column("size_bytes", "int32", "encoded size"),
            Column("acks", "int8", "-1 all, 0, 1"),
            Column("created_us", "int64", "instant the first record joined the batch"),
            Column("first_sent_us", "int64", "instant of the first send; -1 if never sent"),
            Column("last_sent_us", "int64", "instant of the last send; -1 if never sent"),
            Column("attempts", "int32", "times sent"),
            Column(
                "outcome", "string", "ok (acknowledged), failed (certainly not written), unknown"
            ),
            Column("error", "string", "Kafka's error name of the last attempt; NONE if ok"),
            Column("base_offset", "int64", "offset told by the broker; -1 if none"),
            Column("answered_by", "int32", "broker of the last answer; -1 if none"),
            Column("correlation", "int64", "request number of the last send, see requests"),
            Column(
                "latency_us",
                "list<int32>",
                "for each record, t_us minus the instant at which it was meant to be sent",
            ),
        ),
    ),
    Table(
        "appends",
        "facts",
        "a batch written to one replica's log",
        (
            _T,
            _BROKER,
            _TOPIC,
            _PARTITION,
            *_BATCH,
            Column("as_leader", "bool", "whether the broker led the partition"),
            Column("size_bytes", "int32", "batch size"),
            Column("crc", "int64", "CRC-32C of the batch"),
            *_RECORDS,
            Column("producer_id", "int64", "idempotent producer id; -1 if none"),
            Column("producer_epoch", "int32", "its epoch; -1 if none"),
            Column("base_sequence", "int32", "sequence of the first record; -1 if none"),
        ),
    ),
    Table(
        "high_watermarks",
        "facts",
        "a leader moved its high watermark",
        (
            _T,
            _BROKER,
            _TOPIC,
            _PARTITION,
            Column("leader_epoch", "int32", "the leader's epoch"),
            Column("high_watermark", "int64", "offsets below it are committed"),
            Column("log_end_offset", "int64", "the leader's log end"),
            Column("in_sync_count", "int32", "size of the committed ISR"),
            Column("min_in_sync", "int32", "effective min.insync.replicas"),
            Column(
                "lowest_in_sync_end",
                "int64",
                "smallest log end the leader knows among its maximal ISR",
            ),
        ),
    ),
    Table(
        "follower_watermarks",
        "detail",
        "a follower learned a high watermark",
        (
            _T,
            _BROKER,
            _TOPIC,
            _PARTITION,
            Column("leader_epoch", "int32", "the follower's epoch"),
            Column("high_watermark", "int64", "as clamped to its own log"),
            Column("log_end_offset", "int64", "the follower's log end"),
            Column("sent_by_leader", "int64", "the high watermark in the leader's response"),
        ),
    ),
    Table(
        "acknowledgements",
        "detail",
        "a leader decided one partition of a produce request",
        (
            _T,
            _BROKER,
            _TOPIC,
            _PARTITION,
            Column("leader_epoch", "int32", "the leader's epoch"),
            Column("acks", "int8", "-1 all, 0, 1"),
            Column("error", "string", "Kafka's error name; NONE for success"),
            Column("base_offset", "int64", "first offset; -1 if nothing was appended"),
            Column("last_offset", "int64", "last offset; -1 if nothing was appended"),
            Column("high_watermark", "int64", "the leader's high watermark at that instant"),
            Column("maximal_in_sync_count", "int32", "size of the maximal ISR"),
            Column("min_in_sync", "int32", "effective min.insync.replicas"),
        ),
    ),
    Table(
        "truncations",
        "facts",
        "a replica dropped the end of its log",
        (
            _T,
            _BROKER,
            _TOPIC,
            _PARTITION,
            Column("from_offset", "int64", "log end before"),
            Column("to_offset", "int64", "log end after"),
            Column("high_watermark", "int64", "the replica's high watermark before"),
            Column("leader_epoch", "int32", "the replica's leader epoch"),
            Column(
                "reason",
                "string",
                "diverging_epoch, out_of_range, recovery (bytes lost or corrupt), wiped",
            ),
        ),
    ),
    Table(
        "log_starts",
        "facts",
        "a replica's log start offset moved: what is below it is gone",
        (
            _T,
            _BROKER,
            _TOPIC,
            _PARTITION,
            Column("from_offset", "int64", "log start offset before"),
            Column("to_offset", "int64", "log start offset after"),
            Column(
                "reason",
                "string",
                "retention.ms, retention.bytes, delete_records, leader (a follower learned it), "
                "truncation (the whole log was dropped)",
            ),
        ),
    ),
    Table(
        "cleanings",
        "facts",
        "a replica's log was compacted",
        (
            _T,
            _BROKER,
            _TOPIC,
            _PARTITION,
            Column("first_dirty_offset", "int64", "first offset that had not been compacted"),
            Column("end_offset", "int64", "end of the compacted part, exclusive"),
            Column("records_before", "int64", "records in the segments that were read"),
            Column("records_after", "int64", "records left in them"),
            Column("tombstones_removed", "int64", "records without a value among those dropped"),
            Column("bytes_before", "int64", "bytes of batches in the segments that were read"),
            Column("bytes_after", "int64", "bytes of batches left in them"),
        ),
    ),
    Table(
        "recoveries",
        "facts",
        "a replica's log was loaded at a start",
        (
            _T,
            _BROKER,
            _TOPIC,
            _PARTITION,
            Column("clean", "bool", "whether the clean-shutdown marker was there"),
            Column("recovery_point", "int64", "offsets below it were known to be flushed"),
            Column("log_end_offset", "int64", "log end found"),
            Column("scanned_bytes", "int64", "bytes validated"),
            Column("truncated_bytes", "int64", "bytes cut behind the first bad batch"),
        ),
    ),
    Table(
        "leadership",
        "facts",
        "a broker applied a partition's leadership",
        (
            _T,
            _BROKER,
            _TOPIC,
            _PARTITION,
            Column("role", "string", "leader, follower, offline"),
            Column("leader", "int32", "leader's broker id; -1 for none"),
            Column("leader_epoch", "int32", "as applied"),
            Column("partition_epoch", "int32", "as applied"),
            Column("in_sync", "string", "committed ISR, sorted, joined by commas"),
            Column("log_end_offset", "int64", "of this replica at that instant"),
            Column("high_watermark", "int64", "of this replica at that instant"),
        ),
    ),
    Table(
        "partition_changes",
        "facts",
        "the active controller committed a partition's new state",
        (
            _T,
            Column("controller", "int32", "controller id"),
            _TOPIC,
            _PARTITION,
            Column("leader", "int32", "-1 for none"),
            Column("leader_epoch", "int32", ""),
            Column("partition_epoch", "int32", ""),
            Column("in_sync", "string", "ISR, sorted, joined by commas"),
            Column("eligible", "string", "ELR, sorted, joined by commas"),
            Column("replicas", "string", "assignment in Kafka's order, joined by commas"),
            Column("unclean", "bool", "whether the leader came from outside ISR and ELR"),
        ),
    ),
    Table(
        "quorum",
        "facts",
        "a member of the metadata quorum changed role or epoch",
        (
            _T,
            Column("node", "int32", "controller or broker id"),
            Column(
                "role",
                "string",
                "unattached, prospective, candidate, leader, follower, resigned, observer",
            ),
            Column("epoch", "int32", "quorum epoch"),
            Column("leader", "int32", "-1 if unknown"),
            Column("voted_for", "int32", "-1 if nobody"),
            Column("log_end_offset", "int64", "of its metadata log"),
            Column("high_watermark", "int64", "of its metadata log"),
        ),
    ),
    Table(
        "broker_states",
        "facts",
        "the active controller changed a broker's registration",
        (
            _T,
            Column("controller", "int32", "controller id"),
            _BROKER,
            Column(
                "state", "string", "registered, fenced, unfenced, controlled_shutdown, unregistered"
            ),
            Column("broker_epoch", "int64", "of the registration"),
        ),
    ),
    Table(
        "node_states",
        "facts",
        "a process or host changed state",
        (
            _T,
            Column("node", "string", "printed name"),
            Column(
                "state",
                "string",
                "started, running, crashed, powered_off, paused, resumed, stopped",
            ),
            Column("incarnation", "int32", "how often the process has started"),
        ),
    ),
    Table(
        "reads",
        "facts",
        "a batch, or a part of it, was returned by a consumer's poll",
        (
            _T,
            Column("consumer", "string", "name of the consumer"),
            Column("group", "string", "its group; empty for none"),
            _TOPIC,
            _PARTITION,
            *_BATCH,
            Column("producer_index", "int32", "which producer made the records"),
            Column("first_record", "int64", "number of the first record returned"),
            Column("record_count", "int32", "records returned"),
            Column("high_watermark", "int64", "as sent with the batch"),
            Column("read_from", "int32", "broker that served it"),
        ),
    ),
    Table(
        "commits",
        "facts",
        "a consumer learned the outcome of an offset commit",
        (
            _T,
            Column("consumer", "string", "name of the consumer"),
            Column("group", "string", "its group"),
            _TOPIC,
            _PARTITION,
            Column("offset", "int64", "next offset to read"),
            Column("generation", "int32", "group generation"),
            Column("error", "string", "Kafka's error name"),
        ),
    ),
    Table(
        "groups",
        "facts",
        "a group changed state at its coordinator",
        (
            _T,
            _BROKER,
            Column("group", "string", "group id"),
            Column(
                "state", "string", "Empty, PreparingRebalance, CompletingRebalance, Stable, Dead"
            ),
            Column("generation", "int32", ""),
            Column("members", "int32", "number of members"),
            Column("reason", "string", "why"),
        ),
    ),
    Table(
        "transactions",
        "facts",
        "a transactional id reached a state at its coordinator, and the log has it",
        (
            _T,
            _BROKER,
            Column("transactional_id", "string", "as the producer is configured"),
            Column("producer_id", "int64", "its present producer id"),
            Column("producer_epoch", "int32", "its present epoch"),
            Column(
                "state",
                "string",
                "Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit, CompleteAbort, Dead",
            ),
            Column("partitions", "int32", "partitions in the transaction"),
            Column("coordinator_epoch", "int32", "leader epoch of the coordinator's partition"),
            Column("reason", "string", "what brought it there: a request, a timeout, …"),
        ),
    ),
    Table(
        "markers",
        "facts",
        "a leader appended the marker that ends a transaction in its partition",
        (
            _T,
            _BROKER,
            _TOPIC,
            _PARTITION,
            Column("offset", "int64", "of the marker"),
            Column("producer_id", "int64", "of the transaction"),
            Column("producer_epoch", "int32", "in the marker: the data's, or one more (KIP-890)"),
            Column("committed", "bool", "COMMIT, or ABORT"),
            Column("coordinator_epoch", "int32", "of the coordinator that asked for it"),
        ),
    ),
    Table(
        "stable_offsets",
        "facts",
        "a leader moved the last stable offset of a partition that has transactions",
        (
            _T,
            _BROKER,
            _TOPIC,
            _PARTITION,
            Column("leader_epoch", "int32", "the leader's epoch"),
            Column("last_stable_offset", "int64", "readers of committed data see what is below it"),
            Column("high_watermark", "int64", "the leader's"),
        ),
    ),
    Table(
        "assignments",
        "facts",
        "a consumer took over its partitions",
        (
            _T,
            Column("consumer", "string", "name of the consumer"),
            Column("group", "string", "its group"),
            Column("member_id", "string", "as given by the coordinator"),
            Column("generation", "int32", ""),
            Column("partitions", "string", "sorted, joined by commas; empty for an idle member"),
        ),
    ),
    Table(
        "faults",
        "facts",
        "a fault began, ended or was refused",
        (
            _T,
            Column("fault", "int32", "its place in the scenario, from 0"),
            Column("kind", "string", "as in the scenario"),
            Column("phase", "string", "began, healed"),
            Column("target", "string", "as in the scenario"),
            Column("resolved", "string", "what the target meant at that instant"),
            Column("took_effect", "bool", "whether anything was different because of it"),
            Column("effect", "string", "what it did, in words"),
        ),
    ),
    Table(
        "load",
        "facts",
        "a server's load over the second that ends at t_us",
        (
            _T,
            Column("node", "string", "printed name"),
            Column(
                "network_threads_ratio", "int32", "busy share of the network threads, in 1/1000"
            ),
            Column(
                "request_handlers_ratio", "int32", "busy share of the request handlers, in 1/1000"
            ),
            Column("disk_ratio", "int32", "busy share of the busiest disk, in 1/1000"),
            Column("disk_written_bytes", "int64", "bytes moved to the platter in that second"),
            Column("dirty_bytes", "int64", "page cache not yet on the platter"),
            Column("sent_bytes", "int64", "bytes put on the network in that second"),
            Column("requests", "int32", "requests answered in that second"),
        ),
    ),
    Table(
        "lag",
        "facts",
        "a group's distance from the end of a partition, sampled each second",
        (
            _T,
            Column("group", "string", "group id"),
            _TOPIC,
            _PARTITION,
            Column(
                "position", "int64", "next offset of the consumer that owns it; -1 if nobody does"
            ),
            Column("committed", "int64", "last offset acknowledged as committed; -1 for none"),
            Column("high_watermark", "int64", "the leader's"),
        ),
    ),
    Table(
        "requests",
        "detail",
        "a server answered a request",
        (
            _T,
            Column("node", "int32", "server id"),
            Column("kind", "string", "Produce, Fetch, FetchFollower, JoinGroup, …"),
            Column("client", "string", "printed name of the asker"),
            Column("correlation", "int64", "the asker's number of the request"),
            Column("sent_us", "int64", "instant the asker sent it"),
            Column("arrived_us", "int64", "instant it reached the server's socket"),
            Column("started_us", "int64", "instant a request handler took it"),
            Column("decided_us", "int64", "instant the machine handled it"),
            Column("request_bytes", "int32", ""),
            Column("response_bytes", "int32", ""),
        ),
    ),
    Table(
        "messages",
        "detail",
        "a message crossed the network",
        (
            _T,
            Column("sender", "string", "printed name"),
            Column("receiver", "string", "printed name"),
            Column("kind", "string", "type of request or response"),
            Column("size_bytes", "int32", ""),
            Column("sent_us", "int64", "instant it was handed to the socket"),
            Column(
                "delayed_by",
                "string",
                "name of the fault rule that held or slowed it; empty if none",
            ),
        ),
    ),
    Table(
        "disk_io",
        "detail",
        "a disk did something for a log directory",
        (
            _T,
            Column("node", "string", "printed name"),
            Column("directory", "int32", "log directory, from 0"),
            Column("operation", "string", "write_back, flush, read, checkpoint"),
            Column("size_bytes", "int64", ""),
            Column("started_us", "int64", "instant the disk began"),
            Column("file", "string", "partition or file concerned; empty for many"),
        ),
    ),
)
"""Every table, in the order in which a digest takes them."""

BY_NAME: Final[dict[str, Table]] = {table.name: table for table in TABLES}
"""Tables by name."""
