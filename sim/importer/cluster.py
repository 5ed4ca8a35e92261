"""A scenario from the sources: servers, racks, topics with their placement, and a line of load."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from sim.errors import SimulationError
from sim.ids import FIRST_CONTROLLER_ID
from sim.importer.clients import GUESS, producers, settings_of_producers
from sim.importer.descriptions import DescribedTopic
from sim.importer.masking import HIDDEN, shown
from sim.importer.settings import NEEDLESS, CarriedOver, kept
from sim.importer.sources import Properties, Sources
from sim.scenario.loader import first_problem
from sim.scenario.settings.facts import settings_of
from sim.scenario.text.names import NAME
from sim.scenario.text.problems import Problem, show_path

INTERNAL: Final = {
    "__consumer_offsets": "offsets.topic",
    "__transaction_state": "transaction.state.log",
}
"""Kafka's own topics, and how the settings of each begin."""

_NUMBER: Final = re.compile(r"\d{1,9}")
_NO_RACK: Final = ""
_MIN_ISR: Final = "min.insync.replicas"
_MAY_GO: Final = (("consumers",), ("quotas",))
"""Entries that are left out if the rest of the scenario refuses them."""


@dataclass(slots=True)
class Imported:
    """A scenario, and what of the cluster is not in it."""

    text: str = ""
    absent: list[str] = field(default_factory=list)
    """A line for each thing that is not simulated."""
    measured: list[str] = field(default_factory=list)
    """Lines: loads and lags of a running cluster."""
    unknown: list[str] = field(default_factory=list)
    """Lines: what a running cluster cannot say."""
    brokers: dict[int, str] = field(default_factory=dict)
    """Names by the cluster's own ids."""
    topics: int = 0


def build(sources: Sources, rate: str | None = None) -> Imported:
    """The scenario's text, with comments on what it leaves out.

    Args:
        sources: What was read.
        rate: Records a second of each topic without a measured load, as in a scenario; ``None``:
            none if any was measured, else a guess.

    Raises:
        SimulationError: If there is neither a server nor a placement, or the scenario cannot be.
    """
    return _Building(sources, rate).imported()


