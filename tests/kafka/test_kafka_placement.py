"""Where replicas go, against Apache Kafka's own placer fed with the same draws."""

import subprocess

import pytest

from sim.protocol.placement import StripedReplicaPlacer, UsableBroker
from tests.kafka.apache import HERE, java

pytestmark = [pytest.mark.kafka, pytest.mark.xdist_group("kafka")]

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
