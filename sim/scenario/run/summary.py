"""Summary of a scenario that was understood: what will run, with every option off its default."""

from dataclasses import dataclass

from sim.faults.fault import Fault
from sim.scenario.model.clients import ConsumerSpec, ProducerSpec
from sim.scenario.model.cluster import ClusterSpec
from sim.scenario.model.topics import TopicSpec
from sim.scenario.rules.limits import records_at_most
from sim.scenario.scenario import OffDefault, Scenario
from sim.units import Micros, show_duration


@dataclass(frozen=True, slots=True)
class TopicSummary:
    """A topic; ``min_insync_replicas`` is what applies to it: its own, the broker's, or Kafka's."""

    name: str
    partitions: int
    replication_factor: int
    min_insync_replicas: int


@dataclass(frozen=True, slots=True)
class ProducerSummary:
    """Producers alike; the rate is each one's own, in records per second."""

    name: str
    topic: str
    count: int
    rate_per_s: int
    acks: str


@dataclass(frozen=True, slots=True)
class ConsumerSummary:
    """Consumers alike; an empty group reads without one."""

    name: str
    group: str
    topics: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True)
class Summary:
    """A scenario in short, as the loader understood it."""

    scenario: str
    """Its file's name, without the ending."""
    digest: str
    claim: str
    seed: int
    kafka: str
    servers: str
    """Brokers, racks and controllers in words."""
    brokers: int
    controllers: int
    """0 with ZooKeeper."""
    topics: tuple[TopicSummary, ...]
    producers: tuple[ProducerSummary, ...]
    consumers: tuple[ConsumerSummary, ...]
    faults: tuple[str, ...]
    """Instant, kind and target of each."""
    expectations: tuple[str, ...]
    run_us: Micros
    """Simulated time of the workload."""
    records_at_most: int
    """Records that all producers mean to send, in all clusters."""
    off_default: tuple[OffDefault, ...]


def summary(scenario: Scenario, seed: int | None = None) -> Summary:
    """The scenario in short; ``seed`` is used instead of its own."""
    return Summary(
        scenario=scenario.name,
        digest=scenario.digest,
        claim=scenario.claim,
        seed=scenario.run.seed if seed is None else seed,
        kafka=scenario.cluster.kafka,
        servers=servers_text(scenario.cluster),
        brokers=len(scenario.cluster.brokers),
        controllers=len(scenario.cluster.controllers),
        topics=tuple(_topic(topic) for topic in scenario.topics),
        producers=tuple(_producer(producer) for producer in scenario.producers),
        consumers=tuple(_consumer(consumer) for consumer in scenario.consumers),
        faults=tuple(fault_text(fault) for fault in scenario.faults),
        expectations=tuple(f"{each.name}: {each.given}" for each in scenario.expect),
        run_us=scenario.run.for_us,
        records_at_most=sum(
            records_at_most(part)
            for part in (scenario, *(other.scenario for other in scenario.clusters))
        ),
        off_default=scenario.off_default,
    )


def servers_text(cluster: ClusterSpec) -> str:
    """``6 brokers in racks a, b, c, 3 controllers``."""
    brokers, controllers = len(cluster.brokers), len(cluster.controllers)
    racks = f" in racks {', '.join(cluster.racks)}" if cluster.racks else ""
    others = many(controllers, "controller")
    if cluster.combined:
        others = f"{controllers} of them controllers as well"
    if cluster.zookeeper is not None:
        others = many(len(cluster.zookeepers), "ZooKeeper server")
    return f"{many(brokers, 'broker')}{racks}, {others}"


def fault_text(fault: Fault) -> str:
    """``20 s power-loss rack a``; of components that fail by chance ``every 600 s ...``."""
    return f"{_instant(fault)} {fault.kind} {fault.target_text}"


def many(count: int, what: str) -> str:
    """``1 broker``, ``3 brokers``."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _instant(fault: Fault) -> str:
    if fault.mtbf_us:
        return f"every {show_duration(fault.mtbf_us)}"
    last = f" to {show_duration(fault.at_us + fault.spread_us)}" if fault.spread_us else ""
    return show_duration(fault.at_us) + last


def _topic(topic: TopicSpec) -> TopicSummary:
    return TopicSummary(
        topic.name,
        topic.partitions,
        topic.replication_factor,
        topic.config.number("min.insync.replicas"),
    )


def _producer(producer: ProducerSpec) -> ProducerSummary:
    acks = producer.config.text("acks")
    return ProducerSummary(producer.name, producer.topic, producer.count, producer.rate_per_s, acks)


def _consumer(consumer: ConsumerSpec) -> ConsumerSummary:
    return ConsumerSummary(consumer.name, consumer.group, tuple(consumer.topics), consumer.count)
