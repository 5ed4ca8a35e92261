"""Every effect that a machine's union has is performed by the server that runs the machine."""

import typing
from collections.abc import Iterator

import pytest

from sim.nodes.broker.node import BrokerNode
from sim.nodes.process.dispatcher import Dispatcher
from sim.protocol import effects as fx
from sim.protocol.broker.raft_storage import FlushRaftLog, PersistRaftVotes
from sim.protocol.broker.replication.events import IsrWritesRequested
from sim.protocol.broker.tiered import ports as tiered
from sim.protocol.kraft.types import VotersProposed
from sim.scenario.loader import load_text
from sim.scenario.run.directory import RunDirectory
from sim.scenario.run.runner import Work
from tests.scenarios.run_kit import text_of

CLUSTERS = {
    "controllers apart": {"controllers": 1},
    "combined": {"combined": 3},
    "zookeeper": {"zookeeper": {"servers": 3}},
    "raft groups": {"replication": "raft"},
    "tiered storage": {
        "object-store": {"latency": {"p50": "20ms", "p99": "60ms"}, "bandwidth": "100MB/s"},
        "config": {"remote.log.storage.system.enable": True},
    },
}

FOR_OTHER_SERVERS = {
    ("ReplicaManager", IsrWritesRequested): "leaders write ISRs themselves in ZooKeeper mode alone",
    ("ReplicaManager", PersistRaftVotes): "its partitions are no Raft groups",
    ("ReplicaManager", FlushRaftLog): "its partitions are no Raft groups",
    ("RaftReplicaManager", IsrWritesRequested): "groups have no ISR",
    ("Quorum", VotersProposed): "an observer proposes no voters",
}
"""Effects that a server does not perform because its machine does not ask for them there."""

TIERED = (
    tiered.RoleApplied,
    tiered.PartitionStopped,
    tiered.RemoteReadRequested,
    tiered.RemoteReadCancelled,
    tiered.AuxStateRequested,
)
"""Effects that only a broker with a remote log manager performs."""

Hosted = tuple[Dispatcher, object]


def machines_of(cluster: str, directory, monkeypatch) -> list[Hosted]:
    """Start a cluster, and list the machines that its processes take in."""
    hosted: list[Hosted] = []
    take_in = Dispatcher.add_machine

    def note(process, name, machine, **how):
        hosted.append((process, machine))
        return take_in(process, name, machine, **how)

    monkeypatch.setattr(Dispatcher, "add_machine", note)
    scenario = load_text(text_of(cluster=CLUSTERS[cluster], topic={"config": {}}, producers=[]))
    run = RunDirectory(directory / "run", force=False)
    try:
        Work(scenario, 1, run, "facts", keeps=False)._boot()
    finally:
        run.release()
    return hosted


def unperformed(hosted: list[Hosted], elsewhere: tuple[type, ...] = ()) -> Iterator[str]:
    for process, machine in hosted:
        answer = typing.get_type_hints(type(machine).handle)["return"]
        (item,) = typing.get_args(answer)
        for effect in typing.get_args(item) or (item,):
            name = type(machine).__name__
            if effect in (fx.Emit, *elsewhere, *process.performers):
                continue
            if (name, effect) in FOR_OTHER_SERVERS:
                continue
            yield f"{type(process).__name__} does not perform {effect.__name__} of {name}"


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_a_server_performs_every_effect_of_its_machines(cluster, tmp_path, monkeypatch):
    hosted = machines_of(cluster, tmp_path, monkeypatch)
    assert len({type(machine) for _, machine in hosted}) >= 9
    elsewhere = () if cluster == "tiered storage" else TIERED
    assert sorted(set(unperformed(hosted, elsewhere))) == []


def test_an_effect_that_nobody_performs_is_found(tmp_path, monkeypatch):
    hosted = machines_of("controllers apart", tmp_path, monkeypatch)
    broker = next(process for process, _ in hosted if isinstance(process, BrokerNode))
    del broker.performers[fx.Flush]
    found = set(unperformed(hosted))
    assert "BrokerNode does not perform Flush of ReplicaManager" in found
