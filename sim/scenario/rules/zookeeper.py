"""``cluster.zookeeper``: what a scenario may have beside it.

ZooKeeper mode is another control plane: an ensemble instead of the controllers of KRaft, and the
controller in one of the brokers. Settings, behaviours and operations of the one mean nothing under
the other, and are refused.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from sim.faults.fault import Fault
from sim.faults.operations import AlterReplicaLogDirs, CancelReassignment, Reassign
from sim.protocol.zk_mode.znodes import CONTROL_REQUESTS
from sim.scenario.behaviours.versions import VERSIONS, is_since
from sim.scenario.model.cluster import ClusterModel
from sim.scenario.settings.zookeeper import (
    BEHAVIOURS_OF_KRAFT,
    BEHAVIOURS_OF_ZOOKEEPER,
    OF_KRAFT,
    ZOOKEEPER_SETTINGS,
)
from sim.scenario.text.problems import Problem

LAST_VERSION: Final = "3.9"
"""The last version of Kafka that has ZooKeeper mode."""

_MESSAGES: Final = tuple(kind.__name__ for kind in CONTROL_REQUESTS)

_SINCE_2_4: Final = (Reassign, CancelReassignment)
"""Operations that the controller has a request for since KIP-455."""

_WAIVED: Final = ("fenced-are-not-in-sync",)
"""A dead broker leaves one ISR after the other, as the controller comes to it."""


def version_of(version: str, *, is_given: bool) -> str:
    """The version of Kafka of a cluster with ZooKeeper: the last that has it, if none is given.

    Raises:
        Problem: With ``kafka`` as its path.
    """
    if not is_given:
        return LAST_VERSION
    if is_since(version, "4.0"):
        known = ", ".join(VERSIONS[: VERSIONS.index(LAST_VERSION) + 1])
        raise Problem(
            ("kafka",),
            f"{version} with cluster.zookeeper, which ended with Kafka {LAST_VERSION}",
            known,
            "leave it out, or leave cluster.zookeeper out",
        )
    return version


def check_cluster(model: ClusterModel, version: str) -> None:
    """Check that the rest of the cluster goes with ZooKeeper mode.

    Raises:
        Problem: With a path below ``cluster``.
    """
    if "controller_counts" in model.model_fields_set:
        raise Problem(
            ("controllers",),
            "controllers beside zookeeper, whose controller is one of the brokers",
            "one of the two",
            "remove controllers",
        )
    if model.replication != "isr":
        raise Problem(
            ("replication",), f"{model.replication} with cluster.zookeeper", "isr", "leave it out"
        )
    if model.disk.directories > 1 and not is_since(version, "1.0"):
        raise Problem(
            ("disk", "directories"),
            f"{model.disk.directories} with cluster.kafka {version}, whose brokers do not go on "
            "without one of them",
            "1, or Kafka 1.0 and newer (KIP-112)",
            "leave it out, or give a newer cluster.kafka",
        )


def check_settings(given: Mapping[str, object], *, zookeeper: bool) -> None:
    """Check that settings go with the control plane; called with those that the file itself gives.

    Raises:
        Problem: With the setting's name as its path.
    """
    if zookeeper:
        for name in OF_KRAFT:
            if name in given:
                raise Problem(
                    (name,),
                    f"{name}, which means nothing with cluster.zookeeper",
                    "settings that brokers of ZooKeeper mode have",
                    "leave it out",
                )
        return
    for setting in ZOOKEEPER_SETTINGS:
        if setting.name in given:
            raise Problem(
                (setting.name,),
                f"{setting.name} without cluster.zookeeper",
                "cluster.zookeeper beside it",
                "leave it out, or give cluster.zookeeper: {servers: 3}",
            )


def check_behaviours(given: Mapping[str, str], *, zookeeper: bool) -> None:
    """Check that behaviours go with the control plane.

    Raises:
        Problem: With the behaviour's name as its path.
    """
    if zookeeper and given.get("recovery.unclean") == "longest_log":
        raise Problem(
            ("recovery.unclean",),
            "longest_log with cluster.zookeeper: KIP-966 proposes it for KRaft's controllers",
            "first_alive",
            "leave it out",
        )
    wrong = BEHAVIOURS_OF_KRAFT if zookeeper else BEHAVIOURS_OF_ZOOKEEPER
    words = "with" if zookeeper else "without"
    for name in wrong:
        if name in given:
            raise Problem(
                (name,),
                f"{name}, which means nothing {words} cluster.zookeeper",
                "behaviours of the control plane that the cluster has",
                "leave it out",
            )


def check_faults(faults: Iterable[Fault], *, zookeeper: bool, version: str) -> None:
    """Check that the administrator's operations, and messages, go with the control plane.

    Raises:
        Problem: With the fault's number as its path.
    """
    for fault in faults:
        strange = next((name for name in fault.messages if name in _MESSAGES), None)
        if strange is not None and not zookeeper:
            raise Problem(
                (fault.index, "message"),
                f"{strange} without cluster.zookeeper, whose controller alone sends it",
                "messages that the cluster has",
                "leave it out, or give cluster.zookeeper: {servers: 3}",
            )
        if zookeeper and "zookeeper" in fault.absent_with:
            raise Problem(
                (fault.index, "do"),
                f"{fault.kind} with cluster.zookeeper, which is not modelled",
                "faults, and operations that are modelled there",
            )
        if zookeeper and isinstance(fault, AlterReplicaLogDirs) and not is_since(version, "1.1"):
            raise Problem(
                (fault.index, "do"),
                f"{fault.kind} with cluster.kafka {version}, which moves no replicas between "
                "log directories",
                "cluster.kafka 1.1 and newer (KIP-113)",
                "leave it out, or give a newer cluster.kafka",
            )
        if zookeeper and isinstance(fault, _SINCE_2_4) and not is_since(version, "2.4"):
            raise Problem(
                (fault.index, "do"),
                f"{fault.kind} with cluster.zookeeper and cluster.kafka {version}, whose "
                "reassignments through a node of ZooKeeper are not modelled",
                "cluster.kafka 2.4 to 3.9 (KIP-455)",
                "leave it out, or give cluster.kafka: 2.4 or later",
            )


def waived(*, zookeeper: bool) -> dict[str, str]:
    """Invariants that do not apply, each with the reason."""
    return dict.fromkeys(_WAIVED, "cluster.zookeeper") if zookeeper else {}
