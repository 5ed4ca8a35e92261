"""The faults of a scenario, checked against the cluster, the run and each other.

Two faults of one kind must not hit the same target at the same time: the second would heal the
first. Faults of different kinds may overlap.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, TypeAlias

from sim.faults.after import After
from sim.faults.fault import Fault
from sim.faults.links import OnLinks
from sim.faults.operations import CreateTopic, DeleteTopic
from sim.faults.process import RollingRestart
from sim.faults.target import TargetKind
from sim.scenario.faults import chance
from sim.scenario.faults.entries import fault_of
from sim.scenario.faults.instants import Instants, Window
from sim.scenario.faults.targets import Targets
from sim.scenario.model.cluster import ClusterSpec
from sim.scenario.model.run import RunModel
from sim.scenario.rules.limits import FAULTS_MAX, check_failures, check_length
from sim.scenario.rules.membership import check_member
from sim.scenario.schema import faults as schema
from sim.scenario.text.problems import Problem, gather, nearest, one_of
from sim.scenario.text.quantities import show_duration
from sim.units import SECOND, Micros

_NO_ONE_BROKER: Final[frozenset[TargetKind]] = frozenset(
    {"rack", "random rack", "all brokers", "all controllers", "controller leader"}
)
"""Targets that are several processes, or no broker."""

_Taken: TypeAlias = tuple[Micros, Micros | None, Fault]
"""Instants at which a fault begins and ends at the latest if it does, and the fault."""


def build(
    models: Sequence[schema.FaultModel], targets: Targets, cluster: ClusterSpec, run: RunModel
) -> tuple[Fault, ...]:
    """The calendar.

    Raises:
        Problem: For an unknown target, a time beyond the run or an overlap; its path starts at
            the fault's place in the list.
    """
    faults: list[Fault] = []
    known: dict[str, list[_Taken]] = {}
    instants = Instants(models)

    def add(place: int, model: schema.FaultModel) -> None:
        try:
            for window, after in _each(model, *instants.of(place), run):
                fault = fault_of(len(faults), model, targets, cluster)
                fault = chance.timed(fault, model, window, after)
                _check_times(fault, run)
                _check_each_meaning(fault, targets, cluster)
                check_failures(fault, run.for_us)
                forms = chance.forms(fault)
                for form in forms:
                    _check_overlap(form, known.get(form.kind, ()))
                for form in forms:
                    known.setdefault(form.kind, []).append((form.at_us, _end(form), form))
                faults.append(fault)
            check_length(len(faults))
        except Problem as problem:
            raise problem.below(place) from None

    gather(partial(add, place, models[place]) for place in instants.places)
    check_deletions(faults)
    return tuple(faults)


def _each(
    model: schema.FaultModel, window: Window | None, after: After | None, run: RunModel
) -> Iterator[tuple[Window | None, After | None]]:
    """Instants of a fault that is repeated; without ``times``, as often as the run takes."""
    if not isinstance(model, schema.LastingModel) or model.every is None:
        if isinstance(model, schema.LastingModel) and model.times is not None:
            raise Problem(("times",), f"{model.times}, but no every", "every: DURATION beside it")
        yield window, after
        return
    if model.every <= 0:
        raise Problem(("every",), "0us is no interval", "more than zero", "leave it out")
    if window is None:
        raise Problem(("every",), "every without at", "at beside it", "or mtbf alone")
    low, high = window
    left = run.for_us - high - (model.for_ or 0)
    times = model.times or max(1, left // model.every + 1)
    if times > FAULTS_MAX:
        raise Problem(("every",), f"{times} faults", f"at most {FAULTS_MAX}", "give times")
    for number in range(times):
        later = number * model.every
        yield (low + later, high + later), after and after.later(later)


def _check_times(fault: Fault, run: RunModel) -> None:
    end = show_duration(run.for_us)
    if fault.at_us + fault.spread_us >= run.for_us:
        raise Problem(
            ("at",),
            f"{show_duration(fault.at_us + fault.spread_us)} is not before the end of the run",
            f"less than run.for, {end}",
            "start it earlier or lengthen run.for",
        )
    if fault.for_us == 0:
        raise Problem(("for",), "0us is no duration", "more than zero", "leave the fault out")
    if fault.until_us is not None and fault.until_us > run.for_us:
        raise Problem(
            ("for",),
            f"the fault lasts until {show_duration(fault.until_us)}",
            f"at most run.for, {end}",
            "shorten it, or leave for out to let it last until the end",
        )


def _check_each_meaning(fault: Fault, targets: Targets, cluster: ClusterSpec) -> None:
    """Of the line, and of each of its choices."""
    chance.check_components(fault)
    if not fault.choices:
        _check_meaning(fault, targets, cluster)
    for place, choice in enumerate(fault.choices):
        try:
            chance.check_components(choice)
            _check_meaning(choice, targets, cluster)
        except Problem as problem:
            raise problem.below("of", place) from None


def _check_controller(fault: Fault, cluster: ClusterSpec) -> None:
    names = [server.name for server in cluster.controllers]
    if fault.target_text not in (*names, "controller leader"):
        raise Problem(
            ("target",),
            f"{fault.target_text!r} is not one controller",
            f"{', '.join(names)} or controller leader",
        )


def _check_meaning(fault: Fault, targets: Targets, cluster: ClusterSpec) -> None:
    """Check that its target has the form that its kind needs."""
    match fault.hits:
        case "server":
            _check_no_client(fault, targets, "brokers and controllers")
        case "replica":
            _check_no_client(fault, targets, "brokers")
            _check_one_broker(fault)
        case "producer":
            _check_clients(fault, "producer", targets.producers)
        case "consumer":
            _check_clients(fault, "consumer", targets.consumers)
        case "transactional producer":
            _check_transactional(fault, targets)
        case "controller":
            _check_controller(fault, cluster)
        case "broker" | "spare broker":
            check_member(fault, cluster)
        case "process":
            pass


def _check_no_client(fault: Fault, targets: Targets, allowed: str) -> None:
    names = [name for target in fault.targets for name in target.names]
    client = next((name for name in names if name in targets.clients), None)
    if client is not None:
        raise Problem(("target",), f"{client} is a client", f"{allowed} for {fault.kind}")


def _check_one_broker(fault: Fault) -> None:
    if any(
        target.kind in _NO_ONE_BROKER
        or (target.kind == "each" and target.text != "each broker")
        or any(name.startswith("controller-") for name in target.names)
        for target in fault.targets
    ):
        raise Problem(
            ("target",),
            f"{fault.target_text!r} is not one broker",
            "one broker, by name or as leader or follower of a partition",
        )


def _check_clients(fault: Fault, what: str, known: Sequence[str]) -> None:
    for target in fault.targets:
        if not target.names or any(name not in known for name in target.names):
            raise Problem(
                ("target",),
                f"{target.text!r} is no {what}",
                one_of(tuple(known)) or f"no {what}s in this scenario",
                nearest(target.text, known),
            )


def _check_transactional(fault: Fault, targets: Targets) -> None:
    (target,) = fault.targets
    if len(target.names) != 1 or target.names[0] not in targets.transactional:
        raise Problem(
            ("target",),
            f"{target.text!r} is no producer with transactions",
            one_of(targets.transactional) or "no producer has transactions in this scenario",
            nearest(target.text, targets.transactional),
        )


def _check_overlap(fault: Fault, earlier: Sequence[_Taken]) -> None:
    """Against those of its kind; what has ended by then is skipped fast: there may be many."""
    begin, end = fault.at_us, _end(fault)
    for since, until, other in earlier:
        if (until is not None and until < begin) or (end is not None and end < since):
            continue
        if other.place != fault.place or _are_upgrades(fault, other):
            continue
        common = _common(fault, other)
        if common and _at_once(fault, other):
            raise Problem(
                ("at",),
                f"overlaps faults[{other.index}]: the same {fault.kind} on {common}",
                "one fault of a kind on a target at a time",
                _after(other),
            )


def _are_upgrades(fault: Fault, other: Fault) -> bool:
    """True for upgrades to two releases: the later one waits for the other."""
    return (
        isinstance(fault, RollingRestart)
        and isinstance(other, RollingRestart)
        and None not in (fault.to, other.to)
        and fault.to != other.to
    )


def check_deletions(faults: Sequence[Fault]) -> None:
    """A topic is made again only when its deletion has been dealt with everywhere that runs.

    Raises:
        Problem: For a creation without a deletion before it, or less than a second after it.
    """
    deletions: dict[str, Micros] = {}
    for fault in sorted(faults, key=lambda fault: (fault.at_us, fault.index)):
        topic = fault.target_text
        if isinstance(fault, DeleteTopic):
            deletions[topic] = fault.at_us
        elif isinstance(fault, CreateTopic):
            deleted = deletions.pop(topic, None)
            if deleted is None or fault.at_us < deleted + SECOND:
                since = "it exists" if deleted is None else "less than a second after its deletion"
                raise Problem(
                    (fault.index, "at"),
                    f"{topic} is made anew, but {since}",
                    "a second or more after delete-topic",
                    "add delete-topic before it, or move it",
                )


def _end(fault: Fault) -> Micros | None:
    return fault.at_us if fault.is_instant() else fault.until_us


def _common(fault: Fault, other: Fault) -> str:
    if isinstance(fault, OnLinks):
        same = _sides(fault) == _sides(other)
        return fault.target_text if same else ""
    if fault.target_text == other.target_text:
        return fault.target_text
    others = [name for target in other.targets for name in target.names]
    return next((name for target in fault.targets for name in target.names if name in others), "")


def _sides(fault: Fault) -> list[list[str]]:
    sides = [
        sorted(name for target in side for name in (target.names or (target.text,)))
        for side in (fault.targets, fault.peers)
    ]
    one_way = isinstance(fault, OnLinks) and fault.one_way
    return sides if one_way else sorted(sides)


def _at_once(fault: Fault, other: Fault) -> bool:
    if fault.is_instant():
        return fault.at_us == other.at_us
    fault, other = _aligned(fault, other)
    return _begins_before_end(fault, other) and _begins_before_end(other, fault)


def _aligned(fault: Fault, other: Fault) -> tuple[Fault, Fault]:
    """Both seen from the fault that one of them follows, or both do, if the seed draws that one."""
    if fault.after is not None and fault.after.name == other.name:
        return _seen_from(other.for_us, fault), replace(other, at_us=0, spread_us=0)
    if other.after is not None and other.after.name == fault.name:
        return replace(fault, at_us=0, spread_us=0), _seen_from(fault.for_us, other)
    if fault.after is not None and other.after is not None:
        same = (fault.after.name, fault.after.from_end) == (other.after.name, other.after.from_end)
        return (_seen_from(0, fault), _seen_from(0, other)) if same else (fault, other)
    return fault, other


def _seen_from(lasts: Micros | None, follower: Fault) -> Fault:
    """The fault in the time of the one that it follows, which begins at 0."""
    assert follower.after is not None
    low, high = follower.after.window_us(lasts)
    return replace(follower, at_us=low, spread_us=high - low)


def _begins_before_end(fault: Fault, other: Fault) -> bool:
    return other.until_us is None or fault.at_us < other.until_us


def _after(other: Fault) -> str:
    until: Micros | None = other.until_us
    if until is None:
        return f"give faults[{other.index}] a duration with for"
    return f"start it at {show_duration(until)} or later"
