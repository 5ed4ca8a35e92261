"""Historic behaviours around producers that are known by an id, and their transactions.

Source: the failure catalogue, section 0.5; KIP-98, KIP-360, KIP-890.
"""

from typing import Final

from sim.scenario.behaviours.types import Behaviour, Choice

BEHAVIOURS_OF_PRODUCERS: Final[tuple[Behaviour, ...]] = (
    Behaviour(
        "transactions",
        "KIP-98, KIP-890",
        "how partitions join a transaction and what fences its producer",
        (
            Choice(
                "kip890",
                "4.0",
                "through their leaders, and by an epoch of its own for each transaction "
                "(transaction.version 2)",
            ),
            Choice(
                "kip98",
                changes="by the client, and by the epoch of its InitProducerId",
                risk="late batches join the next transaction",
            ),
        ),
        side="level",
    ),
    Behaviour(
        "transaction.verification",
        "KIP-890, KAFKA-14402",
        "whether a leader asks if its partition is in the transaction whose batch it is sent",
        (
            Choice("on", "3.6", "it asks the coordinator before the first batch"),
            Choice(
                "off",
                changes="it takes what comes with the producer's epoch",
                risk="transactions hang: read_committed consumers wait",
            ),
        ),
    ),
    Behaviour(
        "client.add_partitions",
        "KIP-890",
        "of which partitions transactional producers tell the coordinator (transactions: kip98)",
        (
            Choice("all", changes="of each before they write there"),
            Choice(
                "first",
                "",
                "of the first one only, as a client with a defect might",
                risk="transactions hang, or fail",
            ),
        ),
        side="client",
    ),
    Behaviour(
        "client.batch_split",
        "KIP-126, KAFKA-8350",
        "what a producer does with a batch that its leader finds too large",
        (
            Choice(
                "halves",
                "4.2",
                "it splits it to batch.size, and what is too large again in halves",
            ),
            Choice(
                "batch_size",
                "0.11",
                "it splits it to batch.size, again and again where max.message.bytes is smaller",
                risk="records that each would be taken fail after delivery.timeout.ms",
            ),
            Choice(
                "none",
                changes="the batch fails",
                risk="records that each would be taken fail",
            ),
        ),
        side="client",
        is_quiet=True,
    ),
    Behaviour(
        "client.producer_id_refusal",
        "KAFKA-13668",
        "what an idempotent producer does without a right that gives it a producer id",
        (
            Choice("retry", "3.6", "what waits fails, and the next record asks again"),
            Choice(
                "fatal",
                changes="what waits fails, and every record after it, until it is restarted",
                risk="a producer that gets its right too late sends nothing any more",
            ),
        ),
        side="client",
        is_quiet=True,
    ),
    Behaviour(
        "transaction.reload",
        "KAFKA-9307",
        "what a transaction coordinator does with ids that it has when it reads their partition",
        (
            Choice("replace", "2.5", "what it reads takes their place", backports=("2.4.1",)),
            Choice(
                "refuse",
                changes="they are in the way, and it loads until it is restarted",
                risk="transactional ids unavailable until a restart",
            ),
        ),
    ),
    Behaviour(
        "transaction.fence",
        "KAFKA-9666",
        "how many epochs it takes to fence a producer whose coordinator cannot write its log "
        "(each_attempt: transactions: kip98)",
        (
            Choice("once", "2.6", "one: what a failed attempt took, the next one takes again"),
            Choice(
                "each_attempt",
                changes="one for each attempt, until none of 32,767 is left and nobody can end the "
                "transaction",
                risk="a transactional id unavailable for good",
            ),
        ),
    ),
    Behaviour(
        "transaction.fenced_end",
        "KAFKA-19367",
        "how many epochs the end of a transaction takes whose producer is fenced "
        "(transactions: kip890)",
        (
            Choice("one_epoch", "4.1", "one, when the abort is written"),
            Choice(
                "two_epochs",
                changes="one to fence the producer, and one for the abort",
                risk="none for data; epochs are used up sooner",
            ),
        ),
    ),
    Behaviour(
        "transaction.offsets",
        "KIP-447",
        "what fences a task's offsets in a transaction: its member of the group, or nothing",
        (
            Choice("kip447", "2.5", "they name member and generation; its heir waits for them"),
            Choice(
                "unfenced",
                changes="the transactional id alone is fenced, not the member",
                risk="records processed twice within exactly-once",
            ),
        ),
        side="client",
    ),
    Behaviour(
        "producer.state",
        "KAFKA-7190, KIP-360",
        "for how long a log knows an idempotent producer",
        (
            Choice("until_expiry", "2.4", "producer.id.expiration.ms, whatever retention takes"),
            Choice(
                "with_records",
                changes="as long as it holds a record of it; who goes on after that is an unknown "
                "producer",
                risk="producers fail, or write duplicates",
            ),
        ),
    ),
    Behaviour(
        "producer.expiry",
        "KAFKA-9144",
        "what keeps a producer from expiring",
        (
            Choice(
                "any_batch",
                "2.5",
                "its data, and the markers of its transactions",
                backports=("2.4.1",),
            ),
            Choice(
                "data",
                changes="its data alone; with its state goes the epoch of the coordinator that "
                "wrote the last marker",
                waives=("markers-follow-the-decision",),
                risk="transactions hang: read_committed consumers wait",
            ),
        ),
    ),
)
"""Switches of how producers are known, and of how transactions begin and end."""
