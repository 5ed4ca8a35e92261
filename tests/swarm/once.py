"""Not a test: random faults around clients that promise "once", and around those that do not.

Usage: python -m tests.swarm.once KIND FIRST COUNT DIRECTORY. Prints one line of JSON for each seed.

A kind is what clients promise: ``tasks`` read, process and write exactly once; ``loose tasks``
commit their input outside the transaction, after their outputs; ``idempotent`` producers, and
``plain`` ones. The faults of a seed are the same for a kind and for its loose twin, and none takes
data from a disk: what is promised must hold, but for what a leader forgot in a restart.

``cooperative tasks`` (KIP-429) and ``modern tasks`` (KIP-848) are exactly-once tasks that keep what
does not move in a rebalance; there are more of them and of partitions, so that something stays.
They have faults of their own.
"""

import json
import random
import shutil
import sys
from pathlib import Path
from typing import Any

import yaml

from sim.errors import InvariantBroken, SimulationError
from sim.scenario.loader import load_text
from sim.scenario.run.runner import run
from tests.scenarios.run_kit import Ran

KINDS = ("tasks", "loose tasks", "cooperative tasks", "modern tasks", "idempotent", "plain")

MOVING = ("cooperative tasks", "modern tasks")
"""Kinds whose rebalances move some partitions and leave the others where they are."""

TOPIC = {"replication.factor": 3, "config": {"min.insync.replicas": 2}}

BEATS = {
    "group.consumer.min.session.timeout.ms": 500,
    "group.consumer.session.timeout.ms": 1_500,
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.consumer.heartbeat.interval.ms": 300,
}
"""Of members of the consumer protocol: the brokers' to say."""

SERVERS: dict[str, Any] = {
    "brokers": 3,
    "controllers": 1,
    "config": {
        "broker.session.timeout.ms": 2_000,
        "broker.heartbeat.interval.ms": 400,
        "offsets.topic.num.partitions": 2,
        "transaction.state.log.num.partitions": 2,
        "replica.lag.time.max.ms": 2_000,
        "group.min.session.timeout.ms": 500,
        "group.initial.rebalance.delay.ms": 0,
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
    },
}

CLIENTS = {"request.timeout.ms": 2_000}

SESSION = {"session.timeout.ms": 1_500, "heartbeat.interval.ms": 300}
"""Of members of the classic protocol."""


def drawn(kind: str, seed: int) -> str:
    """The scenario of a seed, as a file has it."""
    moving = kind in MOVING
    chance = random.Random(f"once/{kind if moving else 'task' in kind}/{seed}")
    tasks = "tasks" in kind
    count, partitions = (3, 5) if moving else (2, 2)
    names = [f"copy-{number + 1}" for number in range(count)] if tasks else ["shop"]
    document = {
        "claim": "Once and only once.",
        "cluster": _servers(kind, chance),
        "topics": {"orders": {"partitions": partitions, **TOPIC}},
        "producers": [_producer(kind)],
        "faults": _faults(chance, names),
        "run": {"for": "9s", "seed": seed, "drain.timeout": "60s"},
    }
    if tasks:
        document["topics"]["bills"] = {"partitions": 2, **TOPIC}
        document["processors"] = [_processor(kind, chance)]
        document["processors"][0]["count"] = count
        document["processors"][0]["config"] |= _members(kind, chance)
    return yaml.safe_dump(document, sort_keys=False)


def _servers(kind: str, chance: random.Random) -> dict[str, object]:
    if kind != "modern tasks":
        return SERVERS
    # Before 4.3 a commit of an older member epoch is stale (KIP-1251).
    kafka = chance.choice(("4.1", "4.3"))
    return {**SERVERS, "kafka": kafka, "config": {**SERVERS["config"], **BEATS}}


def _producer(kind: str) -> dict[str, object]:
    config: dict[str, object] = dict(CLIENTS)
    if kind == "plain":
        config["enable.idempotence"] = False
    return {
        "name": "shop",
        "topic": "orders",
        "rate": "200/s",
        "record.size": "100B",
        "stop": "8s",
        "config": config,
    }


def _processor(kind: str, chance: random.Random) -> dict[str, object]:
    exactly = kind != "loose tasks"
    return {
        "name": "copy",
        "topics": ["orders"],
        "output": "bills",
        "outputs": chance.choice((1, 1, 3)),
        "processing": chance.choice(("0ms", "1ms", "2ms")),
        "record.size": "100B",
        "config": {
            "processing.guarantee": "exactly_once_v2" if exactly else "at_least_once",
            "commit.interval.ms": chance.choice((50, 100, 400)),
            **_reads(CLIENTS if kind == "modern tasks" else {**CLIENTS, **SESSION}),
            **{f"producer.{name}": value for name, value in CLIENTS.items()},
            # What one poll returns must fit into a transaction, or it times out again and again.
            "consumer.max.poll.records": 100,
            "producer.linger.ms": 5,
            "producer.transaction.timeout.ms": chance.choice((1_000, 3_000)),
        },
    }


