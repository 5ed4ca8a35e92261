"""The faults of a scenario, checked against the cluster, the run and each other.

Two faults of one kind must not hit the same target at the same time: the second would heal the
first. Faults of different kinds may overlap.
"""

from collections.abc import Sequence
from typing import Final

from sim.faults.spec import INSTANT_KINDS, LINK_KINDS, Fault, Target
from sim.protocol import messages
from sim.scenario import schema_faults as schema
from sim.scenario.operations import operation
from sim.scenario.problems import Problem, nearest, one_of
from sim.scenario.quantities import show_duration
from sim.scenario.spec import ClusterSpec, RunSpec
from sim.scenario.targets import Targets
from sim.units import SECOND, Micros

MESSAGE_TYPES: Final[tuple[str, ...]] = tuple(
    name for name in messages.__all__ if name.endswith(("Request", "Response")) and len(name) > 8
)
"""Messages that can be held or dropped, by the names of Kafka's protocol."""

_SERVER_KINDS = ("controlled-shutdown", "slow-disk", "stalled-disk", "failed-disk", "full-disk")
_REPLICA_KINDS = ("lost-replica", "corrupt-replica")


def build(
    models: Sequence[schema.FaultModel], targets: Targets, cluster: ClusterSpec, run: RunSpec
) -> tuple[Fault, ...]:
    """The calendar.

    Raises:
        Problem: For an unknown target, a time beyond the run or an overlap; its path starts at
            the fault's place in the list.
    """
    faults: list[Fault] = []
    for index, model in enumerate(models):
        try:
            fault = _fault(index, model, targets, cluster)
            _check_times(fault, run)
            _check_meaning(fault, targets, cluster)
            _check_overlap(fault, faults)
        except Problem as problem:
            raise problem.below(index) from None
        faults.append(fault)
    check_deletions(faults)
    return tuple(faults)


def _fault(index: int, model: schema.FaultModel, targets: Targets, cluster: ClusterSpec) -> Fault:
    match model:
        case schema.NodeFaultModel():
            hit = _targets("target", (model.target,), targets)
            return Fault(index, model.do, model.at, model.for_, hit)
        case schema.RestartModel():
            return Fault(
                index, model.do, model.at, targets=_targets("target", (model.target,), targets)
            )
        case schema.MessageFaultModel():
            return _message_fault(index, model, targets)
        case schema.ClockJumpModel():
            sign = 1 if model.direction == "forward" else -1
            hit = _targets("target", (model.target,), targets)
            return Fault(index, model.do, model.at, model.for_, hit, by_us=sign * model.by)
        case (
            schema.PartitionModel()
            | schema.DelayModel()
            | schema.LossModel()
            | schema.BandwidthModel()
        ):
            return Fault(
                index,
                model.do,
                model.at,
                model.for_,
                _targets("between", model.between, targets),
                _targets("and", model.and_ or (), targets),
                one_way=model.one_way,
                by_us=model.by if isinstance(model, schema.DelayModel) else 0,
                ratio=model.ratio if isinstance(model, schema.LossModel) else 0.0,
                bandwidth_bits=model.to * 8 if isinstance(model, schema.BandwidthModel) else 0,
            )
        case schema.DiskFaultModel() | schema.SlowDiskModel():
            return Fault(
                index,
                model.do,
                model.at,
                model.for_,
                _targets("target", (model.target,), targets),
                factor=model.factor if isinstance(model, schema.SlowDiskModel) else 1,
                directory=model.directory,
            )
        case schema.ReplicaFaultModel():
            return _replica_fault(index, model, targets)
        case _:
            asked = operation(model, targets, cluster)
            return Fault(index, model.do, model.at, operation=asked)


def _message_fault(index: int, model: schema.MessageFaultModel, targets: Targets) -> Fault:
    for name in model.message:
        if name not in MESSAGE_TYPES:
            raise Problem(
                ("message",), f"no message {name!r}", one_of(MESSAGE_TYPES),
                nearest(name, MESSAGE_TYPES),
            )  # fmt: skip
    return Fault(
        index,
        model.do,
        model.at,
        model.for_,
        _targets("from", model.from_, targets),
        _targets("to", model.to or (), targets),
        one_way=True,
        messages=model.message,
        count=model.count or 0,
    )


def _replica_fault(index: int, model: schema.ReplicaFaultModel, targets: Targets) -> Fault:
    hit = _targets("target", (model.target,), targets)
    named = hit[0].partition
    if model.partition is not None:
        named = targets.partition_under("partition", model.partition)
    if named is None:
        raise Problem(
            ("target",),
            f"{model.target!r} names no partition",
            "a target such as leader of orders-0, or a key partition",
            "add partition: TOPIC-NUMBER",
        )
    return Fault(index, model.do, model.at, targets=hit, partition=named)


