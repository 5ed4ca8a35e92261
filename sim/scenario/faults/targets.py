"""Targets of faults: from the words in the scenario to what they may mean.

A name or a rack is known before the run and checked here; a role is only checked for its form and
its partition, and is resolved when the fault starts.
"""

import re
from collections.abc import Sequence
from typing import Final

from sim.faults.target import TARGET_FORMS, Target, TargetKind
from sim.ids import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, TopicPartition
from sim.protocol.assignors.registry import partition_for_group
from sim.scenario.model.apps import ConnectorSpec, MirrorSpec, ProcessorSpec
from sim.scenario.model.clients import ConsumerSpec, ProducerSpec
from sim.scenario.model.cluster import ClusterSpec
from sim.scenario.model.topics import TopicSpec
from sim.scenario.text.problems import Problem, nearest, one_of

_ROLE_OF: Final = re.compile(r"(leader|follower) of (\S+)")
_COORDINATOR_OF: Final = re.compile(r"(group|transaction) coordinator of (\S+)")
_ALL: Final = "all controllers"
_PARTITION: Final = re.compile(r"(.+)-(\d{1,6})")


class Targets:
    """Everything that may be named in one scenario."""

    def __init__(
        self,
        cluster: ClusterSpec,
        topics: Sequence[TopicSpec],
        workloads: Sequence[
            ProducerSpec | ConsumerSpec | ProcessorSpec | ConnectorSpec | MirrorSpec
        ],
    ) -> None:
        self._cluster = cluster
        self.topics = {topic.name: topic for topic in topics}
        self._brokers = tuple(server.name for server in cluster.brokers)
        self._controllers = tuple(server.name for server in cluster.controllers)
        self._zookeepers = tuple(server.name for server in cluster.zookeepers)
        self.servers = tuple(server.name for server in cluster.servers)
        self.clients = {name: (name,) for load in workloads for name in load.client_names}
        self._fixed = {
            "controller leader": Target("controller leader", "controller leader"),
            "random broker": Target("random broker", "random broker"),
            "all brokers": Target("all brokers", "all brokers", names=self._brokers),
            **self._components(),
            **{name: Target("node", name, names=(name,)) for name in self.servers},
        }
        self.producers = [
            name
            for load in workloads
            if isinstance(load, ProducerSpec)
            for name in load.client_names
        ]
        readers = [w for w in workloads if isinstance(w, ConsumerSpec) and not w.is_share]
        self.consumers = tuple(name for reader in readers for name in reader.client_names)
        """Consumers whose application seeks and pauses."""
        self.consumer_groups = tuple(dict.fromkeys(w.group for w in readers if w.group))
        self.transactional = [
            name
            for load in workloads
            if isinstance(load, ProducerSpec) and load.transaction is not None
            for name in load.client_names
        ]
        if self._controllers:
            self._fixed[_ALL] = Target(_ALL, _ALL, names=self._controllers)
        if self._zookeepers:
            self._fixed["zookeeper leader"] = Target("zookeeper leader", "zookeeper leader")
        self._groups = tuple(
            w.group for w in workloads if not isinstance(w, ProducerSpec) and w.group
        )
        self._transactional_ids = tuple(
            name
            for w in workloads
            if not isinstance(w, ConsumerSpec)
            for name in w.transactional_ids
        )
        self._workloads = {load.name: load.client_names for load in workloads}

    def _components(self) -> dict[str, Target]:
        """Targets that mean one of many, or each of them apart."""
        racks = tuple(self._rack(f"rack {rack}") for rack in self._cluster.racks)
        kinds = {
            "each broker": tuple(Target("node", name, names=(name,)) for name in self._brokers),
            "each controller": tuple(
                Target("node", name, names=(name,)) for name in self._controllers
            ),
            "each rack": racks,
        }
        found = {
            text: Target("each", text, tuple(n for part in parts for n in part.names), parts=parts)
            for text, parts in kinds.items()
            if parts
        }
        if racks:
            found["random rack"] = Target("random rack", "random rack")
        return found

    @property
    def client_ids(self) -> tuple[str, ...]:
        """Whom quotas may be for: clients alike have one client-id."""
        return tuple(self._workloads)

    @property
    def addresses(self) -> tuple[str, ...]:
        """Hosts: every process has its own, of its name."""
        return (*self.clients, *self.servers)

    def parse(self, text: str) -> Target:
        """A target as data.

        Raises:
            Problem: If it names nothing that is in the scenario; its path is empty.
        """
        words = " ".join(text.split())
        role = _ROLE_OF.fullmatch(words)
        if role is not None:
            kind: TargetKind = "leader" if role[1] == "leader" else "follower"
            return Target(kind, words, partition=self.partition(role[2]))
        coordinator = _COORDINATOR_OF.fullmatch(words)
        if coordinator is not None:
            return self._coordinator(words, coordinator[1], coordinator[2])
        if words.startswith("rack "):
            return self._rack(words)
        if words in self._fixed:
            return self._fixed[words]
        clients = self._workloads.get(words) or self.clients.get(words)
        if clients is not None:
            return Target("node", words, names=clients)
        raise self._unknown(words)

    def partition(self, text: str) -> TopicPartition:
        """A topic partition, as in ``orders-0``.

        Raises:
            Problem: If there is no such topic or no such partition; its path is empty.
        """
        match = _PARTITION.fullmatch(text)
        topic = None if match is None else self.topics.get(match[1])
        if match is None or topic is None:
            known = [f"{name}-0" for name in self.topics]
            raise Problem((), f"no partition {text!r}", ", ".join(known), nearest(text, known))
        if int(match[2]) >= topic.partitions:
            allowed = f"{topic.name}-0 to {topic.name}-{topic.partitions - 1}"
            raise Problem((), f"no partition {text!r}", allowed)
        return TopicPartition(topic.name, int(match[2]))

    def partition_under(self, key: str, text: str) -> TopicPartition:
        """As :meth:`partition`; the problem's path is the key."""
        try:
            return self.partition(text)
        except Problem as problem:
            raise problem.below(key) from None

    def _coordinator(self, words: str, kind: str, key: str) -> Target:
        """The leader of the partition in which a group or a transactional id is kept."""
        topic, setting, known = OFFSETS_TOPIC, "offsets.topic.num.partitions", self._groups
        if kind == "transaction":
            topic, setting = TRANSACTIONS_TOPIC, "transaction.state.log.num.partitions"
            known = self._transactional_ids
        if key not in known:
            whose = "group" if kind == "group" else "transactional.id"
            raise Problem((), f"no {whose} {key!r}", one_of(known) or "none", nearest(key, known))
        number = partition_for_group(key, self._cluster.config.number(setting))
        return Target("leader", words, partition=TopicPartition(topic, number))

    def _rack(self, words: str) -> Target:
        rack = words.removeprefix("rack ")
        if rack not in self._cluster.racks:
            known = ", ".join(f"rack {name}" for name in self._cluster.racks)
            raise Problem(
                (),
                f"no rack {rack!r}",
                known or "no racks: cluster.racks is not given",
                nearest(words, [f"rack {name}" for name in self._cluster.racks]),
            )
        names = tuple(server.name for server in self._cluster.servers_in(rack))
        return Target("rack", words, names=names)

    def _unknown(self, words: str) -> Problem:
        if words == _ALL:
            found = f"{words!r} with cluster.zookeeper, where a broker is the controller"
            return Problem((), found, "controller leader, zookeeper leader, all brokers")
        for prefix, known in (
            ("broker-", self._brokers),
            ("controller-", self._controllers),
            ("zookeeper-", self._zookeepers),
        ):
            if words.startswith(prefix):
                kind = prefix[:-1]
                return Problem((), f"no {kind} {words!r}", f"{kind}s are {', '.join(known)}")
        known = (
            *self.servers,
            *(f"rack {name}" for name in self._cluster.racks),
            *self._workloads,
            *self.clients,
            *self._fixed,
        )
        return Problem((), f"no target {words!r}", ", ".join(TARGET_FORMS), nearest(words, known))
