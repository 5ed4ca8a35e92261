"""Kafka's producer and consumer settings (4.1).

Source: ``org.apache.kafka.clients.producer.ProducerConfig``, ``.consumer.ConsumerConfig``,
``CommonClientConfigs``.
"""

from typing import Final

from sim.scenario.settings.types import INT_MAX, Setting, absent, codec_levels

_SHARED: Final[tuple[Setting, ...]] = (
    Setting("metadata.max.age.ms", "int", 300_000, low=0),
    Setting("request.timeout.ms", "int", 30_000, low=0, high=INT_MAX),
    Setting("retry.backoff.ms", "int", 100, low=0),
    Setting("retry.backoff.max.ms", "int", 1_000, low=0),
    *absent(
        "clients begin with every broker of the cluster",
        ("bootstrap.servers", "list", None),
        ("client.dns.lookup", "string", "use_all_dns_ips"),
    ),
    *absent(
        "a producer that knows no broker to ask begins again (KIP-899); nobody does so by time",
        ("metadata.recovery.strategy", "string", "rebootstrap"),
        ("metadata.recovery.rebootstrap.trigger.ms", "int", 300_000),
    ),
    *absent(
        "every connection backs off by Kafka's defaults",
        ("reconnect.backoff.ms", "int", 50),
        ("reconnect.backoff.max.ms", "int", 1_000),
    ),
    *absent(
        "connections do not idle out and have no buffer sizes of their own",
        ("connections.max.idle.ms", "int", 540_000),
        ("send.buffer.bytes", "int", 131_072),
        ("socket.connection.setup.timeout.ms", "int", 10_000),
        ("socket.connection.setup.timeout.max.ms", "int", 30_000),
    ),
    *absent("the client's name is the scenario's", ("client.id", "string", "")),
    Setting("security.protocol", "string", "PLAINTEXT", choices=("PLAINTEXT", "SSL")),
    *absent(
        "TLS costs time, but there are no identities, passwords and certificates",
        ("sasl.mechanism", "string", "GSSAPI"),
        ("sasl.jaas.config", "string", None),
        ("ssl.truststore.location", "string", None),
        ("ssl.keystore.location", "string", None),
    ),
    *absent(
        "there is no application code in the client",
        ("interceptor.classes", "list", ""),
        ("metric.reporters", "list", "org.apache.kafka.common.metrics.JmxReporter"),
        ("enable.metrics.push", "boolean", True),
    ),
)

PRODUCER_SETTINGS: Final[tuple[Setting, ...]] = (
    Setting("acks", "string", "all", choices=("all", "-1", "0", "1")),
    Setting("batch.size", "int", 16_384, low=0, high=INT_MAX),
    Setting("buffer.memory", "int", 33_554_432, low=0),
    Setting("delivery.timeout.ms", "int", 120_000, low=0, high=INT_MAX),
    Setting("enable.idempotence", "boolean", True),  # noqa: FBT003 - its default
    Setting("linger.ms", "int", 5, low=0),
    Setting("max.block.ms", "int", 60_000, low=0),
    Setting("max.in.flight.requests.per.connection", "int", 5, low=1, high=INT_MAX),
    Setting("max.request.size", "int", 1_048_576, low=0, high=INT_MAX),
    Setting("partitioner.adaptive.partitioning.enable", "boolean", True),  # noqa: FBT003 - default
    Setting("retries", "int", INT_MAX, low=0, high=INT_MAX),
    *_SHARED,
    *codec_levels(),
    Setting(
        "compression.type", "string", "none", choices=("none", "gzip", "snappy", "lz4", "zstd")
    ),
    *absent(
        "there are no custom partitioners; unkeyed records use the sticky one",
        ("partitioner.class", "string", None),
    ),
    *absent(
        "keyed records go by their key, and brokers are never taken for unavailable",
        ("partitioner.ignore.keys", "boolean", False),
        ("partitioner.availability.timeout.ms", "int", 0),
    ),
    *absent("the producer's topic is never forgotten", ("metadata.max.idle.ms", "int", 300_000)),
    Setting("transactional.id", "string", None),
    Setting("transaction.timeout.ms", "int", 60_000, low=1, high=INT_MAX),
    *absent(
        "transactions have one phase", ("transaction.two.phase.commit.enable", "boolean", False)
    ),
    *absent(
        "connections have no buffer sizes of their own", ("receive.buffer.bytes", "int", 32_768)
    ),
    *absent(
        "keys and values are made by the scenario",
        ("key.serializer", "string", None),
        ("value.serializer", "string", None),
    ),
)
"""Every producer setting."""

CONSUMER_SETTINGS: Final[tuple[Setting, ...]] = (
    Setting("auto.commit.interval.ms", "int", 5_000, low=0, high=INT_MAX),
    Setting("auto.offset.reset", "string", "latest", choices=("latest", "earliest", "none")),
    Setting("default.api.timeout.ms", "int", 60_000, low=0, high=INT_MAX),
    Setting("enable.auto.commit", "boolean", True),  # noqa: FBT003 - its default
    Setting("fetch.max.bytes", "int", 52_428_800, low=0, high=INT_MAX),
    Setting("fetch.max.wait.ms", "int", 500, low=0, high=INT_MAX),
    Setting("fetch.min.bytes", "int", 1, low=0, high=INT_MAX),
    Setting("group.instance.id", "string", None),
    Setting("heartbeat.interval.ms", "int", 3_000, low=1, high=INT_MAX),
    Setting(
        "isolation.level",
        "string",
        "read_uncommitted",
        choices=("read_uncommitted", "read_committed"),
    ),
    Setting("max.partition.fetch.bytes", "int", 1_048_576, low=0, high=INT_MAX),
    Setting("max.poll.interval.ms", "int", 300_000, low=1, high=INT_MAX),
    Setting("max.poll.records", "int", 500, low=1, high=INT_MAX),
    Setting(
        "partition.assignment.strategy",
        "list",
        "range,cooperative-sticky",
        choices=("range", "roundrobin", "sticky", "cooperative-sticky"),
    ),
    Setting("session.timeout.ms", "int", 45_000, low=0, high=INT_MAX),
    *_SHARED,
    *absent("the group is named beside config, as in group: billing", ("group.id", "string", None)),
    Setting("share.acknowledgement.mode", "string", "implicit", choices=("implicit", "explicit")),
    Setting("share.auto.offset.reset", "string", "latest", choices=("latest", "earliest")),
    Setting("group.protocol", "string", "classic", choices=("classic", "consumer")),
    Setting("group.remote.assignor", "string", None, choices=("uniform", "range")),
    Setting("client.rack", "string", ""),
    *absent(
        "topics exist before consumers start",
        ("allow.auto.create.topics", "boolean", True),
        ("exclude.internal.topics", "boolean", True),
    ),
    *absent("batches are checked by the checker instead", ("check.crcs", "boolean", True)),
    *absent(
        "connections have no buffer sizes of their own", ("receive.buffer.bytes", "int", 65_536)
    ),
    *absent(
        "keys and values are not deserialised",
        ("key.deserializer", "string", None),
        ("value.deserializer", "string", None),
    ),
)
"""Every consumer setting."""
