"""Menu of what can go wrong in a scenario: kinds of faults, and values of each of their keys.

It is made of the kinds' own classes, so a kind that comes later is on it. Left out are operations
of an administrator, unless they are named: what they do is intended.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeVar

from sim.errors import SimulationError
from sim.faults.disks import DISK_FAULTS
from sim.faults.fault import Fault, Key
from sim.faults.hosts import HOST_FAULTS
from sim.faults.links import LINK_FAULTS
from sim.faults.process import PROCESS_FAULTS
from sim.faults.registry import KINDS
from sim.faults.replicas import REPLICA_FAULTS
from sim.hunting.search.points import Point
from sim.rng import Stream
from sim.scenario.scenario import Scenario
from sim.scenario.text.problems import nearest
from sim.scenario.text.quantities import show_bandwidth, show_duration
from sim.units import MS, SECOND, Micros

T = TypeVar("T")

Strike: TypeAlias = dict[str, Any]
"""An entry of ``faults:``."""

_FAMILIES: Final = (
    *(PROCESS_FAULTS, PROCESS_FAULTS, PROCESS_FAULTS, LINK_FAULTS, LINK_FAULTS, LINK_FAULTS),
    *(HOST_FAULTS, HOST_FAULTS, DISK_FAULTS, REPLICA_FAULTS),
)
"""Families of faults; one that is named thrice is drawn thrice as often."""

_LENGTHS: Final[tuple[Micros, ...]] = (300 * MS, 1_500 * MS, 4 * SECOND, 15 * SECOND)
_WAITS: Final[tuple[Micros, ...]] = (MS, 10 * MS, 50 * MS, 200 * MS, 1_000 * MS)
_WHOLE: Final = (1, 2, 5, 20, 100, 2_000)
_RATIOS: Final = (0.05, 0.2, 0.5)
_BANDWIDTHS: Final = (20_000, 200_000, 2_000_000)
_NEARBY_US: Final[tuple[Micros, ...]] = (0, 1, 1, 1, 100, MS, 5 * MS, 50 * MS)
"""Distances from an instant that a machine has named."""
_FIRST_US: Final[Micros] = SECOND
"""Clients have begun by then."""
_LATEST: Final = 70
"""Percent of the workload after which no fault begins."""


class Menu:
    """Faults that can be drawn for a scenario.

    Args:
        scenario: Whose servers, clients and partitions they hit.
        kinds: Names of kinds; empty for all that go wrong.
        messages: Kinds of message that its machines send.

    Raises:
        SimulationError: For a kind that is not known, or cannot be drawn.
    """

    def __init__(
        self, scenario: Scenario, kinds: Sequence[str] = (), messages: Sequence[str] = ()
    ) -> None:
        cluster = scenario.cluster
        self._is_combined = cluster.combined
        self._messages = tuple(messages)
        self._run_us = scenario.run.for_us
        self._brokers = [broker.name for broker in cluster.brokers]
        roles = [
            f"{role} of {topic.name}-{number}"
            for topic in scenario.topics
            for number in range(topic.partitions)
            for role in ("leader", "follower")
        ]
        self._partitions = [
            f"{topic.name}-{number}"
            for topic in scenario.topics
            for number in range(topic.partitions)
        ]
        others = [server.name for server in (*cluster.controllers, *cluster.zookeepers)]
        self._ones = [*roles, *self._brokers]
        self._servers = [*roles, *roles, *self._brokers, *dict.fromkeys(others)]
        self._servers += ["controller leader", "all brokers"]
        self._servers += [f"rack {rack}" for rack in cluster.racks if len(cluster.racks) > 1]
        self._producers = list(scenario.producer_names)
        self._consumers = list(scenario.consumer_names)
        turns = range(len(self._brokers))
        self._by_form: dict[str, Sequence[object]] = {
            "side": [*self._servers, *self._producers, *self._consumers],
            "messages": self._messages,
            "requests": [name for name in self._messages if name.endswith("Request")],
            "duration": [show_duration(wait) for wait in _WAITS],
            "ratio": _RATIOS,
            "flag": (True, False),
            "bandwidth": [show_bandwidth(each) for each in _BANDWIDTHS],
            "partition": self._partitions,
            "replica": self._partitions,
            "brokers": [[*self._brokers[n:], *self._brokers[:n]][:3] for n in turns],
        }
        self._families = self._chosen(kinds)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds that can be drawn, each once."""
        return tuple(dict.fromkeys(kind.kind for family in self._families for kind in family))

    def draw(self, stream: Stream) -> Strike:
        """A fault of any kind, at any instant."""
        return self.of_kind(self._kind(stream), stream)

    def aimed(self, point: Point, stream: Stream) -> Strike:
        """A fault near an instant that a machine has named, mostly on the server that did."""
        strike = self.of_kind(self._kind(stream), stream)
        strike["at"] = show_duration(max(point.at_us + _pick(_NEARBY_US, stream), 0))
        self._fit(strike)
        for key in ("target", "between", "from"):
            # A kind on one broker takes no controller: such a draw is refused by the loader.
            if key in strike and stream.unit() < 0.8:
                strike[key] = point.node
                break
        return strike

    def of_kind(self, kind: type[Fault], stream: Stream) -> Strike:
        """A fault of a kind, at any instant."""
        last = self._run_us * _LATEST // 100
        at = stream.between(min(_FIRST_US, last) // MS, last // MS) * MS
        strike: Strike = {"at": show_duration(at), "do": kind.kind}
        keys = kind.keys()
        alternatives = [key for key in keys.values() if key.name in kind.alternatives]
        alternatives = [key for key in alternatives if self._values(kind, key)]
        chosen = _pick(alternatives, stream).name if alternatives else ""
        for name, key in keys.items():
            if key.name in kind.alternatives:
                is_given = key.name == chosen
            else:
                is_given = _is_required(kind, name) or stream.unit() < 0.3
            values = self._values(kind, key) if is_given else ()
            if values:
                strike[key.name] = _pick(values, stream)
        if kind.span == "lasting" and stream.unit() < 0.85:
            strike["for"] = show_duration(_pick(_LENGTHS, stream))
        self._fit(strike)
        return strike

    def length(self, stream: Stream) -> str:
        """A duration of a fault."""
        return show_duration(_pick(_LENGTHS, stream))

    def kind_of(self, strike: Mapping[str, Any]) -> type[Fault]:
        """The class of a fault."""
        return KINDS[str(strike["do"])]

    def _fit(self, strike: Strike) -> None:
        """Shorten a fault that would last longer than the run."""
        at, lasts = micros(strike["at"]), strike.get("for")
        if lasts is not None and at + micros(lasts) > self._run_us:
            left = (self._run_us - at) // MS * MS
            if left > 0:
                strike["for"] = show_duration(left)
            else:
                del strike["for"]

    def _kind(self, stream: Stream) -> type[Fault]:
        return _pick(_pick(self._families, stream), stream)

    def _chosen(self, kinds: Sequence[str]) -> list[list[type[Fault]]]:
        for name in kinds:
            if name not in KINDS:
                hint = nearest(name, tuple(KINDS))
                raise SimulationError(
                    f"--kinds: found {name!r}; allowed: {', '.join(KINDS)}"
                    f"{f'; {hint}' if hint else ''}"
                )
            if not self._is_drawable(KINDS[name]):
                raise SimulationError(
                    f"--kinds: {name} needs what no search can draw for this scenario; allowed: "
                    "others; add it to faults: of the scenario instead"
                )
        if kinds:
            return [[KINDS[name] for name in dict.fromkeys(kinds)]]
        found = [[kind for kind in family if self._is_drawable(kind)] for family in _FAMILIES]
        return [family for family in found if family]

    def _is_drawable(self, kind: type[Fault]) -> bool:
        keys = kind.keys()
        alternatives = [key for key in keys.values() if key.name in kind.alternatives]
        if alternatives and not any(self._values(kind, key) for key in alternatives):
            return False
        return all(
            self._values(kind, key)
            for name, key in keys.items()
            if _is_required(kind, name) and key.name not in kind.alternatives
        )

    def _values(self, kind: type[Fault], key: Key) -> Sequence[object]:
        """Values of a key; none if none can be drawn."""
        match key.form:
            case "targets" | "target":
                return self._targets(kind)
            case "whole":
                low, high = key.low or 0, key.high if key.high is not None else _WHOLE[-1]
                return [number for number in _WHOLE if low <= number <= high]
            case "word":
                return key.words
            case form:
                return self._by_form.get(form, ())

    def _targets(self, kind: type[Fault]) -> Sequence[str]:
        if kind.takes_copies:
            # A voter of a static quorum must not lose its disk: Kafka promises nothing then.
            return self._ones if not self._is_combined else ()
        match kind.hits:
            case "process":
                return [*self._servers, *self._producers, *self._consumers]
            case "server":
                return self._servers
            case "replica":
                return self._ones
            case "producer":
                return self._producers
            case "consumer":
                return self._consumers
            case _:
                return ()


def micros(text: object) -> Micros:
    """Microseconds of an instant or a duration that the menu has written."""
    word = str(text)
    for unit, factor in (("us", 1), ("ms", MS), ("s", SECOND)):
        if word.endswith(unit) and word.removesuffix(unit).isdecimal():
            return int(word.removesuffix(unit)) * factor
    raise AssertionError(f"{word!r} is no time that the menu writes")


def _is_required(kind: type[Fault], name: str) -> bool:
    return kind.__dataclass_fields__[name].default is _MISSING


_MISSING: Final = Fault.__dataclass_fields__["index"].default


def _pick(values: Sequence[T], stream: Stream) -> T:
    return values[stream.below(len(values))]
