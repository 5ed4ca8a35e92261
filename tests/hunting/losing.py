"""Not a test: small scenarios that fail in a way that is known, and what is smaller than one."""

from copy import deepcopy

import yaml

from sim.errors import SimulationError
from sim.hunting.shrinking.numbers import halved, numbers, value_at
from sim.scenario.loader import load_data

SERVERS = {
    "brokers": 3,
    "controllers": 1,
    "config": {"broker.session.timeout.ms": 3000, "broker.heartbeat.interval.ms": 500},
}
TOPIC = {"partitions": 1, "replication.factor": 3, "config": {"min.insync.replicas": 1}}
SHOP = {
    "name": "shop", "topic": "orders", "rate": "200/s", "record.size": "100B", "stop": "5s",
    "config": {"acks": 1},
}  # fmt: skip
TRANSACTING = {
    "name": "shop", "topic": "orders", "rate": "20/s", "record.size": "100B", "stop": "7s",
    "transaction": {"every": "6s"},
    "config": {"acks": "all", "transactional.id": "shop", "transaction.timeout.ms": 10_000},
}  # fmt: skip
LATE = {
    "at": "1s", "do": "delay", "between": "leader of orders-0", "and": ["all brokers"],
    "one-way": True, "by": "50ms", "for": "3s",
}  # fmt: skip
CRASH = {"at": "2200ms", "do": "crash", "target": "leader of orders-0", "for": "5s"}


def losing(faults=(LATE, CRASH), **parts):
    """Data of a scenario in which a leader dies with what it alone had acknowledged."""
    plain = {
        "claim": "Nothing is lost.",
        "cluster": SERVERS,
        "topics": {"orders": TOPIC},
        "producers": [SHOP],
        "faults": list(faults),
        "run": {"for": "8s", "seed": 1},
        "expect": {"lost_acked": 0},
    }
    return plain | parts


def losing_a_coordinators_log(**parts):
    """Data of a scenario in which the topic has flushed its records, the coordinator nothing."""
    flushed = {"min.insync.replicas": 2, "flush.messages": 1}
    return losing(
        [{"at": "4s", "do": "power-loss", "target": "all brokers", "for": "2s"}],
        topics={"orders": {"partitions": 1, "replication.factor": 3, "config": flushed}},
        producers=[TRANSACTING],
        run={"for": "12s", "then": "heal and drain", "seed": 1},
        **parts,
    )


def written(path, plain):
    """A scenario file."""
    path.write_text(yaml.safe_dump(plain, sort_keys=False))
    return path


def smaller_by_one(data):
    """Scenarios without one of the faults, or with half of one number, that can be run."""
    smaller = [
        {**data, "faults": [fault for n, fault in enumerate(data["faults"]) if n != left]}
        for left in range(len(data["faults"]))
    ]
    for place in numbers(data):
        half = halved(place, value_at(data, place))
        if half is not None:
            changed = deepcopy(dict(data))
            value_at(changed, place[:-1])[place[-1]] = half
            smaller.append(changed)
    for changed in smaller:
        try:
            load_data(changed)
        except SimulationError:
            continue
        yield changed
