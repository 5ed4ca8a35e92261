"""Tiered storage: from the settings to the configurations of its machines and its store."""

from collections.abc import Mapping

from sim.ids import REMOTE_LOG_METADATA_TOPIC
from sim.nodes.object_store import ObjectStoreSpec
from sim.protocol.broker.tiered.ports import TieredConfig
from sim.protocol.messages.cluster import NewTopic
from sim.scenario.model.machines import ObjectStoreModel
from sim.scenario.rules.topic_configs import inherited_configs
from sim.scenario.settings.resolved import Config
from sim.scenario.tiered import METADATA_FACTOR, METADATA_PARTITIONS, SYSTEM
from sim.substrate.distributions import Spread
from sim.units import Micros


def tiered_config(config: Config, behaviours: Mapping[str, str]) -> TieredConfig | None:
    """Settings of remote log managers; ``None`` without tiered storage."""
    if not config.flag(SYSTEM):
        return None
    return TieredConfig(
        interval_us=config.micros("remote.log.manager.task.interval.ms"),
        copiers=config.number("remote.log.manager.copier.thread.pool.size"),
        expirers=config.number("remote.log.manager.expiration.thread.pool.size"),
        readers=config.number("remote.log.reader.threads"),
        pending_reads_max=config.number("remote.log.reader.max.pending.tasks"),
        metadata_partitions=config.number(METADATA_PARTITIONS),
        deletes_failed=behaviours["tiered.failed_copies"] == "deleted",
        rereads_events=behaviours["tiered.metadata_replay"] == "from_start",
    )


def remote_wait_us(config: Config, behaviours: Mapping[str, str]) -> Micros | None:
    """Longest wait of a fetch for the remote log; ``None``: the consumer's own."""
    if behaviours["tiered.fetch_wait"] == "consumer":
        return None
    return config.micros("remote.fetch.max.wait.ms")


def store_spec(model: ObjectStoreModel) -> ObjectStoreSpec:
    """Speed of the object store."""
    latency = Spread(model.latency.p50_us, model.latency.p99_us)
    return ObjectStoreSpec(latency, model.bandwidth_bytes_per_s)


def metadata_topic(config: Config) -> NewTopic:
    """The topic of remote segments' events.

    Source: ``TopicBasedRemoteLogMetadataManager.createRemoteLogMetadataTopicRequest``.
    """
    configs = (("cleanup.policy", "delete"), ("retention.ms", "-1"))
    return NewTopic(
        REMOTE_LOG_METADATA_TOPIC,
        config.number(METADATA_PARTITIONS),
        config.number(METADATA_FACTOR),
        (*configs, *inherited_configs(config, configs)),
    )
