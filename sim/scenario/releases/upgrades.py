"""Releases of servers: upgrades of a cluster on the way, one release after the other.

A server that is restarted with another release has that one's behaviours and defaults. Finalized
feature levels stay what they were until they are upgraded.

Source: Kafka's upgrade notes, "Upgrading KRaft-based clusters"; KIP-584.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from sim.faults.fault import Fault, Release
from sim.faults.operations import UpgradeFeatures
from sim.faults.process import RollingRestart
from sim.protocol.metadata.versions import FEATURE, keeps_metadata
from sim.scenario.behaviours.versions import VERSIONS, is_since
from sim.scenario.model.cluster import ClusterSpec
from sim.scenario.scenario import Scenario
from sim.scenario.settings.facts import features_of
from sim.scenario.settings.registry import settings_at
from sim.scenario.settings.resolved import Config
from sim.scenario.text.problems import Problem

FIRST: Final = "3.7"
"""The first release from which upgrades are modelled: before it log directories are unknown to the
controller, and controllers do not register."""

_QUORUMS_OWN: Final = "kraft.version"
_TRANSACTIONS: Final = "transaction.version"


def config_of(cluster: ClusterSpec, release: str) -> Config:
    """Settings of a server of a release.

    A setting with the default of the cluster's first release has that of this one.

    Raises:
        Problem: For a setting that the release does not have, with its name as path.
    """
    config = cluster.config
    if release == config.version:
        return config
    before, after = settings_at(config.version)["broker"], settings_at(release)["broker"]
    values = {name: each.default for name, each in after.items() if each.is_modelled}
    for name, value in config.items():
        if value == before[name].default:
            continue
        if name not in values or after[name].missing:
            raise Problem(
                (name,),
                f"{name}, which servers of {release} do not have",
                f"settings of {config.version} and {release}",
                "leave it out",
            )
        values[name] = value
    missing = {name: values.pop(name) for name in tuple(values) if after[name].missing}
    return Config(values, release, missing)


def levels_of(release: str) -> Mapping[str, int]:
    """Levels that ``kafka-features upgrade --release-version`` requests.

    Source: ``FeatureCommand.handleUpgrade``.
    """
    found = features_of(release)
    return {name: level for name, level in found.items() if level and name != _QUORUMS_OWN}


def releases(faults: Sequence[Fault]) -> tuple[str, ...]:
    """Releases that servers are upgraded to, in the order of the calendar."""
    restarts = [fault for fault in _in_order(faults) if isinstance(fault, RollingRestart)]
    return tuple(dict.fromkeys(each.to.name for each in restarts if each.to is not None))


def check(scenario: Scenario) -> None:
    """Check the upgrades of a scenario.

    Raises:
        Problem: With a path below ``faults``, or ``cluster`` for a setting.
    """
    cluster, faults, positions = scenario.cluster, scenario.faults, scenario.behaviours
    transacts = any(
        any(client.transactional_ids for client in clients)
        for clients in (scenario.producers, scenario.processors, scenario.connectors)
    )
    raises = transacts and positions["transactions"] != "kip890"
    running = {server.name: cluster.kafka for server in cluster.servers}
    for fault in _in_order(faults):
        try:
            if isinstance(fault, RollingRestart):
                _check_restart(fault, cluster, running)
                if fault.to is not None and fault.finalize and raises:
                    _check_transactions("finalize", fault.to)
            elif isinstance(fault, UpgradeFeatures):
                _check_start(cluster)
                if raises:
                    _check_transactions("release", fault.to)
        except Problem as problem:
            raise problem.below("faults", fault.index) from None
    for release in releases(faults):
        try:
            config_of(cluster, release)
        except Problem as problem:
            raise problem.below("cluster", "config") from None


def _in_order(faults: Sequence[Fault]) -> list[Fault]:
    return sorted(faults, key=lambda fault: (fault.at_us, fault.index))


def _check_restart(fault: RollingRestart, cluster: ClusterSpec, running: dict[str, str]) -> None:
    """Check that each server goes to the release after its own, and none is two away from another.

    Args:
        fault: The restart.
        cluster: The cluster.
        running: Release of each server before it, and after it.
    """
    if fault.to is None:
        if fault.finalize is not None:
            raise Problem(
                ("finalize",), "finalize without to", "to: the next release beside it", "add to"
            )
        return
    _check_start(cluster)
    if fault.after is not None or fault.spread_us:
        raise Problem(
            ("at",), "an upgrade at an instant that the seed draws", "an instant, as in 20s"
        )
    to = fault.to.name
    for target in fault.targets:
        for name in target.names or ("",):
            _check_next(target.text, name, running, to)
            running[name] = to
    newest = VERSIONS.index(to)
    behind = [name for name, kafka in running.items() if newest > VERSIONS.index(kafka) + 1]
    if behind:
        raise Problem(
            ("to",),
            f"{to} beside {running[behind[0]]}, which {behind[0]} still runs",
            "two adjacent releases in one cluster",
            f"upgrade {behind[0]} first",
        )


def _check_next(text: str, name: str, running: Mapping[str, str], to: str) -> None:
    if not name:
        raise Problem(
            ("target",),
            f"{text!r}, a role, whose server may have another release by then",
            "servers by name: a broker, a controller, a rack, all brokers, each broker",
        )
    present = running[name]
    if present == VERSIONS[-1]:
        known = f"no release after {present} is known"
        raise Problem(("to",), f"{to} after {present}", known, "leave to out")
    following = VERSIONS[VERSIONS.index(present) + 1]
    if to == following:
        return
    remedy = "take one release after the other"
    if to == present:
        remedy = "leave to out to restart with the same release"
    elif VERSIONS.index(to) < VERSIONS.index(present):
        remedy = f"downgrades are not modelled; {_kafka_on_downgrade(present, to)}"
    raise Problem(("to",), f"{to}, and {name} runs {present}", f"{following}, the next one", remedy)


def _kafka_on_downgrade(present: str, to: str) -> str:
    """Answer of Kafka's active controller to ``metadata.version`` of an older release."""
    level, lower = features_of(present)[FEATURE], features_of(to)[FEATURE]
    if keeps_metadata(level, lower):
        return f"Kafka permits it after kafka-features downgrade --metadata {to}"
    return (
        f"Kafka refuses it, too, where metadata.version is that of {present}: it might delete "
        "metadata, and no release has the unsafe downgrade"
    )


def _check_start(cluster: ClusterSpec) -> None:
    """Check that the cluster begins with a release from which upgrades are modelled."""
    for found, key in ((cluster.replication == "raft", "raft"), (cluster.zookeeper, "zookeeper")):
        if found:
            raise Problem(("to",), f"an upgrade with {key}", "KRaft, and replication: isr")
    if not is_since(cluster.kafka, FIRST):
        raise Problem(
            ("do",),
            f"an upgrade of a cluster that begins with {cluster.kafka}",
            f"clusters that begin with {FIRST} or newer",
            "below it brokers register again with their log directories on the way (KIP-858), "
            "which is not modelled",
        )


def _check_transactions(key: str, to: Release) -> None:
    if dict(to.levels).get(_TRANSACTIONS, 0):
        raise Problem(
            (key,),
            f"features of {to.name} raise {_TRANSACTIONS} under transactional clients",
            "a scenario without transactions, or upgrade-features with metadata",
            "transactions that change their version on the way are not modelled",
        )
