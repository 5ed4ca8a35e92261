"""Unclean recovery: the controller asks replicas for their logs, and the longest one leads.

A partition without a leader is recovered by ``unclean.recovery.strategy``. Aggressive asks every
live replica; Balanced waits until ISR and ELR are empty and each member of the last known ELR is
alive; None leaves it to an administrator. All live replicas have to answer; after the timeout those
that have will do, if one of them is there (Aggressive) or the whole last known ELR (Balanced).
Nothing is in the metadata: another controller begins again, and so does an answer of a process that
is not the one registered.

Left open by the KIP, and ours: the pause before a request is sent again.

Source: KIP-966, part 2 (accepted; no release has it).
"""

from dataclasses import dataclass, field
from typing import Final

from sim.error_codes import ErrorCode
from sim.ids import NO_LEADER, NodeId, TopicPartition
from sim.protocol import effects as fx
from sim.protocol.controller.elections import ElectionKind
from sim.protocol.controller.partitions import (
    AGGRESSIVE,
    BALANCED,
    acceptor,
    allows_unclean,
    change_of,
    has_elr,
    recovery_strategy,
)
from sim.protocol.messages.leader_epochs import (
    GetReplicaLogInfoRequest,
    GetReplicaLogInfoResponse,
    ReplicaLogInfo,
)
from sim.protocol.metadata.image import MetadataImage, PartitionRegistration
from sim.protocol.metadata.records import PartitionChangeRecord
from sim.units import MS, NEVER, SECOND, Micros

TIMER: Final = "unclean-recovery"
CHANNEL: Final = "unclean-recovery"
"""Label of the controller's connections to brokers."""

REQUEST_TIMEOUT_US: Final[Micros] = 30 * SECOND
RETRY_US: Final[Micros] = 100 * MS
"""Pause after a request that failed, or a broker that has not opened the log yet."""

PARTITIONS_MAX: Final = 1_000
"""Partitions of one request, as the KIP limits it."""

_LATER = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
"""The broker has not applied the metadata yet."""


@dataclass(slots=True)
class _Recovery:
    """Answers for one partition, each with the broker epoch of its process."""

    deadline: Micros
    answers: dict[NodeId, tuple[int, ReplicaLogInfo]] = field(default_factory=dict)


