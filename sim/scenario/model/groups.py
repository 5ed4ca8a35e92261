"""Groups of a scenario that have settings of their own, as ``kafka-configs`` gives them.

Source: ``GroupConfig.validate``, ``GroupConfigManager``; KIP-848, KIP-932, KIP-1240.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Final

from pydantic import Field

from sim.protocol.messages.admin import IncrementalAlterConfigsRequest
from sim.scenario.model.apps import ProcessorSpec
from sim.scenario.model.clients import ConsumerSpec
from sim.scenario.model.cluster import ClusterSpec
from sim.scenario.model.types import NOT_WRITTEN, ConfigSchema, GivenSettings, Settings, Strict
from sim.scenario.settings.groups import broker_bounds, broker_synonym
from sim.scenario.settings.overlay import known
from sim.scenario.settings.registry import resolve
from sim.scenario.settings.resolved import Config
from sim.scenario.settings.types import as_kafka_writes
from sim.scenario.text.problems import Problem, nearest, one_of

_UNBOUNDED: Final = ("share.renew.acknowledge.enable",)
_INTERVALS: Final = ("consumer.assignment.interval.ms", "share.assignment.interval.ms")


class GroupModel(Strict, frozen=True):
    """A group's own settings, set before the workload begins; the brokers' hold for the others."""

    config: Annotated[GivenSettings, ConfigSchema("group")] = Field(default_factory=dict)


class GroupSpec(GroupModel, frozen=True):
    """A group's settings: its own, else the brokers', else Kafka's default."""

    name: str = NOT_WRITTEN
    own: tuple[tuple[str, str], ...] = NOT_WRITTEN
    """Settings that are not the brokers', in Kafka's notation."""
    config: Settings

    def request(self) -> IncrementalAlterConfigsRequest:
        """The administrator's request."""
        return IncrementalAlterConfigsRequest("", self.own, group=self.name)


def groups_of(
    models: Mapping[str, GroupModel],
    cluster: ClusterSpec,
    members: Sequence[ConsumerSpec | ProcessorSpec],
    positions: Mapping[str, str],
) -> tuple[GroupSpec, ...]:
    """The groups that have settings of their own.

    Args:
        models: As the file has them, by name.
        cluster: The cluster.
        members: All consumers and tasks.
        positions: Every switch's position.

    Raises:
        Problem: For a group without members, or a setting that its members do not go by; where
            Kafka would refuse a value; with a path below ``groups``.
    """
    found = []
    for name, model in models.items():
        try:
            kind = _kind_of(name, cluster, members)
            config = _checked(kind, model.config, cluster, positions)
        except Problem as problem:
            raise problem.below("groups", name) from None
        plain = resolve("group", {}, cluster.config)
        own = tuple(
            (key, as_kafka_writes(value)) for key, value in config.items() if value != plain[key]
        )
        found.append(GroupSpec.model_construct(name=name, own=own, config=_of_kind(kind, config)))
    return tuple(found)


def _kind_of(
    name: str, cluster: ClusterSpec, members: Sequence[ConsumerSpec | ProcessorSpec]
) -> str:
    """``share`` or ``consumer``, as its members are."""
    if cluster.replication == "raft":
        raise Problem((), "settings of a group with replication: raft", "replication: isr")
    groups = list(dict.fromkeys(each.group for each in members if each.group))
    kinds = [each.membership for each in members if each.group == name]
    if name not in groups:
        raise Problem((), f"no members of {name!r}", one_of(groups), nearest(name, groups))
    for kind in ("share", "consumer"):
        if kind in kinds:
            return kind
    raise Problem(
        (),
        f"{name!r} is a classic group, whose members have its settings",
        "a share group, or one of group.protocol: consumer",
        f"write them under consumers: {{group: {name}, config: ...}}",
    )


def _of_kind(kind: str, config: Config) -> Config:
    """Settings that a group's members go by."""
    values = {name: value for name, value in config.items() if name.startswith(f"{kind}.")}
    return Config(values, config.version)


def _checked(
    kind: str, given: Mapping[str, object], cluster: ClusterSpec, positions: Mapping[str, str]
) -> Config:
    """The group's settings, by those of the brokers."""
    try:
        config = resolve("group", given, cluster.config)
        for name in given:
            if name in config:
                _check_setting(kind, name, config, cluster, positions)
    except Problem as problem:
        raise problem.below("config") from None
    session, interval = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
    if config.number(session) <= config.number(interval):
        raise Problem(
            ("config", session),
            f"{config.number(session)}",
            f"more than {interval}, {config.number(interval)}",
        )
    return config


def _check_setting(
    kind: str, name: str, config: Config, cluster: ClusterSpec, positions: Mapping[str, str]
) -> None:
    if not name.startswith(f"{kind}."):
        raise Problem((name,), f"{name} of a {kind} group", f"settings that begin with {kind}.")
    broker = cluster.config
    differs = config[name] != broker.get(broker_synonym(name), config[name])
    if name in _INTERVALS and differs and positions["group.assignment"] != "interval":
        raise Problem(
            (name,),
            "set where each epoch of a group has its target assignment at once",
            "no value",
            "behaviours: {group.assignment: interval}",
        )
    if name in _UNBOUNDED:
        return
    low, high = broker_bounds(name)
    least, most = _bound(low, broker), _bound(high, broker)
    if not least <= config.number(name) <= most:
        raise Problem(
            (name,),
            f"{config.number(name)}",
            f"{least} to {most} ({low}, {high})",
            "change the bounds of the brokers" if low in broker else "",
        )


def _bound(name: str, broker: Config) -> int:
    """The brokers' value; of a bound that is not modelled, Kafka's default."""
    if name in broker:
        return broker.number(name)
    facts = known("broker", name, broker.version)
    assert facts is not None, f"Kafka bounds it by {name}"
    return int(facts.near(broker.version).default or 0)
