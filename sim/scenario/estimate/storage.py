"""Expected bytes of a run on the disk: segment files of every broker, and the trace.

A file takes whole blocks. Retention and compaction bound what a partition holds: what has been
written within their delays stays, however much is written in all.

Source: ``LogConfig`` and ``LogManager`` for when segments roll and go, ``LogCleanerManager`` for
when a log is cleaned; the sizes of rows were measured on the shipped scenarios.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sim.scenario.estimate.flows import Flow
from sim.scenario.estimate.traffic import (
    OFFSETS,
    SHARES,
    TRANSACTIONS,
    Work,
    copies_of,
    internal_partitions,
)
from sim.scenario.model.topics import TopicSpec
from sim.scenario.scenario import Scenario
from sim.scenario.settings.resolved import Config
from sim.trace.kept import LEFT_OUT, Kept
from sim.trace.schema import BY_NAME, Level
from sim.units import KIB, SECOND, Bytes

BLOCK: Final[Bytes] = 4 * KIB
"""Bytes that a file system gives a file at a time."""

_REPLICA: Final[Bytes] = 10 * KIB
"""Of a partition's directory: itself, ``partition.metadata``, ``leader-epoch-checkpoint``."""

_SEGMENT: Final[Bytes] = 10 * KIB
"""Of a segment beside its batches: two indexes, and half a block of each file's end."""

_INDEXED: Final = 20 / 4_096
"""Bytes of both indexes for each byte of batches, at ``index.interval.bytes`` of 4096."""

_SERVER: Final[Bytes] = 48 * KIB
"""Checkpoints of a server, and its copy of the metadata log's first records."""

_METADATA_S: Final[Bytes] = 150
"""Growth of the metadata log, whose leader writes a record every 500 ms, in a second."""

_METADATA_PARTITION: Final[Bytes] = 170

_ROW: Final[Mapping[str, float]] = {
    "client_batches": 22.0,
    "appends": 11.0,
    "high_watermarks": 8.0,
    "acknowledgements": 8.5,
    "follower_watermarks": 8.0,
    "reads": 9.5,
    "requests": 14.5,
    "messages": 5.3,
    "disk_io": 6.0,
    "load": 9.0,
    "lag": 7.0,
    "share_acknowledgements": 4.0,
    "record_keys": 9.0,
    "others": 5.0,
}
"""Bytes of a row in Parquet, of a table with some thousands of them."""

_LATENCY: Final = 2.2
"""Bytes of each record's latency in its row of ``client_batches``."""

_TRACE: Final[Bytes] = 380 * KIB
"""Of a trace without rows: a directory, a part with its footer, and a block for each table."""

_CARDS: Final[Bytes] = 64 * KIB
"""``run.json``, ``verdict.json``, ``scenario.yaml``."""


@dataclass(frozen=True, slots=True)
class Storage:
    """Bytes on the disk when most of them are there."""

    logs: Bytes
    """Simulated disks of all brokers and controllers."""
    trace: Bytes
    cards: Bytes
    appended: Bytes
    """Written to logs in the whole run, on all replicas."""

    @property
    def total(self) -> Bytes:
        """Of the whole run directory."""
        return self.logs + self.trace + self.cards

    def kept(self, kept: Kept) -> Bytes:
        """Bytes that stay when the run has been judged."""
        parts = {"disks": self.logs, "trace": self.trace}
        return self.total - sum(parts[name] for name in LEFT_OUT[kept])


def storage(works: Sequence[tuple[Scenario, Work]], level: Level) -> Storage:
    """Bytes of a run.

    Args:
        works: Of each of its clusters.
        level: Of the trace.
    """
    logs = sum(_logs(scenario, work) for scenario, work in works)
    appended = sum(
        size * copies_of(scenario, name)
        for scenario, work in works
        for name, (size, _) in work.topics.items()
    )
    trace = sum(_trace(work, level) for _, work in works)
    return Storage(round(logs), round(trace), len(works) * _CARDS, round(appended))


