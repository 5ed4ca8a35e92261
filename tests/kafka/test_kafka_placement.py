"""Where replicas go and whom consumers read from, against Kafka's own placer and selector."""

import random
import subprocess

import pytest

from sim.ids import TopicPartition
from sim.protocol.broker.replica import Replica, ReplicaConfig
from sim.protocol.broker.replication.leader.read_replicas import preferred_read_replica
from sim.protocol.controller.placement import StripedReplicaPlacer, UsableBroker
from sim.protocol.metadata.image import BrokerRegistration, MetadataImage, PartitionRegistration
from sim.units import MS
from tests.kafka.apache import HERE, java
from tests.protocol.broker.replica_kit import ToyLog

pytestmark = pytest.mark.kafka

ZONES = ((1, "a"), (2, "a"), (3, "b"), (4, "b"), (5, "c"), (6, "c"))
UNEVEN = ((1, "a"), (2, "a"), (3, "a"), (4, "b"), (5, "c"), (6, "c"), (7, "c"))
PLAIN = tuple((broker, "") for broker, _ in ZONES)
CASES = [
    (seed, partitions, replicas, brokers, fenced)
    for seed in range(1, 9)
    for partitions, replicas, brokers, fenced in (
        (60, 3, PLAIN, ()),
        (60, 3, PLAIN, (2, 5)),
        (60, 3, ZONES, ()),
        (60, 2, ZONES, (1, 4)),
        (40, 3, UNEVEN, ()),
        (40, 5, UNEVEN, (5, 6, 7)),
    )
]


class Repeatable:
    """The draws of ``Placements.java``, as fractions."""

    def __init__(self, seed):
        self.state = seed

    def unit(self):
        self.state = (self.state * 1103515245 + 12345) & 0x7FFFFFFF
        return self.state / 2**31


def test_replicas_go_where_kafkas_own_placer_puts_them(kafka):
    asked = [
        f"{seed}:{partitions}:{replicas}:"
        + ",".join(f"{broker}/{rack}/{int(broker in fenced)}" for broker, rack in brokers)
        for seed, partitions, replicas, brokers, fenced in CASES
    ]
    command = java(str(HERE / "Placements.java"), *asked)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for case, line in zip(CASES, done.stdout.split(), strict=True):
        seed, partitions, replicas, brokers, fenced = case
        placer = StripedReplicaPlacer(
            (UsableBroker(broker, rack, broker in fenced) for broker, rack in brokers),
            Repeatable(seed).unit,
        )
        ours = [list(placer.place(replicas)) for _ in range(partitions)]
        theirs = [[int(b) for b in one[1:-1].split(",")] for one in line.split(";") if one]
        assert ours == theirs, case


NOW_MS = 1_000
OFFSET = 3


def choice(rack, replicas):
    """Our leader's choice; every follower is in the ISR and has the offset."""
    (leader, _, end, _), *others = replicas
    ids = tuple(broker for broker, *_ in replicas)
    image = MetadataImage()
    for broker, home, _, _ in replicas:
        image.brokers[broker] = BrokerRegistration(broker, broker, "i", home, False, False)
    log = ToyLog([(0, 0)], end)
    replica = Replica(TopicPartition("orders", 0), leader, log, ReplicaConfig(), 0)
    replica.become_leader(PartitionRegistration("t", ids, ids, leader, 0, 0), 0)
    for broker, _, their_end, since in others:
        remote = replica.remotes[broker]
        remote.log_end_offset = their_end
        remote.log_start_offset = 0
        remote.last_caught_up_us = (NOW_MS - since) * MS + broker  # less than it counts
    chosen = preferred_read_replica(replica, image, rack, OFFSET)
    return leader if chosen < 0 else chosen


def test_consumers_are_sent_where_kafkas_own_selector_sends_them(kafka):
    draw = random.Random(5)
    cases = []
    for _ in range(200):
        ids = draw.sample(range(1, 9), draw.randint(1, 5))
        replicas = [
            (broker, draw.choice("ab"), draw.choice((5, 6)), draw.choice((0, 4, 9)))
            for broker in ids
        ]
        cases.append((draw.choice("abc"), replicas))
    asked = [
        f"{rack}:" + ",".join(f"{b}/{home}/{end}/{since}" for b, home, end, since in replicas)
        for rack, replicas in cases
    ]
    command = java(str(HERE / "Selections.java"), *asked)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    theirs = [int(line) for line in done.stdout.split()]
    ours = [choice(rack, replicas) for rack, replicas in cases]
    assert ours == theirs
    assert sum(a != r[0][0] for a, (_, r) in zip(ours, cases, strict=True)) > 30
