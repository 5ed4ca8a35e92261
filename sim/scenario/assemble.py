"""From checked keys to frozen parts: defaults filled in, names resolved, parts checked together.

Source of the modelling defaults: section 5.3 of the semantics (network, disk and CPU figures).
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from sim.ids import FIRST_CONTROLLER_ID, FIRST_ZOOKEEPER_ID, OFFSETS_TOPIC, NodeId
from sim.scenario import tiered
from sim.scenario.behaviours import registry as behaviours
from sim.scenario.expect.lines import Known
from sim.scenario.faults import calendar
from sim.scenario.faults.targets import Targets
from sim.scenario.model import acls, authentication, groups
from sim.scenario.model.apps import ProcessorModel, ProcessorSpec
from sim.scenario.model.clients import (
    ConsumerModel,
    ConsumerSpec,
    ProducerModel,
    ProducerSpec,
)
from sim.scenario.model.cluster import ClusterModel, ClusterSpec, ServerSpec, ZooKeeperModel
from sim.scenario.model.topics import TopicModel, TopicSpec
from sim.scenario.model.types import filled
from sim.scenario.off_default import off_default
from sim.scenario.releases import clients as release_rules
from sim.scenario.releases import upgrades
from sim.scenario.rules import (
    connectors,
    hardware,
    heaps,
    internal_topics,
    limits,
    load,
    membership,
    mirrors,
    quorum,
    quotas,
    replication,
    share_groups,
    tasks,
    topic_configs,
    transactions,
    zookeeper,
)
from sim.scenario.rules import cross as cross_rules
from sim.scenario.rules import groups as group_rules
from sim.scenario.rules import rebalance as rebalance_rules
from sim.scenario.rules.assignments import assignment
from sim.scenario.rules.rebalance import with_rebalance
from sim.scenario.scenario import Scenario
from sim.scenario.schema.file import ScenarioModel
from sim.scenario.settings import partitioners, proposed
from sim.scenario.settings import registry as settings
from sim.scenario.settings.resolved import Config
from sim.scenario.text.names import check_name
from sim.scenario.text.problems import Problem, gather, nearest, one_of
from sim.units import Micros

T = TypeVar("T")
M = TypeVar("M")


def assemble(model: ScenarioModel, name: str, directory: Path | None = None) -> Scenario:
    """The scenario of a checked file.

    Raises:
        Problem: If parts do not fit each other.
    """
    limits.check_counts(model)
    run = model.run
    if run.for_us == 0:
        raise Problem(("run", "for"), "0us", "more than zero")
    cluster = _below(("cluster",), lambda: build_cluster(model.cluster))
    topics = gather(
        partial(_below, ("topics", key), partial(_topic, key, topic, cluster))
        for key, topic in model.topics.items()
    )
    rebalance = model.behaviours.get("rebalance", "")
    clients = _Clients(cluster, topics, run.for_us, rebalance, directory)
    producers = _made("producers", clients.producer, model.producers)
    consumers = _made("consumers", clients.consumer, model.consumers)
    processors = _made("processors", clients.processor, model.processors)
    _below(("consumers",), lambda: _check_groups(consumers, processors))
    mirrored = mirrors.mirrors_of(model, cluster, topics, (*producers, *consumers, *processors))
    connected = connectors.connectors_of(
        model, cluster, topics, (*producers, *consumers, *processors, *mirrored)
    )
    tiered.check_readers(topics, consumers)
    internal_topics.check(cluster, producers, consumers, processors, connected)
    _check_behaviours(model, cluster, (*consumers, *processors))
    positions = _positions(model, cluster)
    group_rules.check_fences(processors, positions)
    release_rules.check_transactions(cluster, positions, producers, processors, connected)
    acls.check_clients(cluster, producers, consumers)
    altered = any(fault.kind.has_key("quota") for fault in model.faults)
    beside = {key: getattr(model, key) for key in acls.ALONE} | {"faults": altered}
    acls.check_alone(cluster.config, beside)
    authentication.check_clients(cluster, producers, consumers)
    authentication.check_alone(cluster, beside)
    authentication.check_tasks(processors, connected, mirrored)
    targets = Targets(cluster, topics, (*producers, *consumers, *processors, *connected, *mirrored))
    at = "cluster", "config"
    _below(at, lambda: quotas.check_overrides(cluster.config, targets.addresses))
    scenario = Scenario(
        claim=" ".join(model.claim.split()),
        cluster=cluster,
        topics=topics,
        producers=producers,
        consumers=consumers,
        processors=processors,
        connectors=connected,
        clusters=mirrors.others_of(model, mirrored, partial(assemble, directory=directory)),
        mirrors=mirrored,
        faults=_below(("faults",), lambda: calendar.build(model.faults, targets, cluster, run)),
        run=run,
        expect=_below(
            ("expect",),
            lambda: Known(cluster, topics, consumers, run, producers).lines(model.expect),
        ),
        behaviours=positions,
        quotas=_below(
            ("quotas",),
            lambda: quotas.quotas_of(model.quotas, targets.client_ids, targets.addresses, cluster),
        ),
        acls=_below(("acls",), lambda: acls.first_acls(model.acls, cluster)),
        groups=groups.groups_of(model.groups, cluster, (*consumers, *processors), positions),
        name=name,
    )
    _below(("faults",), lambda: _check_faults(scenario))
    upgrades.check(scenario)
    limits.check(scenario)
    return off_default(scenario)


def _made(key: str, make: Callable[[M], T], models: Sequence[M]) -> tuple[T, ...]:
    return gather(
        partial(_below, (key, at), partial(make, model)) for at, model in enumerate(models)
    )


def _check_faults(scenario: Scenario) -> None:
    """Check that the faults go with what keeps the cluster's logs and its metadata."""
    cluster, faults = scenario.cluster, scenario.faults
    replication.check_faults(cluster.replication, faults)
    tiered.check_faults(faults, scenario.topics, has_store=cluster.object_store is not None)
    has_ensemble = cluster.zookeeper is not None
    zookeeper.check_faults(faults, zookeeper=has_ensemble, version=cluster.kafka)
    topic_configs.check_faults(faults, scenario.behaviours)
    load.check_surges(scenario.producers, faults)