class UncleanRecovery:
    """The recoveries of one active controller.

    Args:
        timeout_us: ``unclean.recovery.timeout.ms``.
    """

    def __init__(self, timeout_us: Micros) -> None:
        self._timeout_us = timeout_us
        self._recoveries: dict[TopicPartition, _Recovery] = {}
        self._open: dict[int, tuple[NodeId, tuple[TopicPartition, ...]]] = {}
        self._correlation = 0
        self._not_before: dict[NodeId, Micros] = {}
        self._forced: dict[TopicPartition, None] = {}
        """Partitions whose recovery an administrator requested."""

    def force(self, partition: TopicPartition) -> None:
        """Recovers a partition by any live replica, whatever its strategy."""
        self._forced[partition] = None

    # -- events -----------------------------------------------------------------------------------

    def answered(self, correlation: int, response: GetReplicaLogInfoResponse, now: Micros) -> None:
        """Notes a broker's answer."""
        query = self._open.pop(correlation, None)
        if query is None:
            return
        broker = query[0]
        for found in response.replicas:
            recovery = self._recoveries.get(found.partition)
            if found.error is _LATER:
                self._not_before[broker] = now + RETRY_US
            elif recovery is not None:
                recovery.answers[broker] = (response.broker_epoch, found)

    def failed(self, correlation: int, now: Micros) -> None:
        """A request brought no answer: it is sent again after a pause."""
        query = self._open.pop(correlation, None)
        if query is not None:
            self._not_before[query[0]] = now + RETRY_US

    # -- decisions --------------------------------------------------------------------------------

    def review(
        self, image: MetadataImage, now: Micros
    ) -> tuple[list[PartitionChangeRecord], list[fx.Effect]]:
        """Elections that can be held now; and requests to be sent, with a timer."""
        self._begin_and_end(image, now)
        records: list[PartitionChangeRecord] = []
        missing: dict[NodeId, list[TopicPartition]] = {}
        for partition, recovery in self._recoveries.items():
            live = _live(image, partition)
            _drop_former(image, recovery, live)
            record = self._decide(image, partition, recovery, live, now)
            if record is not None:
                records.append(record)
                continue
            for broker in live:
                if broker not in recovery.answers:
                    missing.setdefault(broker, []).append(partition)
        return records, self._query(missing, now)

    def _begin_and_end(self, image: MetadataImage, now: Micros) -> None:
        leaderless = {p: r for p, r in image.partitions.items() if r.leader == NO_LEADER}
        self._forced = {p: None for p in self._forced if p in leaderless}
        due = [p for p, r in leaderless.items() if self._is_due(image, p, r)]
        known = self._recoveries
        self._recoveries = {p: known.get(p) or _Recovery(now + self._timeout_us) for p in due}

    def _is_due(
        self, image: MetadataImage, partition: TopicPartition, registration: PartitionRegistration
    ) -> bool:
        live = _live(image, partition)
        if not live:
            return False
        strategy = recovery_strategy(image, partition.topic)
        if partition in self._forced or strategy == AGGRESSIVE:
            return True
        if strategy != BALANCED:
            return False
        known = registration.last_known_eligible
        is_lost = has_elr(image) and not registration.in_sync and not registration.eligible
        return is_lost and bool(known) and all(broker in live for broker in known)

    def _decide(
        self,
        image: MetadataImage,
        partition: TopicPartition,
        recovery: _Recovery,
        live: list[NodeId],
        now: Micros,
    ) -> PartitionChangeRecord | None:
        answers = recovery.answers
        if any(broker not in answers for broker in live):
            if now < recovery.deadline:
                return None
            recovery.deadline = now + self._timeout_us
            if not self._suffice(image, partition, answers):
                return None
        longest = _longest(live, answers)
        if longest == NO_LEADER:
            return None
        registration = image.partitions[partition]
        change = change_of(
            image, partition, registration.in_sync, ElectionKind.UNCLEAN, longest=longest
        )
        return change.record(partition.partition)

    def _suffice(
        self,
        image: MetadataImage,
        partition: TopicPartition,
        answers: dict[NodeId, tuple[int, ReplicaLogInfo]],
    ) -> bool:
        """True if these answers will do after the timeout."""
        if partition in self._forced or allows_unclean(image, partition.topic):
            return bool(answers)
        return all(b in answers for b in image.partitions[partition].last_known_eligible)

    def _query(self, missing: dict[NodeId, list[TopicPartition]], now: Micros) -> list[fx.Effect]:
        out: list[fx.Effect] = []
        under_way = {(b, p) for b, partitions in self._open.values() for p in partitions}
        again = NEVER
        for broker, partitions in missing.items():
            not_before = self._not_before.get(broker, now)
            if not_before > now:
                again = min(again, not_before)
                continue
            due = [p for p in partitions if (broker, p) not in under_way]
            for start in range(0, len(due), PARTITIONS_MAX):
                part = tuple(due[start : start + PARTITIONS_MAX])
                self._correlation += 1
                self._open[self._correlation] = (broker, part)
                request = GetReplicaLogInfoRequest(broker, part)
                out.append(fx.Send(broker, self._correlation, request, REQUEST_TIMEOUT_US, CHANNEL))
        ends = (r.deadline for r in self._recoveries.values() if r.deadline > now)
        at = min(again, min(ends, default=NEVER))
        if at < NEVER:
            out.append(fx.SetTimer(TIMER, at))
        return out


def _live(image: MetadataImage, partition: TopicPartition) -> list[NodeId]:
    """Replicas that may lead now, in the order of the assignment."""
    registration = image.partitions[partition]
    is_acceptable = acceptor(image, registration, (), NO_LEADER)
    return [broker for broker in registration.replicas if is_acceptable(broker)]


def _drop_former(image: MetadataImage, recovery: _Recovery, live: list[NodeId]) -> None:
    """Drops answers of processes that are not those registered, or not alive."""
    recovery.answers = {
        broker: answer
        for broker, answer in recovery.answers.items()
        if broker in live and answer[0] == image.brokers[broker].epoch
    }


def _longest(live: list[NodeId], answers: dict[NodeId, tuple[int, ReplicaLogInfo]]) -> NodeId:
    """Replica with the highest last epoch, and among these the highest log end."""
    best, found = NO_LEADER, (-1, -1)
    for broker in live:
        answer = answers.get(broker)
        if answer is None or answer[1].error is not ErrorCode.NONE:
            continue
        end = answer[1].last_written_epoch, answer[1].log_end_offset
        if best == NO_LEADER or end > found:
            best, found = broker, end
    return best
