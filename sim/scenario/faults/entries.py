"""One entry of ``faults:`` as a fault: names resolved to targets, keys to fields."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from sim.faults.spec import Fault, Target
from sim.protocol import messages
from sim.protocol.zk_mode.znodes import CONTROL_REQUESTS
from sim.scenario.faults import chance
from sim.scenario.faults.operations import operation
from sim.scenario.faults.targets import Targets
from sim.scenario.model.parts import ClusterSpec
from sim.scenario.schema import faults as schema
from sim.scenario.text.problems import Problem, nearest, one_of

MESSAGE_TYPES: Final[tuple[str, ...]] = tuple(
    name for name in messages.__all__ if name.endswith(("Request", "Response")) and len(name) > 8
) + tuple(kind.__name__ for kind in CONTROL_REQUESTS)
"""Messages that can be held, dropped or delayed, by the names of Kafka's protocol."""

_LinkModel: TypeAlias = (
    schema.PartitionModel | schema.DelayModel | schema.LossModel | schema.BandwidthModel
)
_TargetModel: TypeAlias = (
    schema.NodeFaultModel
    | schema.PowerLossModel
    | schema.RestartModel
    | schema.RollingRestartModel
    | schema.SlowCpuModel
    | schema.LoadSurgeModel
    | schema.ClockJumpModel
    | schema.DiskFaultModel
    | schema.SlowDiskModel
    | schema.WipedDiskModel
    | schema.VoterChangeModel
    | schema.MemberChangeModel
)


def fault_of(index: int, model: schema.FaultModel, targets: Targets, cluster: ClusterSpec) -> Fault:
    """The fault of an entry, without its times: :func:`sim.scenario.faults.chance.timed` adds them.

    Args:
        index: Its place among the faults of the run.
        model: The entry, its form checked.
        targets: What may be named.
        cluster: For what an administrator asks.

    Raises:
        Problem: If it names what is not there.
    """
    match model:
        case schema.MessageFaultModel():
            return _message_fault(index, model, targets)
        case schema.ReplicaFaultModel():
            return _replica_fault(index, model, targets)
        case (
            schema.PartitionModel()
            | schema.DelayModel()
            | schema.LossModel()
            | schema.BandwidthModel()
        ):
            return _link_fault(index, model, targets)
        case (
            schema.NodeFaultModel()
            | schema.PowerLossModel()
            | schema.RestartModel()
            | schema.RollingRestartModel()
            | schema.SlowCpuModel()
            | schema.LoadSurgeModel()
            | schema.ClockJumpModel()
            | schema.DiskFaultModel()
            | schema.SlowDiskModel()
            | schema.WipedDiskModel()
            | schema.VoterChangeModel()
            | schema.MemberChangeModel()
        ):
            return _target_fault(index, model, targets)
        case schema.OneOfModel():
            return Fault(index, model.do, 0, choices=_choices(model, targets, cluster))
        case _:
            asked = operation(model, targets, cluster)
            return Fault(index, model.do, 0, operation=asked)


def _choices(model: schema.OneOfModel, targets: Targets, cluster: ClusterSpec) -> tuple[Fault, ...]:
    choices: list[Fault] = []
    for place, choice in enumerate(model.of):
        try:
            chance.check_choice(choice, recurs=model.mtbf is not None)
            choices.append(fault_of(place, choice, targets, cluster))
        except Problem as problem:
            raise problem.below("of", place) from None
    return tuple(choices)


def _target_fault(index: int, model: _TargetModel, targets: Targets) -> Fault:
    lasts = model.for_ if isinstance(model, schema.LastingModel) else None
    hit = _targets("target", model.target, targets)
    fault = Fault(index, model.do, 0, lasts, hit)
    match model:
        case schema.PowerLossModel():
            return replace(fault, spares_none=model.unflushed == "lost")
        case schema.SlowCpuModel() | schema.LoadSurgeModel():
            return replace(fault, factor=model.factor)
        case schema.SlowDiskModel():
            return replace(fault, factor=model.factor, directory=model.directory)
        case schema.DiskFaultModel():
            return replace(fault, directory=model.directory)
        case schema.WipedDiskModel():
            every = model.directory is None
            return replace(fault, directory=model.directory or 0, all_directories=every)
        case schema.RollingRestartModel():
            return replace(fault, down_us=model.down, settle_us=model.settle)
        case schema.ClockJumpModel():
            return replace(fault, by_us=model.by if model.direction == "forward" else -model.by)
        case _:
            return fault


def _link_fault(
    index: int,
    model: _LinkModel,
    targets: Targets,
) -> Fault:
    messages = model.message or () if isinstance(model, schema.DelayModel) else ()
    _check_messages(messages)
    return Fault(
        index,
        model.do,
        0,
        model.for_,
        _targets("between", model.between, targets),
        _targets("and", model.and_ or (), targets),
        one_way=model.one_way,
        messages=messages,
        by_us=model.by if isinstance(model, schema.DelayModel) else 0,
        ratio=model.ratio if isinstance(model, schema.LossModel) else 0.0,
        bandwidth_bits=model.to * 8 if isinstance(model, schema.BandwidthModel) else 0,
    )


def _check_messages(names: Sequence[str]) -> None:
    for name in names:
        if name not in MESSAGE_TYPES:
            raise Problem(
                ("message",), f"no message {name!r}", one_of(MESSAGE_TYPES),
                nearest(name, MESSAGE_TYPES),
            )  # fmt: skip


def _message_fault(index: int, model: schema.MessageFaultModel, targets: Targets) -> Fault:
    _check_messages(model.message)
    return Fault(
        index,
        model.do,
        0,
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
    return Fault(index, model.do, 0, targets=hit, partition=named)


def _targets(key: str, texts: Sequence[str], targets: Targets) -> tuple[Target, ...]:
    try:
        return tuple(targets.parse(text) for text in texts)
    except Problem as problem:
        raise problem.below(key) from None
