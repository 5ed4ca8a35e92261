"""Tables of leadership and liveness."""

from typing import Final

from sim.trace.schema_types import BROKER, PARTITION, TOPIC, Column, T, Table

CLUSTER_TABLES: Final[tuple[Table, ...]] = (
    Table(
        "leadership",
        "facts",
        "a broker applied a partition's leadership",
        (
            T,
            BROKER,
            TOPIC,
            PARTITION,
            Column("role", "string", "leader, follower, offline, removed"),
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
            T,
            Column("controller", "int32", "controller id"),
            TOPIC,
            PARTITION,
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
            T,
            Column("node", "int32", "controller or broker id"),
            Column(
                "role",
                "string",
                "unattached, prospective, candidate, leader, follower, resigned, observer",
            ),
            Column("epoch", "int32", "quorum epoch"),
            Column("leader", "int32", "-1 if unknown"),
            Column("voted_for", "int32", "-1 for none"),
            Column("log_end_offset", "int64", "of its metadata log"),
            Column("high_watermark", "int64", "of its metadata log"),
        ),
    ),
    Table(
        "broker_states",
        "facts",
        "the active controller changed a broker's registration",
        (
            T,
            Column("controller", "int32", "controller id"),
            BROKER,
            Column(
                "state", "string", "registered, fenced, unfenced, controlled_shutdown, unregistered"
            ),
            Column("broker_epoch", "int64", "of the registration"),
        ),
    ),
    Table(
        "topic_deletions",
        "facts",
        "the deletion of a topic was committed",
        (
            T,
            Column("controller", "int32", "controller id"),
            TOPIC,
            Column("topic_id", "string", "a topic created again under the name has another"),
        ),
    ),
    Table(
        "controllers",
        "facts",
        "in ZooKeeper mode, a broker became the controller, had read everything, or resigned",
        (
            T,
            BROKER,
            Column("state", "string", "elected, loaded, resigned"),
            Column("epoch", "int32", "controller epoch"),
            Column("partitions", "int32", "how many it has read; 0 otherwise"),
        ),
    ),
    Table(
        "node_states",
        "facts",
        "a process or host changed state",
        (
            T,
            Column("node", "string", "printed name"),
            Column(
                "state",
                "string",
                "started, running, crashed, powered_off, paused, resumed, stopped; of a source "
                "task: failed",
            ),
            Column("incarnation", "int32", "how often the process has started"),
        ),
    ),
    Table(
        "halts",
        "facts",
        "a server halted, as by Kafka's Exit.halt: not killed, not stopped",
        (
            T,
            Column("node", "string", "printed name"),
            Column("reason", "string", "the error"),
        ),
    ),
    Table(
        "heaps",
        "facts",
        "a broker's heap and the actions of its collector (cluster.heap)",
        (
            T,
            BROKER,
            Column("event", "string", "sample, collection (all stops), out_of_memory (it ends)"),
            Column("live_bytes", "int64", "what cannot be collected"),
            Column("size_bytes", "int64", "size of the heap"),
            Column("producers", "int64", "producer ids, each in every log that knows it"),
            Column("connections", "int32", "open connections"),
            Column("pause_us", "int64", "how long everything stops"),
        ),
    ),
    Table(
        "throttles",
        "facts",
        "a client above a quota was made to wait, or its connection closed",
        (
            T,
            BROKER,
            Column("client", "string", "printed name of the client"),
            Column("client_id", "string", "whose quota it is; of connections the host"),
            Column("request", "string", "kind of request, as in the protocol; empty: a connection"),
            Column("quota", "string", "its name; of connections the setting's, or the quota's"),
            Column(
                "throttle_us",
                "int64",
                "throttle_time_ms in microseconds; 0: a connection was closed at once",
            ),
        ),
    ),
)
"""Leaders, brokers, controllers and processes."""
