"""Rules of brokers that a cluster has at its start or later, and of replicas that Redpanda moves.

Source: Redpanda v25.1, "Cluster Balancing", "Decommission Brokers"; Kafka has brokers that are
started later as well, and moves nothing to them.
"""

from collections.abc import Sequence

from sim.faults.fault import Fault
from sim.protocol.controller.partition_balancer import MODES, BalancerConfig
from sim.scenario.model.cluster import ClusterModel, ClusterSpec
from sim.scenario.settings.resolved import Config
from sim.scenario.text.problems import Problem
from sim.units import SECOND

_KEY = "initial.brokers"


def broker_ids(given: Sequence[int] | None, brokers: int) -> tuple[int, ...]:
    """``node.id`` of each broker, one rack after the other: as given, or from 1 on.

    Raises:
        Problem: With the key as its path.
    """
    if given is None:
        return tuple(range(1, brokers + 1))
    if len(given) != brokers:
        raise Problem(("ids",), f"{len(given)} ids of {brokers} brokers", "an id for each broker")
    if len(dict.fromkeys(given)) != brokers:
        twice = next(each for each in given if list(given).count(each) > 1)
        raise Problem(("ids",), f"{twice} twice", "each id once")
    return tuple(given)


def initial_brokers(model: ClusterModel, brokers: int) -> int:
    """Number of brokers, from the first on, at the cluster's start; 0: all of them.

    Raises:
        Problem: With the key as its path.
    """
    count = model.initial_brokers
    if count is None:
        return 0
    for name, is_there in (
        ("combined", model.combined),
        ("zookeeper", model.zookeeper is not None),
    ):
        if is_there:
            raise Problem(
                (_KEY,), f"{_KEY} with cluster.{name}, which is not modelled",
                f"controllers of their own, and no cluster.{name}",
            )  # fmt: skip
    if count > brokers:
        raise Problem((_KEY,), f"{count} of {brokers} brokers", f"1 to {brokers}", "add brokers")
    return count if count < brokers else 0


def check_balancing(model: ClusterModel, config: Config) -> None:
    """Check that the balancer can do here what its mode means.

    Raises:
        Problem: With the setting's name as its path.
    """
    name = "partition_autobalancing_mode"
    if (
        model.replication == "raft"
        and config.text(name) == "continuous"
        and model.disk.capacity_bytes is not None
    ):
        raise Problem(
            (name,),
            "continuous with cluster.disk.capacity: moves by how full disks are are not modelled",
            "node_add or off, or disks without a capacity",
        )


def balancer_config(config: Config) -> BalancerConfig:
    """Settings of the balancer that moves replicas."""
    mode = config.text("partition_autobalancing_mode")
    return BalancerConfig(
        mode=next(known for known in MODES if known == mode),
        concurrent_moves=config.number("partition_autobalancing_concurrent_moves"),
        tick_us=config.micros("partition_autobalancing_tick_interval_ms"),
        drop_threshold=config.real("partition_autobalancing_tick_moves_drop_threshold"),
        availability_timeout_us=SECOND
        * config.number("partition_autobalancing_node_availability_timeout_sec"),
        topic_aware=config.flag("partition_autobalancing_topic_aware"),
    )


def check_member(fault: Fault, cluster: ClusterSpec) -> None:
    """Check that a fault names one broker that can be added, or taken out.

    Raises:
        Problem: With ``target`` as its path.
    """
    adds = fault.hits == "spare broker"
    brokers = cluster.spare_brokers if adds else cluster.brokers
    names = [server.name for server in brokers]
    is_role = not adds and fault.target_text.startswith("leader of ")
    if fault.target_text not in names and not is_role:
        if adds and not names:
            raise Problem(
                ("target",),
                f"{fault.target_text!r}, but every broker is there from the start",
                "a broker beyond cluster.initial.brokers",
                "add cluster.initial.brokers",
            )
        what = "a broker that is not there from the start" if adds else "one broker"
        raise Problem(("target",), f"{fault.target_text!r} is not {what}", ", ".join(names))
