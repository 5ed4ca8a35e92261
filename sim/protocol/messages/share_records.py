"""Records of share partitions as requests and their answers name them (KIP-932)."""

from enum import IntEnum
from typing import NamedTuple

from sim.ids import Offset, TopicPartition


class RecordState(IntEnum):
    """State of a record in flight in a share partition; numbers are Kafka's.

    Source: ``org.apache.kafka.server.share.fetch.RecordState``.
    """

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4

    @property
    def is_terminal(self) -> bool:
        """True if the record is never delivered again."""
        return self in {RecordState.ACKNOWLEDGED, RecordState.ARCHIVED}


class StateBatch(NamedTuple):
    """Records in a row that share a state; both ends are inclusive."""

    first: Offset
    last: Offset
    state: RecordState
    delivery_count: int


class ShareKey(NamedTuple):
    """A share partition: a group, and a partition of a topic by the topic's id."""

    group: str
    topic_id: str
    partition: int

    @property
    def text(self) -> str:
        """Key that decides which partition of ``__share_group_state`` keeps it."""
        return f"{self.group}:{self.topic_id}:{self.partition}"

    @property
    def place(self) -> TopicPartition:
        """The partition, by the topic's id."""
        return TopicPartition(self.topic_id, self.partition)


class Acquired(NamedTuple):
    """Records that a member has now, each delivered for the ``delivery_count``-th time."""

    first: Offset
    last: Offset
    delivery_count: int


class Acknowledgement(NamedTuple):
    """A member's acknowledgement of consecutive records: one type for all, or one for each."""

    first: Offset
    last: Offset
    types: tuple[int, ...]
