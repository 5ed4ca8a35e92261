"""Historic behaviours of tiered storage.

Source: KIP-405, KIP-1018; the issues that each names.
"""

from typing import Final

from sim.scenario.behaviours.types import Behaviour, Choice

BEHAVIOURS_OF_TIERED_STORAGE: Final[tuple[Behaviour, ...]] = (
    Behaviour(
        "tiered.failed_copies",
        "KAFKA-17062",
        "what becomes of a copy that the object store refused",
        (
            Choice("deleted", "3.9", "it is deleted at once, and its size does not count"),
            Choice("counted", changes="it stays, and retention.bytes counts it as data"),
        ),
    ),
    Behaviour(
        "tiered.fetch_wait",
        "KAFKA-15776, KIP-1018",
        "how long a fetch waits for the remote log before its read is interrupted",
        (
            Choice("remote", "3.8", "remote.fetch.max.wait.ms of the broker"),
            Choice("consumer", changes="fetch.max.wait.ms of the consumer"),
        ),
    ),
    Behaviour(
        "tiered.metadata_replay",
        "KAFKA-16105",
        "which events a broker applies of a partition that it gets while it runs",
        (
            Choice("from_start", "3.8", "all of them: it reads the metadata partition again"),
            Choice(
                "passed_over",
                changes="none before its position in a metadata partition that it reads already",
            ),
        ),
    ),
)
"""Switches of tiered storage."""
