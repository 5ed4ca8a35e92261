"""Before Kafka 0.11 a follower cut its log at its own high watermark, whatever the leader had.

A follower learns the high watermark one fetch after its leader moved it. So the cut drops records
that are committed, and a leader that dies before it has sent them again takes them along; and after
a loss of unflushed records the high watermark may lie above the fork, and nothing is cut at all.

Such a follower asks for an offset inside a batch of its leader, who serves the whole batch. In the
message formats of the time a compressed set bore the offset of its last message, and that alone was
held against the log's end: the batch is appended, over offsets that are taken.

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
