"""Connection quotas on one broker: their number, and the rate of new ones.

Each listener has one acceptor, which accepts connections one after the other. It waits while new
ones come faster than the broker's rate allows, or while the broker is at its limit; later ones wait
in the backlog. A connection from an address that opens too many a second is closed after a while
instead of being served, and one from an address at its limit is closed at once. Other brokers and
the controllers use a listener of their own, which is protected: neither limit nor rate of the
broker applies to it, and if it takes a connection above the limit, the longest idle client is
closed.

Left out: limits of single listeners; controllers' listeners have none.

Source: KIP-402, KIP-612; ``kafka.network.{ConnectionQuotas,Acceptor,Processor}``.
"""

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from sim.protocol.metadata.image import QuotaEntity
from sim.protocol.quotas.rate import SampledRate, ms_of
from sim.units import MS, NEVER, Micros

CREATION_RATE = "connection_creation_rate"
"""Quota of an address."""

UNLIMITED = (1 << 31) - 1
"""``Integer.MAX_VALUE``: no limit."""


@dataclass(frozen=True, slots=True)
class ConnectionQuotaConfig:
    """Settings, with Kafka's defaults."""

    max_connections: int = UNLIMITED
    """``max.connections``."""
    max_per_address: int = UNLIMITED
    """``max.connections.per.ip``."""
    overrides: Mapping[str, int] = field(default_factory=dict)
    """``max.connections.per.ip.overrides``, by the name of a host."""
    creation_rate: int = UNLIMITED
    """``max.connection.creation.rate``: a second."""
    samples: int = 11
    """``quota.window.num``."""
    window_ms: int = 1_000
    """``quota.window.size.seconds``; no acceptor waits longer for a rate."""


# -- effects --------------------------------------------------------------------------------------


class AcceptConnection(NamedTuple):
    """Serves the connection from now on."""

    key: int


class DropConnection(NamedTuple):
    """Closes the connection at the instant, without serving it; or an idle client's."""

    key: int
    at: Micros
    quota: str
    """Name of the setting that is the reason."""


class Waited(NamedTuple):
    """A connection has waited so long for a rate of the broker."""

    key: int
    wait_us: Micros


class WakeAt(NamedTuple):
    """Calls :meth:`ConnectionQuotas.wake` again at the instant."""

    at: Micros


ConnectionEffect = AcceptConnection | DropConnection | Waited | WakeAt


# -- state ----------------------------------------------------------------------------------------


class _Arrived(NamedTuple):
    key: int
    address: str


@dataclass(slots=True)
class _Acceptor:
    """One listener."""

    protected: bool
    backlog: deque[_Arrived] = field(default_factory=deque)
    head: int = -1
    """The connection that is being accepted, already counted; -1: none."""
    until: Micros = 0
    """End of its wait for a rate."""


