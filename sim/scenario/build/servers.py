"""Settings of a run's servers, by the release that each runs.

A release decides the behaviours of servers and the defaults of their settings. The levels with
which the cluster was formatted are those of its first release, whichever a server runs.
"""

from collections.abc import Mapping
from dataclasses import replace

from sim.faults.operations import Administration, AlterClientQuotas, UpgradeFeatures
from sim.faults.process import RollingRestart
from sim.ids import TRANSACTIONS_TOPIC, server_name
from sim.nodes.broker.settings import BrokerSettings
from sim.nodes.controller.role import ControllerSettings
from sim.nodes.storage.log_dirs import directory_id
from sim.protocol.broker.controller_channel import RequestTimeout
from sim.protocol.broker.lifecycle import LifecycleConfig
from sim.protocol.broker.resend import ResendPolicy
from sim.protocol.controller.mutation_quotas import MutationQuotaConfig
from sim.protocol.controller.partitions import RECOVERY_MANAGER
from sim.protocol.controller.types import ControllerConfig
from sim.protocol.metadata.records import Voter
from sim.protocol.metadata.server_configs import ServerFile
from sim.protocol.quotas.client import ClientQuotaConfig
from sim.scenario.behaviours import registry as behaviour_rules
from sim.scenario.build import tiered, translate
from sim.scenario.build import zookeeper as zookeeper_runs
from sim.scenario.model.acls import authorizer_config
from sim.scenario.model.apps import ProcessorSpec
from sim.scenario.model.authentication import listener_security
from sim.scenario.model.clients import ConsumerSpec, ProducerSpec
from sim.scenario.model.tokens import token_config
from sim.scenario.releases import upgrades
from sim.scenario.rules import membership, quotas, share_groups
from sim.scenario.rules.replication import raft_config
from sim.scenario.rules.topic_configs import changed_names, server_file, without_inherited
from sim.scenario.scenario import Scenario
from sim.scenario.settings import proposed
from sim.scenario.settings.facts import features_of, implied_level, supported_features
from sim.scenario.settings.resolved import Config


