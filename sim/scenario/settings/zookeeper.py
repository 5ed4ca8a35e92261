"""Settings and behaviours that mean something in ZooKeeper mode only, or under KRaft only.

Source: Kafka 3.9 ``KafkaConfig``, ``ZkConfigs``, ``ReplicationConfigs``.
"""

from collections.abc import Mapping
from typing import Final, TypeVar

from sim.scenario.settings.overlay import NO_BOUND, Overlay, modelled, narrowed

ZOOKEEPER_SETTINGS: Final[tuple[Overlay, ...]] = (
    *narrowed(
        NO_BOUND,
        "zookeeper.session.timeout.ms",
        low=1,
    ),
    *modelled(
        "zookeeper.max.in.flight.requests",
    ),
    *narrowed(
        NO_BOUND,
        "controlled.shutdown.max.retries",
        "controlled.shutdown.retry.backoff.ms",
        low=1,
    ),
    *narrowed(
        NO_BOUND,
        "leader.imbalance.per.broker.percentage",
        low=0,
    ),
)
"""Every broker setting that means something with ``cluster.zookeeper`` only."""

OF_KRAFT: Final = (
    "controller.quorum.election.timeout.ms",
    "controller.quorum.fetch.timeout.ms",
    "controller.quorum.election.backoff.max.ms",
    "controller.quorum.request.timeout.ms",
    "controller.quorum.retry.backoff.ms",
    "controller.quorum.auto.join.enable",
    "controller.quorum.fetch.max.bytes",
    "controller.quorum.fetch.snapshot.max.bytes",
    "broker.heartbeat.interval.ms",
    "broker.session.timeout.ms",
    "initial.broker.registration.timeout.ms",
    "log.dir.failure.timeout.ms",
    "metadata.max.idle.interval.ms",
    "metadata.log.max.record.bytes.between.snapshots",
    "metadata.log.max.snapshot.interval.ms",
    "metadata.log.segment.bytes",
    "metadata.log.segment.ms",
    "metadata.max.retention.bytes",
    "metadata.max.retention.ms",
    "unclean.leader.election.interval.ms",
    "num.replica.alter.log.dirs.threads",
    "authorizer.class.name",
    "super.users",
    "allow.everyone.if.no.acl.found",
    "delegation.token.secret.key",
    "delegation.token.max.lifetime.ms",
    "delegation.token.expiry.time.ms",
    "delegation.token.expiry.check.interval.ms",
)

BEHAVIOURS_OF_KRAFT: Final = (
    "recovery",
    "kraft.check_quorum",
    "kraft.fetch_wakeup",
    "kraft.pre_vote",
    "kraft.pre_vote_refusal",
    "kraft.leader_balance",
    "kraft.metadata_version",
    "kraft.unfencing",
    "kraft.admin_requests",
    "broker.resend",
    "broker.request_timeout",
    "tokens.sweep",
    "metadata.first_publish",
    "directories.broker_epoch",
    "leader_epoch.isr_shrink",
    "isr.broker_epochs",
    "fetch.former_process",
    "shutdown.metadata",
    "kraft.fetch_size",
    "transactions",
)
"""Behaviours whose subject does not exist in ZooKeeper mode: it has the older position of each."""

BEHAVIOURS_OF_ZOOKEEPER: Final = (
    "zk.isr_changes",
    "zk.broker_epoch",
    "zk.controller_epoch_fencing",
    "zk.batching",
    "zk.resignation",
    "zk.session_end",
    "zk.role_changes",
)

T = TypeVar("T")

_ZOOKEEPER: Final = tuple(setting.name for setting in ZOOKEEPER_SETTINGS)


def that_apply(values: Mapping[str, T], *, zookeeper: bool) -> dict[str, T]:
    """Settings or behaviours without those of the other control plane."""
    idle = (
        (*OF_KRAFT, *BEHAVIOURS_OF_KRAFT) if zookeeper else (*_ZOOKEEPER, *BEHAVIOURS_OF_ZOOKEEPER)
    )
    return {name: value for name, value in values.items() if name not in idle}
