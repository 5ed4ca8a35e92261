"""Each kind of fault in two lines: one that takes effect, and one that meets nothing."""

LEADER = "leader of orders-0"
FOLLOWER = "follower of orders-0"

EACH_KIND = {
    "crash": {"target": LEADER, "for": "1s"},
    "restart": {"target": LEADER},
    "controlled-shutdown": {"target": LEADER, "for": "1s"},
    "pause": {"target": LEADER, "for": "1s"},
    "power-loss": {"target": LEADER, "for": "1s"},
    "partition": {"between": LEADER, "for": "1s"},
    "delay": {"between": LEADER, "by": "20ms", "for": "1s"},
    "loss": {"between": LEADER, "ratio": 0.2, "for": "1s"},
    "bandwidth": {"between": LEADER, "to": "100KB/s", "for": "1s"},
    "hold": {"message": "FetchResponse", "from": LEADER, "for": "1s"},
    "drop": {"message": "ProduceResponse", "from": "all brokers", "count": 1, "for": "1s"},
    "clock-jump": {"target": LEADER, "by": "5ms", "for": "1s"},
    "slow-disk": {"target": LEADER, "factor": 9, "for": "1s"},
    "stalled-disk": {"target": LEADER, "for": "1s"},
    "failed-disk": {"target": LEADER, "for": "1s"},
    "full-disk": {"target": LEADER, "for": "1s"},
    "lying-flush": {"target": LEADER, "for": "1s"},
    "wiped-disk": {"target": LEADER},
    "no-file-descriptors": {"target": LEADER, "for": "1s"},
    "slow-cpu": {"target": LEADER, "factor": 9, "for": "1s"},
    "rolling-restart": {"target": [LEADER, FOLLOWER], "down": "100ms", "settle": "1ms"},
    "load-surge": {"target": "shop", "factor": 3, "for": "1s"},
    "seek": {"target": "alone", "partitions": "orders-0", "to": "beginning"},
    "pause-partitions": {"target": "alone", "partitions": "orders-0", "for": "1s"},
    "lost-replica": {"target": LEADER},
    "corrupt-replica": {"target": LEADER},
    "torn-write": {"target": LEADER},
    "misdirected-write": {"target": LEADER},
    "cut-file": {"target": LEADER, "bytes": 50},
    "duplicate": {
        "message": "ProduceRequest", "from": "shop", "to": "all brokers", "later": "50ms",
        "for": "1s",
    },
    "clock-drift": {"target": LEADER, "ppm": 1000, "for": "1s"},
    "one-of": {"of": [{"do": "pause", "target": LEADER, "for": "1s"}]},
}  # fmt: skip
"""At work in a small cluster; an administrator's operations have tests of their own."""

ELSEWHERE = {"bit-rot", "slow-reads", "wrong-advertised-name"}
"""Kinds that need more than a small cluster to be noticed: a reader, cold disks, a new connection.
Their tests are in ``test_scenarios_file_damage.py`` and ``test_scenarios_wrong_names.py``."""

DARK = "broker-3"
"""Without power from 0.5 s to 7 s, its disks empty from 1 s on."""

DARK_ROLE = "follower of lonely-0"
"""The same broker, as a role: two lines with one name and kind must not overlap."""

IDLE = {
    "crash": {"target": DARK, "for": "1s"},
    "restart": {"target": DARK},
    "controlled-shutdown": {"target": DARK, "for": "1s"},
    "pause": {"target": DARK, "for": "1s"},
    "power-loss": {"target": DARK_ROLE, "for": "1s"},
    "partition": {"between": DARK, "and": "late", "for": "1s"},
    "delay": {"between": DARK, "and": "late", "by": "1s", "for": "1s"},
    "loss": {"between": DARK, "and": "late", "ratio": 0.9, "for": "1s"},
    "bandwidth": {"between": DARK, "and": "late", "to": "1kB/s", "for": "1s"},
    "hold": {"message": "AddRaftVoterRequest", "from": "all brokers", "for": "1s"},
    "drop": {"message": "AddRaftVoterRequest", "from": "all brokers", "for": "1s"},
    "clock-jump": {"target": DARK, "by": "1h", "for": "1s"},
    "slow-disk": {"target": DARK, "factor": 9, "for": "1s"},
    "stalled-disk": {"target": DARK, "for": "1s"},
    "failed-disk": {"target": DARK, "for": "1s"},
    "full-disk": {"target": DARK, "for": "1s"},
    "lying-flush": {"target": DARK, "for": "1s"},
    "wiped-disk": {"target": DARK},
    "no-file-descriptors": {"target": DARK, "for": "1s"},
    "slow-cpu": {"target": DARK, "factor": 9, "for": "1s"},
    "lost-replica": {"target": DARK, "partition": "lonely-0"},
    "corrupt-replica": {"target": DARK, "partition": "lonely-0"},
    "torn-write": {"target": DARK, "partition": "lonely-0"},
    "misdirected-write": {"target": DARK, "partition": "lonely-0"},
    "rolling-restart": {"target": DARK},
    "load-surge": {"target": "late", "factor": 9, "for": "1s"},
    "seek": {"target": "sleeper", "partitions": "wide", "to": 5},
    "pause-partitions": {"target": "sleeper", "partitions": "wide-0", "for": "1s"},
    "reset-offsets": {"group": "sleepers", "partitions": "wide-0", "shift": -1},
    "delete-offsets": {"group": "sleepers", "partitions": "wide-0"},
    "delete-group": {"group": "sleepers"},
    "create-topic": {"topic": "again"},
    "delete-topic": {"topic": "gone"},
    "create-partitions": {"topic": "wide", "count": 2},
    "alter-config": {"topic": "wide", "config": {"min.insync.replicas": 1}},
    "reassign": {"partition": "lonely-0", "replicas": ["broker-1", DARK]},
    "cancel-reassignment": {"partition": "lonely-0"},
    "elect-leader": {"partition": "lonely-0", "election": "preferred"},
    "delete-records": {"partition": "wide-0", "before": 0},
    "alter-replica-log-dirs": {"partition": "lonely-0", "broker": "broker-1", "to": 1},
    "one-of": {"of": [{"do": "crash", "target": DARK_ROLE, "for": "1s"}]},
    "alter-client-quotas": {"client.id": "late", "producer_byte_rate": "1MB/s"},
    "add-controller": {"target": "controller-1"},
    "remove-controller": {"target": "controller-1"},
    "add-broker": {"target": "broker-4"},
    "cut-file": {"target": DARK, "partition": "lonely-0", "bytes": 1},
    "bit-rot": {"target": DARK, "partition": "lonely-0"},
    "duplicate": {
        "message": "AddRaftVoterRequest", "from": "all brokers", "later": "1s", "for": "1s",
    },
    "clock-drift": {"target": DARK, "ppm": 1000, "for": "1s"},
    "slow-reads": {"target": DARK, "factor": 9, "for": "1s"},
    "wrong-advertised-name": {"target": "broker-4", "for": "1s"},
    "abort-transaction": {"target": "ended"},
    "alter-broker-config": {"config": {"log.retention.ms": 604_800_000}},
    "unregister": {"target": DARK},
}  # fmt: skip
"""A line of each kind that can do nothing; but for decommission, which is of another cluster."""
