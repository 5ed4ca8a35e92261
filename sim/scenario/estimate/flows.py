"""Expected records and batches of a scenario: one flow for each kind of client that writes.

An outage makes batches larger and fewer, and moves no record. What clients that die never send is
left out.

Source: KIP-480 and KIP-794 (when a batch is complete), ``RecordAccumulator.ready`` and
``drainBatchesForOneNode`` (a node is sent a batch of each of its partitions at once).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

from sim.faults.fault import Fault
from sim.faults.process import Pause
from sim.faults.target import Target
from sim.protocol.clients.producer.record_sizes import BATCH_OVERHEAD, RecordSizes
from sim.scenario.build.workloads import curve_of
from sim.scenario.model.apps import ConnectorSpec, MirrorSpec, ProcessorSpec
from sim.scenario.model.clients import ProducerSpec
from sim.scenario.model.machines import NetworkModel
from sim.scenario.model.topics import TopicSpec
from sim.scenario.rules.limits import more_in_surges
from sim.scenario.scenario import Scenario
from sim.scenario.settings.resolved import Config
from sim.units import SECOND, Bytes, Micros

_SERVED_US: Micros = 400
"""Threads of clients and servers, for a request that is replicated before it is answered."""

_OUT_MAX = 0.7
"""Largest share of a run that is taken for lost: some batches are sent in any case."""

_HEADER_BYTES: Bytes = 12
"""Name and lengths of a record's header."""

_PAYLOAD_BYTES: Bytes = 24
_PACKED_RECORD: float = 0.55
"""Share of a record's fields other than filler that a codec leaves."""

_PACKED_FILLER: float = 0.02
_SOURCE_BYTES: Bytes = 32
"""Key of a source connector's records: partition and position of the external log."""


@dataclass(frozen=True, slots=True)
class Flow:
    """Records of clients alike to one topic, in the whole run."""

    topic: str
    clients: int
    records: float
    batches: float
    requests: float
    record_bytes: float
    """Of a record in its batch, as the log has it."""
    lasts_us: Micros
    transactions: float = 0.0
    is_packed: bool = False
    """True if producers compress them."""
    connects: float = 0.0
    """Producers that are made for one record, and closed."""

    @property
    def bytes(self) -> float:
        """Of all batches, once."""
        return self.records * self.record_bytes + self.batches * BATCH_OVERHEAD


def flows(scenario: Scenario) -> list[Flow]:
    """Flows of a cluster's own clients, in the order of the file; mirrors to it are not in it."""
    topics = {topic.name: topic for topic in scenario.topics}
    brokers = len(scenario.cluster.brokers)
    found = [_of_producer(p, scenario, topics[p.topic], brokers) for p in scenario.producers]
    sources = [c for c in scenario.connectors if c.is_source]
    found += [_of_source(c, topics[c.topics[0]]) for c in sources]
    for task in scenario.processors:
        found.append(_of_task(task, scenario, topics[task.output], brokers, found))
    served = 1 - out_of_service(scenario)
    return [
        replace(flow, batches=flow.batches * served, requests=flow.requests * served)
        for flow in found
    ]


def out_of_service(scenario: Scenario) -> float:
    """Share of the run in which partitions have no leader, on average over all of them.

    A broker that ends without notice is missed for its session, even if it is back before.
    """
    cluster = scenario.cluster
    config, brokers = cluster.config, [broker.name for broker in cluster.brokers]
    name = "broker.session.timeout.ms"
    if cluster.zookeeper is not None:
        name = "zookeeper.session.timeout.ms"
    session = config.micros(name) * 9 // 8 + SECOND
    if cluster.replication == "raft":
        session = 2 * SECOND
    lost = 0.0
    for fault in scenario.faults:
        if not fault.outage:
            continue
        lasts = session
        if isinstance(fault, Pause) or any(t.kind == "all brokers" for t in fault.targets):
            lasts = min(fault.for_us or scenario.run.for_us, scenario.run.for_us)
        lasts = min(lasts, max(0, scenario.run.for_us - fault.at_us))
        lost += lasts * min(1.0, sum(_share(t, brokers, scenario) for t in fault.targets))
    return min(_OUT_MAX, lost / scenario.run.for_us)


