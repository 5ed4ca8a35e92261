"""A share partition at its leader: states and delivery counts of its records (KIP-932).

Records between the start offset (SPSO) and the end (SPEO) are in flight; those below are completed,
those above were not delivered yet. A record is available, acquired by one member until its lock
expires, acknowledged, or archived. An acknowledgement counts when the share coordinator has written
it; until then the record is in transition.

States are kept in runs of equal records, where Kafka keeps them by fetched batch and splits those
up when it must; the state of each record is the same. Offsets that the share coordinator did not
know when the partition was loaded are available with a delivery count of 0: the former leader may
have delivered them.

Source: ``kafka.server.share.SharePartition`` (4.1), ``InFlightState``.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from sim.error_codes import ErrorCode
from sim.ids import Offset
from sim.protocol.broker.share.limits import ShareLimits
from sim.protocol.messages.share_records import Acknowledgement, Acquired, RecordState, StateBatch
from sim.units import NEVER, Micros

GAP, ACCEPT, RELEASE, REJECT, RENEW = 0, 1, 2, 3, 4
"""Acknowledgement types; a gap is an offset without a record for the application."""

ACKNOWLEDGE_TYPES = ("gap", "accept", "release", "reject", "renew")
"""Names of the types, by number."""

FOUND = ("found accepted", "found rejected", "found at the limit")
"""Reasons for states of records that a new leader reads."""

_OUTCOME = (
    RecordState.ARCHIVED,
    RecordState.ACKNOWLEDGED,
    RecordState.AVAILABLE,
    RecordState.ARCHIVED,
)


class StateChange(NamedTuple):
    """Records with a new state, for the trace; ``member`` had or has them."""

    first: Offset
    last: Offset
    state: RecordState
    delivery_count: int
    member: str
    reason: str


class Renewal(NamedTuple):
    """Records whose acquisition lock was renewed by their member, for the trace."""

    first: Offset
    last: Offset
    member: str
    until: Micros


@dataclass(slots=True)
class _Run:
    first: Offset
    last: Offset
    state: RecordState
    count: int
    member: str = ""
    until: Micros = NEVER
    """End of the acquisition lock."""
    token: int = 0
    """Token of the open write; the state is the future one."""
    reason: str = ""
    """Reason of the future state."""
    size: int = 0
    """Number of records that were acquired with these when they were new."""

    def is_free(self) -> bool:
        return self.state is RecordState.AVAILABLE and not self.token

    def batch(self) -> StateBatch:
        return StateBatch(self.first, self.last, self.state, self.count)

    def change(self, reason: str) -> StateChange:
        return StateChange(self.first, self.last, self.state, self.count, self.member, reason)


class SharePartition:
    """One share partition, once its state has been read.

    Args:
        limits: Settings.
        start: The start offset as persisted, or as ``share.auto.offset.reset`` gives it.
        batches: The states as persisted, in order.
    """

    def __init__(self, limits: ShareLimits, start: Offset, batches: Iterable[StateBatch]) -> None:
        self.start_offset: Offset = start
        """SPSO: everything below is completed."""
        self.end_offset: Offset = start
        """SPEO: nothing from here on was delivered yet."""
        self.changes: list[StateChange] = []
        """Changes of states, until the caller takes them."""
        self.renewals: list[Renewal] = []
        """Renewed locks, likewise."""
        self._limits = limits
        self._runs: list[_Run] = []
        self._token = 0
        for batch in batches:
            if batch.last < start:
                continue
            if batch.first > self.end_offset:
                self._runs.append(_Run(self.end_offset, batch.first - 1, RecordState.AVAILABLE, 0))
            first = max(batch.first, self.end_offset)
            run = _Run(first, batch.last, batch.state, batch.delivery_count)
            run.size = batch.last - first + 1
            self._runs.append(run)
            if run.state.is_terminal:
                self.changes.append(run.change(self._found(run)))
            self.end_offset = batch.last + 1
        self._advance()

    def _found(self, run: _Run) -> str:
        """Reason of a state that a former leader has written: not known exactly."""
        if run.state is RecordState.ACKNOWLEDGED:
            return FOUND[0]
        return FOUND[2 if run.count >= self._limits.deliveries_max else 1]

    def completed_in_flight(self) -> int:
        """Number of records from the start offset on that are, or will be, completed.

        -1 where it is not counted.

        Source: ``SharePartition.deliveryCompleteCount`` (4.2).
        """
        if not self._limits.counts:
            return -1
        done = [run for run in self._runs if run.state.is_terminal]
        return sum(run.last - run.first + 1 for run in done)

    def use(self, limits: ShareLimits) -> None:
        """Takes other settings; locks that are held keep their ends."""
        self._limits = limits

    # -- views ------------------------------------------------------------------------------------

    def states(self) -> tuple[StateBatch, ...]:
        """All states in flight, in order; of records in transition, the future one."""
        return tuple(run.batch() for run in self._runs)

    def next_fetch_offset(self) -> Offset:
        """First record that can be acquired: one to deliver again, else a new one."""
        for run in self._runs:
            if run.is_free():
                return run.first
        return self.end_offset

    def can_acquire(self) -> bool:
        """True if there is a record to deliver again, or the limit allows new ones."""
        return self.next_fetch_offset() < self.end_offset or self._capacity() > 0

    def next_deadline(self) -> Micros:
        """End of the next lock; NEVER without acquired records."""
        locks = [run.until for run in self._runs if self._is_acquired(run)]
        return min(locks, default=NEVER)

    def _capacity(self) -> int:
        return self._limits.in_flight_max - (self.end_offset - self.start_offset)

    @staticmethod
    def _is_acquired(run: _Run) -> bool:
        return run.state is RecordState.ACQUIRED and not run.token

    # -- acquiring --------------------------------------------------------------------------------

    def acquire(
        self,
        member: str,
        fetched: Sequence[tuple[Offset, Offset]],
        limit: int,
        now: Micros,
        *,
        exact: bool = False,
    ) -> list[Acquired]:
        """Acquires fetched records for a member: available and new ones.

        Args:
            member: The member's id.
            fetched: First and last offset of each batch from :meth:`next_fetch_offset` on, in the
                order of the log.
            limit: Number of records; approximate, as whole batches are acquired.
            now: This instant.
            exact: ``share.acquire.mode: record_limit``: no more than the number (KIP-1206).
        """
        if not fetched or limit <= 0:
            return []
        first, last = fetched[0][0], fetched[-1][1]
        until = now + self._limits.lock_us
        found: list[Acquired] = []
        self._split(first)
        self._split(last + 1)
        self._pass_over(first)
        limit = self._acquire_again(member, fetched, limit, until, found, exact=exact)
        count = sum(each.last - each.first + 1 for each in found)
        capacity = min(limit - count, self._capacity())
        if capacity > 0 and last >= self.end_offset:
            begin = max(first, self.end_offset)
            end = begin + capacity - 1
            end = min(end, last) if exact else _end(fetched, end)
            if begin > self.end_offset:  # the log starts after the end of the delivered records
                self._archive_gap(begin)
            run = _Run(begin, end, RecordState.ACQUIRED, 1, member, until, size=end - begin + 1)
            self._runs.append(run)
            self.end_offset = end + 1
            found.append(Acquired(begin, end, 1))
            self.changes.append(run.change("acquired"))
        self._advance()
        return found

    def _acquire_again(
        self,
        member: str,
        fetched: Sequence[tuple[Offset, Offset]],
        limit: int,
        until: Micros,
        found: list[Acquired],
        *,
        exact: bool,
    ) -> int:
        """Acquires records that were delivered before; returns how many in all may be acquired."""
        count = 0
        for run in self._between(fetched[0][0], fetched[-1][1]):
            if count >= limit:
                break
            if not run.is_free():
                continue
            alone = self._limits.alone(run.count, run.size)
            if alone and count:
                return count
            most = min(limit - count, alone or limit)
            end = run.first + most - 1
            self._split((end if exact or alone else _end(fetched, end)) + 1)
            run.state, run.member, run.until = RecordState.ACQUIRED, member, until
            run.count += 1
            found.append(Acquired(run.first, run.last, run.count))
            self.changes.append(run.change("acquired"))
            count += run.last - run.first + 1
            if alone:
                return count
        return limit

    def _pass_over(self, first: Offset) -> None:
        """Archives free records below the fetched ones: they were compacted away."""
        for run in self._runs:
            if run.last < first and run.is_free():
                run.state = RecordState.ARCHIVED
                self.changes.append(run.change(ACKNOWLEDGE_TYPES[GAP]))

    def _archive_gap(self, end: Offset) -> None:
        """Archives offsets without a batch."""
        if self._runs:
            self._runs.append(_Run(self.end_offset, end - 1, RecordState.ARCHIVED, 0))
        else:
            self.start_offset = end
        self.end_offset = end

    # -- acknowledgements --------------------------------------------------------------------------

    def acknowledge(
        self, member: str, said: Iterable[Acknowledgement], now: Micros
    ) -> tuple[ErrorCode, int, tuple[StateBatch, ...]]:
        """Applies a member's acknowledgements, all of them or, with an error, none.

        Renewals change no state and are not written; those before an error count (KIP-1222).

        Source: ``SharePartition.acknowledge``, ``acknowledgeCompleteBatch`` (4.3).

        Returns:
            The error; the token for :meth:`settle`, 0 if there is nothing to write; and the states
            to write.
        """
        chosen: list[tuple[Offset, Offset, int]] = []
        for each in said:
            if each.last >= self.end_offset:
                return ErrorCode.INVALID_REQUEST, 0, ()
            if len(each.types) not in {1, each.last - each.first + 1}:
                return ErrorCode.INVALID_REQUEST, 0, ()
            chosen += _of_one_type(each, self.start_offset)
        for first, last, kind in chosen:
            for run in self._between(first, last):
                if not self._is_acquired(run) or run.member != member:
                    return ErrorCode.INVALID_RECORD_STATE, 0, ()
            if kind == RENEW:
                if not self._limits.renews:
                    return ErrorCode.INVALID_RECORD_STATE, 0, ()
                self._renew(first, last, now + self._limits.lock_us)
        chosen = [each for each in chosen if each[2] != RENEW]
        if not chosen:
            return ErrorCode.NONE, 0, ()
        self._token += 1
        for first, last, kind in chosen:
            self._split(first)
            self._split(last + 1)
            for run in self._between(first, last):
                self._begin(run, _OUTCOME[kind], ACKNOWLEDGE_TYPES[kind])
        return ErrorCode.NONE, self._token, self._written(self._token)

    def _renew(self, first: Offset, last: Offset, until: Micros) -> None:
        """Begins the acquisition locks of records again."""
        self._split(first)
        self._split(last + 1)
        for run in self._between(first, last):
            run.until = until
            self.renewals.append(Renewal(run.first, run.last, run.member, until))

    def release(self, member: str) -> tuple[int, tuple[StateBatch, ...]]:
        """A member has left: releases its records. As :meth:`acknowledge`, without an error."""
        mine = [run for run in self._runs if self._is_acquired(run) and run.member == member]
        if not mine:
            return 0, ()
        self._token += 1
        for run in mine:
            self._begin(run, RecordState.AVAILABLE, "session closed")
        return self._token, self._written(self._token)

    def _begin(self, run: _Run, state: RecordState, reason: str) -> None:
        run.state, run.reason = self._within_limit(run, state, reason)
        run.token = self._token

    def _within_limit(self, run: _Run, state: RecordState, reason: str) -> tuple[RecordState, str]:
        """A record at the delivery count limit is archived, not released."""
        if state is RecordState.AVAILABLE and run.count >= self._limits.deliveries_max:
            return RecordState.ARCHIVED, "limit"
        return state, reason

    def _written(self, token: int) -> tuple[StateBatch, ...]:
        return tuple(run.batch() for run in self._runs if run.token == token)

    def settle(self, token: int, *, written: bool, now: Micros) -> tuple[StateBatch, ...]:
        """Completes, or rolls back, the states of a write.

        After a rollback they are the member's again, or, if the lock has expired, available.

        Returns:
            The states to write because of expired locks.
        """
        for run in self._runs:
            if run.token != token:
                continue
            run.token = 0
            if written:
                self.changes.append(run.change(run.reason))
                run.member, run.until = "", NEVER
            else:
                run.state = RecordState.ACQUIRED
        self._advance()
        return () if written else self.expire(now)

    def expire(self, now: Micros) -> tuple[StateBatch, ...]:
        """Releases records with expired locks, even if that cannot be written.

        Returns:
            The states to write.
        """
        late = [run for run in self._runs if self._is_acquired(run) and run.until <= now]
        for run in late:
            run.state, reason = self._within_limit(run, RecordState.AVAILABLE, "lock timeout")
            self.changes.append(run.change(reason))
            run.member, run.until = "", NEVER
        states = tuple(run.batch() for run in late)
        self._advance()
        return states

    def log_start_moved(self, offset: Offset) -> None:
        """Records below the offset were deleted from the log: they are archived.

        Source: ``SharePartition.updateCacheAndOffsets``.
        """
        if offset <= self.start_offset:
            return
        self._split(offset)
        for run in self._runs:
            if run.last < offset and not run.state.is_terminal:
                run.state, run.reason = RecordState.ARCHIVED, "removed from the log"
                self.changes.append(run.change(run.reason))
        self._runs = [run for run in self._runs if run.last >= offset]
        self.start_offset = offset
        self.end_offset = max(self.end_offset, offset)
        self._advance()

    # -- runs -------------------------------------------------------------------------------------

    def _between(self, first: Offset, last: Offset) -> list[_Run]:
        """Runs with an offset from the first to the last, in order."""
        place = max(bisect_right(self._runs, first, key=_first) - 1, 0)
        found = []
        for run in self._runs[place:]:
            if run.first > last:
                break
            if run.last >= first:
                found.append(run)
        return found

    def _split(self, offset: Offset) -> None:
        """Splits the run that covers the offset."""
        place = bisect_right(self._runs, offset, key=_first) - 1
        if place < 0:
            return
        run = self._runs[place]
        if run.first < offset <= run.last:
            rest = replace(run, first=offset)
            run.last = offset - 1
            self._runs.insert(place + 1, rest)

    def _advance(self) -> None:
        """Advances the start offset over completed records."""
        done = 0
        for run in self._runs:
            if not run.state.is_terminal or run.token:
                break
            self.start_offset = run.last + 1
            done += 1
        if done:
            del self._runs[:done]


def _first(run: _Run) -> Offset:
    return run.first


def _end(fetched: Sequence[tuple[Offset, Offset]], offset: Offset) -> Offset:
    """Last offset of the batch that holds the offset, or of all that was fetched."""
    return next((stop for _, stop in fetched if stop >= offset), fetched[-1][1])


def _of_one_type(said: Acknowledgement, start: Offset) -> list[tuple[Offset, Offset, int]]:
    """First and last offset and type, of runs of one type, from the start offset on."""
    if len(said.types) == 1:
        first = max(said.first, start)
        return [(first, said.last, said.types[0])] if first <= said.last else []
    runs: list[tuple[Offset, Offset, int]] = []
    for place, kind in enumerate(said.types):
        offset = said.first + place
        if offset < start:
            continue
        if runs and runs[-1][2] == kind and runs[-1][1] == offset - 1:
            runs[-1] = (runs[-1][0], offset, kind)
        else:
            runs.append((offset, offset, kind))
    return runs
