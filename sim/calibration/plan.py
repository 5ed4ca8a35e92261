"""The fixed plan of a calibration: small loads, one after the other, and a leader that moves.

One scenario has all of them, so that a real cluster boots once. Each load has a topic of its own
and a window of its own in every round; rounds lie apart, so that a busy second of the machine is in
one of them. The same load alone is what the simulator runs while parameters are fitted.

Some loads are fitted, the others are held back: nothing is fitted to them, and what the fitted
simulator says of them is the error that the preset has.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from sim.faults.process import ControlledShutdown
from sim.units import MS, SECOND, Micros

Plain: TypeAlias = dict[str, Any]
"""Part of a scenario, as a file has it."""

Role: TypeAlias = Literal["fitted", "held back"]
What: TypeAlias = Literal["produce", "end_to_end", "leader_move"]

SKIP_US: Final[Micros] = 500 * MS
"""Of each window: its connections are new, and a JVM meets the load for the first time."""

WARM_UP_S: Final = 8
"""Before the first window: the servers' code is compiled while it runs."""

MOVE_S: Final = 6
_MOVE_SIMULATED_S: Final = 3
SHUTDOWN_S: Final = 1
"""From the beginning of the last window to the order that its leader gets to shut down."""

JOINED_S: Final = 6
"""After so long a group's first rebalance has ended: its coordinator waits 3 s for members."""

REQUESTS_MIN: Final = 60
REQUESTS: Final = 600
"""Of a simulated load after its first half second: more of them move no percentile by much."""

ROUNDS: Final = 2
SECONDS_MIN: Final = 2
SECONDS_MAX: Final = 30
SECONDS: Final = 4

BROKERS: Final = 3
_WARM_UP: Final = "warm-up"
_SEPARATOR: Final = "-round-"


@dataclass(frozen=True, slots=True)
class Load:
    """One load of the plan."""

    name: str
    role: Role
    why: str
    """Subject that it isolates, or checks."""
    rate: int
    """Records a second."""
    size: str
    acks: Literal["1", "all"] = "1"
    what: What = "produce"
    linger_ms: int = 0
    topic: Mapping[str, Any] = field(default_factory=dict)
    """Settings of its topic."""
    needs_own_cluster: bool = False
    """True if a cluster that is only measured from outside cannot have it."""

    @property
    def reads(self) -> bool:
        """True if a consumer reads its topic."""
        return self.what == "end_to_end"


LOADS: Final[tuple[Load, ...]] = (
    Load("single", "fitted", "one small request at a time: delay to a client", 60, "100B"),
    Load("busy", "fitted", "requests that queue: time of a request handler", 500, "100B"),
    Load("replicated", "fitted", "acks=all: delay between brokers", 60, "100B", "all"),
    Load("large", "fitted", "large records: time of a byte", 12, "200kB"),
    Load(
        "flushed",
        "fitted",
        "an fsync for each batch: the disk",
        60,
        "100B",
        topic={"flush.messages": 1},
        needs_own_cluster=True,
    ),
    Load("brisk", "held back", "a rate between single and busy", 200, "200B"),
    Load("batched", "held back", "acks=all in batches", 1_000, "100B", "all", linger_ms=20),
    Load("medium", "held back", "acks=all, records between small and large", 30, "20kB", "all"),
    Load(
        "read",
        "held back",
        "from a producer to a consumer",
        60,
        "100B",
        "all",
        "end_to_end",
        needs_own_cluster=True,
    ),
)  # fmt: skip
"""Loads that have a window in each round, in their order."""

MOVE: Final = Load(
    "moved",
    "fitted",
    "from the controller's record of a new leader to its first acknowledgement: metadata",
    400,
    "100B",
    what="leader_move",
    needs_own_cluster=True,
)
"""The last window: the leader of its partitions is shut down in good order."""

MOVE_PARTITIONS: Final = 4


def loads(*, outside: bool = False) -> tuple[Load, ...]:
    """Loads of a plan, the last window included.

    Args:
        outside: True for a cluster in which nothing but records of one topic may be changed.
    """
    return tuple(load for load in (*LOADS, MOVE) if not (outside and load.needs_own_cluster))


def by_name(name: str) -> Load | None:
    """The load of a producer of a plan; ``None`` for the warm-up, and for what no plan has."""
    found = name.partition(_SEPARATOR)[0]
    return next((load for load in loads() if load.name == found), None)


def round_of(name: str) -> int:
    """Round of a producer of a plan, from 1."""
    return int(name.partition(_SEPARATOR)[2])


@dataclass(frozen=True, slots=True)
class Shape:
    """A cluster as it is known from outside; the plan's own one if not given."""

    brokers: int = BROKERS
    kafka: str = "4.3"
    topic: str = ""
    """The one topic of all loads; empty: each has its own."""
    partitions: int = 1
    replicas: int = BROKERS

    @property
    def is_outside(self) -> bool:
        """True if only one topic may be used."""
        return bool(self.topic)