def _check_groups(
    consumers: tuple[ConsumerSpec, ...], processors: tuple[ProcessorSpec, ...]
) -> None:
    """Check that the members of each group agree on what it is."""
    rebalance_rules.check_instances(consumers)
    kinds = {"consumer": group_rules.GENERAL_SINCE, "share": share_groups.SINCE}
    release_rules.check_groups(consumers, kinds)
    task_groups = [task.group for task in processors]
    group_rules.check_tasks(consumers, processors)
    share_groups.check_groups(consumers, task_groups)


def _check_behaviours(
    model: ScenarioModel, cluster: ClusterSpec, members: group_rules.Members
) -> None:
    """Check that behaviours that the file names go with what keeps its logs and its metadata."""
    given, governed = model.behaviours, cluster.zookeeper is not None
    _below(("behaviours",), lambda: replication.check_behaviours(cluster.replication, given))
    _below(("behaviours",), lambda: zookeeper.check_behaviours(given, zookeeper=governed))
    known = _positions(model, cluster)
    _below(("cluster", "config"), lambda: group_rules.check_intervals(cluster.config, known))
    proposed.check_all(model.cluster.config, {n: t.config for n, t in model.topics.items()}, known)
    _below(("behaviours",), lambda: transactions.check_behaviours(given, known))
    group_rules.check_coordinator(given, known, cluster.config, members)


def _positions(model: ScenarioModel, cluster: ClusterSpec) -> Mapping[str, str]:
    """Every switch's position: the file's, else the version's, with its races if threads meet."""
    return _below(
        ("behaviours",),
        lambda: behaviours.resolve(model.behaviours, cluster.kafka, preempted=cluster.preempts),
    )


def _below(path: tuple[str | int, ...], make: Callable[[], T]) -> T:
    try:
        return make()
    except Problem as problem:
        raise problem.below(*path) from None


