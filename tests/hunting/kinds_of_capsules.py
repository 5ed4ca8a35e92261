"""Not a test: small failures of different kinds, each with something that it does not need.

Entries of the failure catalogue at a tenth of their size, with the behaviour of their time where
they need one, outages, clusters that do not come to rest, and planted defects.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sim.scenario.text.yaml import read
from tests.hunting import planted_parts as parts
from tests.hunting.losing import CRASH, LATE, SHOP, losing
from tests.scenarios import planted

CATALOGUE = Path(__file__).parents[2] / "scenarios" / "catalogue"
CALM = {"at": "1700ms", "do": "slow-cpu", "target": "broker-2", "factor": 2, "for": "300ms"}
"""Takes effect, and changes nothing that matters."""

OLD = {"recovery": "isr", "high_watermark.gate": "none"}
"""Before KIP-966."""

FAST = {"broker.session.timeout.ms": 1000, "broker.heartbeat.interval.ms": 200}
PINNED = [["broker-1", "broker-2", "broker-3"]]


@dataclass(frozen=True)
class Kind:
    """A failure."""

    looking_for: str
    mechanism: str
    """Of its fingerprint: the mechanism that makes it this kind; of a broken promise its name."""
    data: Mapping[str, Any]
    plant: Callable[[Any], None] | None = None
    kind: str = ""
    """Of its fingerprint; what is looked for, if not given."""


def cluster(brokers=3, **config):
    return {"brokers": brokers, "controllers": 1, "config": FAST | config}


def topic(replicas=3, least=1, **more):
    config = {"min.insync.replicas": least} | more.pop("config", {})
    return {"orders": {"partitions": 1, "replication.factor": replicas, "config": config} | more}


def shop(rate="40/s", stop="3s", acks="all", **config):
    given = {"acks": acks, "linger.ms": 0} | config
    return [SHOP | {"rate": rate, "stop": stop, "config": given}]


def small(faults, lasts="6s", **more):
    """A scenario of some seconds."""
    run = {"for": lasts, "seed": 1, "drain.timeout": "20s"}
    whole = {"cluster": cluster(), "topics": topic(), "producers": shop(), "run": run} | more
    return losing([*faults, CALM], **whole)


def fault(at, do, target="leader of orders-0", lasts="2s", **more):
    ends = {"for": lasts} if lasts else {}
    return {"at": at, "do": do, **({"target": target} if target else {}), **more, **ends}


def cut(at, first, others, lasts="2s"):
    return {"at": at, "do": "partition", "between": first, "and": others, "for": lasts}


def hanging_transaction():
    """The catalogue's F4 with less beside it."""
    name = "f04-hanging-transaction-late-produce-historic.yaml"
    whole = read((CATALOGUE / name).read_text(), name).data
    whole["producers"][-1]["rate"] = "10/s"
    whole["run"]["for"] = "20s"
    whole["faults"].append(CALM)
    return whole


