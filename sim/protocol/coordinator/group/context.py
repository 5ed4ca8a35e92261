"""Collects the effects of a coordinator's parts: replies, timers, rows, writes.

A write is one or more records that reach the coordinator's topic in one batch with other records of
the linger. Its outcome is reported once; its change of memory is applied only when it is committed,
in log order, also after its timeout. The coordinator before KIP-848 wrote each separately with
acks=all, and was not notified of later commits.

Source: ``org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime``,
``GroupMetadataManager.appendForGroup``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeAlias, TypeVar

from sim.error_codes import ErrorCode
from sim.ids import NodeId
from sim.protocol.coordinator.group.classic_state import Group, GroupState
from sim.protocol.coordinator.group.migration_policy import MigrationPolicy
from sim.protocol.coordinator.group.missing_sync import MissingSync
from sim.protocol.coordinator.group.records import GroupEffect
from sim.protocol.coordinator.log import (
    AppendRecords,
    InTransaction,
    TransactionVerified,
    VerifyTransaction,
)
from sim.protocol.effects import CancelTimer, Reply, Send, SetTimer
from sim.protocol.messages.base import Response
from sim.protocol.ports import NO_GUARD
from sim.trace.emit import Emit
from sim.trace.rows.clients import Groups
from sim.units import MINUTE, MS, SECOND, Micros

R = TypeVar("R")
"""The records of a coordinator's topic."""

Alarm: TypeAlias = Callable[[Micros], None]
"""Callback of a timer, with the instant."""

Outcome: TypeAlias = Callable[[ErrorCode, Micros], None]
"""Callback of a write: committed (NONE) or failed."""

Verified: TypeAlias = Callable[[ErrorCode, int, Micros], None]
"""Callback of a verification: NONE and the guard to write with, or an error."""


@dataclass(frozen=True, slots=True)
class ModernGroupConfig:
    """Settings of consumer groups (KIP-848) or of share groups (KIP-932); defaults are Kafka's."""

    session_timeout_us: Micros = 45 * SECOND
    """``group.consumer.session.timeout.ms``, ``group.share.session.timeout.ms``."""
    heartbeat_interval_us: Micros = 5 * SECOND
    """``group.consumer.heartbeat.interval.ms``, ``group.share.heartbeat.interval.ms``, of the
    members."""
    max_size: int = 2**31 - 1
    """``group.consumer.max.size``, ``group.share.max.size``."""
    assignment_interval_us: Micros = 0
    """``group.consumer.assignment.interval.ms``, ``group.share.assignment.interval.ms``: the least
    time between two target assignments; 0 before 4.3, where each new epoch has one at once."""

    def of_group(self, configs: Mapping[str, str], kind: str) -> "ModernGroupConfig":
        """These for a group that has settings of its own; ``kind`` is ``consumer`` or ``share``.

        Source: ``GroupConfigManager``, ``GroupMetadataManager.consumerGroupSessionTimeoutMs``.
        """
        session = configs.get(f"{kind}.session.timeout.ms")
        heartbeat = configs.get(f"{kind}.heartbeat.interval.ms")
        interval = configs.get(f"{kind}.assignment.interval.ms")
        return ModernGroupConfig(
            self.session_timeout_us if session is None else int(session) * MS,
            self.heartbeat_interval_us if heartbeat is None else int(heartbeat) * MS,
            self.max_size,
            self.assignment_interval_us if interval is None else int(interval) * MS,
        )


@dataclass(frozen=True, slots=True)
class ShareStatesConfig:
    """Rules for states of share partitions, by release; defaults are those of 4.3."""

    retry_us: Micros = 30 * SECOND
    """``group.share.initialize.retry.interval.ms`` (4.2); twice ``offsets.commit.timeout.ms``
    before."""
    of_subscribed: bool = True
    """True if initialized partitions of topics without subscribers begin no epoch (4.2)."""
    waits_for_target: bool = True
    """True if they begin none while a target assignment is due (4.3)."""
    request_timeout_us: Micros = 30 * SECOND
    """``request.timeout.ms`` of brokers."""


