"""Controller mutation quotas: partitions that clients may create and delete a second.

Each entity has a token bucket, filled evenly, with the capacity of a quota's windows. A request
takes a token for each partition. Clients of versions that know the error (*strict*) are refused
while the bucket is overdrawn, and may overdraw it by one topic; older clients (*permissive*) are
never refused, but throttled until it is refilled.

Only the administrator sends such requests here; the topics of coordinators, which brokers request,
are not counted, as in Kafka.

Source: KIP-599; ``ControllerMutationQuotaManager``, ``TokenBucket``, ``Sensor.checkQuotas``.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from sim.protocol.metadata.image import QuotaEntity
from sim.protocol.quotas.client import UNLIMITED, USER, QuotaManager
from sim.protocol.quotas.rate import MS_PER_S, ms_of
from sim.units import MS, Micros

MUTATION_RATE = "controller_mutation_rate"
"""The quota's name."""


@dataclass(frozen=True, slots=True)
class MutationQuotaConfig:
    """Settings, and client-ids of clients."""

    client_ids: Mapping[str, str] = field(default_factory=dict)
    """By printed name; clients not in it have no quota."""
    samples: int = 11
    """``controller.quota.window.num``."""
    window_ms: int = 1_000
    """``controller.quota.window.size.seconds``."""
    strict: bool = True
    """True if clients know THROTTLING_QUOTA_EXCEEDED, as since 2.7."""


class MutationThrottled(Exception):  # noqa: N818 - it names what happened
    """A change is refused: the bucket is overdrawn."""


class TokenBucket:
    """A token bucket: rate and capacity.

    Source: ``org.apache.kafka.common.metrics.stats.TokenBucket``.
    """

    def __init__(self, samples: int, window_ms: int) -> None:
        self._window_s = samples * window_ms / MS_PER_S
        self._tokens = 0.0
        self._filled_ms: int | None = None

    def level(self, rate: float, now_ms: int) -> float:
        """Tokens at the instant; below zero: overdrawn. The bucket is full at first."""
        full = rate * self._window_s
        if self._filled_ms is None:
            self._tokens = full
        else:
            gained = rate * (now_ms - self._filled_ms) / MS_PER_S
            self._tokens = min(full, self._tokens + gained)
        self._filled_ms = now_ms
        return self._tokens

    def take(self, tokens: int, rate: float, now_ms: int) -> None:
        """Takes so many tokens, even if they are not there."""
        self._tokens = self.level(rate, now_ms) - tokens


class MutationQuota:
    """Quota of one request's client, during the request's decision."""

    def __init__(self, bucket: TokenBucket, rate: float, now: Micros, *, strict: bool) -> None:
        self._bucket = bucket
        self._rate = rate
        self._now_ms = ms_of(now)
        self._strict = strict
        self.throttle_us: Micros = 0
        """Throttle time of the client; 0: none."""

    def take(self, partitions: int) -> None:
        """Takes tokens for so many partitions.

        Raises:
            MutationThrottled: If the bucket is overdrawn.
        """
        if self._strict and self._is_overdrawn():
            raise MutationThrottled
        self._bucket.take(partitions, self._rate, self._now_ms)
        if not self._strict:
            self._is_overdrawn()

    def _is_overdrawn(self) -> bool:
        level = self._bucket.level(self._rate, self._now_ms)
        if level >= 0:
            return False
        self.throttle_us = math.floor(-level / self._rate * MS_PER_S + 0.5) * MS
        return True


class MutationQuotas:
    """All quotas of one controller."""

    def __init__(self, config: MutationQuotaConfig) -> None:
        self._config = config
        self._entities = QuotaManager(config.samples, config.window_ms)
        self._buckets: dict[tuple[str, str], TokenBucket] = {}

    def update(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """Applies quotas of the cluster's metadata."""
        rates = {
            e: values[MUTATION_RATE] for e, values in quotas.items() if MUTATION_RATE in values
        }
        self._entities.update(rates)

    def client_id(self, client: str) -> str:
        """Client-id of a client, by printed name."""
        return self._config.client_ids.get(client, "")

    def of(self, client: str, now: Micros) -> MutationQuota | None:
        """Quota of a request; ``None`` if nothing limits its client."""
        client_id = self._config.client_ids.get(client)
        if client_id is None or not self._entities.enabled:
            return None
        sharers = self._entities.sharers(USER, client_id)
        rate = self._entities.bound(sharers)
        if rate >= UNLIMITED:
            return None
        bucket = self._buckets.get(sharers)
        if bucket is None:
            config = self._config
            bucket = self._buckets[sharers] = TokenBucket(config.samples, config.window_ms)
        return MutationQuota(bucket, rate, now, strict=self._config.strict)