class ServerSettings:
    """Settings of every server of one release.

    Args:
        scenario: The scenario.
        release: That of the servers.
    """

    def __init__(self, scenario: Scenario, release: str) -> None:
        cluster = scenario.cluster
        self.scenario = scenario
        self.release = release
        self._config: Config = upgrades.config_of(cluster, release)
        self._behaviours: Mapping[str, str] = behaviour_rules.at_release(
            scenario.behaviours, cluster.kafka, release, "server", preempted=cluster.preempts
        )
        self._clients = cluster, scenario.producers, scenario.consumers
        self._voters = tuple(c.node for c in cluster.controllers)
        self._changing = changed_names(scenario.faults, self._config)
        self.file = server_file(self._config, self._changing)

    def controller(self) -> ControllerSettings:
        """Of a controller."""
        config = self._config
        controller = self._controller_config()
        return ControllerSettings(
            self._voters,
            translate.quorum_config(config, self._behaviours),
            controller,
            translate.metadata_log_config(config, controller.features, controller.supported),
            self._initial_voters(),
        )

    def _initial_voters(self) -> tuple[Voter, ...]:
        initial = self._voters[: self.scenario.cluster.initial_controllers]
        return tuple(Voter(node, directory_id(server_name(node), 0, 0)) for node in initial)

    @property
    def _finalizes(self) -> bool:
        """True if the cluster has a ``metadata.version``; beside ZooKeeper nothing looks at it."""
        has_zookeeper = self.scenario.cluster.zookeeper is not None
        return has_zookeeper or self._behaviours["kraft.metadata_version"] == "finalized"

    def _controller_config(self) -> ControllerConfig:
        config = self._config
        founded = self.scenario.cluster.kafka
        levels, finalizes = features_of(founded), self._finalizes
        return ControllerConfig(
            session_timeout_us=config.micros("broker.session.timeout.ms"),
            no_op_interval_us=config.micros("metadata.max.idle.interval.ms"),
            preferred_interval_us=config.micros("leader.imbalance.check.interval.seconds"),
            unclean_interval_us=config.micros("unclean.leader.election.interval.ms"),
            unclean_recovery_timeout_us=config.micros(proposed.TIMEOUT),
            auto_leader_rebalance=config.flag("auto.leader.rebalance.enable")
            and self._behaviours["kraft.leader_balance"] == "periodic",
            elr=self._behaviours["recovery"] == "elr",
            metadata_version=levels["metadata.version"] if finalizes else implied_level(founded),
            more_features=translate.more_features(levels, shares=self._has_share_groups()),
            group_version=levels.get("group.version", 0),
            checks_eligibility=self._behaviours["isr.eligibility"] == "kip841",
            bumps_on_shrink=self._behaviours["leader_epoch.isr_shrink"] != "kept",
            bumps_for_leaders=self._behaviours["leader_epoch.isr_shrink"] == "bumped",
            rack_aware=self._behaviours["placement"] == "rack_aware",
            knows_moves=self.scenario.cluster.replication == "raft"
            or self._behaviours["kraft.admin_requests"] == "all",
            unfences_at_registration=self._behaviours["kraft.unfencing"] == "registration",
            raft=self.scenario.cluster.replication == "raft",
            mutation_quotas=self._mutation_quotas(),
            balancer=membership.balancer_config(config),
            transaction_version=translate.transaction_version(self._behaviours),
            supported=supported_features(self.release) if finalizes else (),
            quorum=() if self.scenario.cluster.initial_controllers else self._voters,
            registers=self._upgrades(),
            file=self._controller_file(),
            tokens=token_config(config, self._behaviours),
            cluster_configs=tuple(
                (name, self.file.settings[name])
                for name in ("min.insync.replicas",)
                if name in self._changing
            ),
        )

    def _controller_file(self) -> ServerFile:
        """The file, with the switch of KIP-966's second part, which no release has."""
        if self._behaviours["recovery.unclean"] == "first_alive":
            return self.file
        return replace(self.file, settings={**self.file.settings, RECOVERY_MANAGER: "true"})

    def broker(self, rack: str = "") -> BrokerSettings:
        """Of a broker in a rack."""
        config = self._config
        controller = self._controller_config()
        ensemble = self.scenario.cluster.zookeeper
        placed = self.scenario.cluster.internal_assignment(TRANSACTIONS_TOPIC)
        transaction = translate.transaction_config(config, self._behaviours, placed)
        transaction = replace(
            transaction,
            state_inherited=without_inherited(transaction.state_inherited, self.file),
        )
        return BrokerSettings(
            self._voters,
            dynamic_quorum=bool(self.scenario.cluster.initial_controllers),
            zookeeper=None
            if ensemble is None
            else zookeeper_runs.broker_settings(
                self.scenario.cluster, self._behaviours, rack, self.scenario.faults
            ),
            transaction=transaction,
            replica=translate.replica_config(
                config,
                self._behaviours,
                self.scenario.cluster.disk.directories,
                zookeeper=ensemble is not None,
                changing=self._changing,
            ),
            file=self.file,
            publishes_unregistered=self._behaviours["metadata.first_publish"] == "high_watermark",
            raft=raft_config(self.scenario.cluster.replication, config),
            quorum=translate.quorum_config(config, self._behaviours),
            lifecycle=LifecycleConfig(
                heartbeat_interval_us=config.micros("broker.heartbeat.interval.ms"),
                session_timeout_us=config.micros("broker.session.timeout.ms"),
                registration_timeout_us=config.micros("initial.broker.registration.timeout.ms"),
                directory_failure_timeout_us=config.micros("log.dir.failure.timeout.ms"),
                resend=ResendPolicy(self._behaviours["broker.resend"]),
                request_timeout=RequestTimeout(self._behaviours["broker.request_timeout"]),
            ),
            group=translate.group_config(config, self._behaviours),
            offsets_form=translate.offsets_form(config),
            shares=share_groups.share_config(config, self.scenario.consumers, self._behaviours),
            share_coordinator=share_groups.share_coordinator_config(config),
            metadata_log=translate.metadata_log_config(
                config, controller.features, controller.supported
            ),
            high_watermark_checkpoint_us=config.micros(
                "replica.high.watermark.checkpoint.interval.ms"
            ),
            recovery_threads=config.number("num.recovery.threads.per.data.dir"),
            recovery_point_checkpoint_us=config.micros("log.flush.offset.checkpoint.interval.ms"),
            file_delete_delay_us=config.micros("log.segment.delete.delay.ms"),
            producers=translate.producer_upkeep(config, self._behaviours),
            upkeep=translate.upkeep_settings(config, self._behaviours),
            client_quotas=self._quotas(),
            connections=quotas.connection_config(config, has_quotas=self._has_quotas()),
            authorizer=authorizer_config(*self._clients, self._behaviours),
            security=listener_security(*self._clients),
            tiered=tiered.tiered_config(config, self._behaviours),
            codecs=self._compresses(),
            heap=translate.heap_spec(self.scenario.cluster.heap),
        )

    def _has_quotas(self) -> bool:
        """True if a client could ever have a quota."""
        altered = any(isinstance(fault, AlterClientQuotas) for fault in self.scenario.faults)
        return altered or bool(self.scenario.quotas)

    def _has_share_groups(self) -> bool:
        return any(group.is_share for group in self.scenario.consumers)

    def _mutation_quotas(self) -> MutationQuotaConfig | None:
        """``None`` where no client could ever have a quota."""
        if not self._has_quotas():
            return None
        return quotas.mutation_config(self._config, self._behaviours)

    def _quotas(self) -> ClientQuotaConfig | None:
        """``None`` where no client could ever have a quota."""
        scenario = self.scenario
        if not self._has_quotas():
            return None
        loads: list[ProducerSpec | ConsumerSpec | ProcessorSpec] = [
            *scenario.producers,
            *scenario.consumers,
            *scenario.processors,
        ]
        return quotas.quota_config(self._config, self._behaviours, loads)

    def _compresses(self) -> bool:
        """True if a batch could ever be compressed; settings of topics may change on the way."""
        scenario = self.scenario
        return (
            any(p.config.text("compression.type") != "none" for p in scenario.producers)
            or any(t.producer.text("compression.type") != "none" for t in scenario.processors)
            or any(
                c.is_source and c.client.text("compression.type") != "none"
                for c in scenario.connectors
            )
            or any(t.config.text("compression.type") != "producer" for t in scenario.topics)
            or any(isinstance(fault, Administration) for fault in scenario.faults)
            or scenario.is_target
        )

    def _upgrades(self) -> bool:
        """True if features are upgraded, or servers; nothing else asks who has registered."""
        return any(
            isinstance(fault, UpgradeFeatures)
            or (isinstance(fault, RollingRestart) and fault.to is not None)
            for fault in self.scenario.faults
        )
