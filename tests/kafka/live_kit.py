"""A real cluster of three nodes for reading while it runs: racks, SASL, TLS, an ACL, a load."""

import subprocess
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from tests.kafka.apache import Cluster, java
from tests.ports import free_ports

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.admin import (
        ACL,
        ACLOperation,
        ACLPermissionType,
        KafkaAdminClient,
        NewTopic,
        ResourcePattern,
        ResourceType,
    )
    from kafka.protocol.admin import (
        AlterClientQuotasRequest,
        CreateTopicsRequest,
        DeleteGroupsRequest,
        DescribeQuorumRequest,
        IncrementalAlterConfigsRequest,
    )
    from kafka.protocol.metadata import FindCoordinatorRequest, MetadataRequest

NODES = (1, 2, 3)
CANARY = "cAnAry7"
PER_S = 40
VALUE = b"x" * 300
CONSOLE = "org.apache.kafka.tools.consumer.ConsoleConsumer"
SETTINGS = f"""\
offsets.topic.num.partitions=4
offsets.topic.replication.factor=3
transaction.state.log.num.partitions=2
transaction.state.log.replication.factor=3
num.replica.fetchers=2
# Without records that only say that time passes, a change of the metadata is seen by its offset.
metadata.max.idle.interval.ms=0
sasl.enabled.mechanisms=PLAIN
listener.name.sasl_plaintext.plain.sasl.jaas.config=\
org.apache.kafka.common.security.plain.PlainLoginModule required user_reader="{CANARY}";
listener.security.protocol.map=\
PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,SSL:SSL
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
"""


SELF_SIGNED = (
    *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
    *("-subj", "/CN=broker", "-addext", "subjectAltName=IP:127.0.0.1"),
)


class LiveCluster(Cluster):
    """Three combined nodes in three racks, which listen without and with names, and with TLS."""

    def __init__(self, work):
        super().__init__({node: [work / f"disk-{node}"] for node in NODES}, work, SETTINGS)
        self.certificate, key = work / "certificate.pem", work / "key.pem"
        command = [*SELF_SIGNED, "-out", str(self.certificate), "-keyout", str(key)]
        subprocess.run(command, check=True, capture_output=True)
        store = work / "store.pem"
        store.write_text(key.read_text() + self.certificate.read_text())
        tls = f"ssl.keystore.type=PEM\nssl.keystore.location={store}\n"
        ports = free_ports(2 * len(NODES))
        self._named = dict(zip(NODES, ports, strict=False))
        self._tls = dict(zip(NODES, ports[len(NODES) :], strict=True))
        for node, path in self._properties.items():
            text = path.read_text()
            listeners = next(line for line in text.splitlines() if line.startswith("listeners="))
            listeners += f",SASL_PLAINTEXT://127.0.0.1:{self._named[node]}"
            listeners += f",SSL://127.0.0.1:{self._tls[node]}"
            path.write_text(f"{text}{tls}{listeners}\nbroker.rack=rack-{node}\n")
            self.format(node)

    @property
    def bootstrap(self):
        """Brokers that run, for clients that may do everything.

        kafka-python leaves its socket open when it is refused.
        """
        return ",".join(f"127.0.0.1:{self._clients[node]}" for node in self._processes)

    @property
    def named(self):
        """Brokers, for clients with a name."""
        return ",".join(f"127.0.0.1:{port}" for port in self._named.values())

    @property
    def encrypted(self):
        """Brokers, for clients that speak TLS."""
        return ",".join(f"127.0.0.1:{port}" for port in self._tls.values())

    def stop_node(self, node):
        """Stop one node."""
        process = self._processes.pop(node)
        process.terminate()
        process.wait(60)

    @contextmanager
    def admin(self) -> Iterator[KafkaAdminClient]:
        """An administrator who may do everything."""
        client = KafkaAdminClient(bootstrap_servers=self.servers)
        try:
            yield client
        finally:
            client.close()


def furnish(cluster):
    """Topics, a dynamic setting of brokers, quotas, and what the user ``reader`` may see."""
    allowed = ACL(
        "User:reader", "*", ACLOperation.DESCRIBE, ACLPermissionType.ALLOW,
        ResourcePattern(ResourceType.TOPIC, "orders"),
    )  # fmt: skip
    with cluster.admin() as admin:
        placed = {0: [1, 2], 1: [2, 3], 2: [3, 1]}
        wide = {"min.insync.replicas": "1", "segment.bytes": "536870912"}
        admin.create_topics(
            [
                NewTopic("orders", replica_assignments=placed, topic_configs=wide),
                NewTopic("table", 2, 3, topic_configs={"cleanup.policy": "compact"}),
                NewTopic("idle", 1, 1),
            ]
        )
        admin.create_acls([allowed])
        for request in (_quotas(), _default_of_brokers("message.max.bytes", "2000000")):
            admin._manager.run(_sent, admin._manager, request)


