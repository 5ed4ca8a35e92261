"""``cluster.replication``: what a scenario may have beside it, and what it gives the brokers.

Under ``raft`` each partition's replicas are a Raft group. Settings, behaviours and operations that
speak of Kafka's in-sync replicas mean nothing there and are refused, and so are the groups' own
settings under ``isr``.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from sim.faults.fault import Fault
from sim.protocol.raft_groups.types import RaftConfig
from sim.scenario.behaviours.versions import DEFAULT
from sim.scenario.settings.raft import BEHAVIOURS_OF_ISR, OF_ISR, RAFT_SETTINGS
from sim.scenario.settings.resolved import Config
from sim.scenario.text.problems import Problem
from sim.units import NEVER, Micros

_WHY: Final = "which means nothing with cluster.replication: raft"

_WAIVED: Final = ("in-sync-complete", "fenced-are-not-in-sync")
"""Invariants of Kafka's ISR that say nothing of a group's voters."""


def check_settings(replication: str, given: Mapping[str, object]) -> None:
    """Check that settings go with the replication; called with those that the file itself gives.

    Raises:
        Problem: With the setting's name as its path.
    """
    raft = replication == "raft"
    if raft:
        for name in OF_ISR:
            if name in given:
                raise Problem(
                    (name,), f"{name}, {_WHY}", "settings that groups have", "leave it out"
                )
        return
    for setting in RAFT_SETTINGS:
        if setting.name in given:
            raise Problem(
                (setting.name,),
                f"{setting.name} with cluster.replication: {replication}",
                "cluster.replication: raft beside it",
                "leave it out, or set cluster.replication: raft",
            )


def check_version(replication: str, version: str) -> None:
    """Check that the version of Kafka goes with the replication.

    Raises:
        Problem: With ``kafka`` as its path.
    """
    if replication == "raft" and version != DEFAULT:
        raise Problem(
            ("kafka",),
            f"{version} with cluster.replication: raft, which has no historic versions",
            DEFAULT,
            "leave it out",
        )


def check_behaviours(replication: str, given: Mapping[str, str]) -> None:
    """Check that behaviours go with the replication.

    Raises:
        Problem: With the behaviour's name as its path.
    """
    for name in BEHAVIOURS_OF_ISR:
        if replication == "raft" and name in given:
            raise Problem((name,), f"{name}, {_WHY}", "behaviours of clients", "leave it out")


def check_faults(replication: str, faults: Iterable[Fault]) -> None:
    """Check that the administrator's operations go with the replication.

    Raises:
        Problem: With the fault's number as its path.
    """
    for fault in faults:
        if replication == "raft" and "raft" in fault.absent_with:
            raise Problem(
                (fault.index, "do"),
                f"{fault.kind} with cluster.replication: raft, which is not modelled",
                "faults, and operations on topics",
            )
        if replication != "raft" and "isr" in fault.absent_with:
            raise Problem(
                (fault.index, "do"),
                f"{fault.kind} with cluster.replication: {replication}",
                "cluster.replication: raft beside it",
                "move its replicas by reassign, as Kafka does",
            )


def raft_config(replication: str, config: Config) -> RaftConfig | None:
    """Settings of the groups; ``None`` without any."""
    if replication != "raft":
        return None
    return RaftConfig(
        heartbeat_interval_us=config.micros("raft_heartbeat_interval_ms"),
        heartbeat_timeout_us=config.micros("raft_heartbeat_timeout_ms"),
        election_timeout_us=config.micros("election_timeout_ms"),
        append_timeout_us=config.micros("replicate_append_timeout_ms"),
        append_bytes_max=config.size("raft_replicate_batch_window_size"),
        recovery_bytes_max=config.size("raft_recovery_default_read_size"),
        learner_recovery_rate=config.size("raft_learner_recovery_rate"),
        transfer_timeout_us=config.micros("raft_transfer_leader_recovery_timeout_ms"),
        flush_bytes=config.size("raft_replica_max_pending_flush_bytes"),
        flush_delay_us=config.micros("raft_replica_max_flush_delay_ms"),
        write_caching=config.flag("write_caching_default"),
    )


def balance_interval_us(config: Config) -> Micros:
    """Interval at which groups look for a better leader."""
    if not config.flag("enable_leader_balancer"):
        return NEVER
    return config.micros("leader_balancer_idle_timeout_ms")


def waived(replication: str) -> dict[str, str]:
    """Invariants that do not apply, each with the reason."""
    if replication != "raft":
        return {}
    return dict.fromkeys(_WAIVED, "cluster.replication: raft")
