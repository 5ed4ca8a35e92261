"""From a scenario to a cluster that is ready to start: hosts, disks, servers, clients.

Every server has a host of its own; every client too, in a rack if the scenario says so, else on the
clients' own network.
"""

from dataclasses import replace
from pathlib import Path

from sim.ids import FIRST_ZOOKEEPER_ID, OBJECT_STORE_ID, server_name
from sim.kernel import Kernel
from sim.log.directory.names import directory_name
from sim.log.store.files import FileStore
from sim.nodes.apps.processor import ProcessorNode
from sim.nodes.broker.combined import CombinedNode
from sim.nodes.broker.node import BrokerNode
from sim.nodes.clients.admin import AdminNode
from sim.nodes.clients.closed_loop import ClosedLoopNode
from sim.nodes.clients.consumer import ConsumerConfig, ConsumerNode
from sim.nodes.clients.per_request_producer import PerRequestProducerNode
from sim.nodes.clients.producer import ProducerClient, ProducerNode
from sim.nodes.clients.share_consumer import ShareConsumerNode
from sim.nodes.clients.transactional_producer import TransactionalProducerNode
from sim.nodes.cluster import Cluster
from sim.nodes.controller.node import ControllerNode
from sim.nodes.object_store import ObjectStoreNode
from sim.nodes.process.base import Node
from sim.nodes.zookeeper.node import ZooKeeperNode
from sim.protocol.messages.cluster import NewTopic
from sim.protocol.zk_mode.trace_rows import ZkTraceRows
from sim.rng import Streams
from sim.scenario.build import client_configs, tiered, translate
from sim.scenario.build import zookeeper as zookeeper_runs
from sim.scenario.build.partitioners import partitioner_of
from sim.scenario.build.servers import ServerSettings
from sim.scenario.build.workloads import surges_of, workload_of
from sim.scenario.model import authentication
from sim.scenario.model.clients import ConsumerSpec, ProducerSpec
from sim.scenario.model.cluster import ServerSpec
from sim.scenario.model.tokens import first_tokens
from sim.scenario.releases import upgrades
from sim.scenario.rules import share_groups
from sim.scenario.rules.internal_topics import offsets_topic
from sim.scenario.rules.topic_configs import (
    may_be_compacted,
    topic_configs,
    without_inherited,
)
from sim.scenario.scenario import Scenario
from sim.scenario.settings.resolved import Config
from sim.substrate.disk import Disk
from sim.substrate.host import Host, HostSpec
from sim.substrate.network import Network
from sim.substrate.tls import TlsSpec
from sim.substrate.wakeups import Wakeups
from sim.trace.rows.run import DiskIoRow
from sim.trace.writer import TableWriter, Trace
from sim.units import NEVER, Micros

_STORE_THREADS = 1_000
"""Requests that the object store takes up at once: it is many computers."""