KINDS = {
    "a01-acks-0": Kind(
        "lost_acked",
        "unacknowledged",
        small(
            [fault("2s", "crash")],
            producers=shop("200/s", acks=0, **{"enable.idempotence": False}),
        ),
    ),
    "a02-acks-1": Kind(
        "lost_acked",
        "acks-1",
        small([LATE | {"for": "1500ms"}, CRASH | {"for": "2s"}], producers=shop(acks=1)),
    ),
    "a04-zombie-leader": Kind(
        "lost_acked",
        "deposed",
        small(
            [
                cut("1s", ["leader of orders-0"], ["all brokers", "controller-1"], "3s"),
            ],
            producers=shop(acks=1, stop="4s"),
        ),
    ),
    "a06-unclean-election": Kind(
        "lost_acked",
        "unclean",
        small(
            [
                fault("1s", "controlled-shutdown", "broker-3", "1500ms"),
                fault("1500ms", "controlled-shutdown", "broker-2", "4s"),
                fault("2500ms", "crash", lasts="3s"),
            ],
            topics={
                "orders": topic(config={"unclean.leader.election.enable": True})["orders"]
                | {"replicas": PINNED}
            },
            producers=shop(stop="2500ms"),
        ),
    ),
    "a07-isr-of-one": Kind(
        "lost_acked",
        "isr-of-one",
        small(
            [
                fault("1s", "controlled-shutdown", "broker-2", "4s"),
                fault("1s", "controlled-shutdown", "broker-3", "1500ms"),
                fault("2500ms", "crash", "broker-1", "3s"),
            ],
            topics={
                "orders": topic(config={"unclean.leader.election.enable": True})["orders"]
                | {"replicas": PINNED}
            },
            producers=shop(stop="2500ms"),
        ),
    ),
    "b01-last-replica-standing": Kind(
        "lost_acked",
        "power",
        small(
            [
                fault("1s", "controlled-shutdown", "broker-2", "4s"),
                fault("1500ms", "controlled-shutdown", "broker-3", "3s"),
                fault("2500ms", "power-loss", "broker-1", "1s", unflushed="lost"),
            ],
            topics={"orders": topic(least=2)["orders"] | {"replicas": PINNED}},
            producers=shop(stop="2s"),
            behaviours=OLD,
        ),
    ),
    "b02-power-of-all": Kind(
        "lost_acked",
        "power",
        small([fault("2s", "power-loss", "all brokers", "1s", unflushed="lost")],
              topics=topic(least=2), producers=shop(stop="2s")),
    ),
    "b05-two-logs-differ": Kind(
        "divergent",
        "own-watermark",
        small(
            [
                fault("2s", "crash", "broker-1", "5s"),
                fault("2500ms", "power-loss", "broker-2", "1s", unflushed="lost"),
            ],
            lasts="8s",
            cluster=cluster(2, **{"replica.high.watermark.checkpoint.interval.ms": 100}),
            topics=topic(2),
            producers=shop(stop="7500ms", **{"batch.size": 0}),
            behaviours={"truncation": "hw", **OLD},
        ),
    ),
    "b08-empty-disk": Kind(
        "lost_acked",
        "empty-disk",
        small(
            [
                fault("1s", "controlled-shutdown", "broker-2", "4s"),
                fault("1500ms", "controlled-shutdown", "broker-3", "3s"),
                fault("2500ms", "crash", "broker-1", "1s"),
                fault("3s", "lost-replica", "broker-1", "", partition="orders-0"),
            ],
            topics={"orders": topic(least=2)["orders"] | {"replicas": PINNED}},
            producers=shop(stop="2s"),
            behaviours=OLD,
        ),
    ),
    "one-replica": Kind(
        "lost_acked",
        "only-replica",
        small(
            [fault("2s", "power-loss", lasts="1s", unflushed="lost")],
            topics=topic(1),
            producers=shop(stop="2s"),
        ),
    ),
    "bits-that-flip": Kind(
        "lost_acked",
        "damaged",
        small(
            [
                fault("2s", "crash", lasts="1s"),
                fault("2500ms", "corrupt-replica", "broker-1", "", partition="orders-0"),
            ],
            cluster=cluster(1),
            topics=topic(1),
            producers=shop(stop="2s"),
        ) | {"faults": [
                fault("2s", "crash", "broker-1", lasts="1s"),
                fault("2500ms", "corrupt-replica", "broker-1", "", partition="orders-0"),
                CALM | {"target": "broker-1"},
        ]},
    ),
    "e03-committed-before-processed": Kind(
        "unprocessed",
        "committed-early",
        small(
            [fault("3s", "crash", "copy", "1s")],
            lasts="8s",
            cluster=cluster(**{"group.initial.rebalance.delay.ms": 0}),
            topics=topic() | {"bills": topic()["orders"]},
            producers=shop("100/s"),
            processors=[
                {
                    "name": "copy", "topics": ["orders"], "output": "bills", "processing": "20ms",
                    "commits": "auto", "record.size": "100B",
                    "config": {
                        "consumer.auto.commit.interval.ms": 500,
                        "consumer.max.poll.records": 500,
                        "consumer.session.timeout.ms": 6000,
                    },
                }
            ],
        ),
    ),
    "f02-a-duplicate": Kind(
        "duplicated",
        "retried",
        small(
            [
                {"at": "1s", "do": "drop", "message": "ProduceResponse",
                 "from": "leader of orders-0", "to": "shop", "count": 1, "for": "900ms"},
            ],
            producers=shop(**{"enable.idempotence": False}),
        ),
    ),
    "down-without-a-leader": Kind(
        "down>1500ms",
        "no-leader",
        small(
            [fault("2s", "crash", lasts="3s")],
            cluster=cluster(**{"broker.session.timeout.ms": 3000}),
            producers=shop(stop="6s"),
        ),
    ),
    "down-below-min-isr": Kind(
        "down>1500ms",
        "below-min-isr",
        small(
            [fault("1500ms", "controlled-shutdown", "follower of orders-0", "3s")],
            topics=topic(2, 2),
            producers=shop(stop="6s"),
        ),
    ),
    "down-waiting-for-a-follower": Kind(
        "down>1500ms",
        "waited-for-follower",
        small(
            [fault("1500ms", "pause", "follower of orders-0", "4s")],
            cluster=cluster(**{"broker.session.timeout.ms": 9000, "replica.lag.time.max.ms": 2500}),
            producers=shop(stop="6s"),
        ),
    ),
    "f04-hanging-transaction": Kind("stuck", "hanging-transaction", hanging_transaction()),
    "planted-acknowledged-at-append": Kind(
        "lost_acked", "acknowledged-is-committed", small([]),
        planted.acknowledged_at_append, "broken",
    ),
    "planted-high-watermark": Kind(
        "lost_acked", "high-watermark-needs-in-sync-ends", small([]),
        planted.high_watermark_without_followers, "broken",
    ),
    "planted-leader-epoch-stays": Kind(
        "lost_acked", "one-leader-per-epoch",
        small([fault("2s", "crash")], producers=shop(stop="6s")),
        planted.leader_epoch_stays, "broken",
    ),
    "planted-votes": Kind(
        "lost_acked", "one-quorum-leader",
        small([fault("2s", "crash", "controller leader")],
              cluster=cluster() | {"controllers": 3}),
        parts.one_vote_is_enough, "broken",
    ),
    "planted-assignments": Kind(
        "lost_acked", "assignments-disjoint",
        small([], topics={"orders": topic()["orders"] | {"partitions": 2}},
              consumers=[{"group": "billing", "topics": ["orders"], "count": 2}]),
        planted.everyone_gets_every_partition, "broken",
    ),
    "planted-open-transactions": Kind(
        "lost_acked", "stable-offset-below-open",
        small([], producers=[SHOP | {
            "rate": "40/s", "stop": "3s", "transaction": {"records": 10},
            "config": {"transactional.id": "shop"}}],
              consumers=[{"group": "billing", "topics": ["orders"],
                          "config": {"isolation.level": "read_committed"}}]),
        parts.readers_pass_open_transactions, "broken",
    ),
    "planted-cleaner": Kind(
        "lost_acked", "cleaner-keeps-last-values",
        small([], cluster=cluster(**{"log.cleaner.backoff.ms": 500}), topics=topic(config={
            "cleanup.policy": "compact", "segment.ms": 1000, "min.cleanable.dirty.ratio": 0.1}),
              producers=[SHOP | {"rate": "40/s", "stop": "5s", "keys": "zipf", "key.count": 20,
                                 "config": {"acks": "all"}}]),
        parts.the_last_value_goes, "broken",
    ),
}  # fmt: skip
"""By the name of what happens."""