async def _sent(manager, request):
    return await manager.send(request)


def _default_of_brokers(name, value):
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    change = resource.AlterableConfig(name=name, config_operation=0, value=value)
    brokers = resource(resource_type=4, resource_name="", configs=[change])
    return IncrementalAlterConfigsRequest(resources=[brokers], validate_only=False)


def _quotas():
    quotas = {
        (("client-id", None),): {"consumer_byte_rate": 1_000_000.0},
        (("client-id", "biller"),): {"consumer_byte_rate": 2_000_000.0},
        (("user", "alice"),): {"producer_byte_rate": 1_024.0},
    }
    entry = AlterClientQuotasRequest.EntryData
    return AlterClientQuotasRequest(
        entries=[
            entry(
                entity=[entry.EntityData(entity_type=k, entity_name=n) for k, n in entity],
                ops=[entry.OpData(key=k, value=v, remove=False) for k, v in values.items()],
            )
            for entity, values in quotas.items()
        ],
        validate_only=False,
    )


def writes():
    """Requests that change something, or could."""
    topic = CreateTopicsRequest.CreatableTopic
    planted = topic(name="planted", num_partitions=1, replication_factor=1)
    named = [MetadataRequest.MetadataRequestTopic(name="planted")]
    return (
        CreateTopicsRequest(topics=[planted], timeout_ms=1_000),
        DeleteGroupsRequest(groups_names=["billing"]),
        FindCoordinatorRequest(key="billing"),
        MetadataRequest(topics=named, allow_auto_topic_creation=True),
    )


def state(cluster):
    """What a write would change: topics, ends of all logs, the metadata log's end."""
    topic = DescribeQuorumRequest.TopicData
    chosen = topic(
        topic_name="__cluster_metadata", partitions=[topic.PartitionData(partition_index=0)]
    )
    consumer = cluster.consumer()
    try:
        with cluster.admin() as admin:
            names = sorted(admin.list_topics())
            places = [
                TopicPartition(name, number)
                for name in names
                for number in consumer.partitions_for_topic(name)
            ]
            ends = {tuple(tp): end for tp, end in consumer.end_offsets(places).items()}
            request = DescribeQuorumRequest(topics=[chosen])
            answer = admin._manager.run(_sent, admin._manager, request)
            (quorum,) = answer.topics[0].partitions
            return names, sorted(ends.items()), quorum.high_watermark
    finally:
        consumer.close()


class Busy:
    """Clients that write and read until the block ends: two groups, and one of KIP-848."""

    def __init__(self, cluster, work):
        self._cluster = cluster
        self._work = work
        self._stop = threading.Event()
        self._acked = []
        """Instants of the acknowledgements, one for each record."""
        self._threads = [
            threading.Thread(target=one, daemon=True)
            for one in (self._write, self._read, self._read, self._read_slowly)
        ]

    def __enter__(self):
        options = ["--bootstrap-server", self._cluster.servers[0], "--topic", "orders"]
        options += ["--group", "modern", "--consumer-property", "group.protocol=consumer"]
        with (self._work / "console.out").open("wb") as out:
            command = java(CONSOLE, *options, heap="128m")
            self._console = subprocess.Popen(command, stdout=out, stderr=out)
        for one in self._threads:
            one.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        for one in self._threads:
            one.join(30)
        self._console.terminate()
        self._console.wait(30)

    def _write(self):
        # Each record alone in its batch, also where the process got no time for a while.
        producer = KafkaProducer(bootstrap_servers=self._cluster.servers, batch_size=0)
        began, count = time.monotonic(), 0
        while not self._stop.wait(0.02):
            while count < (time.monotonic() - began) * PER_S:
                sent = producer.send("orders", VALUE, partition=count % 3)
                sent.add_callback(self._note)
                count += 1
        producer.close()

    def _note(self, _record):
        self._acked.append(time.monotonic())

    def rates(self, began, ended, window_s):
        """Lowest and highest rate within any such window between two instants.

        A machine that gives this process no time for seconds makes it catch up later.
        """
        starts = [began, ended - window_s]
        starts += [at for at in self._acked if began <= at <= ended - window_s]
        counts = [sum(at <= one < at + window_s for one in self._acked) for at in starts]
        return min(counts) / window_s, max(counts) / window_s

    def _consumer(self, group, client):
        return KafkaConsumer(
            "orders",
            bootstrap_servers=self._cluster.servers,
            group_id=group,
            client_id=client,
            auto_commit_interval_ms=500,
        )

    def _read(self):
        consumer = self._consumer("billing", "biller")
        while not self._stop.is_set():
            consumer.poll(200)
        consumer.close()

    def _read_slowly(self):
        consumer = self._consumer("slow group", "slow")
        while not self._stop.is_set():
            if consumer.poll(200, max_records=5):
                consumer.commit()
                self._stop.wait(0.5)
        consumer.close()
