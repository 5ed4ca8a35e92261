"""Behaviours that Kafka 4.2 and 4.3 changed.

Source: the released code of 4.1.2, 4.2.0 and 4.3.1, compared; ``docs/kafka-4.2-4.3.md`` has all of
the difference, and what was done about it.
"""

from typing import Final

from sim.scenario.behaviours.types import Behaviour, Choice

BEHAVIOURS_OF_RECENT_RELEASES: Final[tuple[Behaviour, ...]] = (
    Behaviour(
        "group.assignment",
        "KAFKA-20291",
        "when a group coordinator computes a target assignment for a new epoch of a group "
        "(group.protocol: consumer; share groups)",
        (
            Choice(
                "interval",
                "4.3",
                "with the first heartbeat that comes group.consumer.assignment.interval.ms or "
                "group.share.assignment.interval.ms after the last one, or later",
            ),
            Choice("each_epoch", changes="with the heartbeat that makes the epoch"),
        ),
    ),
    Behaviour(
        "group.classic_join",
        "KAFKA-20640",
        "whether a member of the classic protocol may join a consumer group where "
        "group.consumer.migration.policy is disabled",
        (
            Choice(
                "by_policy",
                "",
                "no: INCONSISTENT_GROUP_PROTOCOL, which ends the consumer",
                backports=("4.3.1",),
            ),
            Choice(
                "admitted",
                changes="yes, whatever the policy is",
                risk="none for data; the group keeps members of both protocols for good",
            ),
        ),
        is_quiet=True,
    ),
    Behaviour(
        "group.commit_fencing",
        "KIP-1251",
        "which commits of a member of an older epoch are taken (group.protocol: consumer)",
        (
            Choice(
                "assignment_epoch",
                "4.3",
                "of partitions that it has since that epoch or before; the log has the epochs",
            ),
            Choice("member_epoch", changes="none"),
        ),
    ),
    Behaviour(
        "group.committed_topic",
        "KIP-848",
        "whether a committed offset is written with its topic's id",
        (
            Choice(
                "id",
                "4.2",
                "in version 4, which has the id where the consumer protocol's clients name it",
            ),
            Choice("name", changes="in version 3, which has none (4.1 writes 4 without an id)"),
        ),
    ),
    Behaviour(
        "transaction.marker",
        "KIP-1228, KAFKA-19999",
        "which markers a leader takes of a producer that has a transaction open there "
        "(transactions: kip890)",
        (
            Choice(
                "later_epoch",
                "4.2",
                "those of a later epoch than that of the transaction's records: a late marker of "
                "the one before ends none",
            ),
            Choice("any_epoch", changes="those of its epoch, too"),
        ),
    ),
    Behaviour(
        "kraft.fetch_size",
        "KIP-1219",
        "how many bytes a member of the quorum asks for, of records and of a snapshot",
        (
            Choice(
                "settings",
                "4.3",
                "controller.quorum.fetch.max.bytes and controller.quorum.fetch.snapshot.max.bytes, "
                "of 1 MiB",
            ),
            Choice("fixed", changes="8 MiB"),
        ),
    ),
    Behaviour(
        "share.delivery",
        "KAFKA-17541",
        "how many records of a share group are acquired together that were given back often",
        (
            Choice(
                "isolated",
                "4.2",
                "from half of group.share.delivery.count.limit on ever fewer, at last one alone",
            ),
            Choice("whole", changes="as many as new ones"),
        ),
    ),
    Behaviour(
        "share.state",
        "KIP-1226",
        "whether a share partition's state has the number of its completed records in flight",
        (
            Choice("counted", "4.2", "it has, for the lag of a share group"),
            Choice("plain", changes="it has not"),
        ),
    ),
)
"""Switches of 4.2 and 4.3."""
