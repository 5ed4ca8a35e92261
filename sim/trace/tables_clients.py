"""Tables of consumers, groups and transactions."""

from typing import Final

from sim.trace.schema_types import BATCH, BROKER, PARTITION, TOPIC, Column, T, Table

CLIENT_TABLES: Final[tuple[Table, ...]] = (
    Table(
        "reads",
        "facts",
        "a batch, or a part of it, was returned by a consumer's poll",
        (
            T,
            Column("consumer", "string", "name of the consumer"),
            Column("group", "string", "its group; empty for none"),
            TOPIC,
            PARTITION,
            *BATCH,
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
            T,
            Column("consumer", "string", "name of the consumer"),
            Column("group", "string", "its group"),
            TOPIC,
            PARTITION,
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
            T,
            BROKER,
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
            T,
            BROKER,
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
            T,
            BROKER,
            TOPIC,
            PARTITION,
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
            T,
            BROKER,
            TOPIC,
            PARTITION,
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
            T,
            Column("consumer", "string", "name of the consumer"),
            Column("group", "string", "its group"),
            Column("member_id", "string", "as given by the coordinator"),
            Column("generation", "int32", ""),
            Column("partitions", "string", "sorted, joined by commas; empty for an idle member"),
        ),
    ),
    Table(
        "committed_readers",
        "facts",
        "a consumer began that reads committed data only",
        (
            T,
            Column("consumer", "string", "name of the consumer"),
            Column("group", "string", "its group; empty for none"),
        ),
    ),
    Table(
        "transaction_outcomes",
        "facts",
        "a producer learned how its transaction ended, or never learned it before the end",
        (
            T,
            Column("producer", "string", "name of the producer"),
            Column("transactional_id", "string", "transactional.id"),
            Column("transaction", "int64", "that producer's number of the transaction, from 0"),
            Column("producer_id", "int64", "with which it was sent; -1 for none"),
            Column("producer_epoch", "int32", "with which it was sent; -1 for none"),
            Column("begun_us", "int64", "instant of beginTransaction()"),
            Column(
                "outcome",
                "string",
                "committed, aborted or fenced (both: certainly never committed), unknown",
            ),
            Column("error", "string", "Kafka's name of the error that ended it; NONE if none did"),
            Column("records", "int64", "records that the application sent in it"),
        ),
    ),
    Table(
        "transaction_records",
        "facts",
        "the records of one partition that a producer sent in a transaction",
        (
            T,
            Column("producer", "string", "name of the producer"),
            Column("transactional_id", "string", "transactional.id"),
            Column("transaction", "int64", "as in transaction_outcomes"),
            Column("producer_index", "int32", "the producer's number, as in record values"),
            TOPIC,
            PARTITION,
            Column("first_record", "int64", "number of the first record in this partition"),
            Column("last_record", "int64", "number of the last record, inclusive"),
        ),
    ),
)
"""What readers and coordinators did."""