def build_cluster(model: ClusterModel) -> ClusterSpec:
    """The cluster of checked keys.

    Raises:
        Problem: With a path below ``cluster``.
    """
    model = hardware.with_presets(model)
    brokers = _brokers(model)
    racks = tuple(model.rack_counts or ())
    kafka = model.kafka
    governed = model.zookeeper is not None
    if governed:
        kafka = zookeeper.version_of(kafka, is_given="kafka" in model.model_fields_set)
        zookeeper.check_cluster(model, kafka)
    replication.check_version(model.replication, kafka)
    config = _below(("config",), lambda: _given_settings(model, kafka))
    first = membership.initial_brokers(model, len(brokers))
    _below(("config",), lambda: _check_settings(model, config, kafka, first or len(brokers)))
    controllers = () if governed else _voters(model, brokers, racks)
    hardware.check_disk(model.disk)
    if not governed:
        hardware.check_directories(model.disk, kafka, config.text(hardware.CORDONED))
    initial = quorum.initial_controllers(
        model.quorum, model.initial_controllers, len(controllers), model.kafka
    )
    zookeepers = _zookeepers(model.zookeeper, racks)
    tiered.check_cluster(model, config, first or len(brokers))
    _below(("heap",), lambda: heaps.check_heap(model.heap, model.replication))
    ids = [server.node for server in brokers]
    is_apart = not governed and not model.combined
    cluster = filled(
        ClusterSpec,
        model,
        kafka=kafka,
        broker_count=None if racks else len(brokers),
        ids=None if ids == list(range(1, len(ids) + 1)) else ids,
        initial_brokers=first,
        controller_counts=_counts(controllers, racks) if is_apart else None,
        quorum="dynamic" if initial else "static",
        initial_controllers=initial,
        zookeeper=model.zookeeper
        and model.zookeeper.model_copy(update={"servers": _counts(zookeepers, racks)}),
        config=config,
        network=hardware.network(model.network),
        brokers=brokers,
        controllers=controllers,
        zookeepers=zookeepers,
        placed=(),
        hardware=None,
    )
    acls.check_cluster(cluster)
    authentication.check_cluster(cluster)
    computers = hardware.of_servers(model.hardware, cluster)
    given = {str(topic): placed for topic, placed in model.internal_replicas.items()}
    placed = _below(("internal.replicas",), lambda: internal_topics.assignments(given, cluster))
    return cluster.model_copy(update={"placed": placed, "hardware": computers})


def _brokers(model: ClusterModel) -> tuple[ServerSpec, ...]:
    if model.broker_count is not None and model.rack_counts is not None:
        raise Problem(("brokers",), "brokers beside racks", "one of the two", "remove brokers")
    racks = model.rack_counts or {}
    homes = [rack for rack, count in racks.items() for _ in range(count)]
    if not racks:
        homes = [""] * (model.broker_count or 3)
    if not homes:
        raise Problem(("racks",), "no broker in any rack", "at least one broker")
    for rack in racks:
        check_name(("racks", rack), rack)
    ids = membership.broker_ids(model.ids, len(homes))
    return tuple(ServerSpec(node, rack) for node, rack in zip(ids, homes, strict=True))


def _given_settings(model: ClusterModel, kafka: str) -> Config:
    replication.check_settings(model.replication, model.config)
    zookeeper.check_settings(model.config, zookeeper=model.zookeeper is not None)
    return settings.resolve("broker", model.config, version=kafka)


def _check_settings(model: ClusterModel, config: Config, kafka: str, brokers: int) -> None:
    cross_rules.check_cluster(config, brokers)
    membership.check_balancing(model, config)
    group_rules.check_broker(config)
    share_groups.check_broker(config, kafka)


def _counts(servers: Sequence[ServerSpec], racks: Sequence[str]) -> int | dict[str, int]:
    """Number of servers, by racks if there are some."""
    if not racks:
        return len(servers)
    return {rack: sum(server.rack == rack for server in servers) for rack in racks}


