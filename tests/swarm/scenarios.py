"""Not a test: a random cluster, load and run of bad luck from a seed, as a scenario file has them.

Three replicas of which two must be in sync, acks=all, and Kafka 4.1's own rules everywhere. A seed
that is ``frugal`` lets at most one broker ever end uncleanly, with or without a loss of what it had
written: then every acknowledged record must survive, but for those in a hole between two segments
that recovery keeps, and every partition go on, whatever else happens (KIP-966: eligible leader
replicas stand ``min.insync.replicas`` - 1 unclean ends, and a killed process is one, for all that
its successor can tell). In the others records may be lost and partitions stay without a leader, but
no promise of the protocol may be broken.
"""

import random
from collections.abc import Iterable
from typing import NamedTuple

import yaml

from sim.faults.registry import KINDS

LASTS = 20
"""Seconds of load; faults begin in the first 12 and are all healed at 16."""

FAULTS_UNTIL = 12
HEALED_AT = 16

TAKES_DATA = (
    "power-loss", "lost-replica", "corrupt-replica", "failed-disk", "wiped-disk", "lying-flush",
    "misdirected-write",
)  # fmt: skip
"""What a broker may come back from with less than it had."""

UNCLEAN = ("crash", "restart", "full-disk", "torn-write", "no-file-descriptors")
"""What ends a process without its having stopped in good order; nothing is lost."""

HARMLESS = (
    *UNCLEAN, "pause", "controlled-shutdown", "partition", "delay", "loss", "bandwidth", "hold",
    "drop", "clock-jump", "slow-disk", "stalled-disk", "slow-cpu", "rolling-restart", "load-surge",
    "reassign", "elect-leader", "alter-config",
)  # fmt: skip

LATER = ("duplicate", "clock-drift", "slow-reads", "bit-rot", "cut-file", "alter-broker-config")
"""Kinds that came later; files are damaged on a broker that may lose what it had."""

LATER_FROM = 10_000
"""First seed whose scenario has one or two of them, too: those before stay what they were."""

REPEATED = ("ProduceRequest", "FetchRequest", "AlterPartitionRequest", "BrokerHeartbeatRequest")

MESSAGES = (
    "FetchResponse", "FetchRequest", "ProduceResponse", "ProduceRequest", "AlterPartitionRequest",
    "BrokerHeartbeatRequest", "VoteRequest",
)  # fmt: skip


class Drawn(NamedTuple):
    """A scenario, and whether it may lose what was acknowledged."""

    text: str
    frugal: bool


def drawn(seed: int) -> Drawn:
    """The scenario of a seed."""
    chance = random.Random(f"swarm/{seed}")
    frugal = chance.random() < 0.6
    topics = _topics(chance)
    cluster = _cluster(chance)
    befalls = _Faults(chance, cluster, topics, frugal)
    faults = befalls.drawn()
    if seed >= LATER_FROM:
        faults += befalls.drawn_later(random.Random(f"swarm/{seed}/later"))
        faults.sort(key=lambda fault: int(str(fault["at"]).removesuffix("ms")))
    document = {
        "claim": "Whatever happens, no promise is broken, and afterwards all goes on.",
        "cluster": cluster,
        "topics": topics,
        "producers": _producers(chance, topics),
        "consumers": _consumers(chance, topics),
        "faults": faults,
        "run": {"for": f"{LASTS}s", "seed": seed, "drain.timeout": "60s"},
        "expect": {},
    }
    return Drawn(yaml.safe_dump(document, sort_keys=False), frugal)


