"""Historic behaviours of clients, of their groups, and of their quotas.

Source: the failure catalogue, section 0.5; KIP-232, KIP-320, KIP-951, KIP-211, KIP-219.
"""

from typing import Final

from sim.scenario.behaviours.types import Behaviour, Choice

BEHAVIOURS_OF_CLIENTS: Final[tuple[Behaviour, ...]] = (
    Behaviour(
        "client.leader_hints",
        "KIP-951",
        "whether a refusal names the new leader",
        (
            Choice("on", "3.7", "clients go to the leader that the refusal names"),
            Choice(
                "off",
                changes="clients ask for metadata, and wait their back-off",
                risk="none for data; slower after each change of leaders",
            ),
        ),
        side="both",
    ),
    Behaviour(
        "client.metadata",
        "KIP-232, KAFKA-6262, KAFKA-7738",
        "whether a client goes back to an older leader when a broker that is behind names it",
        (
            Choice("newest", "2.2", "an older leader epoch than the known one is ignored"),
            Choice(
                "last",
                changes="the last answer is believed; it knows no leader epochs, and its requests "
                "carry none",
                waives=("reads-advance",),
                risk="consumers reset their offsets: records read twice, or skipped",
            ),
        ),
        side="client",
    ),
    Behaviour(
        "client.truncation_detection",
        "KIP-320",
        "whether a consumer asks a new leader if its position is in that leader's log",
        (
            Choice("kip320", "2.3", "it goes back to where the logs part"),
            Choice(
                "none",
                changes="it reads on where it stood, or is out of range and begins by policy",
                risk="records skipped unread after an unclean election",
            ),
            Choice(
                "unaware",
                "",
                "the same, and its fetches name no leader epoch: a client of another make, which a "
                "former leader serves as a follower",
                risk="records skipped unread after an unclean election",
            ),
        ),
        side="client",
    ),
    Behaviour(
        "client.committed_epoch",
        "KIP-320, KAFKA-19902",
        "whether a commit names the leader epoch of what was read last",
        (
            Choice("kip320", "2.3", "whoever goes on from it can ask if the log still has it"),
            Choice(
                "none",
                changes="it is a number, which other records may have come to lie at",
                risk="records skipped unread, or read again, after a restart",
            ),
        ),
        side="client",
    ),
    Behaviour(
        "client.generation",
        "KIP-792",
        "whether a consumer that joins again names the generation it is in",
        (
            Choice("kip792", "3.4", "so that a coordinator takes it for one that has changed"),
            Choice(
                "none",
                changes="a retry is like the first attempt, and is answered as that was",
                risk="none for data; a rebalance more or less",
            ),
        ),
        side="client",
    ),
    Behaviour(
        "group.coordinator",
        "KIP-848, KAFKA-14048",
        "when a group coordinator's write counts",
        (
            Choice(
                "new",
                "4.0",
                "when the high watermark has passed it, however late; it needs no "
                "min.insync.replicas, and whoever fetches stable offsets waits for it",
            ),
            Choice(
                "classic",
                changes="with acks=all within offsets.commit.timeout.ms; what is committed later "
                "is not known until the partition is loaded anew",
                risk="commits fail below min.insync.replicas",
            ),
        ),
    ),
    Behaviour(
        "group.missing_sync",
        "KAFKA-9752, KAFKA-10134, KAFKA-12890",
        "what ends the wait of a classic group for a member that never asks for its assignment",
        (
            Choice(
                "rebalance_timeout",
                "3.0",
                "the rebalance timeout, if not its session before",
                backports=("2.8.1",),
            ),
            Choice(
                "heartbeats",
                "2.7",
                "its session only, which its heartbeats prolong",
                backports=("2.6.1",),
                risk="a group consumes nothing until a member leaves",
            ),
            Choice(
                "session",
                "2.5",
                "its session, whatever heartbeats it sends meanwhile",
                risk="none for data; members that are alive may be expelled",
            ),
            Choice(
                "new_members_stay",
                "2.2",
                "nothing, if it is new and silent: its session begins when it is next heard of",
                risk="a group consumes nothing until it is restarted",
            ),
            Choice(
                "session",
                changes="before 2.2 as in 2.5",
                risk="none for data; members that are alive may be expelled",
            ),
        ),
    ),
    Behaviour(
        "rebalance",
        "KIP-429, KIP-345",
        "how members of a classic group hand over partitions, where their settings do not say it",
        (
            Choice(
                "eager",
                changes="as the client's release does: every member gives up everything, but tasks "
                "of Streams since 2.4 only what moves",
                risk="a whole group stops for each rebalance",
            ),
            Choice("cooperative", "", "cooperative-sticky: only what moves is given up"),
            Choice(
                "static",
                "",
                "instance ids: a member that restarts keeps its partitions",
                risk="partitions of a dead member wait for its session",
            ),
        ),
        side="client",
    ),
    Behaviour(
        "offsets.expiry",
        "KIP-211, KAFKA-4682",
        "when offsets.retention.minutes of a committed offset begin",
        (
            Choice("group_empty", "2.1", "when the group becomes empty"),
            Choice(
                "per_offset",
                changes="with its commit, though its consumer is alive",
                risk="offsets of live groups lost: records read again, or skipped",
            ),
        ),
    ),
    Behaviour(
        "quota.throttle",
        "KIP-219",
        "how a client above its quota is made to wait",
        (
            Choice(
                "kip219",
                "2.0",
                "it is answered at once, told for how long to wait, and not heard meanwhile",
            ),
            Choice(
                "delay",
                changes="its answer waits, fetched records and all",
                risk="none for data; clients time out and ask again",
            ),
        ),
    ),
    Behaviour(
        "client.quota_errors",
        "KIP-599",
        "whether an administrator's client knows that a quota may refuse a change",
        (
            Choice("kip599", "2.7", "it is refused, waits as long as it is told, and asks again"),
            Choice("none", changes="it is never refused, but waits before its next change"),
        ),
        side="client",
    ),
    Behaviour(
        "rights.heartbeat_topics",
        "KAFKA-18813, KIP-932",
        "of which groups' heartbeats a broker checks Describe on the topics that a member names",
        (
            Choice("all", "4.1", "of consumer groups and of share groups"),
            Choice("consumer", "4.0", "of consumer groups"),
            Choice(
                "none",
                changes="of none: a member gets partitions of topics whose existence is hidden",
                risk="none for data; a client sees how many partitions a topic has",
            ),
        ),
        is_quiet=True,
    ),
    Behaviour(
        "mirror.translation",
        "KAFKA-12468, KAFKA-12635, KAFKA-14666",
        "how a mirror translates committed offsets",
        (
            Choice(
                "syncs",
                "3.5",
                "at most to the copy behind the last one that is known, of 64 kept",
                backports=("3.4.1",),
                risk="records read again after a failover",
            ),
            Choice(
                "extrapolated",
                changes="on from the newest at the source's pace, and as it is without any",
                risk="records skipped unread after a failover",
            ),
        ),
        side="client",
    ),
)
"""Switches of clients, and of what brokers do for them."""