class ConnectionQuotas:
    """All connections of one broker's process; keys are the process's own numbers."""

    def __init__(self, config: ConnectionQuotaConfig) -> None:
        self._config = config
        self._clients = _Acceptor(protected=False)
        self._brokers = _Acceptor(protected=True)
        self._rate = SampledRate(config.samples, config.window_ms)
        self._address_rates: dict[str, SampledRate] = {}
        self._rate_of: dict[str | None, float] = {}
        self._held: dict[int, _Arrived] = {}
        """Served connections; those of clients in the order of their last request."""
        self._protected: dict[int, None] = {}
        self._count_of: dict[str, int] = {}

    @property
    def count(self) -> int:
        """Number of served connections."""
        return len(self._held)

    def update(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """Applies quotas of the cluster's metadata."""
        self._rate_of = {
            entity[0][1]: values[CREATION_RATE]
            for entity, values in quotas.items()
            if CREATION_RATE in values
        }

    def arrived(
        self, key: int, address: str, now: Micros, *, protected: bool
    ) -> list[ConnectionEffect]:
        """A connection has arrived in the backlog of a listener."""
        acceptor = self._brokers if protected else self._clients
        acceptor.backlog.append(_Arrived(key, address))
        return self.wake(now)

    def closed(self, key: int, now: Micros) -> list[ConnectionEffect]:
        """A connection was closed, served or not: another one may be accepted."""
        held = self._held.pop(key, None)
        self._protected.pop(key, None)
        for acceptor in (self._clients, self._brokers):
            waiting = [arrived for arrived in acceptor.backlog if arrived.key != key]
            acceptor.backlog = deque(waiting)
        if held is not None:
            self._count_of[held.address] -= 1
        return self.wake(now)

    def used(self, key: int) -> None:
        """A request came on a connection."""
        held = self._held.pop(key, None)
        if held is not None:
            self._held[key] = held

    def wake(self, now: Micros) -> list[ConnectionEffect]:
        """Accepts connections as far as possible; called again at times of :class:`WakeAt`."""
        out: list[ConnectionEffect] = []
        # A protected connection may take a client's place.
        for acceptor in (self._brokers, self._clients):
            self._take(acceptor, now, out)
        if self.count > self._config.max_connections:
            idle = next((key for key in self._held if key not in self._protected), None)
            if idle is not None:
                out.append(DropConnection(idle, now, "max.connections"))
        return out

    # -- internals ---------------------------------------------------------------------------------

    def _take(self, acceptor: _Acceptor, now: Micros, out: list[ConnectionEffect]) -> None:
        while acceptor.backlog:
            arrived = acceptor.backlog[0]
            if acceptor.head != arrived.key:
                acceptor.head = arrived.key
                wait = 0 if acceptor.protected else self._broker_wait_ms(now) * MS
                acceptor.until = now + wait
                if wait:
                    out.append(Waited(arrived.key, wait))
            if now < acceptor.until:
                out.append(WakeAt(acceptor.until))
                return
            if not acceptor.protected and self.count >= self._config.max_connections:
                return
            acceptor.backlog.popleft()
            acceptor.head = -1
            self._admit(arrived, now, out, protected=acceptor.protected)

    def _admit(
        self, arrived: _Arrived, now: Micros, out: list[ConnectionEffect], *, protected: bool
    ) -> None:
        key, address = arrived
        wait_ms = self._address_wait_ms(address, now)
        if wait_ms:
            if not protected:
                self._rate.record(-1, ms_of(now))
            out.append(DropConnection(key, now + wait_ms * MS, CREATION_RATE))
            return
        most = self._config.overrides.get(address, self._config.max_per_address)
        if self._count_of.get(address, 0) >= most:
            out.append(DropConnection(key, now, "max.connections.per.ip"))
            return
        self._count_of[address] = self._count_of.get(address, 0) + 1
        self._held[key] = arrived
        if protected:
            self._protected[key] = None
        out.append(AcceptConnection(key))

    def _broker_wait_ms(self, now: Micros) -> int:
        return self._recorded(self._rate, self._config.creation_rate, now)

    def _address_wait_ms(self, address: str, now: Micros) -> int:
        bound = self._rate_of.get(address, self._rate_of.get(None, UNLIMITED))
        if bound >= UNLIMITED:
            return 0
        rate = self._address_rates.get(address)
        if rate is None:
            rate = SampledRate(self._config.samples, self._config.window_ms)
            self._address_rates[address] = rate
        wait = self._recorded(rate, bound, now)
        if wait:
            rate.record(-1, ms_of(now))
        return wait

    def _recorded(self, rate: SampledRate, bound: float, now: Micros) -> int:
        """Counts a connection; returns its wait in milliseconds."""
        now_ms = ms_of(now)
        rate.record(1, now_ms)
        found = rate.full_rate(now_ms)
        if found <= bound:
            return 0
        wait = math.floor((found - bound) / bound * rate.full_window_ms(now_ms) + 0.5)
        return min(wait, self._config.window_ms)


def first_wake(effects: list[ConnectionEffect]) -> Micros:
    """Earliest instant of :class:`WakeAt`; NEVER without one."""
    return min([effect.at for effect in effects if isinstance(effect, WakeAt)], default=NEVER)