def _cluster(chance: random.Random) -> dict[str, object]:
    brokers = chance.choice((3, 3, 4, 5))
    config: dict[str, object] = {
        "broker.session.timeout.ms": 2_000,
        "broker.heartbeat.interval.ms": 400,
        "min.insync.replicas": 2,
        "offsets.topic.num.partitions": 3,
        "transaction.state.log.num.partitions": 3,
        "replica.lag.time.max.ms": chance.choice((1_500, 3_000)),
        "metadata.log.max.record.bytes.between.snapshots": chance.choice((4_000, 20_971_520)),
    }
    if chance.random() < 0.3:
        config["log.cleaner.backoff.ms"] = 500
    cluster: dict[str, object] = {
        "controllers": chance.choice((1, 3, 3)),
        "config": config,
    }
    disk: dict[str, object] = {}
    if chance.random() < 0.4:
        disk["directories"] = 2
    if chance.random() < 0.4:
        disk["flush"] = _slow_flushes(chance)
    if disk:
        cluster["disk"] = disk
    if chance.random() < 0.4:
        config |= _flush_settings(chance)
    if chance.random() < 0.5:
        cluster["racks"] = {rack: len(range(n, brokers, 3)) for n, rack in enumerate("abc")}
    else:
        cluster["brokers"] = brokers
    return cluster


def _slow_flushes(chance: random.Random) -> dict[str, str]:
    """An fsync that takes 1 to 60 ms: then others come while a log is flushed."""
    usual = chance.choice((5, 20, 60))
    return {"p50": f"{usual}ms", "p99": f"{usual * chance.choice((2, 5))}ms"}


def _flush_settings(chance: random.Random) -> dict[str, object]:
    """Flushes by number or by time, of the groups' and the transactions' logs, too."""
    by_number: dict[str, object] = {"log.flush.interval.messages": chance.choice((1, 5))}
    by_time: dict[str, object] = {
        "log.flush.scheduler.interval.ms": 200,
        "log.flush.interval.ms": chance.choice((100, 1_000)),
        "log.initial.task.delay.ms": 0,
    }
    return chance.choice((by_number, by_time, by_number | by_time))


def _topics(chance: random.Random) -> dict[str, dict[str, object]]:
    def topic(**config: object) -> dict[str, object]:
        settings = {"min.insync.replicas": 2, "segment.ms": chance.choice((2_000, 604_800_000))}
        return {"partitions": 2, "replication.factor": 3, "config": settings | config}

    topics = {"orders": topic()}
    if chance.random() < 0.3:
        topics["orders"]["config"]["flush.messages"] = chance.choice((1, 20))
    if chance.random() < 0.4:
        topics["accounts"] = topic(**{"cleanup.policy": "compact", "segment.ms": 1_000})
    return topics


def _producers(chance: random.Random, topics: dict[str, dict[str, object]]) -> list[object]:
    made: list[dict[str, object]] = []
    for topic in topics:
        producer: dict[str, object] = {
            "name": f"{topic}-desk",
            "topic": topic,
            "rate": f"{chance.choice((40, 120))}/s",
            "record.size": "150B",
            "config": {
                "acks": "all",
                "delivery.timeout.ms": 60_000,
                "request.timeout.ms": 2_000,
                "linger.ms": chance.choice((0, 5, 50)),
                "metadata.max.age.ms": 5_000,
            },
        }
        if topic == "accounts" or chance.random() < 0.5:
            producer["keys"] = "zipf"
            producer["key.count"] = 30
        if topic == "orders" and chance.random() < 0.4:
            producer["transaction"] = {"records": 20, "abort": "10%"}
            producer["config"] |= {"transactional.id": "desk", "transaction.timeout.ms": 60_000}
        elif chance.random() < 0.5:
            # One producer's requests reach a leader one after the other, those of two overlap.
            producer["count"] = 2
        made.append(producer)
    return list(made)


def _consumers(chance: random.Random, topics: dict[str, dict[str, object]]) -> list[object]:
    config = {
        "auto.offset.reset": "earliest",
        "isolation.level": chance.choice(("read_committed", "read_uncommitted")),
        "session.timeout.ms": 6_000,
        "heartbeat.interval.ms": 1_000,
    }
    return [{"group": "audit", "topics": [*topics], "count": 2, "config": config}]