def _logs(scenario: Scenario, work: Work) -> float:
    cluster = scenario.cluster
    total = 0.0
    for topic in scenario.topics:
        size, _ = work.topics[topic.name]
        flow = max(
            (f for f in work.flows if f.topic == topic.name),
            key=lambda f: f.records,
            default=None,
        )
        held = _held(topic, size, flow, scenario)
        total += topic.replication_factor * (held + _segments(topic, held, scenario) * _SEGMENT)
    for name in (OFFSETS, TRANSACTIONS, SHARES):
        if name in work.topics:
            size, appends = work.topics[name]
            total += copies_of(scenario, name) * (size + min(20.0, appends) * _SEGMENT)
    total *= 1 + _INDEXED
    capacity = cluster.disk.capacity_bytes
    if capacity is not None:
        total = min(total, capacity * cluster.disk.directories * len(cluster.brokers))
    metadata = 0.0
    if cluster.zookeeper is None:
        partitions = sum(topic.partitions for topic in scenario.topics) + sum(
            internal_partitions(scenario, name)
            for name in (OFFSETS, TRANSACTIONS, SHARES)
            if name in work.topics
        )
        metadata = _METADATA_S * work.simulated_s + _METADATA_PARTITION * partitions
    servers = len(cluster.servers) * (_SERVER + metadata)
    return total + work.replicas * _REPLICA + servers


def _held(topic: TopicSpec, size: float, flow: Flow | None, scenario: Scenario) -> float:
    """Bytes of a topic on one replica of each partition, when most are there."""
    if flow is None or not size:
        return size
    config, cluster = topic.config, scenario.cluster.config
    seconds = max(0.001, flow.lasts_us / SECOND)
    rate = size / seconds
    rolls = min(_seconds(config, "segment.ms"), _roll_s(config, rate / topic.partitions))
    removal = rolls + _seconds(config, "file.delete.delay.ms")
    held = size
    policies = str(config["cleanup.policy"]).split(",")
    if "delete" in policies:
        looks = _seconds(cluster, "log.retention.check.interval.ms")
        first = _seconds(cluster, "log.initial.task.delay.ms")
        kept_s = max(first, _retention_s(config)) + removal + looks
        held = min(held, rate * kept_s)
        limit = config.number("retention.bytes")
        if limit >= 0:
            late = rate * (max(first, looks) + removal)
            held = min(held, limit * topic.partitions + late)
    if "compact" in policies and flow.batches:
        held = min(held, _compacted(topic, rate, removal, flow, scenario))
    return held


def _compacted(
    topic: TopicSpec, rate: float, removal: float, flow: Flow, scenario: Scenario
) -> float:
    """The last record of each key, what may not be cleaned yet, and what need not be."""
    config, cluster = topic.config, scenario.cluster.config
    keys = sum(p.key_count for p in scenario.producers if p.topic == topic.name)
    if not keys or not cluster.flag("log.cleaner.enable"):
        return float("inf")
    clean = min(keys, flow.records) * flow.record_bytes
    dirty = min(0.95, config.real("min.cleanable.dirty.ratio"))
    lag = _seconds(config, "min.compaction.lag.ms")
    backoff = _seconds(cluster, "log.cleaner.backoff.ms")
    return clean / (1 - dirty) + rate * (lag + removal + backoff)


def _retention_s(config: Config) -> float:
    kept = config.number("retention.ms")
    return float("inf") if kept < 0 else kept / 1_000


def _roll_s(config: Config, rate: float) -> float:
    return config.size("segment.bytes") / rate if rate else float("inf")


def _segments(topic: TopicSpec, held: float, scenario: Scenario) -> float:
    """Segments of all partitions that have batches, on one replica of each."""
    if not held:
        return 0.0
    config, seconds = topic.config, scenario.run.for_us / SECOND
    by_size = held / config.size("segment.bytes")
    by_time = topic.partitions * seconds / max(0.001, _seconds(config, "segment.ms"))
    return max(1.0 * topic.partitions, by_size, min(by_time, 100.0 * topic.partitions))


def _seconds(config: Config, name: str) -> float:
    return config.micros(name) / SECOND


def _trace(work: Work, level: Level) -> float:
    total = float(_TRACE)
    for table, rows in work.rows.items():
        if level == "facts" and table in BY_NAME and BY_NAME[table].level == "detail":
            continue
        total += rows * _ROW[table]
    return total + work.records * _LATENCY
