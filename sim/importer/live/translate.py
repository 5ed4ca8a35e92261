"""Facts of a running cluster as the sources from which a scenario is built; pure.

Left out: leaders that are not the preferred ones, replicas that lag, and what is on the disks: a
run begins with every replica in sync, and empty.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from sim.errors import SimulationError
from sim.importer.descriptions import DescribedTopic
from sim.importer.live.consumers import consumers_of
from sim.importer.live.facts import ClusterFacts, TopicFacts, some_of
from sim.importer.live.load import TopicLoad, group_loads, topic_loads
from sim.importer.live.quotas import quotas_of
from sim.importer.sources import Load, Properties, Sources
from sim.scenario.behaviours.versions import VERSIONS

UNKNOWN: Final = (
    (
        "producers: how many share a topic's load, and their settings, keys and transactions; here "
        "one writes to each topic, with a record.size that makes as many bytes as were measured"
    ),
    "consumers: their fetch, poll and commit settings, isolation, timeouts and time for a record",
    "controllers of their own: their settings; listeners, users and ACLs are not asked for",
    "hardware: disks, networks, heaps and processors; and the records that are there already",
)
"""Facts that no request brings; the same for every cluster."""


def sources_of(facts: ClusterFacts, files: Sources | None = None) -> Sources:
    """Sources of a scenario.

    Args:
        facts: What the cluster said.
        files: A producer's properties, if any.

    Raises:
        SimulationError: If there is no topic.
    """
    found = Sources() if files is None else files
    found.files = [f"the running cluster {facts.cluster or '(without an id)'}", *found.files]
    found.absent += facts.gaps
    _brokers(facts, found)
    _versions(facts, found)
    found.voters, found.is_dynamic = facts.voters, facts.is_dynamic
    for topic in facts.topics:
        found.topics[topic.name] = _topic(topic, found)
    _internal(facts, found)
    if all(name.startswith("__") for name in found.topics):
        raise SimulationError(
            "no topic: there is none, or this principal may not see any; grant Describe on them"
        )
    loads = topic_loads(*facts.samples) if len(facts.samples) == 2 else {}
    _loads(loads, facts, found)
    groups = group_loads(*facts.samples) if len(facts.samples) == 2 else {}
    clients = consumers_of(facts, loads, groups, found)
    quotas_of(facts, loads, clients, found)
    found.unknown += UNKNOWN
    return found


def _brokers(facts: ClusterFacts, found: Sources) -> None:
    for broker in facts.brokers:
        if broker.configs is None:
            found.racks[broker.node] = broker.rack
            continue
        own = {"node.id": str(broker.node), "broker.rack": broker.rack}
        found.servers.append(Properties(f"broker {broker.node}", {**broker.configs, **own}))


def _versions(facts: ClusterFacts, found: Sources) -> None:
    """The oldest of the brokers' versions, or the newest that can be simulated."""
    versions = sorted({broker.version for broker in facts.brokers if broker.version})
    if not versions:
        return
    if len(versions) > 1:
        spelt = ", ".join(_dotted(version) for version in versions)
        found.absent.append(f"Kafka {spelt}: brokers differ; here all are {_dotted(versions[0])}")
    found.kafka = _dotted(versions[0])
    if found.kafka not in VERSIONS:
        newest = VERSIONS[-1]
        found.absent.append(f"Kafka {found.kafka}: simulated as {newest}, the newest there is here")
        found.kafka = newest


def _dotted(version: Sequence[int]) -> str:
    return ".".join(str(part) for part in version[:2])


def _topic(topic: TopicFacts, found: Sources) -> DescribedTopic:
    """Placement and overrides; a line for what is in motion."""
    parts = topic.partitions
    replicas = {number: part.replicas for number, part in sorted(parts.items())}
    made = DescribedTopic(topic.name, len(parts), dict(topic.configs or {}), replicas)
    lagging = [n for n, part in parts.items() if len(part.isr) < len(part.replicas)]
    leaderless = [n for n, part in parts.items() if part.leader < 0]
    moving = [n for n, part in parts.items() if part.moving]
    for numbers, what in (
        (lagging, "replicas out of sync; here all are in sync at first"),
        (leaderless, "no leader; here each has one at first"),
        (moving, "a reassignment under way; here it has not begun to leave the old replicas"),
    ):
        if numbers:
            made.notes.append(f"topic {topic.name}, {_partitions(numbers)}: {what}")
    led = [n for n, part in parts.items() if part.leader >= 0 and part.leader != part.replicas[0]]
    if led:
        found.measured.append(
            f"{topic.name}: not led by the preferred replica, as here at first: {_partitions(led)}"
        )
    return made


def _partitions(numbers: Sequence[int]) -> str:
    return f"partition{'s' if len(numbers) > 1 else ''} {some_of(sorted(numbers))}"


def _internal(facts: ClusterFacts, found: Sources) -> None:
    names = [t.name for t in facts.topics if t.internal or t.name.startswith("__")]
    for topic in facts.topics:
        if topic.internal and not topic.name.startswith("__"):
            del found.topics[topic.name]
    if names:
        found.measured.append(
            f"internal topics, left out here as brokers make their own: {', '.join(names)}"
        )


def _loads(loads: Mapping[str, TopicLoad], facts: ClusterFacts, found: Sources) -> None:
    """Rates in whole records a second: a topic that takes less gets one."""
    found.loads = {}
    idle = []
    for name in found.topics:
        load = loads.get(name)
        if load is None or name.startswith("__"):
            continue
        if load.went_back:
            found.absent.append(f"topic {name}: ends went back meanwhile: made again, or cut off")
        if not load.records_per_s:
            idle.append(name)
            continue
        rate = max(1, round(load.records_per_s))
        found.loads[name] = Load(rate, load.bytes_per_record)
        size = load.bytes_per_s
        at_rest = "" if size is None else f", {size:.0f} B/s ({load.bytes_per_record:.0f} B each)"
        found.measured.append(f"{name}: {load.records_per_s:.1f} records/s{at_rest}")
        if load.records_per_s < 0.5:
            found.absent.append(f"topic {name}: less than a record in two seconds; here 1/s")
    if idle and found.loads:
        found.measured.append(f"nothing was written to {some_of(idle)}: no producer here")
    elif idle:
        found.measured.append("nothing was written to any topic: the rates here are a guess")
    if len(facts.samples) == 2:
        first, last = facts.samples
        seconds = last.ends_s - first.ends_s
        found.measured.insert(0, f"for {seconds:.0f} s, from offsets and sizes of logs")
