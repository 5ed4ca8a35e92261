"""Invariants of leaders of share partitions (KIP-932).

As in any partition, a zombie leader may be active for a while: the state of a record binds the
leadership that set it, and later ones.
"""

from collections.abc import Mapping
from typing import Final, TypeAlias

from sim.checking.interval_set import IntervalSet
from sim.checking.invariant import Invariant
from sim.checking.observer import Observer
from sim.checking.partition import Partition
from sim.ids import SHARE_STATE_TOPIC, server_name
from sim.trace.rows.share import SharePartitionsRow, ShareRenewalsRow, ShareStatesRow

_Key: TypeAlias = tuple[str, str, int]

_WRITTEN: Final = frozenset(
    {"accept", "reject", "gap", "found accepted", "found rejected", "found at the limit"}
)
"""Reasons of final states that the share coordinator has written."""


def _where(group: str, topic: str, partition: int) -> str:
    return f"{topic}-{partition} of {group}"


class RecordsHaveOneHolder(Invariant):
    """A lock is exclusive."""

    name = "records-have-one-holder"
    sentence = "Under one leadership a record is acquired by one member of a share group at a time."
    source = "KIP-932; SharePartition.acquire"

    def __init__(self) -> None:
        super().__init__()
        self._holders: dict[tuple[_Key, int], dict[int, str]] = {}

    def _watch(self, observer: Observer) -> None:
        observer.listen("share_states", self._state)
        observer.listen("share_partitions", self._partition)

    def _partition(self, row: SharePartitionsRow) -> None:
        _at, _broker, group, topic, number, epoch, _start, _end, _limit, reason = row
        if reason in {"loaded", "given up"}:
            self._holders.pop(((group, topic, number), epoch), None)

    def _state(self, row: ShareStatesRow) -> None:
        at, broker, group, topic, number, epoch, first, last, state, _count, consumer, _ = row
        holders = self._holders.setdefault(((group, topic, number), epoch), {})
        if state != "ACQUIRED":
            for offset in range(first, last + 1):
                holders.pop(offset, None)
            return
        self.checked += 1
        for offset in range(first, last + 1):
            holder = holders.get(offset)
            if holder is not None:
                found = (
                    f"offset {offset} of {_where(group, topic, number)} goes to {consumer}, and "
                    f"{holder} has it"
                )
                raise self.broken(at, server_name(broker), found)
            holders[offset] = consumer


class DoneIsDone(Invariant):
    """Acknowledgements are final, across leaders."""

    name = "acknowledged-is-not-delivered"
    sentence = (
        "A record whose acknowledgement or rejection was written is not delivered to its share "
        "group again under the same leadership or a later one."
    )
    source = "KIP-932; SharePartition.maybeInitialize"
    conditions = (
        "while neither a record of __share_group_state nor one of the partition itself is lost"
    )

    def __init__(self) -> None:
        super().__init__()
        self._done: dict[_Key, dict[int, IntervalSet]] = {}
        self._partitions: Mapping[tuple[str, int], Partition] = {}

    def _watch(self, observer: Observer) -> None:
        self._partitions = observer.partitions
        observer.listen("share_states", self._state)

    def _state(self, row: ShareStatesRow) -> None:
        at, broker, group, topic, number, epoch, first, last, state, _count, consumer, reason = row
        known = self._done.setdefault((group, topic, number), {})
        if reason in _WRITTEN:
            known.setdefault(epoch, IntervalSet()).add(first, last + 1)
        if state != "ACQUIRED":
            return
        lost = self._lost(topic, number)
        if lost is not None:
            self.suspend(lost)
            known.clear()
            return
        self.checked += 1
        for before, done in known.items():
            if before <= epoch and done.within(first, last + 1):
                found = (
                    f"{consumer} gets offsets {first} to {last} of {_where(group, topic, number)}, "
                    f"of which some were done with under leader epoch {before}"
                )
                raise self.broken(at, server_name(broker), found)

    def _lost(self, topic: str, number: int) -> str | None:
        """Reason for which a record may lawfully be redelivered; ``None`` without one."""
        own = self._partitions.get((topic, number))
        if own is not None and own.excuse is not None:
            return own.excuse
        for (name, _), partition in self._partitions.items():
            if name == SHARE_STATE_TOPIC and partition.excuse is not None:
                return partition.excuse
        return None