class _Building:
    """The parts of one scenario, and lines about what is left out."""

    def __init__(self, sources: Sources, rate: str | None) -> None:
        self._sources = sources
        self._rate = rate
        self._found = Imported(measured=sources.measured, unknown=sources.unknown)
        self._racks: dict[int, str] = {}
        self._ids: list[int] = []

    def imported(self) -> Imported:
        """Everything."""
        self._found.absent += self._sources.absent
        self._name_brokers()
        cluster = self._cluster()
        topics = {
            name: self._topic(topic)
            for name, topic in self._sources.topics.items()
            if not name.startswith("__")
        }
        if not topics:
            raise SimulationError("no topic: give the output of kafka-topics --describe as well")
        data: dict[str, Any] = {
            "claim": f"What is acknowledged stays, on a cluster as {self._whose()}.",
            "cluster": cluster,
            "topics": topics,
            **self._clients(topics, cluster),
            "run": {"for": "30s"},
            "expect": {"lost_acked": 0},
        }
        self._others()
        self._found.topics = len(topics)
        self._leave_out_what_is_refused(data)
        body = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=100)
        self._found.text = f"{self._comments()}{body}"
        return self._found

    def _leave_out_what_is_refused(self, data: dict[str, Any]) -> None:
        """Settings that a scenario with these parts may not have: each goes with its reason.

        Raises:
            SimulationError: If something else is refused.
        """
        while (problem := first_problem(yaml.safe_dump(data, sort_keys=False))) is not None:
            path = problem.path
            if path[:1] == ("topics",) and path[2:] == ("config", _MIN_ISR):
                self._lower_min_isr(path[1], data["topics"][path[1]])
            elif path[:1] in _MAY_GO and len(path) > 1 and "config" not in path:
                data[str(path[0])].pop(path[1])
                self._absent(f"{path[0]}: one left out: {_sentence(problem)}")
            elif not self._without_setting(data, problem):
                raise SimulationError(f"what was read cannot be run: {_sentence(problem)}")

    def _lower_min_isr(self, name: object, topic: dict[str, Any]) -> None:
        """Kafka has topics that take no acks=all; a scenario refuses them."""
        factor = topic["replication.factor"]
        topic.setdefault("config", {})[_MIN_ISR] = factor
        self._absent(
            f"topic {name}: {_MIN_ISR} is above its replication factor, so no write with acks=all "
            f"is taken there; here it is {factor}"
        )

    def _without_setting(self, data: dict[str, Any], problem: Problem) -> bool:
        """Leave out the setting that is refused; false if it is none, or not in the data."""
        where = problem.path[:-1]
        if where[-1:] != ("config",):
            return False
        above: Any = data
        for key in where[:-1]:
            above = above[key]
        part = above.get("config", {})
        name = problem.path[-1]
        if name not in part:
            return False
        part.pop(name)
        place = "all brokers" if where[0] == "cluster" else " ".join(map(str, where[:-1]))
        self._absent(f"{place}: {name}: left out: {_sentence(problem)}")
        if not part:
            del above["config"]
        return True

    # -- servers ----------------------------------------------------------------------------------

    def _name_brokers(self) -> None:
        """Brokers keep their ids; scenarios have them rack by rack."""
        racks: dict[int, str] = {}
        for server in self._sources.servers:
            node = _id_of(server)
            if "broker" in _roles(server):
                if node in racks:
                    raise SimulationError(f"{server.file}: a second server with id {node}")
                racks[node] = self._rack(server.values.get("broker.rack", _NO_RACK))
        for node, rack in self._sources.racks.items():
            racks.setdefault(node, self._rack(rack))
        placed = {
            node
            for topic in self._sources.topics.values()
            for replicas in topic.replicas.values()
            for node in replicas
        }
        for node in sorted(placed - racks.keys()):
            racks[node] = _NO_RACK
        if not racks:
            raise SimulationError(
                "no broker: give server.properties, or the output of kafka-topics --describe"
            )
        without = sorted(node for node, rack in racks.items() if not rack)
        if without and len(without) < len(racks):
            names = ", ".join(str(node) for node in without)
            self._absent(f"racks: not known of broker {names}, so nothing is placed by rack")
            racks = dict.fromkeys(racks, _NO_RACK)
        order = sorted(racks, key=lambda node: (racks[node], node))
        self._racks = {node: racks[node] for node in order}
        ids = {node: node for node in order}
        if max(order) >= FIRST_CONTROLLER_ID:
            ids = {node: place for place, node in enumerate(order, 1)}
            self._absent(
                f"broker ids: {max(order)} is more than a scenario's {FIRST_CONTROLLER_ID - 1}, so "
                "brokers are numbered again: see the head of the file"
            )
        self._ids = [ids[node] for node in order]
        self._found.brokers = {node: f"broker-{ids[node]}" for node in order}

    def _rack(self, text: str) -> str:
        rack = text.strip()
        if not rack or NAME.fullmatch(rack) is not None:
            return rack
        spelt = re.sub(r"[^a-zA-Z0-9._-]+", "-", rack)[:200].strip("-.") or "rack"
        self._absent(f"broker.rack: spelt {spelt} here, with letters, digits, '.', '_' and '-'")
        return spelt

    def _cluster(self) -> dict[str, Any]:
        cluster: dict[str, Any] = {"kafka": self._sources.kafka} if self._sources.kafka else {}
        racks = list(dict.fromkeys(self._racks.values()))
        if racks == [_NO_RACK]:
            cluster["brokers"] = len(self._racks)
        else:
            cluster["racks"] = {r: list(self._racks.values()).count(r) for r in racks}
        if self._ids != list(range(1, len(self._ids) + 1)):
            cluster["ids"] = self._ids
        cluster |= self._control_plane()
        directories = self._directories()
        if directories > 1 and "zookeeper" in cluster:
            self._absent(f"log.dirs: {directories}; in ZooKeeper mode every broker has one here")
        elif directories > 1:
            cluster["disk"] = {"directories": directories}
        config = self._broker_config()
        if config:
            cluster["config"] = config
        return cluster

    def _directories(self) -> int:
        """Log directories of a broker; the most that one has."""
        servers = [server for server in self._sources.servers if "broker" in _roles(server)]
        counts = [len(_directories(server)) for server in servers]
        if counts and min(counts) != max(counts):
            least, most = min(counts), max(counts)
            self._absent(f"log.dirs: from {least} to {most}; here every broker has {most}")
        return max(counts, default=1)

    def _control_plane(self) -> dict[str, Any]:
        """Controllers of their own, brokers that are controllers as well, or an ensemble."""
        servers = self._sources.servers
        connect = next((s.values["zookeeper.connect"] for s in servers if _is_zookeeper(s)), "")
        if connect:
            return {"zookeeper": {"servers": len(connect.partition("/")[0].split(","))}}
        ids = [_id_of(s) for s in servers if {"broker", "controller"} <= set(_roles(s))]
        alone = sum(_roles(s) == ("controller",) for s in servers)
        if self._sources.voters:
            ids = [node for node in self._sources.voters if node in self._racks]
            alone = len(self._sources.voters) - len(ids)
        if ids:
            if alone:
                self._absent("controllers of their own beside combined ones: all are combined")
            listed = [self._found.brokers[node] for node in ids]
            first = set(list(self._found.brokers.values())[: len(ids)])
            if not self._has_racks() and set(listed) != first:
                self._absent(
                    f"process.roles: {', '.join(listed)} are controllers; here the first ones are"
                )
            return {"combined": len(ids)}
        voters = 0 if self._sources.voters else next((v for s in servers if (v := _voters(s))), 0)
        count = voters or alone
        dynamic = {"quorum": "dynamic"} if self._sources.is_dynamic else {}
        return {"controllers": count} | dynamic if count else {}

    def _has_racks(self) -> bool:
        return any(self._racks.values())

    def _broker_config(self) -> dict[str, Any]:
        """Settings of all brokers; where they differ most brokers' value counts, which is said."""
        found = {_id_of(server): self._server(server) for server in self._sources.servers}
        self._list_once({node: each.absent for node, each in found.items()})
        brokers = [node for node in found if node in self._found.brokers]
        given: dict[str, dict[Any, list[int]]] = {}
        for node in sorted(found, key=lambda node: node not in self._found.brokers):
            for name, value in found[node].config.items():
                # Controllers have no say in what brokers say themselves.
                if node in brokers or name not in given:
                    given.setdefault(name, {}).setdefault(value, []).append(node)
        config: dict[str, Any] = {}
        for name, nodes_of in given.items():
            config[name] = max(nodes_of, key=lambda value: len(nodes_of[value]))
            have = [node for nodes in nodes_of.values() for node in nodes]
            lacks = [node for node in brokers if node not in have] if have[0] in brokers else []
            if len(nodes_of) > 1 or lacks:
                parts = [
                    f"{shown(name, str(value))} of {', '.join(map(str, nodes))}"
                    for value, nodes in nodes_of.items()
                ]
                parts += [f"not given of {', '.join(map(str, lacks))}"] if lacks else []
                kept_value = shown(name, str(config[name]))
                self._absent(
                    f"{name}: not alike ({'; '.join(parts)}); here all brokers have {kept_value}"
                )
        if not found:
            every = kept("broker", self._dynamic("brokers", ""), skip=NEEDLESS)
            self._found.absent += [f"all brokers: {line}" for line in every.absent]
            config = dict(every.config)
        for name, prefix in INTERNAL.items():
            topic = self._sources.topics.get(name)
            if topic is not None and topic.replicas:
                config[f"{prefix}.num.partitions"] = len(topic.replicas)
                config[f"{prefix}.replication.factor"] = len(next(iter(topic.replicas.values())))
        return config

    def _server(self, server: Properties) -> CarriedOver:
        values = dict(server.values)
        values |= self._dynamic("brokers", "")
        values |= self._dynamic("broker", str(_id_of(server)))
        return kept("broker", values, skip=NEEDLESS)

    def _list_once(self, absent: Mapping[int, Sequence[str]]) -> None:
        """Lines that all servers share, once; of any other, the servers that have it."""
        nodes_of: dict[str, list[int]] = {}
        for node, lines in absent.items():
            for line in lines:
                nodes_of.setdefault(line, []).append(node)
        for line, nodes in nodes_of.items():
            names = [self._found.brokers.get(node, f"controller {node}") for node in nodes]
            is_all = len(nodes) == len(absent) > 1
            self._absent(f"{'all servers' if is_all else ', '.join(names)}: {line}")

    def _dynamic(self, entity: str, name: str) -> dict[str, str]:
        found: dict[str, str] = {}
        for each in self._sources.configs:
            if each.entity == entity and (not name or each.name == name):
                found |= each.configs
        return found

    # -- topics and clients -----------------------------------------------------------------------

    def _topic(self, topic: DescribedTopic) -> dict[str, Any]:
        count = max(topic.partitions, len(topic.replicas))
        if sorted(topic.replicas) != list(range(count)) or not count:
            raise SimulationError(
                f"topic {topic.name}: {len(topic.replicas)} of {count} partitions are described; "
                "give the whole output of kafka-topics --describe"
            )
        for note in topic.notes:
            self._absent(note)
        placed = [topic.replicas[number] for number in range(count)]
        factors = sorted({len(replicas) for replicas in placed})
        plain: dict[str, Any] = {"partitions": count, "replication.factor": factors[-1]}
        if len(factors) == 1:
            plain["replicas"] = [[self._found.brokers[n] for n in each] for each in placed]
        else:
            sizes = ", ".join(str(factor) for factor in factors)
            self._absent(
                f"topic {topic.name}: partitions with {sizes} replicas; here {factors[-1]} each, "
                "and the controller places them"
            )
        values = dict(topic.configs)
        for each in self._sources.configs:
            if each.entity == "topic" and each.name == topic.name:
                values |= each.configs
        found = kept("topic", values)
        self._found.absent += [f"topic {topic.name}: {line}" for line in found.absent]
        if found.config:
            plain["config"] = found.config
        return plain

    def _clients(self, topics: Mapping[str, Any], cluster: Mapping[str, Any]) -> dict[str, Any]:
        """Producers, and what a running cluster says of consumers and quotas."""
        sources = self._sources
        config = settings_of_producers(sources)
        self._found.absent += config.absent
        found = {
            "producers": producers(sources, self._rate, topics, cluster, config.config),
            "consumers": sources.consumers,
            "quotas": sources.quotas,
        }
        return {key: entries for key, entries in found.items() if entries}

    def _others(self) -> None:
        """Settings of what is not in the scenario; values of quotas are no secrets."""
        quotas = {*settings_of("client quota"), *settings_of("ip quota")}
        for each in self._sources.configs:
            settings = ", ".join(
                f"{name}={shown(name, value) if name in quotas else HIDDEN}"
                for name, value in each.configs.items()
            )
            if each.entity == "other" and settings:
                self._absent(f"{each.name}: {settings}: quotas and users are not carried over")
            if each.entity == "topic" and each.name not in self._sources.topics:
                names = ", ".join(each.configs) or "settings"
                self._absent(f"topic {each.name}: {names}: it is not described")

    # -- the text ---------------------------------------------------------------------------------

    def _whose(self) -> str:
        is_live = self._sources.loads is not None
        return "a running one described itself" if is_live else "the imported files describe it"

    def _absent(self, line: str) -> None:
        self._found.absent.append(line)

    def _comments(self) -> str:
        lines = [f"Imported from {', '.join(self._sources.files)}."]
        ids = [
            f"{name} is {node}"
            for node, name in self._found.brokers.items()
            if name != f"broker-{node}"
        ]
        if ids:
            lines.append(f"Brokers, here and in the cluster: {', '.join(ids)}.")
        if self._sources.loads is None:
            rate = self._rate or GUESS
            lines.append(f"The load is not known to these files: {rate} to each topic is a guess.")
        self._found.absent = list(dict.fromkeys(self._found.absent))
        for head, listed in (
            ("Measured:", self._found.measured),
            ("Not known to the brokers:", self._found.unknown),
            ("Not simulated, or not alike:", self._found.absent),
        ):
            if listed:
                lines += ["", head, *(f"- {line}" for line in listed)]
        text = "".join(f"# {' '.join(line.split())}".rstrip() + "\n" for line in lines)
        return f"{text}\n"


