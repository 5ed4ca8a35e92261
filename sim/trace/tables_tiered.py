"""Tables of tiered storage."""

from typing import Final

from sim.trace.schema_types import NODE, PLACE, REPLICA, Column, Table, facts

TIERED_TABLES: Final[tuple[Table, ...]] = (
    facts(
        "local_log_starts",
        "a tiered replica's local log start moved: what is below is in the object store alone",
        *REPLICA,
        Column("from_offset", "int64", "local log start offset before"),
        Column("to_offset", "int64", "local log start offset after"),
        Column("log_start_offset", "int64", "the replica's log start offset"),
        Column(
            "reason",
            "string",
            "retention.ms, retention.bytes (of the local log; empty: below the log start), rebuilt "
            "(a follower took over the state of the remote log)",
        ),
    ),
    facts(
        "remote_segments",
        "a broker has written an event of a remote segment, or the object store has lost it",
        Column("broker", "int32", "broker id; -1 for a lost object"),
        *PLACE,
        Column("segment", "string", "id of the remote segment"),
        Column(
            "state",
            "string",
            "COPY_SEGMENT_STARTED, COPY_SEGMENT_FINISHED, DELETE_SEGMENT_STARTED, "
            "DELETE_SEGMENT_FINISHED, or LOST",
        ),
        Column("start_offset", "int64", "first offset"),
        Column("end_offset", "int64", "last offset, inclusive"),
        Column("leader_epochs", "string", "epoch:start offset of its leader epochs, by commas"),
        Column("size_bytes", "int64", "bytes of its batches"),
    ),
    facts(
        "object_requests",
        "the object store has answered a broker",
        NODE,
        Column("operation", "string", "PUT, GET or DELETE"),
        Column("name", "string", "name of the object"),
        Column("size_bytes", "int64", "bytes of its contents that were sent or received"),
        Column("started_us", "int64", "instant at which the request arrived"),
        Column("status", "int32", "HTTP status: 200, 404 or 503"),
    ),
)
"""Local log starts, remote segments, and requests to the object store."""
