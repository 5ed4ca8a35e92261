"""The topics of coordinators take from brokers what their coordinators do not set.

Source: ``KafkaConfig.extractLogConfigMap``, ``GroupCoordinatorService.groupMetadataTopicConfigs``,
``TransactionStateManager.transactionTopicConfigs``.
"""

import pytest

from sim.scenario.build import translate
from sim.scenario.loader import load_text
from sim.scenario.rules import share_groups
from sim.scenario.rules.internal_topics import offsets_topic
from sim.scenario.rules.topic_configs import inherited_configs
from tests.scenarios.run_kit import go, text_of

HANDED_DOWN = {
    "log.roll.ms": 400, "message.max.bytes": 2_000_000, "log.index.interval.bytes": 512,
    "log.flush.interval.messages": 3, "log.message.timestamp.type": "LogAppendTime",
    "log.cleaner.min.cleanable.ratio": 0.1, "log.retention.hours": 1,
    "unclean.leader.election.enable": True,
}  # fmt: skip
REACHES = {
    "segment.ms": "400", "max.message.bytes": "2000000", "index.interval.bytes": "512",
    "flush.messages": "3", "message.timestamp.type": "LogAppendTime",
    "min.cleanable.dirty.ratio": "0.1", "retention.ms": "3600000",
    "unclean.leader.election.enable": "true",
}  # fmt: skip
SET_BY_ALL = {
    "log.cleanup.policy": "compact,delete", "log.segment.bytes": 2_000_000,
    "compression.type": "gzip", "min.insync.replicas": 2,
}  # fmt: skip
"""Settings of which each coordinator has its own value, or is given the brokers' one."""

OFFSETS = {
    "cleanup.policy": "compact", "compression.type": "producer", "min.insync.replicas": "2",
    "segment.bytes": "104857600",
}  # fmt: skip
TRANSACTIONS = OFFSETS | {
    "compression.type": "uncompressed", "unclean.leader.election.enable": "false",
}  # fmt: skip
SHARES = OFFSETS | {"cleanup.policy": "delete", "retention.ms": "-1"}


def made(config):
    """The three topics' settings, by Kafka's names."""
    scenario = load_text(text_of(config=config))
    cluster = scenario.cluster
    state = translate.transaction_config(cluster.config, scenario.behaviours).state_topic()
    topics = offsets_topic(cluster), state, share_groups.state_topic(cluster.config)
    return [dict(topic.configs) for topic in topics]


def test_topics_of_coordinators_have_the_brokers_settings_but_for_those_that_kafka_gives_them():
    offsets, state, shares = made(HANDED_DOWN | SET_BY_ALL)
    assert offsets == REACHES | OFFSETS
    assert state == REACHES | TRANSACTIONS
    assert shares == REACHES | SHARES


def test_with_the_defaults_of_kafka_they_have_their_own_settings_only():
    offsets, state, shares = made({})
    assert offsets == OFFSETS | {"min.insync.replicas": "1"}
    assert (state, shares) == (TRANSACTIONS, SHARES)
    assert inherited_configs(load_text(text_of()).cluster.config) == ()


@pytest.mark.parametrize("topic", ["__consumer_offsets", "__transaction_state"])
def test_log_roll_ms_of_the_brokers_rolls_the_logs_of_coordinators(rolled, topic):
    directories = list(rolled.directory.glob(f"disks/broker-*/data-0/{topic}-*"))
    assert max(len(list(directory.glob("*.log"))) for directory in directories) >= 3


@pytest.fixture(scope="module")
def rolled(tmp_path_factory):
    desk = {
        "name": "desk", "topic": "orders", "rate": "50/s", "record.size": "100B",
        "transaction": {"records": 5}, "config": {"acks": "all", "transactional.id": "desk"},
    }  # fmt: skip
    reader = {"group": "audit", "topics": ["orders"], "config": {"auto.commit.interval.ms": 100}}
    return go(
        tmp_path_factory.mktemp("rolled"), lasts="3s", topic={"partitions": 1}, producers=[desk],
        consumers=[reader], config={
            "log.roll.ms": 400, "offsets.topic.num.partitions": 1,
            "group.initial.rebalance.delay.ms": 0,
            "transaction.state.log.num.partitions": 1,
        },
    )  # fmt: skip
