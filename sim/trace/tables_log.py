"""Tables of what happens to records and logs."""

from typing import Final

from sim.trace.schema_types import (
    BATCH,
    FIRST_RECORD,
    PLACE,
    PRODUCER_INDEX,
    RECORDS,
    REPLICA,
    Column,
    Table,
    detail,
    facts,
)

LOG_TABLES: Final[tuple[Table, ...]] = (
    facts(
        "client_batches",
        "a batch whose producer got its outcome, or the run ended before it did",
        Column("producer", "string", "name of the producer"),
        PRODUCER_INDEX,
        *PLACE,
        FIRST_RECORD,
        Column("record_count", "int32", "records in the batch"),
        Column("size_bytes", "int32", "encoded size"),
        Column("acks", "int8", "-1 all, 0, 1"),
        Column("created_us", "int64", "instant the first record joined the batch"),
        Column("first_sent_us", "int64", "instant of the first send; -1 if never sent"),
        Column("last_sent_us", "int64", "instant of the last send; -1 if never sent"),
        Column("attempts", "int32", "times sent"),
        Column("outcome", "string", "ok (acknowledged), failed (certainly not written), unknown"),
        Column(
            "error",
            "string",
            "Kafka's error name of the last attempt; NONE if ok, or if no answer came to any; "
            "NEVER_SENT of one that its producer had not sent when it ended",
        ),
        Column("base_offset", "int64", "offset in the broker's response; -1 if none"),
        Column("answered_by", "int32", "broker of the last answer; -1 if none"),
        Column("correlation", "int64", "request number of the last send, see requests"),
        Column(
            "latency_us",
            "list<int32>",
            "for each record, t_us minus the instant at which it was meant to be sent",
        ),
    ),
    facts(
        "appends",
        "a batch written to one replica's log",
        *REPLICA,
        *BATCH,
        Column("as_leader", "bool", "whether the broker led the partition"),
        Column("size_bytes", "int32", "batch size"),
        Column("crc", "int64", "CRC-32C of the batch"),
        *RECORDS,
        Column("producer_id", "int64", "idempotent producer id; -1 if none"),
        Column("producer_epoch", "int32", "its epoch; -1 if none"),
        Column("base_sequence", "int32", "sequence of the first record; -1 if none"),
    ),
    facts(
        "high_watermarks",
        "a leader moved its high watermark",
        *REPLICA,
        Column("leader_epoch", "int32", "the leader's epoch"),
        Column("high_watermark", "int64", "offsets below it are committed"),
        Column("log_end_offset", "int64", "the leader's log end"),
        Column("in_sync_count", "int32", "size of the committed ISR"),
        Column("min_in_sync", "int32", "effective min.insync.replicas"),
        Column(
            "lowest_in_sync_end", "int64", "smallest log end the leader knows among its maximal ISR"
        ),
    ),
    detail(
        "follower_watermarks",
        "a follower got a high watermark",
        *REPLICA,
        Column("leader_epoch", "int32", "the follower's epoch"),
        Column("high_watermark", "int64", "as clamped to its own log"),
        Column("log_end_offset", "int64", "the follower's log end"),
        Column("sent_by_leader", "int64", "the high watermark in the leader's response"),
    ),
    detail(
        "acknowledgements",
        "a leader decided one partition of a produce request",
        *REPLICA,
        Column("leader_epoch", "int32", "the leader's epoch"),
        Column("acks", "int8", "-1 all, 0, 1"),
        Column("error", "string", "Kafka's error name; NONE for success"),
        Column("base_offset", "int64", "first offset; -1 if nothing was appended"),
        Column("last_offset", "int64", "last offset; -1 if nothing was appended"),
        Column("high_watermark", "int64", "the leader's high watermark at that instant"),
        Column("maximal_in_sync_count", "int32", "size of the maximal ISR"),
        Column("min_in_sync", "int32", "effective min.insync.replicas"),
    ),
    facts(
        "truncations",
        "a replica dropped the end of its log",
        *REPLICA,
        Column("from_offset", "int64", "log end before"),
        Column("to_offset", "int64", "log end after"),
        Column("high_watermark", "int64", "the replica's high watermark before"),
        Column("leader_epoch", "int32", "the replica's leader epoch"),
        Column(
            "reason",
            "string",
            "diverging_epoch, out_of_range, recovery (bytes lost or corrupt), unrecovered (the "
            "same, at the end of the run, of a broker that stays down), wiped, overwritten (a "
            "misdirected write; recovery may keep what it left), tiered (a follower dropped its "
            "log for the remote one)",
        ),
    ),
    facts(
        "raft_configurations",
        "a Raft group's members from an offset of its leader's log on: at the start of each "
        "term, and at each change",
        *REPLICA,
        Column("leader_epoch", "int32", "the leader's term"),
        Column("offset", "int64", "offset of the configuration"),
        Column("voters", "string", "broker ids joined by commas; who should lead first"),
        Column("old", "string", "voters before, whose majority is still needed, too"),
        Column("learners", "string", "members without a vote, which catch up"),
    ),
    facts(
        "log_starts",
        "a replica's log start offset moved: data below it is deleted",
        *REPLICA,
        Column("from_offset", "int64", "log start offset before"),
        Column("to_offset", "int64", "log start offset after"),
        Column(
            "reason",
            "string",
            "retention.ms, retention.bytes, delete_records, leader (a follower got it), "
            "truncation (the whole log was dropped), moved (a log from another directory took "
            "its place), recovery, remote (of a tiered partition: a new leader begins at the first "
            "remote segment that it knows of)",
        ),
    ),
    facts(
        "log_dir_moves",
        "a replica on its way between two log directories of its broker has come one step on",
        *REPLICA,
        Column(
            "phase",
            "string",
            "began, resumed (after a start), caught_up (requested of the controller), swapped, "
            "cancelled, failed (a log directory did)",
        ),
        Column("from_directory", "string", "where it was; empty if nothing was left there"),
        Column("to_directory", "string", "where it goes"),
        Column("future_end", "int64", "log end of the log that is being filled"),
        Column("log_end_offset", "int64", "log end of the log in use; -1 if there is none"),
    ),
    facts(
        "cleanings",
        "a replica's log was compacted",
        *REPLICA,
        Column("first_dirty_offset", "int64", "first offset that had not been compacted"),
        Column("end_offset", "int64", "end of the compacted part, exclusive"),
        Column("records_before", "int64", "records in the segments that were read"),
        Column("records_after", "int64", "records left in them"),
        Column("tombstones_removed", "int64", "records without a value among those dropped"),
        Column("bytes_before", "int64", "bytes of batches in the segments that were read"),
        Column("bytes_after", "int64", "bytes of batches left in them"),
    ),
    facts(
        "log_contents",
        "a stretch of a compacted log holds these records and no others",
        *REPLICA,
        Column("base_offset", "int64", "first offset of the stretch"),
        Column("last_offset", "int64", "last offset of the stretch, inclusive"),
        Column("kept", "list<int32>", "offsets that have a record, less the first; ascending"),
        Column(
            "how",
            "string",
            "cleaned, loaded (at a start a cleaner's work was finished), fetched (a follower "
            "copied a batch with gaps)",
        ),
        Column("started_us", "int64", "instant at which the cleaning began; -1 for a copy"),
        Column("delete_retention_ms", "int64", "of the log at that time; -1 for a copy"),
    ),
    facts(
        "record_keys",
        "a producer made a batch for a compacted topic",
        PRODUCER_INDEX,
        *PLACE,
        FIRST_RECORD,
        Column("record_count", "int32", "records in the batch"),
        Column("keys", "list<int32>", "number of each record's key"),
        Column("tombstones", "list<int32>", "places of records without a value, from 0"),
    ),
    facts(
        "log_holes",
        "a replica's log was loaded with offsets missing between two segments",
        *REPLICA,
        Column("from_offset", "int64", "first offset that is missing"),
        Column("to_offset", "int64", "where the next segment begins"),
    ),
    facts(
        "recoveries",
        "a replica's log was loaded at a start",
        *REPLICA,
        Column("clean", "bool", "whether the clean-shutdown marker was there"),
        Column("recovery_point", "int64", "offsets below it were known to be flushed"),
        Column("log_end_offset", "int64", "log end found"),
        Column("scanned_bytes", "int64", "bytes validated"),
        Column("truncated_bytes", "int64", "bytes cut behind the first bad batch"),
        Column("read_bytes", "int64", "bytes that came from the disk, not from memory"),
        Column("took_us", "int64", "since loading began; the row is written when it ends"),
    ),
)
"""From the producer's batch to the replica's disk."""