def whole(shape: Shape, seconds: int, rounds: int = ROUNDS) -> Plain:
    """The scenario of the whole plan.

    Args:
        shape: Of the cluster.
        seconds: Length of a window.
        rounds: Windows of each load.
    """
    chosen = [load for load in LOADS if not (shape.is_outside and load.needs_own_cluster)]
    start = WARM_UP_S * SECOND
    first = chosen[0]
    producers = [_producer(first, shape, _WARM_UP, 0, start) | {"rate": "100/s"}]
    for number in range(1, rounds + 1):
        for load in chosen:
            end = start + seconds * SECOND
            producers.append(_producer(load, shape, f"{load.name}{_SEPARATOR}{number}", start, end))
            start = end
    used = list(chosen)
    faults: list[Plain] = []
    if not shape.is_outside:
        end = start + MOVE_S * SECOND
        producers.append(_producer(MOVE, shape, f"{MOVE.name}{_SEPARATOR}1", start, end))
        faults.append(_shutdown(start))
        used.append(MOVE)
        start = end
    end = start + SECOND
    return _scenario(shape, used, producers, faults, end)


def alone(load: Load, shape: Shape, seconds: int, figures: Mapping[str, Any]) -> Plain:
    """The scenario of one load, as the simulator runs it for a fit.

    Args:
        load: The load.
        shape: Of the cluster.
        seconds: Length of its window.
        figures: Parts of ``cluster`` that the parameters set.
    """
    start = JOINED_S * SECOND if load.reads else SECOND
    lasts = (_MOVE_SIMULATED_S if load.what == "leader_move" else seconds) * SECOND
    if not load.linger_ms and load.what == "produce":
        least, most = (SKIP_US + n * SECOND // load.rate for n in (REQUESTS_MIN, REQUESTS))
        lasts = max(min(lasts, most), least)
    end = start + lasts
    producers = [_producer(load, shape, f"{load.name}{_SEPARATOR}1", start, end)]
    faults = [_shutdown(start)] if load.what == "leader_move" else []
    scenario = _scenario(shape, [load], producers, faults, end + SECOND)
    scenario["cluster"] |= figures
    return scenario


def _scenario(
    shape: Shape,
    used: Sequence[Load],
    producers: list[Plain],
    faults: list[Plain],
    end: Micros,
) -> Plain:
    replicas = "\n".join(_lines(used))
    found: Plain = {
        "claim": f"The plan of logquake calibrate: {len(used)} loads.\n{replicas}",
        "cluster": {
            "kafka": shape.kafka,
            "brokers": shape.brokers,
            "controllers": 1,
        },
        "topics": _topics(shape, used),
        "producers": producers,
        "run": {"for": _text(end), "then": "stop", "seed": 1},
    }
    read = [_topic_of(load, shape) for load in used if load.reads]
    if read:
        found["consumers"] = [{"group": "calibrate", "topics": read}]
    if faults:
        found["faults"] = faults
    return found


def _lines(used: Sequence[Load]) -> Iterator[str]:
    for load in used:
        yield f"{load.name} ({load.role}): {load.why}"


def _topics(shape: Shape, used: Sequence[Load]) -> Plain:
    if shape.is_outside:
        return {shape.topic: {"partitions": shape.partitions, "replication.factor": shape.replicas}}
    found: Plain = {}
    for load in used:
        topic: Plain = {"partitions": 1, "replication.factor": shape.replicas}
        if load.topic:
            topic["config"] = dict(load.topic)
        if load.what == "leader_move":
            first, *others = [f"broker-{node}" for node in range(1, shape.brokers + 1)]
            placed = [[first, *others], [first, *reversed(others)]]
            topic |= {"partitions": MOVE_PARTITIONS}
            topic |= {"replicas": placed * (MOVE_PARTITIONS // 2)}
        found[_topic_of(load, shape)] = topic
    return found


def _topic_of(load: Load, shape: Shape) -> str:
    return shape.topic or f"calibrate-{load.name}"


def _producer(load: Load, shape: Shape, name: str, start: Micros, end: Micros) -> Plain:
    config: Plain = {"acks": load.acks, "linger.ms": load.linger_ms}
    keys: Plain = {}
    if load.what == "leader_move":
        # So that the client's own waits are short beside what is measured, and so are a
        # partition's waits for a record.
        config |= {"retry.backoff.ms": 20, "retry.backoff.max.ms": 20}
        keys = {"keys": "uniform", "key.count": 100}
    return {
        "name": name,
        "topic": _topic_of(load, shape),
        "rate": f"{load.rate}/s",
        "record.size": load.size,
        "start": _text(start),
        "stop": _text(end),
        "config": config,
        **keys,
    }


def _shutdown(start: Micros) -> Plain:
    at = start + SHUTDOWN_S * SECOND
    return {"at": _text(at), "do": ControlledShutdown.kind, "target": "broker-1"}


def _text(instant: Micros) -> str:
    return f"{instant}us"
