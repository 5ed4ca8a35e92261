"""A scenario: what is claimed, what is built, what goes wrong, what must hold.

Frozen, with every default filled in. Made by :mod:`sim.scenario.loader`, from which runs are built.

Its canonical form can be loaded again and gives the same scenario. Only settings that are modelled
are in it: the others have Kafka's default, or the loader would have refused them.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar, cast

import yaml

from sim.faults.fault import Fault
from sim.ids import TopicPartition
from sim.protocol.acls import Acl
from sim.protocol.messages.admin import QuotaAlteration
from sim.scenario.behaviours import registry as behaviours
from sim.scenario.behaviours.races import RACES
from sim.scenario.canonical import faults as canonical_faults
from sim.scenario.expect import lines as expectation_lines
from sim.scenario.model.acls import RIGHTS, acl_keys, has_authorizer
from sim.scenario.model.apps import ConnectorSpec, MirrorSpec, ProcessorSpec
from sim.scenario.model.clients import ConsumerSpec, ProducerSpec
from sim.scenario.model.cluster import ClusterSpec
from sim.scenario.model.groups import GroupSpec
from sim.scenario.model.machines import CpuModel, QuantilesModel
from sim.scenario.model.run import Expectation, RunModel
from sim.scenario.model.tokens import TOKEN_SETTINGS
from sim.scenario.model.topics import TopicSpec
from sim.scenario.settings import partitioners
from sim.scenario.settings import raft as settings_raft
from sim.scenario.settings import zookeeper as settings_zookeeper
from sim.scenario.settings.proposed import NAMES as PROPOSED
from sim.scenario.settings.registry import default_of
from sim.scenario.text.plain import Plain

T = TypeVar("T")

_OPTIONAL: Final = ("processors", "connectors", "clusters", "mirrors", "quotas", "acls", "groups")
"""Keys that are written only with something below them."""

_LATER: Final = (
    "follower.fetch.last.tiered.offset.enable",
    "cordoned.log.dirs",
    "group.share.initialize.retry.interval.ms",
    *TOKEN_SETTINGS,
    *PROPOSED,
)
"""Brokers' settings that are written only off their default, so that they moved no digest."""

_OF_OTHERS: Final = ("cluster", "topics", "producers", "consumers", "faults", "expect")
"""Keys of another cluster."""


@dataclass(frozen=True, slots=True)
class OffDefault:
    """One value of the scenario that differs from its default."""

    path: str
    """Dotted path, as in an error message."""
    value: str
    default: str


@dataclass(frozen=True, slots=True)
class OtherCluster:
    """A cluster beside the scenario's own, with its clients."""

    alias: str
    distance: QuantilesModel
    """One-way delay of a message between the two regions."""
    scenario: "Scenario"
    """All that happens there: topics, clients, faults, expectations; mirrored topics included."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario that can be run."""

    claim: str
    cluster: ClusterSpec
    topics: tuple[TopicSpec, ...]
    producers: tuple[ProducerSpec, ...]
    consumers: tuple[ConsumerSpec, ...]
    faults: tuple[Fault, ...]
    run: RunModel
    expect: tuple[Expectation, ...]
    behaviours: Mapping[str, str]
    quotas: tuple[QuotaAlteration, ...]
    acls: tuple[Acl, ...] = ()
    """ACLs from the start."""
    groups: tuple[GroupSpec, ...] = ()
    """Groups with settings of their own."""
    processors: tuple[ProcessorSpec, ...] = ()
    connectors: tuple[ConnectorSpec, ...] = ()
    clusters: tuple[OtherCluster, ...] = ()
    mirrors: tuple[MirrorSpec, ...] = ()
    """From the scenario's own cluster to others."""
    is_target: bool = False
    """True if mirrors of another scenario write to its cluster."""
    name: str = "scenario"
    """Its file's name, without the ending."""
    off_default: tuple[OffDefault, ...] = ()
    """Every setting and quantity off its default, for the run card."""
    _texts: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Texts made of it once: the run card is written twice, and YAML is slow to write."""

    def as_yaml(self) -> str:
        """The text of ``scenario.yaml`` in a run directory; loading it gives the same scenario."""
        return self._once("yaml", lambda: _dump(document(self)))

    @property
    def digest(self) -> str:
        """SHA-256 of :meth:`as_yaml`, the seed left out."""
        return self._once("digest", self._digest)

    def _once(self, name: str, make: Callable[[], str]) -> str:
        if name not in self._texts:
            self._texts[name] = make()
        return self._texts[name]

    def _digest(self) -> str:
        plain = document(self)
        del cast("dict[str, Plain]", plain["run"])["seed"]
        whole = [_dump(plain), *(text for pair in self.modules for text in pair)]
        return hashlib.sha256("".join(whole).encode()).hexdigest()

    @property
    def modules(self) -> tuple[tuple[str, str], ...]:
        """Python files that the scenario names: name and text of each, once."""
        files: dict[str, str] = {}
        for producer in self.producers:
            own = partitioners.own_class(producer.config.text(partitioners.NAME))
            if own is not None:
                files[own.file] = producer.partitioner_source
        for other in self.clusters:
            files |= dict(other.scenario.modules)
        return tuple(files.items())

    def topic(self, name: str) -> TopicSpec:
        """The topic of that name.

        Raises:
            KeyError: If there is none; the loader has seen to it for every name in the scenario.
        """
        for topic in self.topics:
            if topic.name == name:
                return topic
        raise KeyError(name)

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """Every partition of every topic, in the order of the file."""
        return tuple(
            TopicPartition(topic.name, number)
            for topic in self.topics
            for number in range(topic.partitions)
        )

    def client_behaviours(self, release: str) -> Mapping[str, str]:
        """Positions of the switches for a client of a release."""
        cluster = self.cluster
        return behaviours.at_release(
            self.behaviours, cluster.kafka, release, "client", preempted=cluster.preempts
        )

    @property
    def producer_names(self) -> tuple[str, ...]:
        """Printed names of all producers; a producer's place is its producer index."""
        return tuple(name for producer in self.producers for name in producer.client_names)

    @property
    def consumer_names(self) -> tuple[str, ...]:
        """Printed names of all consumers."""
        return tuple(name for consumer in self.consumers for name in consumer.client_names)


