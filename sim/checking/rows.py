"""Rows of the trace as the checks read them: one typed tuple for each table they listen to.

The schema says what the columns mean; a test holds these shapes against it.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sim.ids import NodeId

AppendRow: TypeAlias = tuple[
    int, int, str, int, int, int, int, bool, int, int, int, int, int, int, int, int
]
"""t, broker, topic, partition, base, last, epoch, as_leader, size, crc, producer, first, …"""

TaskRow: TypeAlias = tuple[int, str, str, int, str, str, int]
"""t, task, group, producer index, input topics, output topic, outputs of each input record."""

OutputsRow: TypeAlias = tuple[int, str, int, str, int, int, int, str, int, int, int, int, int]
"""t, task, producer index, topic, partition, first, count, input topic, input partition, …"""

ConnectorTaskRow: TypeAlias = tuple[int, str, str, str, int, int, str]
"""A row of ``connector_tasks``."""

ExternalLogRow: TypeAlias = tuple[int, str, int, int]
"""A row of ``external_logs``."""

SourcedRow: TypeAlias = tuple[int, str, int, str, int, int, int, int, int]
"""A row of ``sourced``."""

ExternalWriteRow: TypeAlias = tuple[int, str, str, str, int, int, int, int, int]
"""A row of ``external_writes``."""

MirroredRow: TypeAlias = tuple[int, str, int, str, int, int, int, str, int, int, int, int]
"""t, mirror, producer index, topic, partition, first, count, source topic, partition, …"""

WatermarkRow: TypeAlias = tuple[int, int, str, int, int, int, int, int, int, int]
"""t, broker, topic, partition, epoch, high watermark, log end, ISR size, min, lowest ISR end."""

ConfigurationRow: TypeAlias = tuple[int, int, str, int, int, int, str, str, str]
"""t, broker, topic, partition, term, offset, voters, old voters, learners."""

FollowerWatermarkRow: TypeAlias = tuple[int, int, str, int, int, int, int, int]
"""t, broker, topic, partition, epoch, high watermark, log end, sent by the leader."""

AcknowledgementRow: TypeAlias = tuple[int, int, str, int, int, int, str, int, int, int, int, int]
"""t, broker, topic, partition, epoch, acks, error, base, last, high watermark, maximal ISR, min."""

TruncationRow: TypeAlias = tuple[int, int, str, int, int, int, int, int, str]
"""t, broker, topic, partition, from, to, high watermark, epoch, reason."""

RecoveryRow: TypeAlias = tuple[int, int, str, int, bool, int, int, int, int, int, int]
"""t, broker, topic, partition, clean, recovery point, log end, scanned, truncated, read, took."""

HoleRow: TypeAlias = tuple[int, int, str, int, int, int]
"""t, broker, topic, partition, first offset that is missing, and the one behind the last."""

LogStartRow: TypeAlias = tuple[int, int, str, int, int, int, str]
"""t, broker, topic, partition, log start before, log start after, reason."""

KeysRow: TypeAlias = tuple[int, int, str, int, int, int, NDArray[np.int32], NDArray[np.int32]]
"""t, producer index, topic, partition, first record, count, keys, places of tombstones."""

ContentsRow: TypeAlias = tuple[int, int, str, int, int, int, NDArray[np.int32], str, int, int]
"""t, broker, topic, partition, base, last, offsets that are left less base, how it came, when the
cleaning began, delete.retention.ms."""

DeletionRow: TypeAlias = tuple[int, int, str, str]
"""t, controller, topic, topic id."""

LeadershipRow: TypeAlias = tuple[int, int, str, int, str, int, int, int, str, int, int]
"""t, broker, topic, partition, role, leader, leader epoch, partition epoch, ISR, log end, HW."""

ChangeRow: TypeAlias = tuple[int, int, str, int, int, int, int, str, str, str, bool]
"""t, controller, topic, partition, leader, leader epoch, partition epoch, ISR, ELR, replicas,
unclean."""

TransactionRow: TypeAlias = tuple[int, int, str, int, int, str, int, int, str]
"""t, broker, transactional id, producer id, epoch, state, partitions, coordinator epoch, reason."""

MarkerRow: TypeAlias = tuple[int, int, str, int, int, int, int, bool, int]
"""t, broker, topic, partition, offset, producer id, epoch, committed, coordinator epoch."""

StableRow: TypeAlias = tuple[int, int, str, int, int, int, int]
"""t, broker, topic, partition, epoch, last stable offset, high watermark."""

ControllerRow: TypeAlias = tuple[int, int, str, int, int]
"""t, broker, state, controller epoch, partitions."""

QuorumRow: TypeAlias = tuple[int, int, str, int, int, int, int, int]
"""t, node, role, epoch, leader, voted for, log end, high watermark."""

BrokerStateRow: TypeAlias = tuple[int, int, int, str, int]
"""t, controller, broker, state, broker epoch."""

NodeStateRow: TypeAlias = tuple[int, str, str, int]
"""t, node, state, incarnation."""

LagRow: TypeAlias = tuple[int, str, str, int, int, int, int]
"""t, group, topic, partition, position, committed, high watermark."""

ReadRow: TypeAlias = tuple[int, str, str, str, int, int, int, int, int, int, int, int, int]
"""t, consumer, group, topic, partition, base, last, epoch, producer, first, count, HW, server."""

PositionRow: TypeAlias = tuple[int, str, str, str, int, int, int, str]
"""t, consumer, group, topic, partition, offset before, offset, reason."""

CommitRow: TypeAlias = tuple[int, str, str, str, int, int, int, str]
"""t, consumer, group, topic, partition, offset, generation, error."""

GroupRow: TypeAlias = tuple[int, int, str, str, int, int, str]
"""t, broker, group, state, generation, members, reason."""

MemberRow: TypeAlias = tuple[int, int, str, str, str, int, str, str, str]
"""t, broker, group, member id, consumer, member epoch, state, assigned, pending revocation."""

AssignmentRow: TypeAlias = tuple[int, str, str, str, int, str]
"""t, consumer, group, member id, generation, partitions."""

FaultRow: TypeAlias = tuple[int, int, str, str, str, str, bool, str]
"""t, place, kind, phase, target, resolved, took effect, effect."""

TransactionOutcomeRow: TypeAlias = tuple[int, str, str, int, int, int, int, str, str, int]
"""t, producer, transactional id, transaction, producer id, epoch, begun, outcome, error,
records."""

TransactionRecordsRow: TypeAlias = tuple[int, str, str, int, int, str, int, int, int]
"""t, producer, transactional id, transaction, producer index, topic, partition, first, last."""

CommittedReaderRow: TypeAlias = tuple[int, str, str]
"""t, consumer, group."""

ShareConsumerRow: TypeAlias = tuple[int, str, str]
"""t, consumer, group."""

SharePartitionRow: TypeAlias = tuple[int, int, str, str, int, int, int, int, int, str]
"""t, broker, group, topic, partition, leader epoch, start, end, delivery limit, reason."""

ShareStateRow: TypeAlias = tuple[int, int, str, str, int, int, int, int, str, int, str, str]
"""t, broker, group, topic, partition, leader epoch, first, last, state, count, consumer, reason."""

ThrottleRow: TypeAlias = tuple[int, int, str, str, str, str, int]
"""t, broker, client, client-id, request, quota, throttle."""

HeapRow: TypeAlias = tuple[int, int, str, int, int, int, int, int]
"""t, broker, event, live bytes, size, producers, connections, pause."""

ClientBatchRow: TypeAlias = tuple[
    int, str, int, str, int, int, int, int, int, int, int, int, int, str, str, int, int, int,
    NDArray[np.int32],
]  # fmt: skip
"""t, producer, its index, topic, partition, first, count, size, acks, created, first sent,
last sent, attempts, outcome, error, base, answered by, correlation, latencies."""


def brokers_in(listed: str) -> tuple[NodeId, ...]:
    """Broker ids of a column such as ``in_sync``: whole numbers joined by commas, or nothing."""
    return tuple(int(broker) for broker in listed.split(",")) if listed else ()
