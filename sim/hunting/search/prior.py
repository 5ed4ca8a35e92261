"""Prior of draws: failures of a data centre come together, and so do those that are drawn.

Hosts share racks, power and switches; the second failure is met while the first one lasts, or soon
after it; and how long one lasts matters where a timer of the cluster ends: a session, the lag of a
replica, a request.

Source: D. Ford et al., "Availability in Globally Distributed Storage Systems" (OSDI 2010), for
bursts of failures that share a domain; P. Alvaro et al. and Jepsen's nemeses for faults that are
laid upon one another; the failure catalogue's own files.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from sim.rng import Stream
from sim.scenario.scenario import Scenario
from sim.units import MS, SECOND, Micros

LENGTHS: Final[tuple[Micros, ...]] = (300 * MS, 1_500 * MS, 4 * SECOND, 15 * SECOND)
"""Durations that are no timer's."""

_BY_TIMER: Final = 0.6
"""Share of durations that are made of a timer."""

_BROKER_TIMERS: Final = (
    "broker.session.timeout.ms",
    "replica.lag.time.max.ms",
    "controller.quorum.fetch.timeout.ms",
)
_CLIENT_TIMERS: Final = (
    "request.timeout.ms",
    "session.timeout.ms",
    "transaction.timeout.ms",
    "max.poll.interval.ms",
)


@dataclass(frozen=True, slots=True)
class Choice:
    """Values in groups: a group is drawn by its weight, a value of it with the others alike."""

    groups: tuple[tuple[int, tuple[object, ...]], ...]

    def __bool__(self) -> bool:
        return bool(self.groups)

    def __contains__(self, value: object) -> bool:
        return any(value in values for _, values in self.groups)

    def pick(self, stream: Stream) -> object:
        """A value."""
        left = stream.below(sum(weight for weight, _ in self.groups))
        for weight, values in self.groups:
            if left < weight:
                return values[stream.below(len(values))]
            left -= weight
        raise AssertionError("less than the sum of the weights is drawn")


def choice(*groups: tuple[int, Iterable[object]]) -> Choice:
    """A choice of those groups that have values."""
    filled = ((weight, tuple(values)) for weight, values in groups)
    return Choice(tuple((weight, values) for weight, values in filled if values and weight))


def alike(values: Iterable[object]) -> Choice:
    """A choice among values, each as likely."""
    return choice((1, values))


class Targets:
    """Servers and clients of a scenario, weighted as what fails together.

    Args:
        scenario: Whose servers, clients and partitions are hit.
    """

    def __init__(self, scenario: Scenario) -> None:
        cluster = scenario.cluster
        brokers = [broker.name for broker in cluster.brokers]
        controllers = [server.name for server in cluster.controllers]
        others = [*dict.fromkeys([*controllers, *(z.name for z in cluster.zookeepers)])]
        self.partitions = [f"{t.name}-{n}" for t in scenario.topics for n in range(t.partitions)]
        leaders = [f"leader of {name}" for name in self.partitions]
        followers = [f"follower of {name}" for name in self.partitions]
        racks = [f"rack {rack}" for rack in cluster.racks if len(cluster.racks) > 1]
        all_but_one = [[b for b in brokers if b != one] for one in brokers if len(brokers) > 2]
        ones = ((28, leaders), (14, followers), (20, brokers))
        together: tuple[tuple[int, Sequence[object]], ...] = (
            (9, ["all brokers"]),
            (18, all_but_one),
            (9, racks),
        )
        controlling = ((6, ["controller leader"]), (5, others), (6, _coordinators(scenario)))
        self.producers = alike(scenario.producer_names)
        self.consumers = alike(scenario.consumer_names)
        apps = [name for each in scenario.processors for name in each.client_names]
        clients = ((8, scenario.producer_names), (8, scenario.consumer_names), (16, apps))
        self.one = choice(*ones)
        """One broker, by its name or by what it does for a partition."""
        self.servers = choice(*ones, *together, *controlling)
        self.any = choice(*ones, *together, *controlling, *clients)
        """Servers and clients."""
        deposing = [["all brokers", *controllers]] if not cluster.combined and controllers else []
        self.peers = choice(
            (25, ["all brokers"]), (20, deposing), (15, others), (15, leaders), (10, brokers),
            *clients,
        )  # fmt: skip
        """Other sides of a link: a server that is cut from its peers alone still has clients."""


def _coordinators(scenario: Scenario) -> list[str]:
    """Roles of coordinators, by the groups and transactions of the scenario's clients."""
    groups = [each.group for each in scenario.consumers if each.group]
    groups += [each.group for each in scenario.processors]
    ids = [name for each in scenario.producers for name in each.transactional_ids]
    ids += [name for each in scenario.processors for name in each.transactional_ids]
    return [
        *dict.fromkeys(f"group coordinator of {name}" for name in groups),
        *dict.fromkeys(f"transaction coordinator of {name}" for name in ids[:1]),
    ]


class Times:
    """Instants and lengths of faults, in microseconds.

    Args:
        scenario: Whose timers they lie around.
    """

    FIRST: Final[Micros] = SECOND
    """Clients have begun by then."""
    _LATEST: Final = 70
    """Percent of the workload after which no first fault begins."""
    _LATEST_NEXT: Final = 95
    """The same of those that follow one."""
    _SOON: Final[Micros] = 200 * MS

    def __init__(self, scenario: Scenario) -> None:
        self.run_us: Micros = scenario.run.for_us
        brokers = scenario.cluster.config
        timers = [brokers.micros(name) for name in _BROKER_TIMERS]
        configs = [each.config for each in scenario.producers]
        configs += [each.config for each in scenario.consumers]
        configs += [each.consumer for each in scenario.processors]
        for config in configs:
            timers += [config.micros(name) for name in _CLIENT_TIMERS if name in config]
        self.timers = tuple(sorted({time for time in timers if 0 < time < self.run_us}))
        """Timers that can end within the workload."""

    def begin(self, stream: Stream) -> Micros:
        """An instant, whatever else happens."""
        last = self.run_us * self._LATEST // 100
        return stream.between(min(self.FIRST, last) // MS, last // MS) * MS

    def follow(self, began: Micros, ended: Micros, stream: Stream) -> Micros:
        """An instant at which another fault is about to begin, active, felt, or just healed."""
        chance = stream.unit()
        if chance < 0.2:
            return self.begin(stream)
        if chance < 0.35:
            at = began + stream.between(0, self._SOON // MS) * MS
        elif chance < 0.6 and self.timers:
            # What a timer does that began with the first fault: a session ends, an ISR shrinks.
            timer = self.timers[stream.below(len(self.timers))]
            at = began + timer * stream.between(100, 160) // 100 // MS * MS
        elif chance < 0.85:
            at = stream.between(began // MS, ended // MS) * MS + self.soon(stream)
        else:
            at = ended + stream.between(-self._SOON // MS, self._SOON // MS) * MS
        return max(min(at, self.run_us * self._LATEST_NEXT // 100 // MS * MS), 0)

    def soon(self, stream: Stream) -> Micros:
        """A time that is shorter than one of the timers, or than a second."""
        timer = self.timers[stream.below(len(self.timers))] if self.timers else SECOND
        return stream.between(0, timer // MS) * MS

    def length(self, stream: Stream) -> Micros:
        """A duration: around one of the timers, or of another order."""
        if self.timers and stream.unit() < _BY_TIMER:
            timer = self.timers[stream.below(len(self.timers))]
            return max(timer * stream.between(50, 250) // 100 // MS, 1) * MS
        return LENGTHS[stream.below(len(LENGTHS))]