def _targets(key: str, texts: Sequence[str], targets: Targets) -> tuple[Target, ...]:
    try:
        return tuple(targets.parse(text) for text in texts)
    except Problem as problem:
        raise problem.below(key) from None


def _check_times(fault: Fault, run: RunSpec) -> None:
    end = show_duration(run.for_us)
    if fault.at_us >= run.for_us:
        raise Problem(
            ("at",),
            f"{show_duration(fault.at_us)} is not before the end of the run",
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


def _check_meaning(fault: Fault, targets: Targets, cluster: ClusterSpec) -> None:
    names = [name for target in fault.targets for name in target.names]
    client = next((name for name in names if name in targets.clients), None)
    if client is not None and fault.kind in (*_SERVER_KINDS, *_REPLICA_KINDS):
        allowed = "brokers" if fault.kind in _REPLICA_KINDS else "brokers and controllers"
        raise Problem(("target",), f"{client} is a client", f"{allowed} for {fault.kind}")
    if fault.kind in _REPLICA_KINDS and any(
        target.kind in {"rack", "all brokers", "controller leader"}
        or any(name.startswith("controller-") for name in target.names)
        for target in fault.targets
    ):
        raise Problem(
            ("target",),
            f"{fault.target_text!r} is not one broker",
            "one broker, by name or as leader or follower of a partition",
        )
    if fault.directory >= cluster.disk.directories:
        raise Problem(
            ("directory",),
            f"no log directory {fault.directory}",
            f"0 to {cluster.disk.directories - 1} (cluster.disk.directories)",
        )
    if fault.directory > 0 and any(
        target.kind == "controller leader"
        or any(name.startswith("controller-") for name in target.names)
        for target in fault.targets
        if target.kind != "rack"
    ):
        raise Problem(
            ("directory",), f"log directory {fault.directory} of a controller", "0: it has only one"
        )
    both = [name for target in fault.peers for name in target.names if name in names]
    if both:
        raise Problem(
            ("and",), f"{both[0]} stands on both sides", "two sides without a common name"
        )


def _check_overlap(fault: Fault, earlier: Sequence[Fault]) -> None:
    for other in earlier:
        if other.kind != fault.kind or other.directory != fault.directory:
            continue
        common = _common(fault, other)
        if common and _at_once(fault, other):
            raise Problem(
                ("at",),
                f"overlaps faults[{other.index}]: the same {fault.kind} on {common}",
                "one fault of a kind on a target at a time",
                _after(other),
            )


def check_deletions(faults: Sequence[Fault]) -> None:
    """A topic is made anew only when its deletion has been dealt with everywhere that runs.

    Raises:
        Problem: For a creation without a deletion before it, or less than a second after it.
    """
    gone: dict[str, Micros] = {}
    for fault in sorted(faults, key=lambda fault: (fault.at_us, fault.index)):
        topic = fault.target_text
        if fault.kind == "delete-topic":
            gone[topic] = fault.at_us
        elif fault.kind == "create-topic":
            deleted = gone.pop(topic, None)
            if deleted is None or fault.at_us < deleted + SECOND:
                since = "it exists" if deleted is None else "less than a second after its deletion"
                raise Problem(
                    (fault.index, "at"),
                    f"{topic} is made anew, but {since}",
                    "a second or more after delete-topic",
                    "add delete-topic before it, or move it",
                )


def _common(fault: Fault, other: Fault) -> str:
    if fault.kind in LINK_KINDS:
        same = _sides(fault) == _sides(other)
        return fault.target_text if same else ""
    if fault.kind in _REPLICA_KINDS and fault.partition != other.partition:
        return ""
    if fault.target_text == other.target_text:
        return fault.target_text
    others = [name for target in other.targets for name in target.names]
    return next((name for target in fault.targets for name in target.names if name in others), "")


def _sides(fault: Fault) -> list[list[str]]:
    sides = [
        sorted(name for target in side for name in (target.names or (target.text,)))
        for side in (fault.targets, fault.peers)
    ]
    return sides if fault.one_way else sorted(sides)


def _at_once(fault: Fault, other: Fault) -> bool:
    if fault.kind in INSTANT_KINDS:
        return fault.at_us == other.at_us
    return _begins_before_end(fault, other) and _begins_before_end(other, fault)


def _begins_before_end(fault: Fault, other: Fault) -> bool:
    return other.until_us is None or fault.at_us < other.until_us


def _after(other: Fault) -> str:
    until: Micros | None = other.until_us
    if until is None:
        return f"give faults[{other.index}] a duration with for"
    return f"start it at {show_duration(until)} or later"
