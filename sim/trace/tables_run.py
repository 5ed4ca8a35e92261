"""Tables of the run itself: faults, load, and the detail of every message."""

from typing import Final

from sim.trace.schema_types import NODE, PLACE, Column, Table, detail, facts

RUN_TABLES: Final[tuple[Table, ...]] = (
    facts(
        "faults",
        "a fault began, ended or was rejected",
        Column("fault", "int32", "its place in the scenario, from 0"),
        Column("kind", "string", "as in the scenario"),
        Column(
            "phase",
            "string",
            "began, healed; step: of an upgrade; concluded: the outcome of an operation",
        ),
        Column("target", "string", "as in the scenario"),
        Column(
            "resolved", "string", "what the target meant at that instant; of a step: the server"
        ),
        Column("took_effect", "bool", "whether anything was different because of it"),
        Column("effect", "string", "what it did, in words"),
    ),
    facts(
        "load",
        "a server's load over the second that ends at t_us",
        NODE,
        Column("network_threads_ratio", "int32", "busy share of the network threads, in 1/1000"),
        Column("request_handlers_ratio", "int32", "busy share of the request handlers, in 1/1000"),
        Column("disk_ratio", "int32", "busy share of the busiest disk, in 1/1000"),
        Column("disk_written_bytes", "int64", "bytes moved to the platter in that second"),
        Column("dirty_bytes", "int64", "page cache not yet on the platter"),
        Column("sent_bytes", "int64", "bytes put on the network in that second"),
        Column("requests", "int32", "requests answered in that second"),
    ),
    facts(
        "lag",
        "a group's distance from the end of a partition, sampled each second",
        Column("group", "string", "group id"),
        *PLACE,
        Column("position", "int64", "next offset of the consumer that owns it; -1 without one"),
        Column("committed", "int64", "last offset acknowledged as committed; -1 for none"),
        Column("high_watermark", "int64", "the leader's"),
    ),
    detail(
        "requests",
        "a server answered a request",
        Column("node", "int32", "server id"),
        Column("kind", "string", "Produce, Fetch, FetchFollower, JoinGroup, …"),
        Column("client", "string", "printed name of the client"),
        Column("correlation", "int64", "the client's number of the request"),
        Column("sent_us", "int64", "instant the client sent it"),
        Column("arrived_us", "int64", "instant it reached the server's socket"),
        Column("started_us", "int64", "instant a request handler took it"),
        Column("decided_us", "int64", "instant the machine handled it"),
        Column("request_bytes", "int32", ""),
        Column("response_bytes", "int32", ""),
    ),
    detail(
        "messages",
        "a message crossed the network",
        Column("sender", "string", "printed name"),
        Column("receiver", "string", "printed name"),
        Column("kind", "string", "type of request, response or notification"),
        Column("size_bytes", "int32", ""),
        Column("sent_us", "int64", "instant it was handed to the socket"),
        Column(
            "delayed_by",
            "string",
            "name of the fault rule that held or slowed it, or incast; empty if none",
        ),
    ),
    detail(
        "disk_io",
        "a disk did something for a log directory",
        NODE,
        Column("directory", "int32", "log directory, from 0"),
        Column("operation", "string", "write_back, flush, read, checkpoint"),
        Column("size_bytes", "int64", ""),
        Column("started_us", "int64", "instant the disk began"),
        Column("file", "string", "partition or file concerned; empty for many"),
    ),
)
"""Tables of faults, load and messages."""
