"""Settings of a run's servers that follow from ``cluster.zookeeper``, and checks of the run.

Apart from :mod:`sim.scenario.rules.zookeeper`: reading a scenario does not import the simulator.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from sim.checking.invariant import Invariant
from sim.checking.invariants.zookeeper import ZOOKEEPER_INVARIANTS
from sim.faults.broker_configs import AlterBrokerConfig
from sim.faults.fault import Fault
from sim.faults.operations import (
    AlterConfig,
    CancelReassignment,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    Reassign,
)
from sim.ids import NodeId
from sim.nodes.broker.settings import ZkBrokerSettings
from sim.nodes.zookeeper.settings import ZooKeeperSettings
from sim.protocol.zk_mode.broker_types import ZkBrokerConfig
from sim.protocol.zk_mode.controller_types import ZkControllerConfig
from sim.protocol.zookeeper.ensemble import ZkConfig
from sim.protocol.zookeeper.session import SessionConfig
from sim.scenario.behaviours.versions import is_since
from sim.scenario.model.cluster import ClusterSpec, ServerSpec, ZooKeeperModel
from sim.substrate.host import HostSpec
from sim.units import NEVER

_CHANGES = (
    CreateTopic,
    DeleteTopic,
    CreatePartitions,
    AlterConfig,
    AlterBrokerConfig,
    Reassign,
    CancelReassignment,
)
"""Operations that change what ZooKeeper holds, and of which the controller learns by watches."""


def invariants(*, zookeeper: bool) -> tuple[type[Invariant], ...]:
    """Invariants of this control plane alone."""
    return ZOOKEEPER_INVARIANTS if zookeeper else ()


def threads(spec: HostSpec) -> HostSpec:
    """Threads of a server of the ensemble: requests go through one pipeline, in their order."""
    return replace(spec, network_threads=1, request_handlers=1, queued_requests=0, idle_us=NEVER)


def server_settings(ensemble: ZooKeeperModel, servers: Sequence[ServerSpec]) -> ZooKeeperSettings:
    """Settings of every server of the ensemble."""
    return ZooKeeperSettings(_members(servers), ZkConfig(ensemble.tick_us, ensemble.sync_limit))


def broker_settings(
    cluster: ClusterSpec, behaviours: Mapping[str, str], rack: str, faults: Iterable[Fault]
) -> ZkBrokerSettings:
    """Settings of a broker for the control plane."""
    config, batched = cluster.config, behaviours["zk.batching"] == "on"
    in_flight = config.number("zookeeper.max.in.flight.requests")
    controller = ZkControllerConfig(
        unclean=config.flag("unclean.leader.election.enable"),
        auto_leader_rebalance=config.flag("auto.leader.rebalance.enable"),
        preferred_interval_us=config.micros("leader.imbalance.check.interval.seconds"),
        imbalance_percent=config.number("leader.imbalance.per.broker.percentage"),
        fencing=behaviours["zk.controller_epoch_fencing"] == "on",
        broker_epochs=behaviours["zk.broker_epoch"] == "on",
        batched=batched,
        checks_eligibility=behaviours["isr.eligibility"] == "kip841",
        rack_aware=behaviours["placement"] == "rack_aware",
        is_administered=any(isinstance(fault, _CHANGES) for fault in faults),
        several_directories=cluster.disk.directories > 1,
        leaders_write_isr=behaviours["zk.isr_changes"] == "zookeeper",
        deletes_topics=is_since(config.version, "1.0"),
        cleans_up=behaviours["zk.resignation"] == "clean",
    )
    # Before 1.1 each operation of ZooKeeper was waited for.
    session = SessionConfig(
        config.micros("zookeeper.session.timeout.ms"), in_flight if batched else 1
    )
    broker = ZkBrokerConfig(
        session=session,
        controller=controller,
        rack=rack,
        shutdown_retries=config.number("controlled.shutdown.max.retries"),
        shutdown_backoff_us=config.micros("controlled.shutdown.retry.backoff.ms"),
        resumes=behaviours["zk.session_end"] == "resume",
        breaks_off=behaviours["zk.role_changes"] == "break_off",
    )
    return ZkBrokerSettings(_members(cluster.zookeepers), broker)


def _members(servers: Sequence[ServerSpec]) -> tuple[NodeId, ...]:
    return tuple(server.node for server in servers)