def _voters(
    model: ClusterModel, brokers: tuple[ServerSpec, ...], racks: tuple[str, ...]
) -> tuple[ServerSpec, ...]:
    if model.combined_count is None:
        return _controllers(
            3 if model.controller_counts is None else model.controller_counts, racks
        )
    if model.controller_counts is not None:
        raise Problem(
            ("controllers",),
            "controllers beside combined",
            "one of the two",
            "remove controllers: the first brokers are the controllers",
        )
    if model.quorum != "static":
        raise Problem(("quorum",), f"{model.quorum} with combined", "static")
    return quorum.combined(model.combined_count, brokers, racks)


def _zookeepers(model: ZooKeeperModel | None, racks: tuple[str, ...]) -> tuple[ServerSpec, ...]:
    if model is None:
        return ()
    if model.tick_us == 0:
        raise Problem(("zookeeper", "tickTime"), "0us", "more than zero")
    servers = _below(("zookeeper",), lambda: _homes(model.servers, racks, "servers"))
    return _numbered(servers, FIRST_ZOOKEEPER_ID)


def _controllers(given: int | dict[str, int], racks: tuple[str, ...]) -> tuple[ServerSpec, ...]:
    return _numbered(_homes(given, racks, "controllers"), FIRST_CONTROLLER_ID)


def _numbered(homes: list[str], first: NodeId) -> tuple[ServerSpec, ...]:
    return tuple(ServerSpec(first + number, rack) for number, rack in enumerate(homes))


def _homes(given: int | dict[str, int], racks: tuple[str, ...], key: str) -> list[str]:
    for rack in given if isinstance(given, dict) else ():
        if rack not in racks:
            known = one_of(racks) or "a whole number, for there are no racks"
            raise Problem((key, rack), f"no rack {rack!r}", known, nearest(rack, racks))
    count = given if isinstance(given, int) else sum(given.values())
    if not 1 <= count <= 99:
        raise Problem((key,), f"{count} {key}", "1 to 99")
    if isinstance(given, int):
        # One rack after the other, so that losing a rack takes as few controllers as can be.
        return [racks[number % len(racks)] if racks else "" for number in range(given)]
    return [rack for rack in racks for _ in range(given.get(rack, 0))]


def _topic(name: str, model: TopicModel, cluster: ClusterSpec) -> TopicSpec:
    check_name((), name)
    _below(("config",), lambda: replication.check_settings(cluster.replication, model.config))
    if name == OFFSETS_TOPIC or name.startswith("__"):
        raise Problem((), f"{name!r} is internal to Kafka", "a name of your own")
    config = _below(("config",), lambda: settings.resolve("topic", model.config, cluster.config))
    factor = model.replication_factor
    placed = assignment(model.replicas, model.partitions, factor, cluster)
    topic = filled(TopicSpec, model, name=name, assignment=placed, config=config)
    cross_rules.check_topic(topic, [server.node for server in cluster.first_brokers], model.config)
    tiered.check_topic(topic, cluster.config, model.config)
    return topic


