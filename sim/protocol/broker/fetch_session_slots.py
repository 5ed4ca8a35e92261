"""Slots of a broker's fetch session cache: who gets one, and whose session is evicted for it.

The cache is divided into shards, and a new session belongs to the next one in turn. In a full shard
it takes the slot of a session that was not used for two minutes, of a consumer if it is a
follower's, or of a smaller one that is older than two minutes. Else it gets none, and its client
fetches without a session.

Source: KIP-227; ``FetchSessionCacheShard`` (KAFKA-9401), ``KafkaBroker``.
"""

from dataclasses import dataclass
from typing import Final

from sim.units import MINUTE, Micros

EVICTION_US: Final[Micros] = 2 * MINUTE
"""``MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS``."""

SHARDS: Final = 8
"""``NumFetchSessionCacheShards``; one before 3.8."""


@dataclass(frozen=True, slots=True)
class FetchSessionConfig:
    """Size of a broker's fetch session cache."""

    slots: int | None = None
    """``max.incremental.fetch.session.cache.slots``; ``None``: no bound. Each shard has an equal
    part, rounded down."""
    shards: int = SHARDS


UNBOUNDED: Final = FetchSessionConfig()


@dataclass(slots=True)
class _Slot:
    """A cached session."""

    session_id: int
    privileged: bool
    """True of a follower's."""
    created_us: Micros
    used_us: Micros = 0
    size: int = 0
    """Partitions when it was last used."""
    for_all: bool = False
    """True if consumers' sessions may evict it."""
    for_privileged: bool = False
    """True if followers' sessions may evict it."""

    @property
    def worth(self) -> tuple[bool, int, int]:
        """Order of eviction, the least first."""
        return self.privileged, self.size, self.session_id

    def touch(self, size: int, now: Micros) -> None:
        """The session is used. Who may evict it is decided here, not when a slot is needed."""
        self.used_us = now
        self.size = size
        self.for_all = now - self.created_us > EVICTION_US
        self.for_privileged = self.for_all or not self.privileged


class FetchSessionSlots:
    """The cache's slots."""

    def __init__(self, config: FetchSessionConfig) -> None:
        self._of_shard = None if config.slots is None else config.slots // config.shards
        self._shards: tuple[dict[int, _Slot], ...] = tuple({} for _ in range(config.shards))
        self._shard_of: dict[int, dict[int, _Slot]] = {}
        self._turn = 0

    def take(
        self, session_id: int, size: int, now: Micros, *, privileged: bool
    ) -> tuple[bool, int | None]:
        """Gives a new session a slot.

        Returns:
            True if it has one, and the session that is evicted for it.
        """
        if self._of_shard is None:
            return True, None
        shard = self._shards[self._turn % len(self._shards)]
        self._turn += 1
        evicted = None
        if len(shard) >= self._of_shard:
            evicted = _evictable(shard, size, now, privileged=privileged)
            if evicted is None:
                return False, None
            self.free(evicted)
        slot = shard[session_id] = _Slot(session_id, privileged, now)
        slot.touch(size, now)
        self._shard_of[session_id] = shard
        return True, evicted

    def touch(self, session_id: int, size: int, now: Micros) -> None:
        """A session is used, and has so many partitions."""
        shard = self._shard_of.get(session_id)
        if shard is not None:
            shard[session_id].touch(size, now)

    def free(self, session_id: int) -> None:
        """A session is closed or evicted."""
        shard = self._shard_of.pop(session_id, None)
        if shard is not None:
            del shard[session_id]


def _evictable(shard: dict[int, _Slot], size: int, now: Micros, *, privileged: bool) -> int | None:
    """Session that gives its slot to a new one; ``None`` if there is none.

    Source: ``FetchSessionCacheShard.tryEvict``.
    """
    if not shard:
        return None
    oldest = min(shard.values(), key=lambda slot: (slot.used_us, slot.session_id))
    if now - oldest.used_us > EVICTION_US:
        return oldest.session_id
    candidates = [
        slot for slot in shard.values() if (slot.for_privileged if privileged else slot.for_all)
    ]
    if not candidates:
        return None
    least = min(candidates, key=lambda slot: slot.worth)
    return least.session_id if (privileged, size, 0) >= least.worth else None
