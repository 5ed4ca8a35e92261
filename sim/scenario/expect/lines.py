"""Entries of ``expect``: bounds for the whole run, or for a part of it.

An entry is a bound, or a mapping with the bound under ``is`` and with what it is about: ``topic``,
``partition``, ``group``, ``producer``, ``during``; or a list of such. ``divergence`` names pairs of
brokers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from sim.checking.scope import EVERYTHING, Scope
from sim.ids import server_name
from sim.scenario.expect.bounds import KEY_STATES, READERS, SHARING, VOCABULARY, parse
from sim.scenario.model.clients import ConsumerSpec, ProducerSpec
from sim.scenario.model.cluster import ClusterSpec
from sim.scenario.model.run import Expectation, RunModel
from sim.scenario.model.topics import TopicSpec
from sim.scenario.text.problems import Problem, gather, nearest, one_of
from sim.scenario.text.quantities import QuantityError, parse_bound, show_duration
from sim.units import LONG_AGO, NEVER

KEYS: Final = ("is", "topic", "partition", "group", "producer", "during")
"""Keys of an entry that is a mapping."""

_TIMED: Final = ("sent", "acked", "failed", "unknown", "lost_acked", "lag.max")
"""Counts of what has an instant; times have one anyway."""

_OF_GROUPS: Final = ("end_to_end.", "unavailable.fetch.", "lag.max")
_BY_READER: Final = tuple(name for name in READERS if name != "resurrected")
_OF_PRODUCERS: Final = (
    *("produce.", "end_to_end.", "unavailable.produce.", "throughput."),
    *("sent", "acked", "failed", "unknown", "lost_acked"),
)
_IN_WINDOWS: Final = ("quorum.", "controller.", "leader.epochs", "isr.min", "throughput.")
_OF_THE_WHOLE: Final = (
    "resurrected",
    "divergence",
    "replicas.spread",
    "leaders.spread",
    "consumers.ended",
    "heap.exhausted",
    "heap.used.max",
    "quorum.epochs",
    "controller.changes",
    *SHARING,
)


@dataclass(frozen=True, slots=True)
class Known:
    """Things that an expectation may be about."""

    cluster: ClusterSpec
    topics: Sequence[TopicSpec]
    consumers: Sequence[ConsumerSpec]
    run: RunModel
    producers: Sequence[ProducerSpec] = ()

    def lines(self, expect: Mapping[str, object]) -> tuple[Expectation, ...]:
        """Every line of ``expect``, in the order of the file.

        Raises:
            Problem: With a path below ``expect``.
        """
        found = gather(partial(self._entry, name, given) for name, given in expect.items())
        return tuple(line for lines in found for line in lines)

    def _entry(self, name: str, given: object) -> list[Expectation]:
        if name == "divergence":
            return self._pairs(given)
        if not isinstance(given, list):
            return [self._line(name, given)]
        if not given:
            raise Problem((name,), "an empty list", "bounds, or mappings with the key is")
        lines = []
        for place, each in enumerate(given):
            try:
                lines.append(self._line(name, each))
            except Problem as problem:
                raise Problem(
                    (name, place, *problem.path[1:]), problem.found, problem.allowed, problem.remedy
                ) from None
        return lines

    def _line(self, name: str, given: object) -> Expectation:
        if name == "offline.max" and self.cluster.replication == "raft":
            raise Problem(
                (name,),
                "offline.max with replication: raft, where no controller knows that nobody leads",
                "unavailable.produce.max and unavailable.fetch.max",
            )
        if name in KEY_STATES:
            self._check_compacted(name, given)
        if not isinstance(given, dict) or name not in VOCABULARY:
            return parse(name, given)
        for key in given:
            if key not in KEYS:
                raise Problem(
                    (name, str(key)), f"unknown key {key}", one_of(KEYS), nearest(str(key), KEYS)
                )
        if "is" not in given:
            raise Problem((name,), "a mapping without its bound", "is: BOUND, and what it is about")
        line = parse(name, given["is"], self._scope(name, given))
        _check_meaning(line)
        return line

    def _check_compacted(self, name: str, given: object) -> None:
        """Check that the topic, or one of all, is compacted: of others the keys are not kept."""
        known = [
            topic.name for topic in self.topics if "compact" in topic.config.words("cleanup.policy")
        ]
        keys = given if isinstance(given, dict) else {}
        topic = keys.get("topic") or str(keys.get("partition", "")).rpartition("-")[0]
        if not known or (topic and topic not in known):
            raise Problem(
                (name,), f"{name} of {topic or 'topics'} without compaction",
                one_of(known) or "a topic with cleanup.policy: compact",
            )  # fmt: skip

    def _scope(self, name: str, given: Mapping[str, object]) -> Scope:
        topic, partition, group = "", -1, ""
        names = [known.name for known in self.topics]
        if "topic" in given:
            topic = _one((name, "topic"), given["topic"], names)
        if "partition" in given:
            if topic:
                raise Problem((name, "partition"), "partition beside topic", "one of the two")
            known = [f"{t.name}-{number}" for t in self.topics for number in range(t.partitions)]
            chosen = _one((name, "partition"), given["partition"], known, "TOPIC-NUMBER")
            topic, _, number = chosen.rpartition("-")
            partition = int(number)
        if "group" in given:
            groups = list(dict.fromkeys(c.group for c in self.consumers if c.group))
            group = _one((name, "group"), given["group"], groups)
        producer, clients = "", tuple[str, ...]()
        if "producer" in given:
            by_name = {each.name: each.client_names for each in self.producers}
            by_name |= {one: (one,) for each in self.producers for one in each.client_names}
            producer = _one((name, "producer"), given["producer"], list(by_name))
            clients = by_name[producer]
        low, high = LONG_AGO, NEVER
        if "during" in given:
            low, high = self._window((name, "during"), given["during"])
        return Scope(topic, partition, group, producer, clients, low, high)

    def _window(self, path: tuple[str, ...], given: object) -> tuple[int, int]:
        allowed = "a window such as 20s..35s"
        try:
            bound = parse_bound(given, "time")
        except QuantityError as error:
            raise Problem(path, error.found, allowed) from None
        if bound.low is None or bound.high is None or bound.low == bound.high:
            raise Problem(path, f"{given!r} is no window", allowed)
        if bound.low >= self.run.for_us:
            raise Problem(path, f"{given!r} begins after the run", "a window that run.for reaches")
        return bound.low, bound.high

    def _pairs(self, given: object) -> list[Expectation]:
        """``{broker-1, broker-3: 1}``: YAML gives the names of a pair but the last no value."""
        allowed = "pairs of brokers with a bound each, such as {broker-1, broker-3: 0}"
        if not isinstance(given, dict) or not given:
            raise Problem(("divergence",), "no pair of brokers", allowed)
        brokers = {server.name: server.node for server in self.cluster.brokers}
        lines: list[Expectation] = []
        named: list[str] = []
        for key, bound in given.items():
            named += [word.strip() for word in str(key).split(",")]
            if bound is None:
                continue
            path = ("divergence", str(key))
            numbers = [brokers[_one(path, name, list(brokers))] for name in named]
            if len(numbers) != 2 or numbers[0] == numbers[1]:
                raise Problem(path, f"{', '.join(named)} is no pair", allowed)
            scope = Scope(brokers=(min(numbers), max(numbers)))
            try:
                lines.append(parse("divergence", bound, scope))
            except Problem as problem:
                raise Problem(path, problem.found, problem.allowed) from None
            named = []
        if named:
            raise Problem(("divergence",), f"{', '.join(named)} without a bound", allowed)
        return lines


def plain(lines: Sequence[Expectation]) -> dict[str, object]:
    """``expect`` as a file has it."""
    found: dict[str, object] = {}
    for line in lines:
        scope, given = line.scope, _number_or_text(line.given)
        if scope.brokers:
            pair = ", ".join(server_name(broker) for broker in scope.brokers)
            pairs = found.setdefault(line.name, {})
            assert isinstance(pairs, dict)
            pairs[pair] = given
            continue
        entry: object = given if scope == EVERYTHING else {"is": given, **_words(scope)}
        if line.name not in found:
            found[line.name] = entry
            continue
        earlier = found[line.name]
        found[line.name] = [*(earlier if isinstance(earlier, list) else [earlier]), entry]
    return found


def _number_or_text(given: str) -> str | int:
    return int(given) if given.isascii() and given.isdecimal() else given


def _words(scope: Scope) -> dict[str, str]:
    words = {}
    if scope.partition >= 0:
        words["partition"] = f"{scope.topic}-{scope.partition}"
    elif scope.topic:
        words["topic"] = scope.topic
    if scope.group:
        words["group"] = scope.group
    if scope.producer:
        words["producer"] = scope.producer
    if scope.has_window:
        words["during"] = f"{show_duration(scope.from_us)}..{show_duration(scope.to_us)}"
    return words


def _one(path: tuple[str, ...], value: object, known: Sequence[str], allowed: str = "") -> str:
    if value not in known:
        few = allowed or one_of(known) or "nothing: the scenario has none"
        raise Problem(path, f"no {path[-1]} {value!r}", few, nearest(str(value), known))
    return str(value)


def _check_meaning(line: Expectation) -> None:
    name, scope = line.name, line.scope
    unit = VOCABULARY[name][0]
    timed = name in _TIMED or name.startswith(_IN_WINDOWS)
    if scope.has_window and unit != "time" and not timed:
        raise Problem(
            (name, "during"),
            f"{name} has no instant",
            f"during for times, for {one_of(_TIMED)}, for throughput and for changes",
        )
    if scope.group and not name.startswith(_OF_GROUPS) and name not in _BY_READER:
        raise Problem(
            (name, "group"),
            f"{name} is not about a group",
            f"group for end_to_end, unavailable.fetch.max, lag.max, {', '.join(_BY_READER)}",
        )
    if scope.group and name in _BY_READER and (scope.topic or scope.producer):
        raise Problem((name, "group"), f"{name} of a group beside a topic", "one of the two")
    if scope.producer and not name.startswith(_OF_PRODUCERS):
        raise Problem(
            (name, "producer"),
            f"{name} is not about a producer",
            "producer for produce, end_to_end, unavailable.produce.max, throughput and for "
            "sent, acked, failed, unknown, lost_acked",
        )
    if scope.topic and name in _OF_THE_WHOLE:
        raise Problem((name, "topic"), f"{name} is about all topics", "the bound alone")
    if scope.partition >= 0 and name == "torn_transactions":
        raise Problem((name, "partition"), "a transaction spans partitions", "topic, or the bound")