def _sentence(problem: Problem) -> str:
    """The problem without the value: values of the files are not for messages."""
    allowed = f"; allowed: {problem.allowed}" if problem.allowed else ""
    return f"{show_path(problem.path)} does not fit the rest{allowed}"


def _id_of(server: Properties) -> int:
    text = server.values.get("node.id", server.values.get("broker.id", "")).strip()
    if not _NUMBER.fullmatch(text):
        found = "something else" if text else "none"
        raise SimulationError(f"{server.file}: node.id or broker.id: {found}; allowed: a number")
    return int(text)


def _roles(server: Properties) -> tuple[str, ...]:
    """In ZooKeeper mode every server is a broker."""
    words = server.values.get("process.roles", "broker").split(",")
    return tuple(word.strip() for word in words if word.strip())


def _is_zookeeper(server: Properties) -> bool:
    return "zookeeper.connect" in server.values and "process.roles" not in server.values


def _voters(server: Properties) -> int:
    for name in ("controller.quorum.voters", "controller.quorum.bootstrap.servers"):
        if text := server.values.get(name, "").strip():
            return len(text.split(","))
    return 0


def _directories(server: Properties) -> list[str]:
    text = server.values.get("log.dirs") or server.values.get("log.dir") or "one"
    return [word for word in text.split(",") if word.strip()]
