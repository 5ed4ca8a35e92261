"""Client quotas on one broker: bytes produced and fetched, and threads' time.

Each quota is the broker's own: a client of three brokers may have three times as much. A client's
usage is counted over samples; above its bound it is throttled until the rate would be back at the
bound. A throttled client's response is sent at once and its connection muted (KIP-219); before that
the response waited. Every client is the user ANONYMOUS, as on a listener without authentication.
Brokers have no quotas.

Quotas of connections are in :mod:`sim.protocol.quotas.connection`, of changes to the metadata in
:mod:`sim.protocol.controller.mutation_quotas`.

Left out: custom callbacks; the header of a fetch response counts as large as any other's.

Source: KIP-13, KIP-55, KIP-124, KIP-219; ``kafka.server.{ClientQuotaManager,
ClientRequestQuotaManager}``, ``QuotaUtils``, ``KafkaApis``.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from sim.protocol.messages.base import Request
from sim.protocol.messages.data import ProduceRequest
from sim.protocol.metadata.image import QuotaEntity
from sim.protocol.quotas.rate import MS_PER_S, SampledRate, ms_of
from sim.units import MS, SECOND, Bytes, Micros

USER = "ANONYMOUS"
"""``KafkaPrincipal.ANONYMOUS``: every user without authentication."""

UNLIMITED = (1 << 63) - 1
"""Bound of clients without a quota."""

_US_PER_PERCENT = SECOND // 100

_BY_CLIENT_ID = 1
_BY_USER = 2
_BY_USER_AND_CLIENT_ID = 4


@dataclass(frozen=True, slots=True)
class ClientQuotaConfig:
    """Settings, and client-ids of clients."""

    client_ids: Mapping[str, str] = field(default_factory=dict)
    """By printed name; others, as brokers, have no quota."""
    samples: int = 11
    """``quota.window.num``."""
    window_ms: int = 1_000
    """``quota.window.size.seconds``."""
    mutes: bool = True
    """True if it answers at once and mutes the connection (KIP-219, since 2.0); else the response
    waits."""


@dataclass(frozen=True, slots=True)
class Throttle:
    """Throttling of a response."""

    answer_after_us: Micros
    """Delay of the response."""
    unmute_after_us: Micros
    """Least delay of the connection's next request."""
    throttle_time_us: Micros
    """``throttle_time_ms`` for the client to honour; 0: none."""
    quota: str
    """Name of the quota with the longest throttling."""
    client_id: str


