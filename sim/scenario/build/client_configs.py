"""From the settings of clients and tasks to the configurations that their machines take."""

from collections.abc import Mapping
from dataclasses import replace

from sim.ids import TopicPartition
from sim.nodes.apps.mirror import MirrorPlan
from sim.nodes.apps.processor import TaskSpec
from sim.nodes.clients.transactional_producer import TransactionSpec
from sim.protocol.clients.consumer.config import ConsumerConfig, ResetPolicy
from sim.protocol.clients.consumer.work import OffsetsCommit
from sim.protocol.clients.producer.config import ProducerConfig
from sim.protocol.mirror.checkpoints import CheckpointPlan
from sim.protocol.streams.consumer import TaskPlan
from sim.scenario.build.translate import transaction_version
from sim.scenario.model.apps import ConnectorSpec, MirrorSpec, ProcessorSpec
from sim.scenario.model.clients import SHARE_ACQUIRE, ConsumerSpec, TransactionModel
from sim.scenario.rules import share_groups
from sim.scenario.settings.resolved import Config
from sim.units import Micros

_ACKS = {"all": -1, "-1": -1, "0": 0, "1": 1}


def producer_config(config: Config, behaviours: Mapping[str, str]) -> ProducerConfig:
    """A producer's settings."""
    return ProducerConfig(
        acks=_ACKS[config.text("acks")],
        enable_idempotence=config.flag("enable.idempotence"),
        batch_size=config.size("batch.size"),
        linger_us=config.micros("linger.ms"),
        buffer_memory=config.size("buffer.memory"),
        max_block_us=config.micros("max.block.ms"),
        max_request_size=config.size("max.request.size"),
        retries=config.number("retries"),
        delivery_timeout_us=config.micros("delivery.timeout.ms"),
        request_timeout_us=config.micros("request.timeout.ms"),
        retry_backoff_us=config.micros("retry.backoff.ms"),
        retry_backoff_max_us=config.micros("retry.backoff.max.ms"),
        max_in_flight_requests_per_connection=config.number(
            "max.in.flight.requests.per.connection"
        ),
        skips_backoff_on_leader_hint=behaviours["client.leader_hints"] == "on",
        retries_refused_identity=behaviours["client.producer_id_refusal"] == "retry",
        splits_batches=behaviours["client.batch_split"] != "none",
        halves_parts=behaviours["client.batch_split"] == "halves",
        tracks_epochs=behaviours["client.metadata"] == "newest",
        metadata_max_age_us=config.micros("metadata.max.age.ms"),
        partitioner_adaptive_partitioning_enable=config.flag(
            "partitioner.adaptive.partitioning.enable"
        ),
        partitioner_ignore_keys=config.flag("partitioner.ignore.keys"),
        compression_type=config.text("compression.type"),
        compression_level=_level(config),
        transactional_id=config.text("transactional.id"),
        transaction_timeout_us=config.micros("transaction.timeout.ms"),
    )


def transactions(transaction: TransactionModel, behaviours: Mapping[str, str]) -> TransactionSpec:
    """Transactions of an application."""
    return TransactionSpec(
        transaction.records or 0,
        transaction.every_us or 0,
        transaction.abort_ppm,
        transaction_version(behaviours),
        behaviours["client.add_partitions"] == "all",
    )


def _level(config: Config) -> int:
    """The level of the codec in use; 0 for those without."""
    levels = {
        "gzip": config.number("compression.gzip.level"),
        "lz4": config.number("compression.lz4.level"),
        "zstd": config.number("compression.zstd.level"),
    }
    return levels.get(config.text("compression.type"), 0)


def consumer_config(
    consumer: ConsumerSpec, instance_id: str, behaviours: Mapping[str, str]
) -> ConsumerConfig:
    """A consumer's settings, for the one with this ``group.instance.id``."""
    found = _reader(
        consumer.config, consumer.topics, consumer.group, consumer.processing_us, behaviours
    )
    if consumer.pattern:
        found = replace(found, topics=(), pattern=consumer.pattern)
    if consumer.is_share:
        return share_groups.member_config(found, consumer.config.text(SHARE_ACQUIRE))
    return replace(
        found,
        group_instance_id=instance_id,
        commit_after_processing=consumer.commits != "auto",
        commit_async=consumer.commits == "async",
    )


def task_consumer_config(
    task: ProcessorSpec, instance_id: str, behaviours: Mapping[str, str], *, stable: bool
) -> ConsumerConfig:
    """A task's consumer; ``stable``: it waits for pending offsets (KIP-447)."""
    found = _reader(task.consumer, task.topics, task.group, task.processing_us, behaviours)
    return replace(found, group_instance_id=instance_id, require_stable=stable)