def _share(target: Target, brokers: Sequence[str], scenario: Scenario) -> float:
    """Share of all leaders that a target's brokers have."""
    if target.kind == "all brokers":
        return 1.0
    if target.kind == "leader":
        return max(1 / len(brokers), 1 / max(1, len(scenario.partitions)))
    if target.kind in {"random broker", "each"}:
        return 1 / len(brokers)
    if target.kind == "random rack":
        return 1 / max(1, len(scenario.cluster.racks))
    return sum(name in brokers for name in target.names) / len(brokers)


def mirrored(mirror: MirrorSpec, source: Sequence[Flow], target: Scenario) -> Flow:
    """The flow of a mirror into its target cluster, from those of the source cluster."""
    topic = target.topic(mirror.target_topic)
    inputs = [flow for flow in source if flow.topic == mirror.topic]
    records = sum(flow.records for flow in inputs)
    lasts = max((flow.lasts_us for flow in inputs), default=SECOND)
    size = sum(flow.record_bytes * flow.records for flow in inputs) / max(1.0, records)
    batching = _Batching(mirror.producer, size, topic, len(target.cluster.brokers), keyed=True)
    return batching.flow(topic.name, 1, records, lasts, target.cluster.network)


@dataclass(frozen=True, slots=True)
class _Batching:
    """Forms batches of a rate of records."""

    config: Config
    record_bytes: float
    topic: TopicSpec
    brokers: int
    keyed: bool

    def flow(
        self, topic: str, clients: int, records: float, lasts: Micros, network: NetworkModel
    ) -> Flow:
        """The flow of so many clients with so many records each, spread over their time."""
        rate = records / max(1, lasts)  # for each microsecond
        if not rate:
            return Flow(topic, clients, 0, 0, 0, self.record_bytes, lasts)
        leaders = min(self.topic.partitions, self.brokers) if self.keyed else 1
        partitions = self.topic.partitions / leaders if self.keyed else 1.0
        wait = max(leaders / rate + self.config.micros("linger.ms"), self._round_trip(network))
        full = max(1.0, (self.config.size("batch.size") - BATCH_OVERHEAD) / self.record_bytes)
        wait = min(wait, max(1.0, full * partitions) * leaders / rate)
        drained = max(1.0, wait * rate / leaders)
        touched = partitions * (1 - (1 - 1 / partitions) ** drained) if partitions > 1 else 1.0
        batches = max(touched, drained / full)
        requests = records / drained
        return Flow(
            topic, clients, clients * records, clients * requests * batches,
            clients * requests, self.record_bytes, lasts,
        )  # fmt: skip

    def _round_trip(self, network: NetworkModel) -> float:
        """Time between two requests of one connection: the answer over requests in flight."""
        in_flight = self.config.number("max.in.flight.requests.per.connection")
        hops = 2 if self.config.text("acks") == "all" else 0
        client = (network.client or network.same_rack).p50_us
        return (2 * client + hops * network.cross_rack.p50_us + _SERVED_US) / in_flight


def _of_producer(
    producer: ProducerSpec, scenario: Scenario, topic: TopicSpec, brokers: int
) -> Flow:
    names = producer.client_names
    lasts = max(1, producer.stop_us - producer.start_us)
    surging = more_in_surges(producer, scenario.faults)
    records = _rate(producer) * lasts / SECOND + surging / producer.count
    if producer.curve is not None:
        curve = curve_of(producer.curve)
        records *= (curve.own(producer.stop_us) - curve.own(producer.start_us)) / lasts
    down = [_down(name, producer.start_us, producer.stop_us, scenario.faults) for name in names]
    records *= 1 - sum(down) / producer.count / lasts
    headers = producer.record_headers
    sizes = RecordSizes(
        producer.record_size, keyed=producer.keys != "none", header_count=headers.count,
        header_bytes=headers.count * (headers.size + _HEADER_BYTES),
    )  # fmt: skip
    size = float(sizes.table[2][1])
    size -= producer.tombstone_ppm / 1_000_000 * max(0, producer.record_size - _PAYLOAD_BYTES)
    raw = max(0, producer.record_size - _PAYLOAD_BYTES)
    size = _packed(size, raw, producer.compressibility, producer.config, topic)
    batching = _Batching(producer.config, size, topic, brokers, producer.keys != "none")
    flow = batching.flow(topic.name, producer.count, records, lasts, scenario.cluster.network)
    flow = replace(flow, is_packed=_is_packed(producer.config, topic))
    if producer.per_request:
        return replace(flow, batches=flow.records, requests=flow.records, connects=flow.records)
    transaction = producer.transaction
    if transaction is None:
        return flow
    each = transaction.records or max(1.0, records / lasts * (transaction.every_us or SECOND))
    return _committed(flow, flow.records / each, topic.partitions, producer.keys != "none")


