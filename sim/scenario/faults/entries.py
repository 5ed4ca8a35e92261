"""One entry of ``faults:`` as a fault: each key's value resolved as its form says."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Final

from sim.faults.broker_configs import BrokerConfigChange
from sim.faults.fault import Fault, Form, Key, Release
from sim.faults.operations import ConfigChange
from sim.faults.target import Target
from sim.ids import NodeId, TopicPartition
from sim.protocol import messages
from sim.protocol.acls import Acl
from sim.protocol.messages.admin import QuotaAlteration
from sim.protocol.messages.base import Request, Response
from sim.protocol.messages.cluster import NewTopic
from sim.protocol.metadata.versions import FEATURE
from sim.protocol.security.tokens import NamedToken
from sim.protocol.zk_mode.znodes import CONTROL_REQUESTS
from sim.scenario import tiered
from sim.scenario.behaviours.versions import before
from sim.scenario.faults import chance
from sim.scenario.faults.targets import Targets
from sim.scenario.model.acls import acls_of, check_has_authorizer
from sim.scenario.model.cluster import ClusterSpec
from sim.scenario.model.machines import LatencyModel
from sim.scenario.model.tokens import named_token
from sim.scenario.releases import upgrades
from sim.scenario.rules import cross as cross_rules
from sim.scenario.rules import hardware
from sim.scenario.rules.quotas import check_replication, quota_of
from sim.scenario.rules.topic_configs import changes_of, topic_configs, topic_settings
from sim.scenario.schema import faults as schema
from sim.scenario.settings import registry as settings
from sim.scenario.text.problems import Problem, nearest, one_of
from sim.substrate.distributions import Spread


@cache
def message_types() -> tuple[str, ...]:
    """Messages that can be held, dropped or delayed, by the names of Kafka's protocol.

    Those of :mod:`sim.protocol.messages`, whose modules are imported for it, and of a ZooKeeper
    controller.
    """
    modules = [
        import_module(f"{messages.__name__}.{m.name}") for m in iter_modules(messages.__path__)
    ]
    kinds = [kind for module in modules for kind in vars(module).values() if isinstance(kind, type)]
    found = {kind.__name__ for kind in kinds if issubclass(kind, Request | Response)}
    ours = sorted(found - {Request.__name__, Response.__name__})
    return (*ours, *(kind.__name__ for kind in CONTROL_REQUESTS))


def fault_of(index: int, model: schema.FaultModel, targets: Targets, cluster: ClusterSpec) -> Fault:
    """The fault of an entry, without its times: :func:`sim.scenario.faults.chance.timed` adds them.

    Args:
        index: Its place among the faults of the run.
        model: The entry, its form checked.
        targets: What may be named.
        cluster: For what depends on it.

    Raises:
        Problem: If it names what is not there.
    """
    _check_alternatives(model)
    entry = _Entry(model, targets, cluster)
    for name, key in model.kind.keys().items():
        value = model if key.form in ("quota", "acl") else getattr(model, name)
        if value is not None or key.form == "replica":
            resolve = _RESOLVERS.get(key.form)
            entry.values[name] = value if resolve is None else resolve(entry, key, value)
    lasts = getattr(model, "for_", None)
    return model.kind(index=index, at_us=0, for_us=lasts, name=model.name or "", **entry.values)


def _check_alternatives(model: schema.FaultModel) -> None:
    """Check that one of the keys is given that exclude each other."""
    keys = model.kind.alternatives
    given = [key for key in keys if getattr(model, key) is not None]
    if len(given) > 1:
        found = " beside ".join(reversed(given))
        raise Problem((given[-1],), found, "one of the two", f"remove {given[0]}")
    if keys and not given:
        raise Problem((keys[0],), "the key is missing", "", f"add {' or '.join(keys)}")


@dataclass(frozen=True, slots=True)
class _Entry:
    """An entry that is being resolved, one key after the other."""

    model: schema.FaultModel
    targets: Targets
    cluster: ClusterSpec
    values: dict[str, Any] = field(default_factory=dict)
    """By the fields of the kind."""

    def many_targets(self, key: Key, texts: tuple[str, ...]) -> tuple[Target, ...]:
        """Whom it hits, or one side of a link."""
        try:
            found = tuple(self.targets.parse(text) for text in texts)
        except Problem as problem:
            raise problem.below(key.name) from None
        before = [name for target in self.values.get("targets", ()) for name in target.names]
        both = [name for target in found for name in target.names if name in before]
        if both:
            allowed = "two sides without a common name"
            raise Problem((key.name,), f"{both[0]} is on both sides", allowed)
        return found

    def duration(self, key: Key, given: int) -> int:
        """More than zero, where zero would change nothing."""
        if not given and key.low:
            found = "0us changes nothing"
            raise Problem((key.name,), found, "more than zero", "leave the fault out")
        return given

    def spread(self, key: Key, model: LatencyModel) -> Spread:
        """A latency that is more than none."""
        p99_us = model.p50_us if model.p99_us is None else model.p99_us
        if not 0 < model.p50_us <= p99_us:
            found, allowed = (
                ("p50 above p99", "p50 at most p99") if model.p50_us else ("0us", "more than zero")
            )
            raise Problem((key.name, "p50"), found, allowed)
        return Spread(model.p50_us, p99_us)

    def message_types(self, key: Key, names: tuple[str, ...]) -> tuple[str, ...]:
        """Names of Kafka's protocol."""
        for name in names:
            if name not in message_types():
                near = nearest(name, message_types())
                raise Problem((key.name,), f"no message {name!r}", one_of(message_types()), near)
        return names

    def requests(self, key: Key, names: tuple[str, ...]) -> tuple[str, ...]:
        """Messages that go to a server."""
        for name in self.message_types(key, names):
            if not name.endswith("Request"):
                found = f"{name} is no request"
                allowed = "a request: what a client gets is in order, each byte once (TCP)"
                raise Problem((key.name,), found, allowed)
        return names

    def directory(self, key: Key, number: int) -> int:
        """A log directory that its targets may have."""
        count = self.cluster.disk.directories
        if number >= count:
            allowed = f"0 to {count - 1} (cluster.disk.directories)"
            raise Problem((key.name,), f"no log directory {number}", allowed)
        if number > 0 and any(
            target.kind == "controller leader"
            or any(name.startswith("controller-") for name in target.names)
            for target in self.values.get("targets", ())
            if target.kind != "rack" and target.text != "each rack"
        ):
            found = f"log directory {number} of a controller"
            raise Problem((key.name,), found, "0: it has only one")
        return number

    def other_directory(self, key: Key, number: int) -> int:
        """A log directory to which a replica can be moved."""
        if self.cluster.disk.directories < 2:
            raise Problem(
                (key.name,),
                "each broker has one log directory",
                "two or more, to move a replica between them",
                "add cluster.disk.directories",
            )
        return self.directory(key, number)

    def partition(self, key: Key, text: str) -> TopicPartition:
        """A partition by its name."""
        return self.targets.partition_under(key.name, text)

    def partitions(self, key: Key, texts: tuple[str, ...]) -> tuple[TopicPartition, ...]:
        """Partitions, or topics for all of theirs, each once."""
        found: list[TopicPartition] = []
        for text in texts:
            topic = self.targets.topics.get(text)
            if topic is None:
                found.append(self.partition(key, text))
            else:
                found += [TopicPartition(text, number) for number in range(topic.partitions)]
        for place in found:
            if found.count(place) > 1:
                raise Problem((key.name,), f"{place} twice", "each partition once")
        return tuple(found)

    def group(self, key: Key, name: str) -> str:
        """A group of the scenario, but none of another kind than consumers'."""
        known = self.targets.consumer_groups
        if name not in known:
            allowed = ", ".join(known) or "no groups of consumers in this scenario"
            raise Problem((key.name,), f"no group {name!r}", allowed, nearest(name, known))
        return name

    def replica(self, key: Key, text: str | None) -> TopicPartition:
        """The partition that is given, or that the target names."""
        (target,) = self.values["targets"]
        named: TopicPartition | None = target.partition
        if text is not None:
            named = self.partition(key, text)
        if named is None:
            raise Problem(
                ("target",),
                f"{target.text!r} names no partition",
                "a target such as leader of orders-0, or a key partition",
                "add partition: TOPIC-NUMBER",
            )
        return named

    def topic(self, key: Key, name: str) -> NewTopic:
        """A topic of the scenario, as it is created."""
        topic = self.targets.topics.get(name)
        if topic is None:
            known = tuple(self.targets.topics)
            found = f"no topic {name!r}"
            raise Problem((key.name,), found, ", ".join(known), nearest(name, known))
        return NewTopic(
            topic.name,
            topic.partitions,
            topic.replication_factor,
            topic_configs(topic.config),
            topic.assignment,
        )

    def more_partitions(self, key: Key, count: int) -> int:
        """More than the topic has."""
        topic: NewTopic = self.values["topic"]
        if count <= topic.partitions:
            raise Problem(
                (key.name,),
                f"{count} partitions, but {topic.name} has {topic.partitions} from the start",
                f"more than {topic.partitions}",
                "Kafka cannot take partitions away",
            )
        return count

    def config(self, key: Key, given: Mapping[str, object]) -> tuple[ConfigChange, ...]:
        """Settings of the topic, checked beside those that it has."""
        topic = self.targets.topics[self.values["topic"].name]
        tiered.check_change(given)
        try:
            config = settings.resolve("topic", given, self.cluster.config)
        except Problem as problem:
            raise problem.below(key.name) from None
        # A setting that is not modelled can only have been given Kafka's default: no change.
        settled = topic.config.changed({n: config[n] for n in given if n in config})
        changed = topic.model_copy(update={"config": settled})
        nodes = [server.node for server in self.cluster.brokers]
        cross_rules.check_topic(changed, nodes, given)
        tiered.check_topic(changed, self.cluster.config, given)
        texts = dict(topic_settings(changed.config))
        return tuple(
            ConfigChange(name, changed.config[name], texts[name]) for name in given if name in texts
        )

    def broker_config(
        self, key: Key, given: Mapping[str, object]
    ) -> tuple[BrokerConfigChange, ...]:
        """Settings that brokers may change while they run."""
        try:
            one = self.values.get("broker") is not None
            hardware.check_cordoned(given.get(hardware.CORDONED), self.cluster.disk.directories)
            return changes_of(given, self.cluster.config, one_broker=one)
        except Problem as problem:
            raise problem.below(key.name) from None

    def broker(self, key: Key, name: str) -> NodeId:
        """A broker's number."""
        numbers = {server.name: server.node for server in self.cluster.brokers}
        if name not in numbers:
            known = tuple(numbers)
            found = f"no broker {name!r}"
            raise Problem((key.name,), found, ", ".join(known), nearest(name, known))
        return numbers[name]

    def brokers(self, key: Key, names: tuple[str, ...]) -> tuple[NodeId, ...]:
        """Brokers' numbers, each once."""
        for place, name in enumerate(names):
            self.broker(key, name)
            if name in names[:place]:
                raise Problem((key.name,), f"{name} twice", "each broker once")
        return tuple(self.broker(key, name) for name in names)

    def quota(self, _: Key, model: Any) -> QuotaAlteration:  # noqa: ANN401 - entry and quota
        """One entity's quotas."""
        check_replication(self.cluster)
        return quota_of(model, self.targets.client_ids, self.targets.addresses)

    def acl(self, _: Key, model: Any) -> tuple[Acl, ...]:  # noqa: ANN401 - entry and ACL
        """The ACLs of an entry."""
        check_has_authorizer(self.cluster)
        return acls_of(model)

    def token(self, key: Key, name: str) -> NamedToken:
        """A delegation token of the scenario."""
        try:
            return named_token(self.cluster, name)
        except Problem as problem:
            raise problem.below(key.name) from None

    def user(self, key: Key, name: str) -> str:
        """A user of the clients' listener."""
        security = self.cluster.security
        known = () if security is None else tuple(security.users)
        if name not in known:
            raise Problem((key.name,), f"no user {name!r}", one_of(known), nearest(name, known))
        return name

    def release(self, _: Key, name: str) -> Release:
        """A release, with the levels to which its features are upgraded."""
        return Release(name, before(name), tuple(upgrades.levels_of(name).items()))

    def metadata_release(self, _: Key, name: str) -> Release:
        """A release, with its ``metadata.version`` alone."""
        return Release(name, before(name), ((FEATURE, upgrades.levels_of(name)[FEATURE]),))

    def choices(self, key: Key, models: list[schema.FaultModel]) -> tuple[Fault, ...]:
        """Faults without times of their own."""
        recurs = getattr(self.model, "mtbf", None) is not None
        found: list[Fault] = []
        for place, choice in enumerate(models):
            try:
                chance.check_choice(choice, recurs=recurs)
                found.append(fault_of(place, choice, self.targets, self.cluster))
            except Problem as problem:
                raise problem.below(key.name, place) from None
        return tuple(found)


_RESOLVERS: Final[dict[Form, Callable[[_Entry, Key, Any], object]]] = {
    "targets": _Entry.many_targets,
    "target": lambda entry, key, text: entry.many_targets(key, (text,)),
    "side": _Entry.many_targets,
    "messages": _Entry.message_types,
    "requests": _Entry.requests,
    "duration": _Entry.duration,
    "spread": _Entry.spread,
    "directory": _Entry.directory,
    "other directory": _Entry.other_directory,
    "partition": _Entry.partition,
    "replica": _Entry.replica,
    "partitions": _Entry.partitions,
    "group": _Entry.group,
    "topic": _Entry.topic,
    "more partitions": _Entry.more_partitions,
    "config": _Entry.config,
    "broker config": _Entry.broker_config,
    "broker": _Entry.broker,
    "brokers": _Entry.brokers,
    "quota": _Entry.quota,
    "acl": _Entry.acl,
    "token": _Entry.token,
    "user": _Entry.user,
    "release": _Entry.release,
    "metadata release": _Entry.metadata_release,
    "faults": _Entry.choices,
}
"""Of forms whose values are more than what is written."""
