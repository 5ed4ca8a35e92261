"""Fetches of consumers that wait for the remote log.

A fetch reads one partition remotely, the first that needs it; the others get what is in their local
logs. It is answered when the read is done, or after ``remote.fetch.max.wait.ms`` without its
records.

Source: ``DelayedRemoteFetch``, ``ReplicaManager.processRemoteFetch``; KIP-405, KIP-1018.
"""

from dataclasses import dataclass

from sim.error_codes import ErrorCode
from sim.ids import Offset, TopicPartition
from sim.protocol import effects as fx
from sim.protocol.broker.fetch_session import FetchSession
from sim.protocol.broker.replication.effects import Effects
from sim.protocol.broker.tiered.ports import (
    RemoteReadCancelled,
    RemoteReadDone,
    RemoteReadRequested,
)
from sim.protocol.messages.data import FetchResult
from sim.units import NEVER, Bytes, Micros

TIMER = "remote-fetch"
"""Timer of fetches that wait for the remote log."""


@dataclass(slots=True)
class RemotePart:
    """The partition of a fetch whose records are in the remote log alone."""

    partition: TopicPartition
    offset: Offset
    bytes_max: Bytes
    high_watermark: Offset
    log_start: Offset
    last_stable: Offset
    """-1 unless the reader requests committed data."""


@dataclass(slots=True)
class RemoteFetch:
    """A fetch that waits."""

    session: FetchSession
    token: int
    part: RemotePart
    results: list[FetchResult]
    """Of the partitions that were read locally."""
    deadline: Micros


class RemoteFetches:
    """The fetches of one broker that wait for its remote logs."""

    def __init__(self, wait_us: Micros | None) -> None:
        self._wait_us = wait_us
        self._waiting: dict[int, RemoteFetch] = {}
        self._reads = 0

    def begin(
        self,
        session: FetchSession,
        part: RemotePart,
        results: list[FetchResult],
        now: Micros,
        out: Effects,
    ) -> None:
        """Reads remotely; the fetch waits."""
        self._reads += 1
        request = session.request
        assert request is not None, "a fetch is being answered"
        wait = request.max_wait_us if self._wait_us is None else self._wait_us
        fetch = RemoteFetch(session, session.token, part, results, now + wait)
        self._waiting[self._reads] = fetch
        committed = session.reads_committed
        out.append(
            RemoteReadRequested(self._reads, part.partition, part.offset, part.bytes_max, committed)
        )
        out.append(fx.SetTimer(TIMER, min(f.deadline for f in self._waiting.values())))

    def done(self, event: RemoteReadDone) -> RemoteFetch | None:
        """The fetch of a read that is done, with its result; ``None`` if nobody waits for it."""
        fetch = self._waiting.pop(event.token, None)
        if fetch is None or fetch.session.token != fetch.token:
            return None
        part = fetch.part
        if event.error is not ErrorCode.NONE:
            fetch.results.append(FetchResult(part.partition, event.error))
            return fetch
        result = FetchResult(
            part.partition,
            ErrorCode.NONE,
            part.high_watermark,
            part.log_start,
            event.batches,
            last_stable_offset=part.last_stable,
            aborted=event.aborted,
        )
        fetch.results.append(result)
        return fetch

    def expired(self, now: Micros, out: Effects) -> list[RemoteFetch]:
        """Fetches that have waited too long; their reads are cancelled."""
        due = [token for token, fetch in self._waiting.items() if fetch.deadline <= now]
        found = []
        for token in due:
            fetch = self._waiting.pop(token)
            out.append(RemoteReadCancelled(token))
            if fetch.session.token == fetch.token:
                found.append(fetch)
        left = min((fetch.deadline for fetch in self._waiting.values()), default=NEVER)
        if left < NEVER:
            out.append(fx.SetTimer(TIMER, left))
        return found