class Builder:
    """Builds the parts of one run, each once."""

    def __init__(
        self, scenario: Scenario, kernel: Kernel, streams: Streams, trace: Trace, disks: Path
    ) -> None:
        self.scenario = scenario
        self.kernel = kernel
        self.streams = streams
        network = Network(kernel, streams, translate.network_spec(scenario.cluster.network))
        self.cluster = Cluster(kernel, network, trace, streams)
        self._disks = disks
        config = scenario.cluster.config
        self._is_raft = scenario.cluster.replication == "raft"
        self._threads = HostSpec(
            config.number("num.network.threads"),
            config.number("num.io.threads"),
            scenario.cluster.disk.page_cache_bytes,
            queued_requests=self._queued_requests(),
            idle_us=NEVER if self._is_raft else translate.idle_us(config),
        )
        self._cpu = translate.cpu_spec(scenario.cluster.cpu)
        self.settings = ServerSettings(scenario, scenario.cluster.kafka)
        """Of servers, of the release with which the cluster begins."""
        self._file = self.settings.file
        self._later = [
            ServerSettings(scenario, release) for release in upgrades.releases(scenario.faults)
        ]
        self._voters = tuple(c.node for c in scenario.cluster.controllers)
        self._brokers = tuple(b.node for b in scenario.cluster.brokers)
        self.bootstrap = tuple(b.node for b in scenario.cluster.first_brokers)
        """``bootstrap.servers`` of every client."""

    def _queued_requests(self) -> int:
        """Bound of the request queue of Kafka's servers; Redpanda's have no such queue."""
        config = self.scenario.cluster.config
        return 0 if self._is_raft else config.number("queued.max.requests")

    # -- servers ----------------------------------------------------------------------------------

    def servers(self) -> None:
        """Put every controller and broker on its host; none runs yet."""
        combined = self.scenario.cluster.combined
        inter_broker = self.tls(self.scenario.cluster.config.text("security.inter.broker.protocol"))
        for server in () if combined else self.scenario.cluster.controllers:
            host = self._server_host(server)
            settings = self.settings.controller()
            controller = ControllerNode(server.node, host, self.cluster, self._cpu, settings)
            controller.release = self.settings.release
            controller.releases = {each.release: each.controller() for each in self._later}
            self.cluster.add(controller)
        self._zookeepers()
        self._object_store()
        for server in self.scenario.cluster.brokers:
            host = self._server_host(server)
            broker = self._server(server, host)
            broker.spare = server in self.scenario.cluster.spare_brokers
            broker.tls = inter_broker
            broker.security = authentication.broker_security(self.scenario.cluster)
            self.cluster.add(broker)

    def _server(self, server: ServerSpec, host: Host) -> BrokerNode:
        settings, cpu = self.settings.broker(server.rack), self._cpu
        if self._is_raft:
            cpu = replace(cpu, young_bytes=0)  # its brokers have no JVM
        broker: BrokerNode
        if server.node not in self._voters:
            broker = BrokerNode(server.node, host, self.cluster, cpu, settings)
        else:
            both = CombinedNode(
                server.node, host, self.cluster, cpu, settings, self.settings.controller()
            )
            both.controller_releases = {each.release: each.controller() for each in self._later}
            broker = both
        broker.release = self.settings.release
        broker.releases = {each.release: each.broker(server.rack) for each in self._later}
        return broker

    def _object_store(self) -> None:
        model = self.scenario.cluster.object_store
        if model is None:
            return
        name = server_name(OBJECT_STORE_ID)
        many = HostSpec(_STORE_THREADS, _STORE_THREADS)
        host = Host(name, "", self.cluster.network, many, wakeups=self._wakeups(name))
        root = self._disks.parent / "object-store"
        spec = tiered.store_spec(model)
        self.cluster.add(ObjectStoreNode(host, self.cluster, self._cpu, spec, root))

    def _zookeepers(self) -> None:
        """The ensemble, of which one server writes what was committed into the trace."""
        ensemble = self.scenario.cluster.zookeeper
        if ensemble is None:
            return
        zookeepers = self.scenario.cluster.zookeepers
        settings, facts = zookeeper_runs.server_settings(ensemble, zookeepers), ZkTraceRows()
        for server in zookeepers:
            host = self._server_host(server)
            self.cluster.add(
                ZooKeeperNode(server.node, host, self.cluster, self._cpu, settings, facts)
            )

    def _server_host(self, server: ServerSpec) -> Host:
        cluster = self.scenario.cluster
        threads = replace(
            self._threads,
            cores=cluster.cores_of(server),
            bandwidth_bits=cluster.bandwidth_of(server) * 8,
        )
        if server.node >= FIRST_ZOOKEEPER_ID:
            threads = zookeeper_runs.threads(threads)
        host = Host(
            server.name,
            server.rack,
            self.cluster.network,
            threads,
            wakeups=self._wakeups(server.name),
        )
        spec = translate.disk_spec(cluster.disk_of(server))
        # A controller has its metadata log and nothing else: one disk.
        is_broker = server.node in self._brokers
        count = cluster.disk.directories if is_broker else 1
        for number in range(count):
            root = self._disks / server.name / directory_name(number)
            store = FileStore(root, host.page_cache, late=True)
            unit = self.streams.named(f"disk/{server.name}/{number}").unit
            disk = Disk(self.kernel, store, spec, unit)
            self._watch_disk(disk, server.name, number)
            disk.start_flusher(self.streams.named(f"flusher/{server.name}/{number}").unit())
            host.disks.append(disk)
        return host

    def _watch_disk(self, disk: Disk, node: str, number: int) -> None:
        table: TableWriter[DiskIoRow] = self.cluster.trace.table("disk_io")
        kernel = self.kernel

        def note(operation: str, size: int, started: Micros, file: str) -> None:
            if table.leaves_out():
                return
            table.add((kernel.now(), node, number, operation, size, started, file))

        disk.on_io = note

    # -- topics -----------------------------------------------------------------------------------

    def admin(self) -> AdminNode:
        """The administrator who creates the topics."""
        host = self.client_host("admin")
        topics = tuple(self._topics())
        # In ZooKeeper mode any broker may be the controller.
        governing = self._voters or self.bootstrap
        admin = AdminNode(
            host, self.cluster, governing, topics, self.bootstrap,
            self.scenario.quotas, self.scenario.acls,
            tuple(group.request() for group in self.scenario.groups if group.own),
            first_tokens(self.scenario.cluster),
        )  # fmt: skip
        self.cluster.add(admin)
        return admin

    def _topics(self) -> list[NewTopic]:
        topics = [
            NewTopic(
                t.name,
                t.partitions,
                t.replication_factor,
                without_inherited(topic_configs(t.config), self._file),
                t.assignment,
            )
            for t in self.scenario.topics
        ]
        if self._has_groups():
            topics.append(self._inheriting(offsets_topic(self.scenario.cluster)))
        if any(consumer.is_share for consumer in self.scenario.consumers):
            topics.append(self._inheriting(share_groups.state_topic(self.scenario.cluster.config)))
        if self.scenario.cluster.object_store is not None:
            topics.append(self._inheriting(tiered.metadata_topic(self.scenario.cluster.config)))
        return topics

    def _inheriting(self, topic: NewTopic) -> NewTopic:
        """A coordinator's topic, without what it has from its brokers and they may change."""
        configs = without_inherited(topic.configs, self._file, internal=True)
        return replace(topic, configs=configs)

    def _has_groups(self) -> bool:
        scenario = self.scenario
        mirrored = bool(scenario.mirrors) or scenario.is_target
        tasks = bool(scenario.processors or scenario.connectors)
        return mirrored or tasks or any(c.group for c in scenario.consumers)

    def client_host(self, name: str, rack: str | None = None) -> Host:
        """A client's host, in a rack or outside of them."""
        return Host(
            name,
            rack or "",
            self.cluster.network,
            HostSpec(),
            in_racks=bool(rack),
            wakeups=self._wakeups(name),
        )

    def _wakeups(self, host: str) -> Wakeups:
        wakeup = translate.spread(self.scenario.cluster.cpu.wakeup)
        return Wakeups(wakeup, self.streams.vector(f"wakeups/{host}"))

    def tls(self, protocol: str) -> TlsSpec | None:
        """Costs of a security protocol here."""
        return translate.tls_spec(protocol, self.scenario.cluster.cpu)

    def connect_by(self, node: Node, config: Config) -> None:
        """A client connects by its settings."""
        node.tls = self.tls(config.text("security.protocol"))
        node.idle_us = translate.idle_us(config)

    # -- clients ----------------------------------------------------------------------------------

    def producers(self) -> list[ProducerNode]:
        """Every producer, numbered in the order of the file."""
        nodes: list[ProducerNode] = []
        for spec in self.scenario.producers:
            for number in range(spec.count):
                node = self._producer(spec, number, len(nodes))
                self.connect_by(node, spec.config)
                node.security = authentication.client_security(self.scenario.cluster, spec)
                self.cluster.add(node)
                nodes.append(node)
        return nodes

    def _producer(self, spec: ProducerSpec, number: int, index: int) -> ProducerNode:
        name = spec.client_names[number]
        host = self.client_host(name, spec.rack)
        behaviours = self.scenario.client_behaviours(spec.config.version)
        config = replace(
            client_configs.producer_config(spec.config, behaviours),
            partitioner_class=partitioner_of(spec, spec.config.version),
        )
        work = workload_of(spec, surges_of(self.scenario.faults, name, spec.stop_us))
        ids = spec.transactional_ids
        client = ProducerClient(
            index,
            replace(config, transactional_id=ids[number]) if spec.transaction else config,
            self.bootstrap,
            may_be_compacted(self.scenario, spec.topic),
        )
        if spec.transaction is None:
            kind = PerRequestProducerNode if spec.per_request else ProducerNode
            kind = ClosedLoopNode if spec.clients else kind
            return kind(name, host, self.cluster, client, work)
        transactions = client_configs.transactions(spec.transaction, behaviours)
        return TransactionalProducerNode(name, host, self.cluster, client, work, transactions)

    def consumers(self) -> list[ConsumerNode]:
        """Every consumer, in the order of the file."""
        nodes: list[ConsumerNode] = []
        for spec in self.scenario.consumers:
            behaviours = self.scenario.client_behaviours(spec.config.version)
            for name, instance_id in zip(spec.client_names, spec.instance_ids, strict=True):
                host = self.client_host(name, spec.rack)
                config = client_configs.consumer_config(spec, instance_id, behaviours)
                node = self._consumer(spec, name, host, config)
                self.connect_by(node, spec.config)
                node.security = authentication.client_security(self.scenario.cluster, spec)
                self.cluster.add(node)
                nodes.append(node)
        return nodes

    def _consumer(
        self, spec: ConsumerSpec, name: str, host: Host, config: ConsumerConfig
    ) -> ConsumerNode:
        if not spec.is_share:
            return ConsumerNode(name, host, self.cluster, config, self.bootstrap)
        application = share_groups.application(spec)
        start = self.cluster.share_start
        return ShareConsumerNode(
            name, host, self.cluster, config, application, self.bootstrap, start
        )

    def processors(self, first_index: int) -> list[ProcessorNode]:
        """Every task, in the order of the file; producers are numbered on from the index."""
        nodes: list[ProcessorNode] = []
        for spec in self.scenario.processors:
            behaviours = self.scenario.client_behaviours(spec.config.version)
            stable = behaviours["transaction.offsets"] == "kip447"
            config = client_configs.producer_config(spec.producer, behaviours)
            for number, name in enumerate(spec.client_names):
                ids = spec.transactional_ids
                node = ProcessorNode(
                    name,
                    self.client_host(name, spec.rack),
                    self.cluster,
                    ProducerClient(
                        first_index + len(nodes),
                        replace(config, transactional_id=ids[number] if ids else ""),
                        self.bootstrap,
                    ),
                    client_configs.task(spec, behaviours),
                    client_configs.task_consumer_config(
                        spec, spec.instance_ids[number], behaviours, stable=stable
                    ),
                )
                self.connect_by(node, spec.producer)
                self.cluster.add(node)
                nodes.append(node)
        return nodes