def task(task: ProcessorSpec, behaviours: Mapping[str, str]) -> TaskSpec:
    """Plan of a task."""
    offsets: OffsetsCommit = "inside" if task.is_exactly_once else task.commits
    plan = TaskPlan(
        offsets,
        task.config.micros("commit.interval.ms"),
        sends_member=behaviours["transaction.offsets"] == "kip447",
    )
    version = transaction_version(behaviours)
    return TaskSpec(task.output, task.record_size, task.outputs, plan, version)


def sink_consumer_config(sink: ConnectorSpec, behaviours: Mapping[str, str]) -> ConsumerConfig:
    """A sink task's consumer, which commits what it has put."""
    found = _reader(sink.client, sink.topics, sink.group, sink.processing_us, behaviours)
    return replace(found, commit_after_processing=True, commit_async=True)


def mirror_consumer_config(mirror: MirrorSpec, behaviours: Mapping[str, str]) -> ConsumerConfig:
    """A mirror's consumer."""
    return _reader(mirror.consumer, (mirror.topic,), mirror.group, 0, behaviours)


def mirror_plan(mirror: MirrorSpec, behaviours: Mapping[str, str]) -> MirrorPlan:
    """Plan of a mirror."""
    config = mirror.config
    extrapolates = behaviours["mirror.translation"] == "extrapolated"
    checkpoints = None
    if config.flag("emit.checkpoints.enabled") and mirror.groups:
        interval_us = config.micros("sync.group.offsets.interval.seconds")
        checkpoints = CheckpointPlan(
            mirror.groups,
            {
                TopicPartition(mirror.topic, number): TopicPartition(mirror.target_topic, number)
                for number in range(mirror.partitions)
            },
            interval_us=config.micros("emit.checkpoints.interval.seconds"),
            sync_interval_us=interval_us if config.flag("sync.group.offsets.enabled") else 0,
            extrapolates=extrapolates,
        )
    return MirrorPlan(
        mirror.topic,
        mirror.target_topic,
        mirror.record_size,
        config.number("offset.lag.max"),
        TaskPlan("after", config.micros("offset.flush.interval.ms")),
        checkpoints,
        extrapolates=extrapolates,
    )


def _reader(
    config: Config,
    topics: tuple[str, ...],
    group: str,
    processing_us: Micros,
    behaviours: Mapping[str, str],
) -> ConsumerConfig:
    resets: dict[str, ResetPolicy] = {"latest": "latest", "earliest": "earliest", "none": "none"}
    return ConsumerConfig(
        topics=topics,
        group_id=group,
        group_protocol=config.text("group.protocol"),
        group_remote_assignor=config.text("group.remote.assignor"),
        partition_assignment_strategy=config.words("partition.assignment.strategy"),
        session_timeout_us=config.micros("session.timeout.ms"),
        heartbeat_interval_us=config.micros("heartbeat.interval.ms"),
        poll_interval_us_max=config.micros("max.poll.interval.ms"),
        poll_records_max=config.number("max.poll.records"),
        fetch_bytes_min=config.size("fetch.min.bytes"),
        fetch_wait_us_max=config.micros("fetch.max.wait.ms"),
        fetch_bytes_max=config.size("fetch.max.bytes"),
        partition_fetch_bytes_max=config.size("max.partition.fetch.bytes"),
        enable_auto_commit=config.flag("enable.auto.commit"),
        auto_commit_interval_us=config.micros("auto.commit.interval.ms"),
        auto_offset_reset=resets[config.text("auto.offset.reset")],
        validates=behaviours["client.truncation_detection"] == "kip320",
        names_epochs=behaviours["client.truncation_detection"] != "unaware",
        tracks_epochs=behaviours["client.metadata"] == "newest",
        commits_epochs=behaviours["client.committed_epoch"] == "kip320",
        sends_generation=behaviours["client.generation"] == "kip792",
        isolation_level=config.text("isolation.level"),
        check_crcs=config.flag("check.crcs"),
        client_rack=config.text("client.rack"),
        request_timeout_us=config.micros("request.timeout.ms"),
        api_timeout_us=config.micros("default.api.timeout.ms"),
        retry_backoff_us=config.micros("retry.backoff.ms"),
        retry_backoff_us_max=config.micros("retry.backoff.max.ms"),
        metadata_age_us_max=config.micros("metadata.max.age.ms"),
        processing_us=processing_us,
    )
