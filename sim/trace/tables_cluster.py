"""Tables of leadership and liveness."""

from typing import Final

from sim.trace.schema_types import (
    BROKER,
    CONTROLLER,
    NODE,
    PLACE,
    REPLICA,
    TOPIC,
    Column,
    Table,
    facts,
)

CLUSTER_TABLES: Final[tuple[Table, ...]] = (
    facts(
        "leadership",
        "a broker applied a partition's leadership",
        *REPLICA,
        Column("role", "string", "leader, follower, offline, removed"),
        Column("leader", "int32", "leader's broker id; -1 for none"),
        Column("leader_epoch", "int32", "as applied"),
        Column("partition_epoch", "int32", "as applied"),
        Column("in_sync", "string", "committed ISR, sorted, joined by commas"),
        Column("log_end_offset", "int64", "of this replica at that instant"),
        Column("high_watermark", "int64", "of this replica at that instant"),
    ),
    facts(
        "partition_changes",
        "the active controller committed a partition's new state",
        CONTROLLER,
        *PLACE,
        Column("leader", "int32", "-1 for none"),
        Column("leader_epoch", "int32", ""),
        Column("partition_epoch", "int32", ""),
        Column("in_sync", "string", "ISR, sorted, joined by commas"),
        Column("eligible", "string", "ELR, sorted, joined by commas"),
        Column("replicas", "string", "assignment in Kafka's order, joined by commas"),
        Column("unclean", "bool", "whether the leader came from outside ISR and ELR"),
    ),
    facts(
        "quorum",
        "a member of the metadata quorum changed role or epoch",
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
    facts(
        "broker_states",
        "the active controller changed a broker's registration",
        CONTROLLER,
        BROKER,
        Column(
            "state", "string", "registered, fenced, unfenced, controlled_shutdown, unregistered"
        ),
        Column("broker_epoch", "int64", "of the registration"),
    ),
    facts(
        "topic_deletions",
        "the deletion of a topic was committed",
        CONTROLLER,
        TOPIC,
        Column("topic_id", "string", "a topic created again under the name has another"),
    ),
    facts(
        "controllers",
        "in ZooKeeper mode, a broker became the controller, had read everything, or resigned",
        BROKER,
        Column("state", "string", "elected, loaded, resigned"),
        Column("epoch", "int32", "controller epoch"),
        Column("partitions", "int32", "how many it has read; 0 otherwise"),
    ),
    facts(
        "node_states",
        "a process or host changed state",
        NODE,
        Column(
            "state",
            "string",
            "started, running, crashed, powered_off, paused, resumed, stopped; of a source "
            "task: failed",
        ),
        Column("incarnation", "int32", "how often the process has started"),
    ),
    facts(
        "halts",
        "a server halted, as by Kafka's Exit.halt: not killed, not stopped",
        NODE,
        Column("reason", "string", "the error"),
    ),
    facts(
        "heaps",
        "a broker's heap and the actions of its collector (cluster.heap)",
        BROKER,
        Column("event", "string", "sample, collection (all stops), out_of_memory (it ends)"),
        Column("live_bytes", "int64", "what cannot be collected"),
        Column("size_bytes", "int64", "size of the heap"),
        Column("producers", "int64", "producer ids, each in every log that knows it"),
        Column("connections", "int32", "open connections"),
        Column("pause_us", "int64", "how long everything stops"),
    ),
    facts(
        "throttles",
        "a client above a quota was made to wait, or its connection closed",
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
)
"""Leaders, brokers, controllers and processes."""
