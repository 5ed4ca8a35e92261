"""Historic behaviours of cleaners, of retention, and of the placement of replicas.

Source: the failure catalogue, D1 and D6 to D8; KIP-36, KIP-346, KIP-534.
"""

from typing import Final

from sim.scenario.behaviours.types import Behaviour, Choice

_LOG_START_TAKEN_FOR_COMMITTED: Final = (
    # A high watermark is never below its log's start: retention that has passed it makes one of
    # offsets that no follower ever had, at the latest when the broker starts again.
    "log-start-is-committed",
    "nothing-committed-truncated",
    "leader-complete",
    "in-sync-complete",
    "follower-watermark-behind-leader",
)

BEHAVIOURS_OF_LOGS: Final[tuple[Behaviour, ...]] = (
    Behaviour(
        "cleaner.delete_horizon",
        "KAFKA-4545, KAFKA-8522, KIP-534",
        "how long a cleaner lets tombstones and markers stay",
        (
            Choice("batch", "3.1", "delete.retention.ms from the first cleaning that sees them"),
            Choice(
                "segment_mtime",
                changes="until their segment is delete.retention.ms older than the last clean one, "
                "whenever a cleaner first saw them",
                waives=("tombstones-stay-their-time",),
                risk="deleted keys come back at slow consumers",
            ),
        ),
    ),
    Behaviour(
        "cleaner.bound_by_hw",
        "KAFKA-13194",
        "whether a cleaner stops at the high watermark",
        (
            Choice("on", "3.1", "what is not committed replaces nothing"),
            Choice(
                "off",
                changes="it goes as far as the active segment, or to an open transaction",
                waives=("cleaner-keeps-last-values",),
                risk="acknowledged last values of keys lost",
            ),
        ),
    ),
    Behaviour(
        "cleaner.errors",
        "KIP-346",
        "what a segment that cannot be read ends: the cleaning of its partition, or of all",
        (
            Choice(
                "partition",
                "2.1",
                "the partition is left alone, and the cleaner goes on",
                risk="one log grows",
            ),
            Choice(
                "thread",
                changes="the cleaner ends, until its broker is started again",
                risk="every compacted log grows until a restart",
            ),
        ),
    ),
    Behaviour(
        "retention.bound_by_hw",
        "KAFKA-5634",
        "whether retention stops at the high watermark",
        (
            Choice("on", "1.0", "a segment that reaches beyond it stays", backports=("0.11.0.1",)),
            Choice(
                "off",
                changes="only size and age are looked at",
                waives=_LOG_START_TAKEN_FOR_COMMITTED,
                risk="acknowledged records (acks=1) lost unread",
            ),
        ),
    ),
    Behaviour(
        "placement",
        "KIP-36",
        "whether replicas are spread over racks",
        (
            Choice("rack_aware", changes="racks take turns"),
            Choice(
                "plain",
                "",
                "racks are not looked at",
                risk="unavailable, or lost, with one rack",
            ),
        ),
    ),
    Behaviour(
        "cleaner.coordination",
        "no KIP; Redpanda 25.3: coordinated tombstone removal",
        "when the cleaners of a partition's replicas may remove a tombstone",
        (
            Choice(
                "alone",
                changes="when each thinks so for itself",
                risk="a deleted key may come back at a replica that was away",
            ),
            Choice(
                "coordinated",
                "",
                "below the offset to which all of them have cleaned",
                proposed=True,
                risk="logs grow while a replica is away",
            ),
        ),
    ),
)
"""Switches of what is done to logs in the background, and of where they lie."""