def _reads(config: dict[str, object]) -> dict[str, object]:
    return {f"consumer.{name}": value for name, value in config.items()}


def _members(kind: str, chance: random.Random) -> dict[str, object]:
    """How tasks share their partitions."""
    if kind not in MOVING:
        return {}
    # Some members run out of it while a commit waits, and are expelled in a rebalance.
    patience = {"consumer.max.poll.interval.ms": chance.choice((2_500, 300_000))}
    if kind == "modern tasks":
        return {"consumer.group.protocol": "consumer", **patience}
    return {"consumer.partition.assignment.strategy": "cooperative-sticky", **patience}


def _faults(chance: random.Random, names: list[str]) -> list[dict[str, object]]:
    """Some faults, no two alike: one of a kind on a target at a time is all that there can be."""
    found: dict[str, dict[str, object]] = {}
    for _ in range(chance.randint(2, 5)):
        fault = _fault(chance, names)
        kind = fault["do"]
        found.setdefault(f"{kind} {fault.get('target', fault.get('from', ''))}", fault)
    return list(found.values())


def _fault(chance: random.Random, names: list[str]) -> dict[str, object]:
    servers = ["random broker", "leader of orders-0", "broker-1", "broker-2", "broker-3"]
    if len(names) > 1:
        servers += ["group coordinator of copy", "leader of bills-0"]
    fault: dict[str, object] = {"at": f"{chance.randint(800, 5_500)}ms"}
    what = chance.choice(("client", "client", "server", "server", "server", "link", "message"))
    lasts = f"{chance.randint(100, 3_000)}ms"
    if what == "client" and len(names) > 1:
        return {**fault, "do": chance.choice(("crash", "pause")), "target": chance.choice(names),
                "for": lasts}  # fmt: skip
    if what in {"client", "server"}:
        # A crash keeps the page cache: nothing that was written is lost.
        kind = chance.choice(("crash", "pause", "controlled-shutdown"))
        return {**fault, "do": kind, "target": chance.choice(servers), "for": lasts}
    if what == "link":
        return {**fault, "do": "partition", "between": [chance.choice(names)],
                "and": [chance.choice(servers)], "for": lasts}  # fmt: skip
    messages = ["ProduceResponse"]
    if len(names) > 1:
        messages += ["EndTxnResponse", "TxnOffsetCommitResponse", "OffsetCommitResponse"]
    return {**fault, "do": "drop", "message": chance.choice(messages),
            "from": chance.choice(("broker-1", "broker-2", "broker-3")),
            "count": chance.randint(1, 4), "for": "3s"}  # fmt: skip


def outcome(kind: str, seed: int, directory: Path) -> dict[str, object]:
    """What one seed led to; its directory stays if a promise of the protocol was broken."""
    where = directory / f"{kind.replace(' ', '-')}-{seed}"
    try:
        run(load_text(drawn(kind, seed), f"once-{seed}"), out=where, level="facts")
    except (SimulationError, InvariantBroken) as error:
        return {"seed": seed, "defect": f"{type(error).__name__}: {error}"}
    ran = Ran(where)
    told = {"seed": seed, "defect": "", **ran.records}
    told |= {name: ran.verdict["processing"].get(name, 0)
             for name in ("unprocessed", "reprocessed", "orphaned")}  # fmt: skip
    if kind == "idempotent":
        told["forgotten"] = forgotten(ran.rows("appends"), ran.rows("recoveries"))
        told["duplicated"] -= told["forgotten"]
    exactly = kind in {"tasks", *MOVING}
    ends = ran.rows("transaction_outcomes") if exactly else []
    told["fenced"] = sum(row["outcome"] == "fenced" for row in ends)
    told["given_up"] = sum(row["outcome"] == "aborted" for row in ends)
    shutil.rmtree(where)
    return told


def forgotten(appends: list[dict], recoveries: list[dict]) -> int:
    """Count the records that a leader wrote again because it had been restarted in between.

    A snapshot of producers keeps each one's last batch (``ProducerStateManager``). Of several whose
    answers were lost, all but the last are then out of order for good, and the producer sends all
    of them in its next epoch (``TransactionManager.canRetry``): Kafka's own limit of "once".
    """
    first: dict[tuple[str, int, int, int], dict] = {}
    found = 0
    for again in appends:
        if not again["as_leader"] or again["first_record"] < 0:
            continue
        batch = tuple(
            again[name] for name in ("topic", "partition", "producer_index", "first_record")
        )
        before = first.setdefault(batch, again)
        if before["producer_epoch"] < again["producer_epoch"] and any(
            row["broker"] == again["broker"] and before["t_us"] < row["t_us"] < again["t_us"]
            for row in recoveries
        ):
            found += again["record_count"]
    return found


if __name__ == "__main__":
    start, count = int(sys.argv[2]), int(sys.argv[3])
    for number in range(start, start + count):
        sys.stdout.write(json.dumps(outcome(sys.argv[1], number, Path(sys.argv[4]))) + "\n")
        sys.stdout.flush()