class _Faults:
    """What befalls the cluster."""

    def __init__(
        self, chance: random.Random, cluster: dict[str, object], topics: Iterable[str], frugal: bool
    ) -> None:
        self._chance = chance
        racks = cluster.get("racks", {"": cluster.get("brokers")})
        self._names = [f"broker-{n}" for n in range(1, sum(racks.values()) + 1)]
        self._controllers = [f"controller-{n}" for n in range(1, cluster["controllers"] + 1)]
        self._partitions = [f"{topic}-{n}" for topic in topics for n in range(2)]
        self._frail = [chance.choice(self._names)] if frugal else self._names
        self._topics = [*topics]

    def drawn(self) -> list[dict[str, object]]:
        kinds = self._chance.choices(HARMLESS, k=self._chance.randint(2, 5))
        kinds += self._chance.choices(TAKES_DATA, k=self._chance.randint(0, 2))
        more = {"last-standing": 0.3, "cut-off-leader": 0.3, "controller": 0.3}
        kinds += [kind for kind, likely in more.items() if self._chance.random() < likely]
        found: list[dict[str, object]] = []
        for kind in kinds:
            # The language refuses a fault that is begun again while it lasts.
            known = [_meaning(fault) for fault in found]
            found += [fault for fault in self._fault(kind) if _meaning(fault) not in known]
        return sorted(found, key=lambda fault: int(str(fault["at"]).removesuffix("ms")))

    def drawn_later(self, chance: random.Random) -> list[dict[str, object]]:
        self._chance = chance
        kinds = self._chance.sample(LATER, self._chance.randint(1, 2))
        return [self._later(kind) for kind in kinds]

    def _later(self, kind: str) -> dict[str, object]:
        at = self._at()
        window = self._window(at)
        match kind:
            case "duplicate":
                message = self._chance.choice(REPEATED)
                ends = {"from": self._names} if message != "ProduceRequest" else {
                    "from": "orders-desk", "to": "all brokers"}  # fmt: skip
                if message == "FetchRequest":
                    ends = {"from": self._names[:1], "to": self._names[1:]}
                return {"do": kind, "message": message, "later": "150ms", **ends, **window}
            case "clock-drift":
                way = self._chance.choice(("fast", "slow"))
                return {"do": kind, "target": self._broker(), "ppm": 50_000, "direction": way,
                        **window}  # fmt: skip
            case "slow-reads":
                return {"do": kind, "target": self._chance.choice(self._names), "factor": 50,
                        **window}  # fmt: skip
            case "alter-broker-config":
                return {"at": f"{at}ms", "do": kind, "config": {
                    "log.cleaner.backoff.ms": 300, "num.io.threads": 4}}  # fmt: skip
            case _:
                where = {"target": self._chance.choice(self._frail),
                         "partition": self._chance.choice(self._partitions)}  # fmt: skip
                more = {"bytes": 40} if kind == "cut-file" else {"segment": "any"}
                return {"at": f"{at}ms", "do": kind, **where, **more}

    def _at(self, earliest: int = 1_000) -> int:
        return self._chance.randint(earliest, FAULTS_UNTIL * 1_000)

    def _window(self, at: int) -> dict[str, object]:
        lasts = self._chance.choice((300, 1_500, 4_000))
        return {"at": f"{at}ms", "for": f"{min(lasts, HEALED_AT * 1_000 - at)}ms"}

    def _broker(self) -> str:
        role = f"leader of {self._chance.choice(self._partitions)}"
        return self._chance.choice((role, role, *self._names, "controller leader"))

    def _fault(self, kind: str) -> list[dict[str, object]]:
        at = self._at()
        window = self._window(at)
        if kind in TAKES_DATA or kind == "torn-write":
            return self._loss_of_data(kind, at, window)
        if kind == "rolling-restart":
            return [{"at": f"{at}ms", "do": kind, "target": "all brokers", "down": "200ms"}]
        if kind == "load-surge":
            return [{"do": kind, "target": "orders-desk", "factor": 3, **window}]
        if kind == "last-standing":
            return self._last_standing(at)
        if kind == "controller":
            return [{"do": "crash", "target": "controller leader", **window}]
        if kind == "cut-off-leader":
            return [self._cut_off_leader(at)]
        if kind in ("partition", "delay", "loss", "bandwidth"):
            return [self._on_links(kind, window)]
        if kind in ("hold", "drop"):
            message = self._chance.choice(MESSAGES)
            return [{"do": kind, "message": message, "from": "all brokers", "count": 3, **window}]
        if kind in ("reassign", "elect-leader", "alter-config"):
            return [self._operation(kind, at)]
        return self._on_a_broker(kind, at, window)

    def _on_a_broker(
        self, kind: str, at: int, window: dict[str, object]
    ) -> list[dict[str, object]]:
        disk = {"slow-disk", "stalled-disk"}
        target = self._chance.choice(self._names) if kind in disk else self._broker()
        stays = kind in {"full-disk", "no-file-descriptors"}
        if stays or (kind in UNCLEAN and len(self._frail) == 1):
            target = self._chance.choice(self._frail)
        if kind == "no-file-descriptors":
            # A log directory that went offline comes back with the process alone.
            after = f"{HEALED_AT * 1_000 - 100}ms"
            return [
                {"do": kind, "target": target, **window},
                {"at": after, "do": "restart", "target": target},
            ]
        fault: dict[str, object] = {"do": kind, "target": target, **window}
        if kind == "restart":
            del fault["for"]
        if kind in ("slow-disk", "slow-cpu"):
            fault["factor"] = self._chance.choice((20, 2_000))
        if kind == "clock-jump":
            fault |= {"by": "700ms", "direction": self._chance.choice(("forward", "backward"))}
        return [fault]

    def _on_links(self, kind: str, window: dict[str, object]) -> dict[str, object]:
        more: dict[str, object] = {
            "partition": {}, "delay": {"by": "300ms"}, "loss": {"ratio": 0.3},
            "bandwidth": {"to": "20KB/s"},
        }[kind]  # fmt: skip
        one_way = self._chance.random() < 0.4
        return {"do": kind, "between": self._broker(), "one-way": one_way, **more, **window}

    def _operation(self, kind: str, at: int) -> dict[str, object]:
        where = self._chance.choice(self._partitions)
        if kind == "reassign":
            replicas = self._chance.sample(self._names, 3)
            return {"at": f"{at}ms", "do": kind, "partition": where, "replicas": replicas}
        if kind == "elect-leader":
            return {"at": f"{at}ms", "do": kind, "partition": where, "election": "preferred"}
        topic, _, _ = where.rpartition("-")
        return {"at": f"{at}ms", "do": kind, "topic": topic, "config": {"segment.ms": 700}}

    def _loss_of_data(
        self, kind: str, at: int, window: dict[str, object]
    ) -> list[dict[str, object]]:
        target = self._chance.choice(self._frail)
        if kind == "wiped-disk":
            return [{"at": f"{at}ms", "do": kind, "target": target}]
        if KINDS[kind].hits == "replica":
            where = self._chance.choice(self._partitions)
            return [{"at": f"{at}ms", "do": kind, "target": target, "partition": where}]
        return [{"do": kind, "target": target, **window}]

    def _last_standing(self, at: int) -> list[dict[str, object]]:
        """One broker after the other is paused for longer than its session lasts."""
        begin = min(at, 6_000)
        order = self._chance.sample(self._names, len(self._names))
        return [
            {
                "do": "pause",
                "target": name,
                "at": f"{begin + 500 * number}ms",
                "for": f"{self._chance.randint(5_000, 7_000)}ms",
            }
            for number, name in enumerate(order)
        ]

    def _cut_off_leader(self, at: int) -> dict[str, object]:
        """A leader that clients still reach loses all servers but itself."""
        leader = self._chance.choice(self._names)
        others = [name for name in (*self._names, *self._controllers) if name != leader]
        lasts = {"at": f"{min(at, 10_000)}ms", "for": "5s"}
        return {"do": "partition", "between": leader, "and": others, **lasts}


def _meaning(fault: dict[str, object]) -> tuple[str, ...]:
    return tuple(str(fault.get(key)) for key in ("do", "target", "between", "from"))