def document(scenario: Scenario) -> dict[str, Plain]:
    """The scenario as plain data, every default filled in, keys in the order of the file."""
    cluster = scenario.cluster
    plain: dict[str, Plain] = {
        "claim": scenario.claim,
        "cluster": _configured(cluster, cluster),
        "topics": {topic.name: _configured(topic, cluster) for topic in scenario.topics},
        "producers": [each.plain() for each in scenario.producers],
        "consumers": [each.plain() for each in scenario.consumers],
        "processors": [each.plain() for each in scenario.processors],
        "connectors": [each.plain() for each in scenario.connectors],
        "clusters": {each.alias: _other(each, scenario.mirrors) for each in scenario.clusters},
        "mirrors": [each.plain() for each in scenario.mirrors],
        "faults": [canonical_faults.entry(fault) for fault in scenario.faults],
        "run": scenario.run.plain(),
        "expect": cast("Plain", expectation_lines.plain(scenario.expect)),
        "behaviours": _behaviours(scenario),
        "quotas": [canonical_faults.quota_keys(quota) for quota in scenario.quotas],
        "acls": [acl_keys([acl]) for acl in scenario.acls],
        "groups": {group.name: group.plain() for group in scenario.groups},
    }
    return {key: value for key, value in plain.items() if value or key not in _OPTIONAL}


def _configured(part: ClusterSpec | TopicSpec, cluster: ClusterSpec) -> dict[str, Plain]:
    config: dict[str, Plain] = dict(_applying(cluster, part.config))
    if part is cluster and not has_authorizer(cluster.config):
        # They came later, and move no digest of a scenario without an authorizer.
        config = {name: value for name, value in config.items() if name not in RIGHTS}
    for name in _LATER:
        if config.get(name) == default_of("broker", name, part.config.version):
            config.pop(name, None)
    return part.plain() | {"config": config}


def _other(other: OtherCluster, mirrors: Sequence[MirrorSpec]) -> Plain:
    whole = document(other.scenario)
    made = [mirror.target_topic for mirror in mirrors if mirror.target == other.alias]
    topics = cast("dict[str, Plain]", whole["topics"])
    whole["topics"] = {name: topic for name, topic in topics.items() if name not in made}
    return {key: whole[key] for key in _OF_OTHERS} | {"distance": other.distance.plain()}


def _behaviours(scenario: Scenario) -> dict[str, Plain]:
    """Those that mean something here; a scenario without mirrors has none of mirrors.

    Races are written out where they are run, and where threads are preempted, so that they move no
    digest of other scenarios; quiet ones where they are not as the version has them.
    """
    version = scenario.cluster.kafka
    unsaid = {each.name: each.at(version) for each in behaviours.BEHAVIOURS if each.is_quiet}
    is_open = scenario.cluster.cpu.preempted != CpuModel.model_construct().preempted
    if not is_open:
        unsaid |= {race.name: race.default for race in RACES}
    return {
        name: choice
        for name, choice in _applying(scenario.cluster, scenario.behaviours).items()
        if (scenario.mirrors or not name.startswith("mirror.")) and unsaid.get(name) != choice
    }


def _applying(cluster: ClusterSpec, values: Mapping[str, T]) -> dict[str, T]:
    """Settings or behaviours that mean something in this cluster."""
    return settings_zookeeper.that_apply(
        settings_raft.that_apply(cluster.replication, values),
        zookeeper=cluster.zookeeper is not None,
    )


def _dump(plain: Mapping[str, Plain]) -> str:
    return yaml.safe_dump(dict(plain), sort_keys=False, width=100, allow_unicode=True)