class _Clients:
    """Producers and consumers, with what has been taken by earlier ones."""

    def __init__(
        self,
        cluster: ClusterSpec,
        topics: Sequence[TopicSpec],
        end_us: Micros,
        rebalance: str,
        directory: Path | None,
    ) -> None:
        self._rebalance = rebalance
        self._directory = directory
        self._cluster = cluster
        self._topics = {topic.name: topic for topic in topics}
        self._end_us = end_us
        self._taken = {server.name: "a server" for server in cluster.brokers}
        governing = (*cluster.controllers, *cluster.zookeepers)
        self._taken.update({server.name: "a server" for server in governing})

    def producer(self, model: ProducerModel) -> ProducerSpec:
        """One entry of ``producers``."""
        self._check_name("name", model.name)
        topic = self._topic("topic", model.topic)
        release = release_rules.client_release(model.kafka, self._cluster)
        keys, skew = load.keys(model)
        config = _below(
            ("config",),
            lambda: cross_rules.producer_config(
                settings.resolve("producer", model.config, version=release),
                model.config,
                partitions=True,
            ),
        )
        source = _below(("config",), lambda: self._partitioner(config))
        record_size = load.record_size(model, config, topic)
        stop = self._end_us if model.stop_us is None else model.stop_us
        self._check_times(model.start_us, stop)
        load.check_arrivals(model)
        transactions.check(model, config, self._cluster.config)
        self._check_rack(model.rack)
        heaps.check_per_request(model)
        producer = filled(
            ProducerSpec,
            model,
            record_size=record_size,
            rate_per_s=load.rate(model, config, self._cluster),
            key_count=keys,
            key_skew=skew,
            stop_us=stop,
            config=config,
            partitioner_source=source,
        )
        self._take("name", (producer.name, *producer.client_names))
        return producer

    def consumer(self, model: ConsumerModel) -> ConsumerSpec:
        """One entry of ``consumers``."""
        group = model.group
        name = model.name or group or "consumer"
        key = "group" if model.name is None else "name"
        self._check_name(key, name)
        topics = group_rules.subscribed_topics(model, self._cluster, self._topics)
        for topic in topics:
            self._topic("topics", topic)
        release = release_rules.client_release(model.kafka, self._cluster)
        given = group_rules.with_commits(
            with_rebalance(model.config, self._rebalance if group else "", name),
            model.commits,
            in_group=bool(group),
        )
        config = _below(
            ("config",),
            lambda: cross_rules.consumer_config(
                settings.resolve("consumer", given, version=release),
                given,
                self._cluster.config,
                in_group=bool(group),
            ),
        )
        _below(("config",), lambda: cross_rules.check_client_rack(config, self._cluster))
        _below(
            ("config",),
            lambda: group_rules.check_member(config, model.config, self._cluster, group),
        )
        self._check_times(model.start_us, model.stop_us)
        self._check_rack(model.rack)
        share_groups.check_share(model, config, model.config, self._cluster)
        consumer = filled(ConsumerSpec, model, name=name, config=config, topics=topics)
        self._take(key, (consumer.name, *consumer.client_names))
        return consumer

    def processor(self, model: ProcessorModel) -> ProcessorSpec:
        """One entry of ``processors``."""
        self._check_name("name", model.name)
        for topic in model.topics:
            self._topic("topics", topic)
        output = self._topic("output", model.output)
        self._check_times(model.start_us, model.stop_us)
        self._check_rack(model.rack)
        processor = tasks.processor(model, self._cluster, output, self._rebalance)
        _below(
            ("record.size",),
            lambda: cross_rules.check_record(model.record_size, processor.producer, output),
        )
        self._take("name", (processor.name, *processor.client_names))
        return processor

    def _topic(self, key: str, name: str) -> TopicSpec:
        topic = self._topics.get(name)
        if topic is None:
            known = one_of(self._topics)
            raise Problem((key,), f"no topic {name!r}", known, nearest(name, self._topics))
        return topic

    def _partitioner(self, config: Config) -> str:
        given = config.text(partitioners.NAME)
        if config.text("transactional.id") and partitioners.is_chosen(config):
            raise Problem(
                (partitioners.NAME,),
                f"{given} with transactional.id, which is not modelled",
                "the built-in partitioner for transactions",
                "leave it out",
            )
        return partitioners.source_of(given, config.version, self._directory)

    def _check_rack(self, rack: str | None) -> None:
        racks = self._cluster.racks
        if rack is not None and rack not in racks:
            known = one_of(racks) or "no rack, for the cluster has none"
            raise Problem(("rack",), f"no rack {rack!r}", known, nearest(rack, racks))

    def _check_times(self, start: Micros, stop: Micros | None) -> None:
        if start >= self._end_us:
            raise Problem(("start",), "not before the end of the run", "less than run.for")
        if stop is not None and not start < stop <= self._end_us:
            raise Problem(("stop",), "not between start and run.for", "after start, by run.for")

    def _check_name(self, key: str, name: str) -> None:
        check_name((key,), name)

    def _take(self, key: str, names: Sequence[str]) -> None:
        for name in dict.fromkeys(names):
            if name in self._taken:
                found = f"{name!r} is {self._taken[name]} already"
                raise Problem((key,), found, "a name of its own", "give it a name: of its own")
            self._taken[name] = "a client"
