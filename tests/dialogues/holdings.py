"""What a process has, as a dialogue's line asks for it: names and printed values."""

from typing import Any

from sim.protocol.broker.replication.replica_manager import ReplicaManager
from sim.protocol.controller.controller import Controller
from sim.protocol.coordinator.transaction.coordinator import TransactionCoordinator
from sim.protocol.kraft.raft import Quorum
from tests.dialogues.stage import Stage
from tests.dialogues.words import batches, numbers


def holdings(stage: Stage, name: str) -> dict[str, str]:
    """What the process has now; of partitions, the first one's things without its name."""
    machine = stage.processes[name].machine
    match machine:
        case ReplicaManager():
            return _replicas(machine)
        case Controller():
            return _partitions(machine)
        case Quorum():
            return _member(machine)
        case TransactionCoordinator():
            return _transactions(machine)
        case _:
            return {}


def _replicas(machine: ReplicaManager) -> dict[str, str]:
    found: dict[str, str] = {}
    for place, replica in machine.replicas.items():
        log: Any = replica.log
        held = {
            "role": "leader" if replica.is_leader else "follower",
            "leader_epoch": str(replica.leader_epoch),
            "log": batches(log.batches),
            "high_watermark": str(replica.high_watermark),
            "isr": numbers(replica.in_sync),
        }
        found |= {f"{place}.{key}": value for key, value in held.items()}
        found = {**held, **found}
    return found


def _partitions(machine: Controller) -> dict[str, str]:
    found: dict[str, str] = {}
    for place, state in machine.image.partitions.items():
        held = {
            "leader": str(state.leader),
            "leader_epoch": str(state.leader_epoch),
            "isr": numbers(state.in_sync),
            "elr": numbers(state.eligible),
        }
        found |= {f"{place}.{key}": value for key, value in held.items()}
        found = {**held, **found}
    fenced = (b for b, r in machine.image.brokers.items() if r.fenced)
    return {**found, "fenced": numbers(fenced)}


def _member(machine: Quorum) -> dict[str, str]:
    return {
        "role": machine.role.name.lower(),
        "epoch": str(machine.epoch),
        "leader": str(machine.leader),
        "log_end": str(machine.log.log_end_offset),
    }


def _transactions(machine: TransactionCoordinator) -> dict[str, str]:
    transaction = machine.transaction("tx-1")
    if transaction is None:
        return {}
    return {"tx-1": transaction.state.value}
