"""Rows of the trace that more than one part of a broker's data plane writes."""

from sim.ids import NodeId, Offset, TopicPartition
from sim.protocol import effects as fx
from sim.protocol.broker.replica import Replica
from sim.protocol.broker.replication.effects import Effects
from sim.protocol.offset_runs import places_in
from sim.protocol.ports import Batch


def note_append(
    broker: NodeId, partition: TopicPartition, batch: Batch, out: Effects, *, as_leader: bool
) -> None:
    """The trace row of one batch written to one replica; another one if it has gaps."""
    base, last, count = batch.base_offset, batch.last_offset, batch.record_count
    out.append(
        fx.Emit(
            "appends",
            (
                broker,
                partition.topic,
                partition.partition,
                base,
                last,
                batch.leader_epoch,
                as_leader,
                batch.size_bytes,
                batch.crc,
                batch.producer_index,
                batch.first_record,
                count,
                batch.producer_id,
                batch.producer_epoch,
                batch.base_sequence,
            ),
        )
    )
    if count <= last - base:
        kept = places_in(batch.offset_runs(), base)
        where = (broker, partition.topic, partition.partition)
        out.append(fx.Emit("log_contents", (*where, base, last, kept, "fetched", -1, -1)))


def note_log_start(
    broker: NodeId,
    partition: TopicPartition,
    before: Offset,
    after: Offset,
    reason: str,
    out: Effects,
) -> None:
    """The trace row of a log start that moved."""
    row = (broker, partition.topic, partition.partition, before, after, reason)
    out.append(fx.Emit("log_starts", row))


def note_stable(broker: NodeId, replica: Replica, out: Effects) -> None:
    """The trace row of a last stable offset, if it has moved."""
    stable = replica.log.transactions.last_stable_offset(replica.high_watermark)
    if stable == replica.last_stable:
        return
    replica.last_stable = stable
    row = (broker, *replica.partition, replica.leader_epoch, stable, replica.high_watermark)
    out.append(fx.Emit("stable_offsets", row))


def note_leadership(broker: NodeId, replica: Replica, role: str, out: Effects) -> None:
    """The trace row of what a broker now is for a partition."""
    partition = replica.partition
    out.append(
        fx.Emit(
            "leadership",
            (
                broker,
                partition.topic,
                partition.partition,
                role,
                replica.leader,
                replica.leader_epoch,
                replica.partition_epoch,
                ",".join(str(b) for b in sorted(replica.in_sync)),
                replica.log.log_end_offset,
                replica.high_watermark,
            ),
        )
    )
