"""A year of a scenario's failing components: chance that data or service is lost at some time.

Components are the scenario's faults with ``mtbf``; partitions are where the controller's placer
puts them. The study estimates the chance that every replica of some partition is out at once:
without its disk or its power (unflushed data is lost with the power, so for power losses this is an
upper bound), or out of service in any way; and that so many are out that ``acks=all`` is refused.

Of Kafka only placement and ``min.insync.replicas`` are modelled: no replication lag, no election
that takes a while, no replica that comes back with an old log. The effect of a single coincidence
is shown by runs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from sim.errors import ScenarioError
from sim.faults.fault import Fault
from sim.faults.registry import KINDS
from sim.ids import server_name
from sim.protocol.controller.placement import StripedReplicaPlacer, UsableBroker
from sim.rng import Streams
from sim.scenario.faults.chance import forms
from sim.scenario.scenario import Scenario
from sim.studies.rare import Coincidence, Component, ProbabilityEstimate
from sim.units import HOUR, Micros

YEAR_US: Micros = 8_766 * HOUR
"""A year of 365.25 days."""

SAMPLES: Final = 5_000
"""Spans sampled for each question by default."""

_TAKE_SERVICE: Final = tuple(name for name, kind in KINDS.items() if kind.outage)
_TAKE_DATA: Final = tuple(name for name in _TAKE_SERVICE if KINDS[name].outage == "data")


@dataclass(frozen=True, slots=True)
class Question:
    """One question and its estimate."""

    name: str
    """``loss``, ``outage`` or ``below_min_isr``."""
    meaning: str
    chance: ProbabilityEstimate


def year(
    scenario: Scenario, *, samples: int = SAMPLES, span_us: Micros = YEAR_US, seed: int = 1
) -> tuple[Question, ...]:
    """Answers the three questions for one span.

    Args:
        scenario: With faults that have ``mtbf``.
        samples: Spans to sample for each question, at least two.
        span_us: Length of the span.
        seed: Of placement and sampling.

    Raises:
        ScenarioError: If no fault has ``mtbf``, or one cannot be counted on in such a study.
    """
    streams = Streams(seed)
    partitions = _partitions(scenario, streams)
    data = tuple(_components(scenario, _TAKE_DATA))
    service = tuple(_components(scenario, _TAKE_SERVICE))
    span = span_us / HOUR
    whole = tuple(dict.fromkeys(replicas for replicas, _ in partitions))
    short = tuple(
        dict.fromkeys(
            some
            for replicas, minimum in partitions
            for some in combinations(replicas, len(replicas) - minimum + 1)
        )
    )
    questions = (
        ("loss", "no replica of a partition has its disk and its power", data, whole),
        ("outage", "no replica of a partition is in service", service, whole),
        ("below_min_isr", "so few are in service that acks=all is refused", service, short),
    )
    return tuple(
        Question(
            name,
            meaning,
            Coincidence(components, sets, span).estimate(streams.named(f"study/{name}"), samples),
        )
        for name, meaning, components, sets in questions
    )


def _partitions(scenario: Scenario, streams: Streams) -> list[tuple[tuple[int, ...], int]]:
    """Replicas, in ascending order, and ``min.insync.replicas`` of every partition."""
    knows_racks = scenario.behaviours["placement"] == "rack_aware"
    brokers = [
        UsableBroker(server.node, server.rack if knows_racks else "", fenced=False)
        for server in scenario.cluster.brokers
    ]
    found = []
    for topic in scenario.topics:
        placer = StripedReplicaPlacer(brokers, streams.named("study/placement").unit)
        minimum = topic.config.number("min.insync.replicas")
        found += [(tuple(sorted(replicas)), minimum) for replicas in topic.assignment]
        for _ in range(0 if topic.assignment else topic.partitions):
            found.append((tuple(sorted(placer.place(topic.replication_factor))), minimum))
    return found


def _components(scenario: Scenario, kinds: tuple[str, ...]) -> Iterator[Component]:
    """Components that take brokers out, in one of these ways."""
    recurring = [fault for fault in scenario.faults if fault.mtbf_us]
    if not recurring:
        raise ScenarioError(
            "no fault has mtbf; allowed: faults such as "
            "{do: failed-disk, target: each broker, mtbf: 1000d, mttr: 8h}"
        )
    for fault in recurring:
        choices = forms(fault)
        for choice in choices:
            if choice.kind not in _TAKE_SERVICE:
                raise ScenarioError(
                    f"faults[{fault.index}]: {choice.kind} takes no broker out for a time; "
                    f"allowed in this study: {', '.join(_TAKE_SERVICE)}"
                )
            if choice.kind in kinds:
                yield from _of_fault(scenario, fault, choice, len(choices))


def _of_fault(scenario: Scenario, line: Fault, fault: Fault, share: int) -> Iterator[Component]:
    if scenario.cluster.disk.directories > 1 and fault.has_key("directory"):
        raise ScenarioError(
            f"faults[{line.index}]: {fault.kind} of brokers with several log directories; "
            "allowed in this study: cluster.disk.directories: 1"
        )
    numbers = {server_name(server.node): server.node for server in scenario.cluster.brokers}
    for part in fault.components:
        targets = fault.targets if part is None else (part,)
        role = next((target for target in targets if target.is_role), None)
        if role is not None:
            raise ScenarioError(
                f"faults[{line.index}].target: {role.text!r} is known in a run only; "
                "allowed in this study: each broker, each rack, or a broker or rack by name"
            )
        members = [numbers[name] for t in targets for name in t.names if name in numbers]
        if members:
            yield Component(
                f"{fault.kind} of {targets[0].text}",
                HOUR / line.mtbf_us / share,
                HOUR / line.for_us if line.for_us else 0.0,
                tuple(dict.fromkeys(members)),
            )
