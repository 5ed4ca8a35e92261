"""Menu of what can go wrong in a scenario: kinds of faults, and values of each of their keys.

It is made of the kinds' own classes, so a kind that comes later is on it. Left out are operations
of an administrator, unless they are named: what they do is intended.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, Final, TypeAlias, TypeVar

from sim.errors import SimulationError
from sim.faults.disks import DISK_FAULTS
from sim.faults.fault import Fault, Key
from sim.faults.hosts import HOST_FAULTS, PowerLoss
from sim.faults.links import LINK_FAULTS, NetworkPartition
from sim.faults.process import PROCESS_FAULTS, ControlledShutdown, Crash
from sim.faults.registry import KINDS
from sim.faults.replicas import REPLICA_FAULTS
from sim.hunting.search.nearness import NEAR
from sim.hunting.search.points import Point
from sim.hunting.search.prior import Choice, Targets, Times, alike, choice
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

_OFTEN: Final = 3
"""Factor by which a kind is drawn more often that takes a server away, or cuts it off."""

_TAKES: Final = 0.6
"""Share of aims at the last copy with a kind that takes a server or its data away."""

_MEETS: Final = 0.5
"""Share of later faults that hit whom one before them hits, or, half of them, whom it has left."""

_WAITS: Final[tuple[Micros, ...]] = (MS, 10 * MS, 50 * MS, 200 * MS, 1_000 * MS, 3_000 * MS)
_WHOLE: Final = (1, 2, 5, 20, 100, 2_000)
_RATIOS: Final = (0.05, 0.2, 0.5)
_BANDWIDTHS: Final = (20_000, 200_000, 2_000_000)
_NEARBY_US: Final[tuple[Micros, ...]] = (0, 1, 1, 1, 100, MS, 5 * MS, 50 * MS)
"""Distances from an instant that a machine has named."""
_TAKEN_DOWN: Final = (Crash, ControlledShutdown, PowerLoss)
"""Kinds after which a process does not run until they are healed."""
_NEEDS_RUNNING: Final = (*PROCESS_FAULTS, *LINK_FAULTS)
"""Kinds that can have no effect on processes that do not run."""


class Menu:
    """Faults that can be drawn for a scenario.

    Args:
        scenario: Whose servers, clients and partitions they hit.
        kinds: Names of kinds; empty for all that go wrong.
        messages: What its machines send, as ``SENDER KIND RECEIVER``.

    Raises:
        SimulationError: For a kind that is not known, or cannot be drawn.
    """

    def __init__(
        self, scenario: Scenario, kinds: Sequence[str] = (), messages: Sequence[str] = ()
    ) -> None:
        cluster = scenario.cluster
        self._is_combined = cluster.combined
        self._routes: dict[str, list[tuple[str, str]]] = {}
        for route in messages:
            sender, kind, receiver = route.split()
            self._routes.setdefault(kind, []).append((sender, receiver))
        self._targets_of = Targets(scenario)
        self._times = Times(scenario)
        self._brokers = [broker.name for broker in cluster.brokers]
        self._stops: dict[str, Micros] = {
            name: each.stop_us for each in scenario.producers for name in each.client_names
        }
        for reader in scenario.consumers:
            if reader.stop_us is not None:
                self._stops |= dict.fromkeys(reader.client_names, reader.stop_us)
        turns = range(len(self._brokers))
        partitions = alike(self._targets_of.partitions)
        self._by_form: dict[str, Choice] = {
            "side": self._targets_of.any,
            "messages": alike(self._routes),
            "requests": alike(name for name in self._routes if name.endswith("Request")),
            "duration": alike(show_duration(wait) for wait in _WAITS),
            "ratio": alike(_RATIOS),
            "flag": alike((True, False)),
            "bandwidth": alike(show_bandwidth(each) for each in _BANDWIDTHS),
            "partition": partitions,
            "replica": partitions,
            "brokers": alike([*self._brokers[n:], *self._brokers[:n]][:3] for n in turns),
        }
        self._families = self._chosen(kinds)
        every = dict.fromkeys(kind for family in self._families for kind in family)
        self._taking = [kind for kind in every if kind.outage or kind.takes_copies]

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds that can be drawn, each once."""
        return tuple(dict.fromkeys(kind.kind for family in self._families for kind in family))

    def draw(self, stream: Stream) -> Strike:
        """A fault of any kind, at any instant."""
        return self.of_kind(self._kind(stream), stream)

    def following(self, before: Sequence[Strike], stream: Stream) -> Strike:
        """A fault of any kind that meets one of those before it; with none before, at any time."""
        strike = self.draw(stream)
        if before:
            other = _pick(before, stream)
            began, ended = self._span(other)
            strike["at"] = show_duration(self._times.follow(began, ended, stream))
            self._meet(strike, other, stream)
            self._fit(strike)
        return strike

    def _meet(self, strike: Strike, other: Strike, stream: Stream) -> None:
        """Put a fault, in some draws, on whom another one hits, or on whom that one has left."""
        chance = stream.unit()
        mine, its = _side(strike), _side(other)
        if chance >= _MEETS or not mine or not its:
            return
        target = other[its]
        left = self._left_by(target)
        if left and chance < _MEETS / 2:
            target = left[0] if len(left) == 1 else left
        kind = self.kind_of(strike)
        key = next(key for key in kind.keys().values() if key.name == mine)
        if target in self._values(kind, key):
            strike[mine] = deepcopy(target)

    def _left_by(self, target: object) -> list[str]:
        """Brokers that a target of some of them by name leaves; none for any other target."""
        names = target if isinstance(target, list) else [target]
        if not set(names) <= set(self._brokers):
            return []
        return [name for name in self._brokers if name not in names]

    def is_idle(self, strikes: Sequence[Strike]) -> bool:
        """True if one of them can have no effect: all whom it is to hit are down, or have ended."""
        return any(self._meets_nothing(strike, strikes) for strike in strikes)

    def _meets_nothing(self, strike: Strike, strikes: Sequence[Strike]) -> bool:
        key = "target" if "target" in strike else "between"
        if not issubclass(self.kind_of(strike), _NEEDS_RUNNING) or key not in strike:
            return False
        names, (at, until) = self._names(strike[key]), self._span(strike)
        if not names:
            return False
        if all(at >= self._stops.get(name, at + 1) for name in names):
            return True
        down: list[str] = []
        for other in strikes:
            began, ended = self._span(other)
            if other is strike or not issubclass(self.kind_of(other), _TAKEN_DOWN):
                continue
            if began < at and until <= ended and not _has_role(other["target"]):
                down += self._names(other["target"])
        return set(names) <= set(down)

    def _names(self, target: object) -> list[str]:
        """Names among which a target lies; none if they are not known before a run."""
        names: list[str] = []
        for word in map(str, target if isinstance(target, list) else [target]):
            if word == "all brokers" or word.startswith(("leader of", "follower of")):
                names += self._brokers
            elif " " in word:
                return []
            else:
                names.append(word)
        return names

    def _span(self, strike: Strike) -> tuple[Micros, Micros]:
        """Its instant, and that at which it is healed."""
        at = micros(strike["at"])
        if "for" in strike:
            return at, at + micros(strike["for"])
        is_lasting = self.kind_of(strike).span == "lasting"
        return at, max(self._times.run_us, at) if is_lasting else at

    def aimed(self, point: Point, stream: Stream) -> Strike:
        """A fault near an instant that a machine has named, mostly on the server that did."""
        kind = self._kind(stream)
        if point.name in NEAR and self._taking and stream.unit() < _TAKES:
            kind = _pick(self._taking, stream)
        strike = self.of_kind(kind, stream)
        # What has few copies has them until something heals: it is met later, too.
        is_lasting = point.name in NEAR and stream.unit() < 0.5
        away = self._times.soon(stream) if is_lasting else _pick(_NEARBY_US, stream)
        strike["at"] = show_duration(max(point.at_us + away, 0))
        self._fit(strike)
        for key in ("target", "between", "from"):
            # A kind on one broker takes no controller: such a draw is refused by the loader. What
            # the loader takes and Kafka promises nothing for is not drawn at an aim either.
            if key in strike and stream.unit() < 0.8:
                if not kind.takes_copies or point.node in self._targets(kind):
                    strike[key] = point.node
                break
        return strike

    def of_kind(self, kind: type[Fault], stream: Stream) -> Strike:
        """A fault of a kind, at any instant."""
        strike: Strike = {"at": show_duration(self._times.begin(stream)), "do": kind.kind}
        keys = kind.keys()
        alternatives = [key for key in keys.values() if key.name in kind.alternatives]
        alternatives = [key for key in alternatives if self._values(kind, key)]
        chosen = _pick(alternatives, stream).name if alternatives else ""
        for name, key in keys.items():
            if key.name in kind.alternatives:
                is_given = key.name == chosen
            else:
                often = 0.5 if key.name == "and" else 0.3
                is_given = _is_required(kind, name) or stream.unit() < often
            values = self._values(kind, key) if is_given else None
            if values:
                strike[key.name] = deepcopy(values.pick(stream))
        if "message" in strike and "from" in strike:
            self._send(strike, stream)
        if kind.span == "lasting" and stream.unit() < 0.85:
            strike["for"] = self.length(stream)
        self._fit(strike)
        return strike

    def _send(self, strike: Strike, stream: Stream) -> None:
        """Put a fault of messages where that kind of message is sent."""
        sender, receiver = _pick(self._routes[str(strike["message"])], stream)
        leaders = [f"leader of {name}" for name in self._targets_of.partitions]
        for key, name in (("from", sender), ("to", receiver)):
            if key not in strike:
                continue
            is_broker = name in self._brokers
            others = [*leaders, "all brokers"] if is_broker else []
            strike[key] = choice((1, [name]), (1, others)).pick(stream)

    def length(self, stream: Stream) -> str:
        """A duration of a fault."""
        return show_duration(self._times.length(stream))

    def kind_of(self, strike: Mapping[str, Any]) -> type[Fault]:
        """The class of a fault."""
        return KINDS[str(strike["do"])]

    def _fit(self, strike: Strike) -> None:
        """Shorten a fault that would last longer than the run."""
        at, lasts = micros(strike["at"]), strike.get("for")
        if lasts is not None and at + micros(lasts) > self._times.run_us:
            left = (self._times.run_us - at) // MS * MS
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
        found = [
            [
                kind
                for kind in family
                if self._is_drawable(kind)
                for _ in range(_OFTEN if kind.outage or kind is NetworkPartition else 1)
            ]
            for family in _FAMILIES
        ]
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

    def _values(self, kind: type[Fault], key: Key) -> Choice:
        """Values of a key; none if none can be drawn."""
        match key.form:
            case "targets" | "target":
                return self._targets(kind)
            case "side" if key.name == "and":
                return self._targets_of.peers
            case "whole":
                low, high = key.low or 0, key.high if key.high is not None else _WHOLE[-1]
                return alike(number for number in _WHOLE if low <= number <= high)
            case "word":
                return alike(key.words)
            case form:
                return self._by_form.get(form, _NOTHING)

    def _targets(self, kind: type[Fault]) -> Choice:
        some = self._targets_of
        if kind.takes_copies:
            # A voter of a static quorum must not lose its disk: Kafka promises nothing then.
            return some.one if not self._is_combined else _NOTHING
        by_hits = {
            "process": some.any, "server": some.servers, "replica": some.one,
            "producer": some.producers, "consumer": some.consumers,
        }  # fmt: skip
        return by_hits.get(kind.hits, _NOTHING)


def _side(strike: Strike) -> str:
    """The key under which a fault names whom it hits; empty for one of messages."""
    return next((key for key in ("target", "between") if key in strike), "")


def _has_role(target: object) -> bool:
    """True if only the running cluster knows whom a target names."""
    words = target if isinstance(target, list) else [target]
    return any(" of " in str(word) for word in words)


def micros(text: object) -> Micros:
    """Microseconds of an instant or a duration that the menu has written."""
    word = str(text)
    for unit, factor in (("us", 1), ("ms", MS), ("s", SECOND)):
        if word.endswith(unit) and word.removesuffix(unit).isdecimal():
            return int(word.removesuffix(unit)) * factor
    raise AssertionError(f"{word!r} is no time that the menu writes")


def _is_required(kind: type[Fault], name: str) -> bool:
    return kind.__dataclass_fields__[name].default is _MISSING


_NOTHING: Final = Choice(())
_MISSING: Final = Fault.__dataclass_fields__["index"].default


def _pick(values: Sequence[T], stream: Stream) -> T:
    return values[stream.below(len(values))]
