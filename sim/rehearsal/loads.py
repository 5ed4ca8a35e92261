"""Work of the clients of a rehearsal: their settings, and the instants of every record.

Instants, keys and sizes are those of the simulated run of the same seed
(:mod:`sim.nodes.clients.workload`), so that both have the same load.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sim.faults.fault import Fault
from sim.nodes.clients.workload import Workload
from sim.protocol.clients.producer.events import TOMBSTONE
from sim.rehearsal import properties
from sim.rng import Streams
from sim.scenario.build.workloads import surges_of, workload_of
from sim.scenario.model.clients import ConsumerSpec, ProducerSpec
from sim.scenario.scenario import Scenario

_ENTRY: Final = np.dtype([("at", ">i8"), ("key", ">i4"), ("size", ">i4")])
_NO_KEY: Final = -1
_TOMBSTONE: Final = -1

SHARED: Final = "clients"
"""Process of the clients that no fault names, and whose rack is not given."""


@dataclass(frozen=True, slots=True)
class Client:
    """One client."""

    name: str
    process: str
    """Name of the process that it runs in, which is a host of the network."""
    rack: str
    spec: ProducerSpec | ConsumerSpec
    place: int
    """Among those of its entry, from 0."""
    index: int
    """Of a producer, among all of them; -1 of a consumer."""


def clients_of(scenario: Scenario) -> tuple[Client, ...]:
    """Every client: those that a fault names alone in a process, the others by racks."""
    named = {
        name
        for fault in scenario.faults
        for each in (fault, *fault.choices)
        for target in (*each.targets, *each.peers)
        for name in target.names
    }
    found: list[Client] = []
    index = 0
    specs: list[ProducerSpec | ConsumerSpec] = [*scenario.producers, *scenario.consumers]
    for spec in specs:
        for place, name in enumerate(spec.client_names):
            rack = spec.rack or ""
            shared = f"{SHARED}-{rack}" if rack else SHARED
            process = name if name in named else shared
            is_producer = isinstance(spec, ProducerSpec)
            found.append(Client(name, process, rack, spec, place, index if is_producer else -1))
            index += is_producer
    return tuple(found)


def processes(clients: Sequence[Client]) -> tuple[str, ...]:
    """Names of the clients' processes, in their order."""
    return tuple(dict.fromkeys(client.process for client in clients))


class Loads:
    """Files of the clients' processes.

    Args:
        scenario: What they do; scaled already.
        faults: The calendar, drawn.
        seed: Of arrivals, keys and sizes.
        servers: ``bootstrap.servers``.
        place: Directory of the files, which is there.
    """

    def __init__(
        self,
        scenario: Scenario,
        faults: Sequence[Fault],
        seed: int,
        servers: str,
        place: Path,
    ) -> None:
        self._scenario = scenario
        self._faults = faults
        self._seed = seed
        self._streams = Streams(seed)
        self._servers = servers
        self._place = place

    def write(self, process: str, clients: Sequence[Client]) -> Path:
        """Writes the files of one process; returns the one that names its clients."""
        parts = [self._client(each) for each in clients if each.process == process]
        file = self._place / f"{process}.properties"
        file.write_text(properties.clients(parts), encoding="utf-8")
        return file

    def _client(self, client: Client) -> Mapping[str, str]:
        if isinstance(client.spec, ProducerSpec):
            return self._producer(client, client.spec)
        return self._consumer(client, client.spec)

    def _producer(self, client: Client, spec: ProducerSpec) -> dict[str, str]:
        surges = surges_of(self._faults, client.name, spec.stop_us)
        workload = workload_of(spec, surges)
        schedule = self._place / f"{client.name}.schedule"
        source = Workload(workload, self._streams, client.name)
        with schedule.open("wb") as file:
            for block in _blocks(source, workload.value_bytes):
                file.write(block)
        config = properties.given("producer", spec.config)
        if spec.transactional_ids:
            config["transactional.id"] = spec.transactional_ids[client.place]
        transaction = spec.transaction
        acks = spec.config.text("acks")
        return {
            "kind": "producer",
            "name": client.name,
            "index": str(client.index),
            "topic": spec.topic,
            "schedule": str(schedule.absolute()),
            "noise": str(workload.noise_bytes),
            "headers": str(spec.record_headers.count),
            "header.size": str(spec.record_headers.size),
            "acks": "-1" if acks == "all" else acks,
            "seed": str(self._seed * 1_000 + client.index),
            "transactional": str(transaction is not None).lower(),
            "transaction.records": str(transaction.records or 0 if transaction else 0),
            "transaction.every": str(transaction.every_us or 0 if transaction else 0),
            "transaction.abort": str(transaction.abort_ppm if transaction else 0),
            **self._config(client, config),
        }

    def _consumer(self, client: Client, spec: ConsumerSpec) -> dict[str, str]:
        config = properties.given("consumer", spec.config)
        if spec.group:
            config["group.id"] = spec.group
        if spec.instance_ids[client.place]:
            config["group.instance.id"] = spec.instance_ids[client.place]
        if spec.commits != "auto" or not spec.group:
            config["enable.auto.commit"] = "false"
        if spec.rack:
            config["client.rack"] = spec.rack
        with_transactions = {p.topic for p in self._scenario.producers if p.transaction is not None}
        return {
            "kind": "consumer",
            "name": client.name,
            "group": spec.group,
            "topics": ",".join(spec.topics),
            "pattern": spec.pattern,
            "commits": spec.commits,
            "processing": str(spec.processing_us),
            "start": str(spec.start_us),
            "stop": str(-1 if spec.stop_us is None else spec.stop_us),
            "committed": str(spec.reads_committed).lower(),
            "transactional": str(not with_transactions.isdisjoint(spec.topics)).lower(),
            **self._config(client, config),
        }

    def _config(self, client: Client, config: Mapping[str, str]) -> dict[str, str]:
        ours = {"bootstrap.servers": self._servers, "client.id": client.name}
        return {f"config.{name}": value for name, value in {**config, **ours}.items()}


def instants_of(place: Path, producer: str) -> NDArray[np.int64]:
    """Intended instants of a producer's records, read from its file."""
    entries = np.fromfile(place / f"{producer}.schedule", dtype=_ENTRY)
    return entries["at"].astype(np.int64)


def _blocks(source: Workload, value_bytes: int) -> Iterator[bytes]:
    while (block := source.next_block()) is not None:
        entries = np.zeros(len(block.instants_us), dtype=_ENTRY)
        entries["at"] = block.instants_us
        entries["key"] = _NO_KEY if block.key_ids is None else block.key_ids
        entries["size"] = value_bytes
        if block.value_sizes is not None:
            sizes = block.value_sizes
            entries["size"] = np.where(sizes == TOMBSTONE, _TOMBSTONE, sizes)
        yield entries.tobytes()
