"""Kafka's producer and consumer settings.

Source: ``org.apache.kafka.clients.producer.ProducerConfig``, ``.consumer.ConsumerConfig``,
``CommonClientConfigs``.
"""

from typing import Final

from sim.scenario.settings.overlay import (
    NO_BOUND,
    NO_DURATION,
    NO_JAVA,
    Overlay,
    absent,
    codec_levels,
    modelled,
    narrowed,
    newer,
)
from sim.scenario.settings.types import LONG_MAX

_SHARED: Final[tuple[Overlay, ...]] = (
    *modelled(
        "metadata.max.age.ms",
        "request.timeout.ms",
        "retry.backoff.ms",
    ),
    newer("retry.backoff.max.ms", like="retry.backoff.ms"),
    *absent(
        "clients begin with every broker of the cluster",
        "bootstrap.servers",
        "client.dns.lookup",
    ),
    *absent(
        "a producer that knows no broker to ask begins again (KIP-899); nobody does so by time",
        "metadata.recovery.strategy",
        "metadata.recovery.rebootstrap.trigger.ms",
    ),
    *absent(
        "every connection backs off by Kafka's defaults",
        "reconnect.backoff.ms",
        "reconnect.backoff.max.ms",
    ),
    *absent(
        "connections have no buffer sizes of their own, and Kafka's default time to be established",
        "send.buffer.bytes",
        "socket.connection.setup.timeout.ms",
        "socket.connection.setup.timeout.max.ms",
    ),
    *modelled(
        "connections.max.idle.ms",
    ),
    *absent(
        "the client's name is the scenario's",
        "client.id",
    ),
    *modelled(
        "security.protocol",
    ),
    *absent(
        "mechanisms, passwords and certificates are given by the client's login",
        "sasl.mechanism",
        "sasl.jaas.config",
        "ssl.truststore.location",
        "ssl.keystore.location",
    ),
    *absent(
        "there is no application code in the client",
        "interceptor.classes",
        "metric.reporters",
        "enable.metrics.push",
    ),
)

PRODUCER_SETTINGS: Final[tuple[Overlay, ...]] = (
    *modelled(
        "acks",
        "batch.size",
        "buffer.memory",
    ),
    # Before, request.timeout.ms bounded the wait of a batch, and retries its attempts (KIP-91).
    newer("delivery.timeout.ms", LONG_MAX),
    newer("enable.idempotence", before=False),
    *modelled(
        "linger.ms",
        "max.block.ms",
        "max.in.flight.requests.per.connection",
        "max.request.size",
    ),
    newer("partitioner.adaptive.partitioning.enable", before=False),
    *modelled("retries"),
    *_SHARED,
    *codec_levels(),
    *modelled(
        "compression.type",
    ),
    *modelled(
        "partitioner.class",
        "partitioner.ignore.keys",
    ),
    *absent(
        "brokers are never taken for unavailable",
        "partitioner.availability.timeout.ms",
    ),
    *absent(
        "the producer's topic is never forgotten",
        "metadata.max.idle.ms",
    ),
    *modelled(
        "transactional.id",
    ),
    *narrowed(
        NO_BOUND,
        "transaction.timeout.ms",
        low=1,
    ),
    *absent(
        "transactions have one phase",
        "transaction.two.phase.commit.enable",
    ),
    *absent(
        "connections have no buffer sizes of their own",
        "receive.buffer.bytes",
    ),
    *absent(
        "keys and values are made by the scenario",
        "key.serializer",
        "value.serializer",
    ),
)
"""Every producer setting."""

CONSUMER_SETTINGS: Final[tuple[Overlay, ...]] = (
    *modelled(
        "auto.commit.interval.ms",
    ),
    *narrowed(
        NO_DURATION,
        "auto.offset.reset",
        choices=("latest", "earliest", "none"),
    ),
    *modelled(
        "default.api.timeout.ms",
        "enable.auto.commit",
        "fetch.max.bytes",
        "fetch.max.wait.ms",
        "fetch.min.bytes",
        "group.instance.id",
    ),
    *narrowed(
        NO_BOUND,
        "heartbeat.interval.ms",
        low=1,
    ),
    *modelled(
        "isolation.level",
        "max.partition.fetch.bytes",
        "max.poll.interval.ms",
        "max.poll.records",
    ),
    *narrowed(
        NO_JAVA,
        "partition.assignment.strategy",
        choices=("range", "roundrobin", "sticky", "cooperative-sticky"),
    ),
    *narrowed(
        NO_BOUND,
        "session.timeout.ms",
        low=0,
    ),
    *_SHARED,
    *absent(
        "the group is named beside config, as in group: billing",
        "group.id",
    ),
    *narrowed(
        "the validator is code, with these words",
        "share.acknowledgement.mode",
        choices=("implicit", "explicit"),
    ),
    Overlay(
        "share.acquire.mode",
        because="the validator is code, with these words in any case",
        choices=("batch_optimized", "record_limit"),
        default="batch_optimized",
    ),
    Overlay(
        "share.auto.offset.reset",
        because=NO_DURATION,
        choices=("latest", "earliest"),
        of="group",
    ),
    *modelled(
        "group.protocol",
    ),
    *narrowed(
        NO_JAVA,
        "group.remote.assignor",
        choices=("uniform", "range"),
    ),
    *modelled(
        "client.rack",
    ),
    *absent(
        "topics exist before consumers start",
        "allow.auto.create.topics",
        "exclude.internal.topics",
    ),
    *modelled(
        "check.crcs",
    ),
    *absent(
        "connections have no buffer sizes of their own",
        "receive.buffer.bytes",
    ),
    *absent(
        "keys and values are not deserialised",
        "key.deserializer",
        "value.deserializer",
    ),
)
"""Every consumer setting."""
