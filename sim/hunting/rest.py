"""Liveness: after the last heal everything must come to rest within ``run.drain.timeout``.

At rest is a cluster in which every partition has a leader and its full ISR, every server runs and
is unfenced, every group is stable, no transaction is open beyond its time-out, no partition is held
back by a transaction of which no coordinator knows, and every group has read what it may read. It
is read from rows of the trace alone. A run whose cluster does not come to rest is stuck, and each
leftover says what it waits for.

Source: Kafka's gauges ``UnderReplicatedPartitions``, ``OfflinePartitionsCount`` and
``PartitionsWithLateTransactionsCount``, which an operator expects to be zero; KIP-664 for hanging
transactions.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from sim.checking.observer import Observer
from sim.ids import TRANSACTIONS_TOPIC, server_name
from sim.protocol.assignors.registry import partition_for_group
from sim.scenario.scenario import Scenario
from sim.trace.listed import brokers_in
from sim.trace.rows.clients import (
    ConsumerErrors,
    ConsumerErrorsRow,
    Groups,
    GroupsRow,
    StableLag,
    StableLagRow,
    StableOffsets,
    StableOffsetsRow,
    Transactions,
    TransactionsRow,
)
from sim.trace.rows.cluster import (
    BrokerStates,
    BrokerStatesRow,
    NodeStates,
    NodeStatesRow,
    PartitionChanges,
    PartitionChangesRow,
    TopicDeletions,
    TopicDeletionsRow,
)
from sim.trace.rows.run import Lag, LagRow
from sim.units import MS, SECOND, Micros, show_duration, show_instant

_QUIET: Final = ("Stable", "Empty", "Dead")
"""States in which a group waits for nobody."""

_OPEN: Final = ("Ongoing", "PrepareCommit", "PrepareAbort")
"""States of a transaction that has not ended."""

_AT_WORK: Final = ("started", "running", "resumed")

_EXPIRY_US: Final[Micros] = 10 * SECOND
"""``transaction.abort.timed.out.transaction.cleanup.interval.ms`` of Kafka; time to load, too."""


@dataclass(frozen=True, slots=True)
class Leftover:
    """One thing that is not at rest."""

    kind: str
    """The same in every run: ``short-isr``, ``group-CompletingRebalance``."""
    words: str


class Rest:
    """Listens to a trace, and says what is not at rest.

    Args:
        scenario: Of the run.
        observer: Of its trace.
    """

    def __init__(self, scenario: Scenario, observer: Observer) -> None:
        self._observer = observer
        self._partitions: dict[tuple[str, int], PartitionChangesRow] = {}
        self._groups: dict[str, GroupsRow] = {}
        self._transactions: dict[str, TransactionsRow] = {}
        self._stable: dict[tuple[str, int], StableOffsetsRow] = {}
        self._lags: dict[tuple[str, str, int], tuple[int, int]] = {}
        self._errors: dict[str, ConsumerErrorsRow] = {}
        """The last consumer of each group that ended with an error, and was not started again."""
        self._states: dict[str, NodeStatesRow] = {}
        self._brokers: dict[int, BrokerStatesRow] = {}
        cluster = scenario.cluster
        self._state_partitions = cluster.config.number("transaction.state.log.num.partitions")
        self._servers = [
            server.name for server in (*cluster.brokers, *cluster.controllers, *cluster.zookeepers)
        ]
        self._timeouts_us = {
            producer.config.text("transactional.id"): producer.config.number(
                "transaction.timeout.ms"
            )
            * MS
            for producer in scenario.producers
        }
        observer.listen("partition_changes", self._change)
        observer.listen("topic_deletions", self._deletion)
        observer.listen("groups", self._group)
        observer.listen("transactions", self._transaction)
        observer.listen("stable_offsets", self._stable_offset)
        observer.listen("consumer_errors", self._consumer_error)
        observer.listen("lag", self._lag)
        observer.listen("stable_lag", self._stable_lag)
        observer.listen("node_states", self._state)
        observer.listen("broker_states", self._broker)

    def is_reached(self, now: Micros) -> bool:
        """True if nothing is left over, nor can be: no transaction waits for its time-out."""
        return not self.leftovers(now) and not self._open_transactions(now)

    def leftovers(self, now: Micros) -> list[Leftover]:
        """Everything that is not at rest at an instant; empty if the cluster is."""
        return [
            *self._down(),
            *self._unserved(),
            *self._restless_groups(),
            *self._unended_transactions(now),
            *self._behind(),
        ]

    def _down(self) -> Iterator[Leftover]:
        for name in self._servers:
            state = self._states.get(name)
            if state is not None and state[NodeStates.STATE] not in _AT_WORK:
                yield Leftover("server-down", f"{name} is down: {state[NodeStates.STATE]}")
        for broker, row in self._brokers.items():
            if row[BrokerStates.STATE] in ("fenced", "registered"):
                words = f"{server_name(broker)} is fenced: its controller waits for its heartbeats"
                yield Leftover("broker-fenced", words)

    def _unserved(self) -> Iterator[Leftover]:
        for (topic, number), row in self._partitions.items():
            name = f"{topic}-{number}"
            in_sync = brokers_in(row[PartitionChanges.IN_SYNC])
            missing = [b for b in brokers_in(row[PartitionChanges.REPLICAS]) if b not in in_sync]
            waited = ", ".join(map(server_name, missing))
            if row[PartitionChanges.LEADER] < 0:
                isr, elr = row[PartitionChanges.IN_SYNC], row[PartitionChanges.ELIGIBLE]
                yield Leftover(
                    "no-leader",
                    f"{name} has no leader: it waits for one of its ISR [{isr}] or ELR [{elr}]",
                )
            elif missing:
                isr = row[PartitionChanges.IN_SYNC]
                words = f"{name} has the ISR [{isr}]: it waits for {waited} to catch up"
                yield Leftover("short-isr", words)

    def _restless_groups(self) -> Iterator[Leftover]:
        for group, row in self._groups.items():
            state = row[Groups.STATE]
            if state not in _QUIET:
                yield Leftover(
                    f"group-{state}",
                    f"group {group} is in {state}, with {row[Groups.MEMBERS]} members, at "
                    f"{server_name(row[Groups.BROKER])}: {row[Groups.REASON]}",
                )

    def _open_transactions(self, now: Micros) -> list[TransactionsRow]:
        """Last rows of the transactions that a coordinator has open."""
        return [
            row
            for row in self._transactions.values()
            if row[Transactions.STATE] in _OPEN and not self._is_lost(row, now)
        ]

    def _unended_transactions(self, now: Micros) -> Iterator[Leftover]:
        rows = self._open_transactions(now)
        for row in rows:
            name, state = row[Transactions.TRANSACTIONAL_ID], row[Transactions.STATE]
            limit = self._timeouts_us.get(name, 60 * SECOND) + _EXPIRY_US
            age = now - row[Transactions.T_US]
            if age > (limit if state == "Ongoing" else _EXPIRY_US):
                words = f"the transaction of {name} is in {state} for {show_duration(age)}"
                yield Leftover(f"transaction-{state}", words)
        if not rows:
            yield from self._hanging_transactions()

    def _hanging_transactions(self) -> Iterator[Leftover]:
        """Partitions whose last stable offset stays below the high watermark of the same leader.

        A leader with transactions writes a row whenever its last stable offset moves, and one when
        it begins to lead with an open one: the last row of its process and epoch is what it has.
        """
        for (topic, number), stable in self._stable.items():
            change = self._partitions.get((topic, number))
            leader, epoch = stable[StableOffsets.BROKER], stable[StableOffsets.LEADER_EPOCH]
            if change is None or (leader, epoch) != (
                change[PartitionChanges.LEADER],
                change[PartitionChanges.LEADER_EPOCH],
            ):
                continue
            last = stable[StableOffsets.LAST_STABLE_OFFSET]
            # That row is as old as the last stable offset; the high watermark may have moved since.
            replica = self._observer.partition(topic, number).replica(leader)
            end = max(stable[StableOffsets.HIGH_WATERMARK], replica.watermark)
            if last < end:
                yield Leftover(
                    "hanging-transaction",
                    f"{topic}-{number} is held at its last stable offset {last}, below its high "
                    f"watermark {end}: it waits for the marker "
                    "of a transaction that no coordinator has open",
                )

    def _is_lost(self, row: TransactionsRow, now: Micros) -> bool:
        """True if the id's coordinator has loaded its log since, and found nothing open there.

        A coordinator writes a row of each open transaction that it loads, and loads what it does
        not serve yet: another broker's partition, or its own after a start. Its log has less than
        the one before if that one's partition lost its end.
        """
        number = partition_for_group(row[Transactions.TRANSACTIONAL_ID], self._state_partitions)
        home = self._partitions.get((TRANSACTIONS_TOPIC, number))
        if home is None or home[PartitionChanges.LEADER] < 0:
            return False
        leader, epoch = home[PartitionChanges.LEADER], home[PartitionChanges.LEADER_EPOCH]
        return (
            epoch > row[Transactions.COORDINATOR_EPOCH]
            and now - home[PartitionChanges.T_US] > _EXPIRY_US
            and (leader != row[Transactions.BROKER] or self._has_started_since(leader, row))
        )

    def _has_started_since(self, broker: int, row: TransactionsRow) -> bool:
        state = self._states.get(server_name(broker))
        return (
            state is not None
            and state[NodeStates.STATE] in ("started", "running")
            and state[NodeStates.T_US] > row[Transactions.T_US]
        )

    def _behind(self) -> Iterator[Leftover]:
        for (group, topic, number), (position, end) in self._lags.items():
            if position < end:
                where = "has no reader" if position < 0 else f"is at offset {position}"
                words = f"group {group} {where} of {topic}-{number}, which ends at {end}"
                yield Leftover("reader-behind", words + self._why_ended(group))

    def _why_ended(self, group: str) -> str:
        row = self._errors.get(group)
        if row is None:
            return ""
        name, error = row[ConsumerErrors.CONSUMER], row[ConsumerErrors.ERROR]
        return f"; {name} ended at {show_instant(row[ConsumerErrors.T_US])} with {error}"

    # -- rows --------------------------------------------------------------------------------------

    def _change(self, row: PartitionChangesRow) -> None:
        self._partitions[row[PartitionChanges.TOPIC], row[PartitionChanges.PARTITION]] = row

    def _deletion(self, row: TopicDeletionsRow) -> None:
        topic = row[TopicDeletions.TOPIC]
        for known in (self._partitions, self._stable):
            for key in [key for key in known if key[0] == topic]:
                del known[key]
        for place in [place for place in self._lags if place[1] == topic]:
            del self._lags[place]

    def _group(self, row: GroupsRow) -> None:
        self._groups[row[Groups.GROUP]] = row

    def _consumer_error(self, row: ConsumerErrorsRow) -> None:
        self._errors[row[ConsumerErrors.GROUP]] = row

    def _transaction(self, row: TransactionsRow) -> None:
        self._transactions[row[Transactions.TRANSACTIONAL_ID]] = row

    def _stable_offset(self, row: StableOffsetsRow) -> None:
        place = row[StableOffsets.TOPIC], row[StableOffsets.PARTITION]
        known = self._stable.get(place)
        # A leader that has been replaced, and does not know it yet, may still write some.
        if known is None or known[StableOffsets.LEADER_EPOCH] <= row[StableOffsets.LEADER_EPOCH]:
            self._stable[place] = row

    def _lag(self, row: LagRow) -> None:
        place = row[Lag.GROUP], row[Lag.TOPIC], row[Lag.PARTITION]
        self._lags[place] = row[Lag.POSITION], row[Lag.HIGH_WATERMARK]

    def _stable_lag(self, row: StableLagRow) -> None:
        # It follows the row of the same sample in the other table, and says what may be read.
        place = row[StableLag.GROUP], row[StableLag.TOPIC], row[StableLag.PARTITION]
        self._lags[place] = row[StableLag.POSITION], row[StableLag.LAST_STABLE_OFFSET]

    def _state(self, row: NodeStatesRow) -> None:
        node = row[NodeStates.NODE]
        self._states[node] = row
        if row[NodeStates.STATE] == "started":
            for group, error in list(self._errors.items()):
                if error[ConsumerErrors.CONSUMER] == node:
                    del self._errors[group]
            for place, stable in list(self._stable.items()):
                if server_name(stable[StableOffsets.BROKER]) == node:
                    del self._stable[place]

    def _broker(self, row: BrokerStatesRow) -> None:
        self._brokers[row[BrokerStates.BROKER]] = row


def kinds(leftovers: list[Leftover]) -> tuple[str, ...]:
    """Kinds of leftovers, each once, sorted: two runs that are stuck in the same way agree."""
    return tuple(sorted(dict.fromkeys(each.kind for each in leftovers)))


def in_words(leftovers: list[Leftover], most: int = 3) -> str:
    """The first leftovers, as one sentence."""
    shown = "; ".join(each.words for each in leftovers[:most])
    more = len(leftovers) - most
    return f"{shown}; and {more} more" if more > 0 else shown