def _committed(flow: Flow, transactions: float, partitions: int, keyed: bool) -> Flow:  # noqa: FBT001 - a fact of the flow
    """A flow in transactions: each flushes what its batches hold when it ends."""
    each = flow.records / max(1.0, transactions)
    touched = partitions * (1 - (1 - 1 / partitions) ** each) if keyed else 1.0
    least = transactions * touched
    return replace(
        flow, transactions=transactions, batches=max(flow.batches, least),
        requests=max(flow.requests, transactions),
    )  # fmt: skip


def _of_source(connector: ConnectorSpec, topic: TopicSpec) -> Flow:
    lasts = max(1, connector.stop_us - connector.start_us)
    records = connector.rate_per_s * lasts / SECOND
    size = RecordSizes(connector.record_size, keyed=True).table[2][1] + _SOURCE_BYTES
    polls = max(1.0, lasts / connector.poll_us)
    full = max(1.0, (connector.client.size("batch.size") - BATCH_OVERHEAD) / size)
    batches = min(records, polls * max(1, ceil(records / polls / full)))
    count = connector.tasks
    exact = connector.is_exactly_once
    return Flow(
        topic.name, count, count * records, count * batches, count * batches, float(size), lasts,
        transactions=count * polls if exact else 0.0,
    )  # fmt: skip


def _of_task(
    task: ProcessorSpec,
    scenario: Scenario,
    topic: TopicSpec,
    brokers: int,
    earlier: Sequence[Flow],
) -> Flow:
    inputs = [flow for flow in earlier if flow.topic in task.topics]
    lasts = max((flow.lasts_us for flow in inputs), default=SECOND)
    records = sum(flow.records for flow in inputs) * task.outputs
    size = float(RecordSizes(task.record_size, keyed=True).table[2][1])
    batching = _Batching(task.producer, size, topic, brokers, keyed=True)
    flow = batching.flow(
        topic.name, task.count, records / task.count, lasts, scenario.cluster.network
    )
    if not task.is_exactly_once:
        return flow
    commits = task.count * lasts / max(1, task.config.micros("commit.interval.ms"))
    return _committed(flow, min(commits, records), topic.partitions, keyed=True)


def _rate(producer: ProducerSpec) -> float:
    """Records a second of one client, on average."""
    burst = producer.burst
    if burst is None:
        return float(producer.rate_per_s)
    whole = burst.on_us + burst.off_us
    return (burst.peak_per_s * burst.on_us + producer.rate_per_s * burst.off_us) / whole


def _down(name: str, start: Micros, stop: Micros, faults: Sequence[Fault]) -> Micros:
    """Time in which a client does not run, because a fault names it."""
    spans = sorted(_spans(name, start, stop, faults))
    total, end = 0, start
    for low, high in spans:
        total += max(0, high - max(low, end))
        end = max(end, high)
    return total


def _spans(
    name: str, start: Micros, stop: Micros, faults: Sequence[Fault]
) -> Iterator[tuple[Micros, Micros]]:
    for fault in faults:
        if fault.outage and any(name in target.names for target in fault.targets):
            until = stop if fault.until_us is None else min(stop, fault.until_us)
            yield min(stop, max(start, fault.at_us)), max(start, until)


def _is_packed(config: Config, topic: TopicSpec) -> bool:
    """True if a codec is at work, the producer's or the topic's."""
    settings: Mapping[str, object] = topic.config
    codecs = (config.text("compression.type"), str(settings["compression.type"]))
    return any(codec not in {"none", "uncompressed", "producer"} for codec in codecs)


def _packed(
    size: float, filler: Bytes, compressibility: float, config: Config, topic: TopicSpec
) -> float:
    """Size of a record in a batch as the log has it."""
    settings: Mapping[str, object] = topic.config
    if settings["compression.type"] == "uncompressed" or not _is_packed(config, topic):
        return size
    squeezed = filler * compressibility
    rest = size - filler
    return rest * _PACKED_RECORD + squeezed * _PACKED_FILLER + (filler - squeezed)
