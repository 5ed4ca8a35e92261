"""Expected work of a cluster in a run: appends, requests, rows of each trace table, segments.

Followers and consumers fetch as soon as they have the last answer: a batch costs each of them one
fetch, unless the next batch comes before that answer has been used. Without batches they wait for
``fetch.max.wait.ms``. Beside it there is what brokers and controllers do without any load.

Source: ``DelayedFetch``, ``ReplicaFetcherThread``; KIP-595 and KIP-835 for what an idle metadata
quorum writes and fetches.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import exp

from sim.scenario.estimate.flows import Flow, flows, mirrored
from sim.scenario.scenario import Scenario
from sim.units import SECOND, Bytes

BOOT_S = 4.0
"""Simulated seconds before the scenario's zero, and after its end if nothing is to be healed."""

OFFSETS = "__consumer_offsets"
TRANSACTIONS = "__transaction_state"
SHARES = "__share_group_state"

_INTERNAL = {
    OFFSETS: "offsets.topic",
    TRANSACTIONS: "transaction.state.log",
    SHARES: "share.coordinator.state.topic",
}
_STATE_BYTES = {OFFSETS: 160.0, TRANSACTIONS: 190.0, SHARES: 330.0}
"""Of an append to an internal topic, its batch's header included."""

_TRANSACTION_APPENDS = 2.0
"""Of each transaction to its coordinator's log, beside one for each partition added."""

_MARKER_BYTES: Bytes = 78
_HANDLED_S = 0.0003
"""From the append of a batch to the fetch after it, network aside."""

_QUORUM_FETCHES_S = 2.4
"""Of each observer and follower of the metadata quorum, which gets a record every 500 ms."""


@dataclass(slots=True)
class Work:
    """Work of a cluster in the whole run; numbers are expected values."""

    simulated_s: float = 0.0
    records: float = 0.0
    batches: float = 0.0
    """Of clients."""
    appends: float = 0.0
    """To leaders' logs, internal topics and markers included."""
    requests: float = 0.0
    rows: dict[str, float] = field(default_factory=dict)
    """By trace table; small tables are left out."""
    topics: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Bytes and appends of each topic, once; whatever retention removes included."""
    flows: list[Flow] = field(default_factory=list)
    replicas: int = 0
    """Directories of partitions, internal ones included."""

    @property
    def messages(self) -> float:
        """On the network."""
        return 2 * self.requests


def work(scenario: Scenario) -> list[tuple[Scenario, Work]]:
    """The work of the scenario's own cluster, then that of each other one."""
    own = flows(scenario)
    found = [(scenario, _Cluster(scenario, own).work())]
    for other in scenario.clusters:
        theirs = flows(other.scenario)
        theirs += [
            mirrored(mirror, own, other.scenario)
            for mirror in scenario.mirrors
            if mirror.target == other.alias
        ]
        found.append((other.scenario, _Cluster(other.scenario, theirs).work()))
    return found


def internal_partitions(scenario: Scenario, topic: str) -> int:
    """Partitions of an internal topic."""
    return scenario.cluster.config.number(f"{_INTERNAL[topic]}.num.partitions")


def copies_of(scenario: Scenario, topic: str) -> int:
    """Replication factor of a topic; internal ones have no more than there are brokers."""
    if topic not in _INTERNAL:
        return scenario.topic(topic).replication_factor
    given = scenario.cluster.config.number(f"{_INTERNAL[topic]}.replication.factor")
    return min(len(scenario.cluster.brokers), given)


