"""Not a test: small scenarios that fail in a way that is known."""

import yaml

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


def written(path, plain):
    """A scenario file."""
    path.write_text(yaml.safe_dump(plain, sort_keys=False))
    return path