@dataclass(frozen=True, slots=True)
class GroupConfig:
    """A broker's settings for groups, in microseconds; defaults are Kafka's."""

    initial_rebalance_delay_us: Micros = 3 * SECOND
    """``group.initial.rebalance.delay.ms``."""
    session_timeout_us_min: Micros = 6 * SECOND
    """``group.min.session.timeout.ms``."""
    session_timeout_us_max: Micros = 30 * MINUTE
    """``group.max.session.timeout.ms``."""
    new_member_join_timeout_us: Micros = 5 * MINUTE
    """Time for which a new member's join is held without a session; fixed in Kafka."""
    append_linger_us: Micros = 5 * MS
    """``group.coordinator.append.linger.ms``; 0 appends at once, a negative one is adaptive: when
    all that has reached the coordinator before is done."""
    follows_watermark: bool = True
    """True if writes need no ISR, and count when the high watermark passes them (the coordinator of
    KIP-848); otherwise acks=all. Not a setting."""
    commit_timeout_us: Micros = 5 * SECOND
    """``offsets.commit.timeout.ms``."""
    consumer: ModernGroupConfig = ModernGroupConfig()
    consumer_assignors: tuple[str, ...] = ("uniform", "range")
    """``group.consumer.assignors``: names of
    :data:`~sim.protocol.coordinator.group.assignors.registry.SERVER_ASSIGNORS`, the default
    first."""
    migration: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    """``group.consumer.migration.policy``."""
    refuses_classic_joins: bool = False
    """True if with the policy ``disabled`` no member of the classic protocol joins a consumer group
    (4.3.1, KAFKA-20640)."""
    share: ModernGroupConfig = ModernGroupConfig(max_size=200)
    share_states: ShareStatesConfig = ShareStatesConfig()
    offsets_partition_count: int = 50
    """``offsets.topic.num.partitions``; the count of the topic as it exists."""
    retention_us: Micros = 7 * 24 * 60 * MINUTE
    """``offsets.retention.minutes``."""
    expiry_interval_us: Micros = 10 * MINUTE
    """``offsets.retention.check.interval.ms``."""
    expires_per_offset: bool = False
    """True if every offset expires by its own commit, as until 2.1; not a setting."""
    missing_sync: MissingSync = MissingSync.REBALANCE_TIMEOUT
    """Rule for members without SyncGroup; not a setting."""
    fences_by_assignment: bool = False
    """True if a commit is checked against the epochs at which the member was assigned its
    partitions, which are kept in the log, too, as are the times of target assignments (4.3)."""
    has_topic_ids: bool = False
    """True if commits of the consumer protocol name topics by id, which is written (4.2)."""
    has_id_field: bool = False
    """True if committed offsets are written in version 4, which may have an id (4.1); not a
    setting."""
    size_max: int = (1 << 31) - 1
    """``group.max.size``."""

    @property
    def no_topic_id(self) -> str | None:
        """Id in the value of a commit that names none: ``None`` where the value has no field."""
        return "" if self.has_topic_ids or self.has_id_field else None


# No dataclasses: mypyc compiles none that is generic.


class _Write(Generic[R]):
    __slots__ = ("alarm", "outcome", "records")

    def __init__(self, records: tuple[R, ...], outcome: Outcome, alarm: str = "") -> None:
        self.records = records
        self.outcome: Outcome | None = outcome
        """``None`` once it is called."""
        self.alarm = alarm
        """Timer of one that writes nothing and only waits for earlier writes."""

    def complete(self, error: ErrorCode, now: Micros) -> None:
        """Calls the outcome, once."""
        outcome, self.outcome = self.outcome, None
        if outcome is not None:
            outcome(error, now)


class _PartitionWrites(Generic[R]):
    __slots__ = ("appended", "gathering")

    def __init__(self) -> None:
        self.gathering: list[_Write[R]] = []
        self.appended: dict[int, list[_Write[R]]] = {}

    def all(self) -> list[_Write[R]]:
        """Uncommitted writes, in log order."""
        return [*(write for batch in self.appended.values() for write in batch), *self.gathering]


