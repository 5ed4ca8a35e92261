"""Historic behaviours of the metadata quorum and of its controller.

Source: KIP-595, KIP-996, KIP-1166; ``org.apache.kafka.raft.KafkaRaftClient`` (3.0 to 4.1).
"""

from typing import Final

from sim.scenario.behaviours.types import Behaviour, Choice

BEHAVIOURS_OF_CONTROL: Final[tuple[Behaviour, ...]] = (
    Behaviour(
        "kraft.check_quorum",
        "KAFKA-15489",
        "whether a controller cut from its quorum resigns",
        (
            Choice("on", "3.7", "it resigns after 1.5 fetch timeouts"),
            Choice(
                "off",
                changes="it believes that it leads until it hears of another",
                risk="who asks the former controller waits, and sees old metadata",
            ),
        ),
    ),
    Behaviour(
        "kraft.fetch_wakeup",
        "KIP-1166, KAFKA-14145",
        "what answers a fetch of the metadata log that waits at the leader, at most 500 ms",
        (
            Choice(
                "high_watermark",
                "4.1",
                "records, and each move of the high watermark: members know at once that records "
                "are committed",
            ),
            Choice(
                "records",
                changes="records only: members learn that records are committed with the next "
                "ones, or when a later fetch has waited in vain",
                risk="none for data; brokers learn of changes up to 500 ms later",
            ),
        ),
    ),
    Behaviour(
        "kraft.pre_vote",
        "KIP-996, KAFKA-16164",
        "whether a voter asks if it would be elected before it begins an epoch",
        (
            Choice("on", "4.0", "a majority has to grant it a pre-vote"),
            Choice(
                "off",
                changes="it begins one when it has heard nothing for a fetch timeout",
                risk="no controller for a while, each time a voter that was cut off comes back",
            ),
        ),
    ),
    Behaviour(
        "kraft.pre_vote_refusal",
        "KIP-996",
        "whom a follower refuses a pre-vote (kraft.pre_vote: on)",
        (
            Choice("hears_leader", changes="everyone, while it has fetched from its leader"),
            Choice(
                "log_only",
                "",
                "those whose logs end before its own, as by KIP-595; no release",
                risk="no controller for a while, when a voter that was cut off comes back",
            ),
        ),
    ),
    Behaviour(
        "leader_epoch.isr_shrink",
        "KAFKA-15021",
        "whether the controller begins a leader epoch when a member leaves an ISR",
        (
            Choice("kept", "3.6", "no: the leader stays in its epoch"),
            Choice(
                "bumped",
                "3.0",
                "yes, by the same leader: each follower begins to fetch again",
                risk="none for data; requests of the former epoch fail and are sent again",
            ),
            Choice(
                "by_controller",
                changes="if the controller removes it, as its broker is fenced or shuts down; not "
                "if the leader does, as it lags",
                risk="none for data; requests of the former epoch fail and are sent again",
            ),
        ),
        side="level",
    ),
)
"""Switches that mean something with KRaft only."""
