"""Truncation to the follower's own high watermark, as before Kafka 0.11.

A follower learns the high watermark one fetch after its leader moved it. So committed records are
truncated, and lost with a leader that dies before it has sent them again; and after a loss of
unflushed records the high watermark may be above the divergence, and nothing is truncated at all.

Such a follower fetches an offset inside a batch of its leader, which serves the whole batch. In the
message formats of the time a compressed set had the offset of its last message, and only that was
compared with the log's end: the batch is appended, over offsets that are taken.

Source: ``ReplicaManager.makeFollowers`` (0.10); KIP-101, scenarios 1 and 2; ``Log.append``,
``Log.analyzeAndValidateMessageSet`` (0.9); KAFKA-3919.
"""

from sim.ids import Offset
from sim.protocol.broker.replica import Replica
from sim.protocol.broker.truncation.divergence import Truncation


class TruncateToHighWatermark(Truncation):
    """``truncation: hw``."""

    name = "hw"
    fences = False
    by_last_offset = True

    def cut_before_fetching(self, replica: Replica) -> Offset:
        """The follower's own high watermark."""
        return replica.high_watermark
