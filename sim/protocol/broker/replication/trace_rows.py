"""Trace rows that several parts of a replica manager write."""

from sim.ids import NodeId, Offset, TopicPartition
from sim.protocol.broker.replica import Replica
from sim.protocol.broker.replication.effects import Effects
from sim.protocol.offset_runs import places_in
from sim.protocol.ports import Batch
from sim.trace.rows.clients import StableOffsets
from sim.trace.rows.cluster import Leadership
from sim.trace.rows.log import Appends, LogContents, LogStarts


def note_append(
    broker: NodeId, partition: TopicPartition, batch: Batch, out: Effects, *, as_leader: bool
) -> None:
    """Trace row of one batch written to one replica; another one if it has gaps."""
    base, last, count = batch.base_offset, batch.last_offset, batch.record_count
    out.append(
        Appends.row(
            broker,
            partition.topic,
            partition.partition,
            base_offset=base,
            last_offset=last,
            leader_epoch=batch.leader_epoch,
            as_leader=as_leader,
            size_bytes=batch.size_bytes,
            crc=batch.crc,
            producer_index=batch.producer_index,
            first_record=batch.first_record,
            record_count=count,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence,
        )
    )
    if count <= last - base:
        out.append(
            LogContents.row(
                broker,
                *partition,
                base_offset=base,
                last_offset=last,
                kept=places_in(batch.offset_runs(), base),
                how="fetched",
                started_us=-1,
                delete_retention_ms=-1,
            )
        )


def note_log_start(
    broker: NodeId,
    partition: TopicPartition,
    before: Offset,
    after: Offset,
    reason: str,
    out: Effects,
) -> None:
    """Trace row of a log start that moved."""
    row = LogStarts.row(broker, *partition, from_offset=before, to_offset=after, reason=reason)
    out.append(row)


def note_stable(broker: NodeId, replica: Replica, out: Effects) -> None:
    """Trace row of a leader's last stable offset, if it has transactions and that has moved."""
    if not (replica.transactional and replica.is_leader):
        return
    stable = replica.log.transactions.last_stable_offset(replica.high_watermark)
    if stable == replica.last_stable:
        return
    replica.last_stable = stable
    partition = replica.partition
    out.append(
        StableOffsets.row(
            broker,
            partition.topic,
            partition.partition,
            leader_epoch=replica.leader_epoch,
            last_stable_offset=stable,
            high_watermark=replica.high_watermark,
        )
    )


def note_leadership(broker: NodeId, replica: Replica, role: str, out: Effects) -> None:
    """Trace row of a broker's role in a partition."""
    out.append(
        Leadership.row(
            broker,
            *replica.partition,
            role=role,
            leader=replica.leader,
            leader_epoch=replica.leader_epoch,
            partition_epoch=replica.partition_epoch,
            in_sync=",".join(str(b) for b in sorted(replica.in_sync)),
            log_end_offset=replica.log.log_end_offset,
            high_watermark=replica.high_watermark,
        )
    )