class QuotaManager:
    """One kind of quota: rates of entities, and their bounds.

    Args:
        samples: ``quota.window.num``.
        window_ms: ``quota.window.size.seconds``.
        scale: Units of counted values in a quota's value of one.
        bounded: True if throttling is limited to one sample's length.
    """

    def __init__(
        self, samples: int, window_ms: int, *, scale: int = 1, bounded: bool = False
    ) -> None:
        self._samples = samples
        self._window_ms = window_ms
        self._scale = scale
        self._longest_ms = window_ms if bounded else UNLIMITED
        self._quotas: dict[QuotaEntity, float] = {}
        self._levels = 0
        self._rates: dict[tuple[str, str], SampledRate] = {}

    @property
    def enabled(self) -> bool:
        """True if there are quotas: values are counted only then, and then for every client."""
        return self._levels != 0

    def update(self, quotas: dict[QuotaEntity, float]) -> None:
        """Sets all quotas of this kind."""
        self._quotas = quotas
        self._levels = 0
        for entity in quotas:
            kinds = [kind for kind, _ in entity]
            if "user" not in kinds:
                self._levels |= _BY_CLIENT_ID
            elif "client-id" not in kinds:
                self._levels |= _BY_USER
            else:
                self._levels |= _BY_USER_AND_CLIENT_ID

    def sharers(self, user: str, client_id: str) -> tuple[str, str]:
        """User and client-id under which a client is counted; "" for any.

        With quotas on one level only every client is counted on that level, with more on that of
        the most specific quota of the client.

        Source: ``ClientQuotaManager.DefaultQuotaCallback.quotaMetricTags``.
        """
        levels, quotas = self._levels, self._quotas
        if levels in (0, _BY_CLIENT_ID):
            return "", client_id
        if levels == _BY_USER:
            return user, ""
        if levels == _BY_USER_AND_CLIENT_ID:
            return user, client_id
        for name in (user, None):
            for of in (client_id, None):
                if (("user", name), ("client-id", of)) in quotas:
                    return user, client_id
            if (("user", name),) in quotas:
                return user, ""
        return "", client_id

    def bound(self, sharers: tuple[str, str]) -> float:
        """Bound of those who share a rate, per second, in the unit of counted values."""
        for entity in _entities(*sharers):
            found = self._quotas.get(entity)
            if found is not None:
                return found * self._scale
        return UNLIMITED

    def burst(self, user: str, client_id: str) -> int:
        """Size above which a single response is throttled in any case."""
        bound = self.bound(self.sharers(user, client_id))
        return int(bound * ((self._samples - 1) * self._window_ms // MS_PER_S))

    def record(self, user: str, client_id: str, value: int, now_ms: int) -> int:
        """Counts a value.

        Returns:
            Throttle time in milliseconds.
        """
        sharers = self.sharers(user, client_id)
        rate = self._rate(sharers)
        rate.record(value, now_ms)
        bound, found = self.bound(sharers), rate.full_rate(now_ms)
        if found <= bound:
            return 0
        wait = math.floor((found - bound) / bound * rate.full_window_ms(now_ms) + 0.5)
        return min(wait, self._longest_ms)

    def count(self, user: str, client_id: str, value: int, now_ms: int) -> None:
        """Counts a value, or takes a negative one back, without throttling."""
        self._rate(self.sharers(user, client_id)).record(value, now_ms)

    def _rate(self, sharers: tuple[str, str]) -> SampledRate:
        rate = self._rates.get(sharers)
        if rate is None:
            rate = self._rates[sharers] = SampledRate(self._samples, self._window_ms)
        return rate


def _entities(user: str, client_id: str) -> tuple[QuotaEntity, ...]:
    """Entities of possible quotas, the most specific first."""
    if user and client_id:
        return tuple(
            (("user", name), ("client-id", of)) for name in (user, None) for of in (client_id, None)
        )
    kind, name = ("user", user) if user else ("client-id", client_id)
    return ((kind, name),), ((kind, None),)


@dataclass(slots=True)
class _Call:
    client_id: str
    request: Request
    size: Bytes
    thread_us: Micros
    bytes_ms: int = 0
    """Throttle time of a fetch's bytes."""
    request_ms: int = -1
    """Throttle time of the handlers' time; -1: not computed yet."""


class ClientQuotas:
    """All client quotas of one broker, request by request."""

    def __init__(self, config: ClientQuotaConfig) -> None:
        samples, window_ms = config.samples, config.window_ms
        self._config = config
        self.produce = QuotaManager(samples, window_ms)
        self.fetch = QuotaManager(samples, window_ms)
        self.request = QuotaManager(samples, window_ms, scale=_US_PER_PERCENT, bounded=True)
        self._calls: dict[int, _Call] = {}

    def update(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """Applies quotas of the cluster's metadata."""
        for name, manager in (
            ("producer_byte_rate", self.produce),
            ("consumer_byte_rate", self.fetch),
            ("request_percentage", self.request),
        ):
            manager.update({e: values[name] for e, values in quotas.items() if name in values})

    def begin(
        self, token: int, client: str, request: Request, size: Bytes, thread_us: Micros
    ) -> None:
        """Begins a request's decision, after so much handler time."""
        client_id = self._config.client_ids.get(client)
        if client_id is not None:
            self._calls[token] = _Call(client_id, request, size, thread_us)

    def fetch_bytes_max(self, client: str) -> Bytes:
        """Limit of a response's bytes of records for the client."""
        client_id = self._config.client_ids.get(client)
        if client_id is None or not self.fetch.enabled:
            return UNLIMITED
        return self.fetch.burst(USER, client_id)

    def holds_back(self, token: int, size: Bytes, now: Micros) -> bool:
        """Counts the bytes of a fetch response; true if the client gets none for now.

        Withheld bytes are not counted.
        """
        call = self._calls.get(token)
        if call is None or not self.fetch.enabled:
            return False
        now_ms = ms_of(now)
        call.bytes_ms = self.fetch.record(USER, call.client_id, size, now_ms)
        if not self._config.mutes:
            return False
        if call.bytes_ms == 0 and self._request_ms(call, now_ms) == 0:
            return False
        self.fetch.count(USER, call.client_id, -size, now_ms)
        return True

    def answered(self, token: int, network_us: Micros, now: Micros) -> Throttle | None:
        """Counts a response's network time; ``None``: not throttled."""
        call = self._calls.pop(token, None)
        if call is None:
            return None
        now_ms = ms_of(now)
        request_ms = self._request_ms(call, now_ms)
        bytes_ms, quota = call.bytes_ms, "consumer_byte_rate"
        if type(call.request) is ProduceRequest and self.produce.enabled:
            quota = "producer_byte_rate"
            bytes_ms = self.produce.record(USER, call.client_id, call.size, now_ms)
        if self.request.enabled:
            self.request.count(USER, call.client_id, network_us, now_ms)
        wait = max(bytes_ms, request_ms) * MS
        if wait == 0:
            return None
        if bytes_ms <= request_ms:
            quota = "request_percentage"
        if self._config.mutes:
            return Throttle(0, wait, wait, quota, call.client_id)
        return Throttle(wait, wait, 0, quota, call.client_id)

    def _request_ms(self, call: _Call, now_ms: int) -> int:
        """Counts the handlers' time, once; acks=0 requests are exempt."""
        if call.request_ms < 0:
            request = call.request
            is_exempt = type(request) is ProduceRequest and request.acks == 0
            call.request_ms = 0
            if self.request.enabled and not is_exempt:
                call.request_ms = self.request.record(USER, call.client_id, call.thread_us, now_ms)
        return call.request_ms