class DeliveriesAreLimited(Invariant):
    """``group.share.delivery.count.limit``."""

    name = "deliveries-are-limited"
    sentence = "No record is delivered more often than group.share.delivery.count.limit allows."
    source = "KIP-932; SharePartition.InFlightState"

    def __init__(self) -> None:
        super().__init__()
        self._limits: dict[_Key, int] = {}

    def _watch(self, observer: Observer) -> None:
        observer.listen("share_states", self._state)
        observer.listen("share_partitions", self._partition)

    def _partition(self, row: SharePartitionsRow) -> None:
        _, _, group, topic, number, _epoch, _start, _end, limit, _reason = row
        self._limits[group, topic, number] = limit

    def _state(self, row: ShareStatesRow) -> None:
        at, broker, group, topic, number, _epoch, first, _last, _state, count, _who, _why = row
        limit = self._limits.get((group, topic, number))
        if limit is None:
            return
        self.checked += 1
        if count > limit:
            place = _where(group, topic, number)
            found = f"offset {first} of {place} was delivered {count} times; {limit} are allowed"
            raise self.broken(at, server_name(broker), found)


class ShareStartsAdvance(Invariant):
    """The SPSO."""

    name = "share-starts-advance"
    sentence = "While a broker leads a share partition, its start offset never goes back."
    source = "KIP-932; SharePartition.maybeUpdateCachedStateAndOffsets"

    def __init__(self) -> None:
        super().__init__()
        self._starts: dict[tuple[_Key, int], int] = {}

    def _watch(self, observer: Observer) -> None:
        observer.listen("share_partitions", self._partition)

    def _partition(self, row: SharePartitionsRow) -> None:
        at, broker, group, topic, number, epoch, start, _end, _limit, reason = row
        key = ((group, topic, number), epoch)
        if reason == "loaded":
            self._starts[key] = start
            return
        self.checked += 1
        before = self._starts.get(key, start)
        self._starts[key] = start
        if start < before:
            found = f"{_where(group, topic, number)} begins at {start}; it began at {before}"
            raise self.broken(at, server_name(broker), found)


class RenewedLocksHold(Invariant):
    """A renewal begins a lock again, for its holder alone (KIP-1222)."""

    name = "renewed-locks-hold"
    sentence = (
        "Under one leadership only a record's holder renews its lock, which does not expire before "
        "its new end."
    )
    source = "KIP-1222; SharePartition.acknowledgeCompleteBatch"

    def __init__(self) -> None:
        super().__init__()
        self._renewed: dict[tuple[_Key, int], dict[int, int]] = {}
        """Ends of renewed locks, by offset."""
        self._holders: dict[tuple[_Key, int], dict[int, str]] = {}

    def _watch(self, observer: Observer) -> None:
        observer.listen("share_states", self._state)
        observer.listen("share_partitions", self._partition)
        observer.listen("share_renewals", self._renewal)

    def _partition(self, row: SharePartitionsRow) -> None:
        _at, _broker, group, topic, number, epoch, _start, _end, _limit, reason = row
        if reason in {"loaded", "given up"}:
            self._renewed.pop(((group, topic, number), epoch), None)
            self._holders.pop(((group, topic, number), epoch), None)

    def _renewal(self, row: ShareRenewalsRow) -> None:
        at, broker, group, topic, number, epoch, first, last, consumer, until = row
        key = (group, topic, number), epoch
        holders = self._holders.get(key, {})
        renewed = self._renewed.setdefault(key, {})
        self.checked += 1
        for offset in range(first, last + 1):
            holder = holders.get(offset, "nobody")
            if holder != consumer:
                found = (
                    f"{consumer} renews the lock of offset {offset} of "
                    f"{_where(group, topic, number)}, which {holder} has"
                )
                raise self.broken(at, server_name(broker), found)
            renewed[offset] = until

    def _state(self, row: ShareStatesRow) -> None:
        at, broker, group, topic, number, epoch, first, last, state, _count, consumer, reason = row
        key = (group, topic, number), epoch
        if state == "ACQUIRED":
            holders = self._holders.setdefault(key, {})
            for offset in range(first, last + 1):
                holders[offset] = consumer
            return
        renewed, holders = self._renewed.get(key, {}), self._holders.get(key, {})
        for offset in range(first, last + 1):
            holders.pop(offset, None)
            until = renewed.pop(offset, None)
            if until is not None and reason == "lock timeout":
                self.checked += 1
                if at < until:
                    found = (
                        f"the lock of offset {offset} of {_where(group, topic, number)} expires, "
                        f"and {consumer} had renewed it until {until} us"
                    )
                    raise self.broken(at, server_name(broker), found)


SHARE_INVARIANTS: Final[tuple[type[Invariant], ...]] = (
    RecordsHaveOneHolder,
    DoneIsDone,
    DeliveriesAreLimited,
    ShareStartsAdvance,
    RenewedLocksHold,
)
"""Invariants of share groups."""