class _Cluster:
    """One cluster and the flows to its topics."""

    def __init__(self, scenario: Scenario, found: Sequence[Flow]) -> None:
        self._scenario = scenario
        self._flows = list(found)
        self._is_raft = scenario.cluster.replication == "raft"
        self._seconds = scenario.run.for_us / SECOND
        self._brokers = len(scenario.cluster.brokers)
        self._work = Work(simulated_s=self._seconds + BOOT_S, flows=self._flows)

    def work(self) -> Work:
        """Everything, part by part."""
        work = self._work
        work.records = sum(flow.records for flow in self._flows)
        work.batches = sum(flow.batches for flow in self._flows)
        self._appends()
        readers, reads = self._readers()
        copies = self._followers()
        produced = sum(flow.requests for flow in self._flows)
        transactions = sum(flow.transactions for flow in self._flows)
        others = self._idle() + 9 * transactions + 5 * sum(f.connects for f in self._flows)
        work.requests = produced + copies + readers + others
        self._rows(reads, copies)
        return work

    # -- appends ----------------------------------------------------------------------------------

    def _appends(self) -> None:
        work, scenario = self._work, self._scenario
        for topic in scenario.topics:
            work.topics[topic.name] = (0.0, 0.0)
            work.replicas += topic.partitions * topic.replication_factor
        for flow in self._flows:
            partitions = scenario.topic(flow.topic).partitions
            each = flow.records / max(1.0, flow.transactions)
            touched = flow.transactions * partitions * (1 - (1 - 1 / partitions) ** each)
            self._append(flow.topic, flow.bytes + touched * _MARKER_BYTES, flow.batches + touched)
            if flow.transactions:
                states = _TRANSACTION_APPENDS * flow.transactions + touched / 2
                self._append_state(TRANSACTIONS, states)
        self._append_state(OFFSETS, self._commits())
        shared = [c for c in scenario.consumers if c.is_share]
        if shared:
            names = {topic for consumer in shared for topic in consumer.topics}
            taken = sum(f.records for f in self._flows if f.topic in names)
            self._append_state(SHARES, min(taken, 10 * self._seconds * len(names)))
        work.appends = sum(count for _, count in work.topics.values())
        for name in work.topics:
            if name in _INTERNAL:
                work.replicas += internal_partitions(scenario, name) * copies_of(scenario, name)

    def _append(self, topic: str, size: float, count: float) -> None:
        before = self._work.topics.get(topic, (0.0, 0.0))
        self._work.topics[topic] = (before[0] + size, before[1] + count)

    def _append_state(self, topic: str, count: float) -> None:
        if count:
            self._append(topic, count * _STATE_BYTES[topic], count)

    def _commits(self) -> float:
        """Appends to the offsets topic: a few for each member, then those of its commits."""
        scenario = self._scenario
        total = 0.0
        for consumer in scenario.consumers:
            if not consumer.group:
                continue
            lasts = self._seconds - consumer.start_us / SECOND
            every = consumer.config.micros("auto.commit.interval.ms") / SECOND
            if consumer.commits != "auto":
                every = min(every, 0.1)
            total += consumer.count * (4 + max(0.0, lasts) / max(0.001, every))
        for task in scenario.processors:
            every = task.config.micros("commit.interval.ms") / SECOND
            total += task.count * (4 + self._seconds / max(0.001, every))
        for connector in scenario.connectors:
            every = connector.config.micros("offset.flush.interval.ms") / SECOND
            total += connector.tasks * (4 + self._seconds / max(0.001, every))
        return total

    # -- fetches ----------------------------------------------------------------------------------

    def _followers(self) -> float:
        """Fetches of followers, with and without data."""
        others = self._brokers - 1
        if not others:
            return 0.0
        events = 0.0
        for name, (_, count) in self._work.topics.items():
            missed = (1 - (copies_of(self._scenario, name) - 1) / others) ** self._together
            events += count / self._together * others * (1 - missed)
        leading = self._spread()
        pairs, silent = leading * others, (self._brokers - leading) * others
        idle = self._scenario.cluster.config.micros("replica.fetch.wait.max.ms") / SECOND
        rate = events / pairs / max(0.001, self._seconds)
        each = pairs * _fetches(rate, self._delay_s(), idle) + silent / max(0.05, idle)
        return self._seconds * each

    @property
    def _together(self) -> float:
        """Batches of a produce request, on average; they reach a follower with one fetch."""
        requests = sum(flow.requests for flow in self._flows)
        return max(1.0, self._work.batches / requests) if requests else 1.0

    def _spread(self) -> int:
        """Brokers that lead a partition with load."""
        leaders = sum(topic.partitions for topic in self._scenario.topics)
        return max(1, min(self._brokers, leaders))

    def _readers(self) -> tuple[float, float]:
        """Fetches of consumers, and rows of what they read."""
        scenario = self._scenario
        entries: list[tuple[str, Sequence[str], int]] = [
            (c.group or f"{c.name}", c.topics, c.count) for c in scenario.consumers
        ]
        entries += [(t.group, t.topics, t.count) for t in scenario.processors]
        entries += [(c.group, c.topics, c.tasks) for c in scenario.connectors if not c.is_source]
        groups: dict[str, tuple[list[str], int]] = {}
        for group, topics, count in entries:
            names, members = groups.get(group, ([], 0))
            groups[group] = (list(dict.fromkeys([*names, *topics])), members + count)
        fetches = reads = 0.0
        for names, members in groups.values():
            batches = sum(self._work.topics.get(name, (0.0, 0.0))[1] for name in names)
            together = self._together
            fan = members * (1 - (1 - 1 / members) ** together)
            events = batches / together * fan
            connections = members * min(self._spread(), self._brokers)
            rate = events / max(0.001, self._seconds) / connections
            fetches += connections * self._seconds * _fetches(rate, self._delay_s(), 0.5)
            reads += batches
        return fetches, reads

    def _delay_s(self) -> float:
        """A fetch's round trip and what is done with it, in seconds."""
        network = self._scenario.cluster.network
        racks = len(self._scenario.cluster.racks)
        apart = 1 - 1 / racks if racks > 1 else 0.0
        one_way = network.same_rack.p50_us * (1 - apart) + network.cross_rack.p50_us * apart
        return 2 * one_way / SECOND + _HANDLED_S

    def _idle(self) -> float:
        """Requests without any load: the quorum's, heartbeats, those of groups."""
        scenario = self._scenario
        servers = len(scenario.cluster.servers)
        members = sum(each.count for each in scenario.consumers)
        members += sum(each.count for each in scenario.processors)
        quorum = max(0, servers - 1) * _QUORUM_FETCHES_S + self._brokers / 2
        return self._work.simulated_s * (quorum * 1.5 + members / 2) + 20 * servers

    # -- the trace --------------------------------------------------------------------------------

    def _rows(self, reads: float, fetches: float) -> None:
        work, scenario = self._work, self._scenario
        copied = sum(n * (copies_of(scenario, name) - 1) for name, (_, n) in work.topics.items())
        partitions = sum(topic.partitions for topic in scenario.topics)
        groups = len({c.group for c in scenario.consumers if c.group})
        work.rows = {
            "client_batches": work.batches,
            "appends": work.appends + copied,
            "high_watermarks": work.appends,
            "acknowledgements": work.appends,
            "follower_watermarks": min(copied, 0.8 * copied + 0.1 * fetches),
            "reads": reads,
            "requests": work.requests,
            "messages": work.messages,
            "disk_io": 10 * work.simulated_s + (0.8 * copied if self._is_raft else 0.0),
            "load": len(scenario.cluster.servers) * self._seconds,
            "lag": groups * partitions * self._seconds,
            "others": 20 * work.replicas + 6 * sum(f.transactions for f in self._flows),
        }
        if any(consumer.is_share for consumer in scenario.consumers):
            work.rows["share_acknowledgements"] = 2.5 * work.batches
        if any("compact" in str(topic.config["cleanup.policy"]) for topic in scenario.topics):
            work.rows["record_keys"] = work.batches


def _fetches(rate: float, delay_s: float, idle_s: float) -> float:
    """Fetches a second of one connection, at so many appends a second."""
    busy = rate / (1 + rate * delay_s)
    return busy + exp(-rate * idle_s) / max(0.05, idle_s)


def total(works: Sequence[tuple[Scenario, Work]]) -> Mapping[str, float]:
    """Rows of all clusters, by table."""
    rows: dict[str, float] = {}
    for _, each in works:
        for table, count in each.rows.items():
            rows[table] = rows.get(table, 0.0) + count
    return rows