class CoordinatorContext(Generic[R]):
    """Effects of one decision, and the timers and writes that outlive it."""

    def __init__(self, broker: NodeId, config: GroupConfig, apply: Callable[[R], None]) -> None:
        self.config = config
        self.broker = broker
        self._apply = apply
        self._effects: list[GroupEffect] = []
        self._alarms: dict[str, Alarm] = {}
        self._writes: dict[int, _PartitionWrites[R]] = {}
        self._partition_of: dict[int, int] = {}
        self._verifying: dict[int, Verified] = {}
        self._token = 0

    def take(self) -> list[GroupEffect]:
        """Effects since the last call, in order."""
        effects, self._effects = self._effects, []
        return effects

    def reply(self, token: int | None, response: Response | None) -> None:
        """Answers a parked request, if there is one."""
        if token is not None:
            self._effects.append(Reply(token, response))

    def send(self, request: Send) -> None:
        """Sends a request to another broker."""
        self._effects.append(request)

    def set_alarm(self, name: str, at: Micros, alarm: Alarm) -> None:
        """Calls back at the instant; an alarm of that name already set is replaced."""
        self._alarms[name] = alarm
        self._effects.append(SetTimer(name, at))

    def has_alarm(self, name: str) -> bool:
        """True if an alarm of that name is set."""
        return name in self._alarms

    def cancel_alarm(self, name: str) -> None:
        """Cancels an alarm; harmless if it is not set."""
        if self._alarms.pop(name, None) is not None:
            self._effects.append(CancelTimer(name))

    def ring(self, name: str, now: Micros) -> None:
        """A timer has fired; one without an alarm is ignored."""
        alarm = self._alarms.pop(name, None)
        if alarm is not None:
            alarm(now)

    def move(self, group: Group, state: GroupState, reason: str) -> None:
        """Moves a group to a state, with a row."""
        group.move_to(state)
        self.note(group, reason)

    def note(self, group: Group, reason: str) -> None:
        """Writes a group's state to the trace."""
        state, size = group.state.value, len(group.members)
        self.note_group(group.name, state, group.generation, size, reason)

    def note_group(self, name: str, state: str, generation: int, size: int, reason: str) -> None:
        """Write the state of a group to the trace."""
        self.emit(
            Groups.row(
                self.broker,
                name,
                state=state,
                generation=generation,
                members=size,
                reason=reason,
            )
        )

    def emit(self, row: Emit) -> None:
        """Write a row of this broker to the trace."""
        self._effects.append(row)

    # -- writes -----------------------------------------------------------------------------------

    def write(self, partition: int, records: tuple[R, ...], outcome: Outcome, now: Micros) -> None:
        """Appends the records after the linger; ``outcome`` is called once."""
        writes = self._writes.setdefault(partition, _PartitionWrites())
        writes.gathering.append(_Write(records, outcome))
        if self.config.append_linger_us == 0:
            self._append(partition)
        elif len(writes.gathering) == 1:
            # An alarm of this instant comes after all that has arrived in it.
            self.set_alarm(
                f"linger/{partition}",
                now + max(self.config.append_linger_us, 0),
                lambda _: self._append(partition),
            )

    def verify(self, partition: int, transaction: InTransaction, verified: Verified) -> None:
        """Verifies the partition's transaction at its coordinator."""
        self._token += 1
        self._verifying[self._token] = verified
        self._effects.append(VerifyTransaction(partition, self._token, transaction))

    def verified(self, event: TransactionVerified, now: Micros) -> None:
        """Outcome of a verification, if one was needed."""
        self._verifying.pop(event.token)(event.error, event.guard, now)

    def write_in_transaction(
        self,
        partition: int,
        records: tuple[R, ...],
        transaction: InTransaction,
        guard: int,
        outcome: Outcome,
    ) -> None:
        """Appends the records at once in a batch of the transaction, after those that linger."""
        writes = self._writes.setdefault(partition, _PartitionWrites())
        if writes.gathering:
            self.cancel_alarm(f"linger/{partition}")
            self._append(partition)
        writes.gathering.append(_Write(records, outcome))
        self._append(partition, transaction, guard)

    def after_writes(self, partition: int, outcome: Outcome, now: Micros) -> None:
        """Calls the outcome when all earlier writes are committed; at once if they are."""
        writes = self._writes.setdefault(partition, _PartitionWrites())
        batches = [*writes.appended.values(), *([writes.gathering] if writes.gathering else [])]
        if not batches:
            outcome(ErrorCode.NONE, now)
            return
        self._token += 1
        write = _Write[R]((), outcome, f"after-writes/{self._token}")
        batches[-1].append(write)
        at = now + self.config.commit_timeout_us
        self.set_alarm(write.alarm, at, partial(write.complete, ErrorCode.REQUEST_TIMED_OUT))

    def uncommitted(self, partition: int) -> list[R]:
        """Records that are pending or written, and not known to be committed; in log order."""
        writes = self._writes.get(partition)
        return [] if writes is None else [r for write in writes.all() for r in write.records]

    def appended(self, token: int, error: ErrorCode, now: Micros) -> None:
        """Outcome of a batch; a token of an unloaded partition is ignored."""
        partition = self._partition_of.get(token)
        if partition is None:
            return
        writes = self._writes[partition]
        batch = writes.appended[token]
        if error is ErrorCode.REQUEST_TIMED_OUT and self.config.follows_watermark:
            for write in batch:
                if not write.alarm:
                    write.complete(error, now)
            return
        del writes.appended[token], self._partition_of[token]
        if error is ErrorCode.NONE:
            for write in batch:
                for record in write.records:
                    self._apply(record)
        self._complete(batch, error, now)

    def give_up(self, partition: int, now: Micros) -> None:
        """The partition has another leader: all pending writes fail, NOT_LEADER_OR_FOLLOWER."""
        writes = self._writes.pop(partition, None)
        if writes is None:
            return
        self.cancel_alarm(f"linger/{partition}")
        for token in writes.appended:
            del self._partition_of[token]
        waiting = [*writes.gathering, *(w for batch in writes.appended.values() for w in batch)]
        self._complete(waiting, ErrorCode.NOT_LEADER_OR_FOLLOWER, now)

    def _complete(self, batch: list[_Write[R]], error: ErrorCode, now: Micros) -> None:
        for write in batch:
            if write.alarm:
                self.cancel_alarm(write.alarm)
            write.complete(error, now)

    def _append(
        self, partition: int, transaction: InTransaction | None = None, guard: int = NO_GUARD
    ) -> None:
        writes = self._writes[partition]
        batch, writes.gathering = writes.gathering, []
        self._token += 1
        writes.appended[self._token] = batch
        self._partition_of[self._token] = partition
        records = tuple(record for write in batch for record in write.records)
        self._effects.append(
            AppendRecords(
                partition,
                self._token,
                records,
                self.config.commit_timeout_us,
                transaction,
                guard,
                self.config.follows_watermark,
            )
        )
