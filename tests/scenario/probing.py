"""Probing scenarios in which a setting is moved from its default, and all that was built of it."""

import enum
import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType

import yaml

from sim.errors import ScenarioError
from sim.kernel import Kernel
from sim.protocol.metadata.server_configs import ServerFile
from sim.rng import Streams
from sim.scenario.loader import load_text
from sim.scenario.run.directory import RunDirectory
from sim.scenario.run.runner import Work
from sim.scenario.scenario import Scenario
from sim.scenario.settings.resolved import Config
from sim.scenario.settings.types import INT_MAX, Setting
from sim.trace.writer import Trace

ROOT = Path(__file__).parents[2]

_CLIENTS = {"producers": [{"name": "p", "topic": "t", "rate": "10/s"}],
            "consumers": [{"name": "c", "group": "g", "topics": ["t"]}]}  # fmt: skip
_TOPICS = {"t": {"partitions": 1, "replication.factor": 3}}
_END = {"run": {"for": "2s"}, "claim": "A probe."}
_STORE = {"object-store": {}, "config": {"remote.log.storage.system.enable": True}}


def _plain(version: str, **cluster: object) -> dict[str, object]:
    return {"cluster": {"kafka": version, **cluster}, "topics": _TOPICS, **_CLIENTS, **_END}


def _shipped(name: str) -> dict[str, object]:
    return dict(yaml.safe_load((ROOT / "scenarios" / f"{name}.yaml").read_text()))


def probes() -> dict[str, dict[str, object]]:
    """Scenarios by name, in each of which other settings are at work."""
    plain = _plain("4.3")
    new = {"group.protocol": "consumer"}
    more = [{"name": "p", "topic": "t", "rate": "10/s", "config": {"transactional.id": "x"},
             "transaction": {"records": 5}}]  # fmt: skip
    return {
        "plain": plain,
        "transactions": {**plain, "producers": more},
        "consumer protocol": {
            **plain, "consumers": [{"name": "c", "group": "g", "topics": ["t"], "config": new}],
        },
        "processors": {**plain, "topics": {**_TOPICS, "o": _TOPICS["t"]}, "processors": [
            {"name": "copy", "topics": ["t"], "output": "o", "record.size": "100B"},
        ]},
        "settings of a consumer group": {
            **plain, "consumers": [{"name": "c", "group": "g", "topics": ["t"], "config": new}],
            "groups": {"g": {}},
        },
        "settings of a share group": _shipped("share-group-renewals"),
        "share": _shipped("share-group"),
        "tiered": {**plain, "cluster": {"kafka": "4.3", **_STORE}, "topics": {
            "t": {**_TOPICS["t"], "config": {"remote.storage.enable": True}},
        }},
        "racks": {**plain, "cluster": {"kafka": "4.3", "racks": {"a": 2, "b": 1}}},
        "share by default": {**plain, "consumers": [
            {"name": "c", "group": "g", "topics": ["t"], "group.type": "share"},
        ]},
        "connector": {**plain, "connectors": [
            {"name": "s", "kind": "source", "topics": ["t"], "rate": "10/s"},
        ]},
        "other cluster": {**plain, "clusters": {
            "dr": {"cluster": {"kafka": "4.3"}, "distance": {"p50": "40ms", "p99": "45ms"}},
        }, "mirrors": [{"name": "m", "topic": "t", "to": "dr"}]},
        "acls": {**plain, "cluster": {"kafka": "4.3", "principal": "User:kafka", "config": {
            "authorizer.class.name": "StandardAuthorizer", "super.users": "User:kafka",
        }}},
        "tokens": _shipped("token-not-renewed"),
        "quotas": {**plain, "quotas": [{"client.id": "p", "producer_byte_rate": 1000000}]},
        "connect": _shipped("connect-exactly-once"),
        "mirror": _shipped("region-loss-mirror"),
        "raft": _shipped("raft-leader-crash"),
        "zookeeper": _plain("3.9", zookeeper={"servers": 3}),
        "directories": _plain("4.3", disk={"directories": 2}),
        "unclean recovery": {**plain, "behaviours": {"recovery.unclean": "longest_log"}},
        "3.9": _plain("3.9"),
    }  # fmt: skip


_PLACES = {
    "broker": ("cluster",), "topic": ("topics",), "producer": ("producers",),
    "consumer": ("consumers",), "streams": ("processors",), "mirror": ("mirrors",),
    "connect": ("connectors",), "group": ("groups",),
}  # fmt: skip


def moved(probe: Mapping[str, object], scope: str, name: str, value: object) -> dict[str, object]:
    """The probe with a setting of the first of its scope."""
    copy = yaml.safe_load(yaml.safe_dump(dict(probe)))
    [key] = _PLACES[scope]
    owner = copy[key]
    if isinstance(owner, list):
        owner = owner[0]
    elif scope in {"topic", "group"}:
        owner = next(iter(owner.values()))
    config = owner.setdefault("config", {})
    config |= BESIDE.get(name, {})
    config.pop(name, None)
    if value is not None:
        config[name] = value
    return copy


BESIDE: Mapping[str, Mapping[str, object]] = {
    "compression.gzip.level": {"compression.type": "gzip"},
    "compression.lz4.level": {"compression.type": "lz4"},
    "compression.zstd.level": {"compression.type": "zstd"},
    "replication.factor": {"replication.factor": 2},
    "exactly.once.support": {"exactly.once.source.support": "enabled"},
    "transaction.boundary.interval.ms": {
        "exactly.once.source.support": "enabled", "transaction.boundary": "interval",
    },
}  # fmt: skip
"""What a setting needs beside it to mean anything."""


_WORDS = {
    "authorizer.class.name": ("StandardAuthorizer",),
    "client.rack": ("a", "b"),
    "delegation.token.secret.key": ("one", "another"),
    "follower.replication.throttled.replicas": ("*", "0:1"),
    "leader.replication.throttled.replicas": ("*", "0:1"),
    "max.connections.per.ip.overrides": ("broker-1:5",),
    "partitioner.class": ("RoundRobinPartitioner",),
    "super.users": ("User:kafka", "User:kafka;User:ann"),
}
"""Words that settings without choices may have."""


def values_of(setting: Setting) -> Iterator[object]:
    """Legal values that are not the default, nearest first."""
    default = setting.default
    if setting.type == "boolean":
        yield not default
        return
    if setting.type in {"string", "list"}:
        yield from (word for word in setting.choices if word != default)
        yield from _WORDS.get(setting.name, ("*", "probe"))
        return
    number = default if isinstance(default, int | float) else 1_000
    high = INT_MAX if setting.high is None else setting.high
    low = 0 if setting.low is None else setting.low
    step = 0.1 if setting.type == "double" else 1
    for value in (
        number + step, number - step, number * 2, number // 2, 10, 1_000, 60_000, 1 << 20, 1 << 30,
        low, low + 1, high,
    ):  # fmt: skip
        if value != default and low <= value <= high:
            yield round(value, 3) if setting.type == "double" else int(value)


def refusal(probe: Mapping[str, object]) -> str:
    """Why a probe is refused; empty if it is taken."""
    try:
        load_text(yaml.safe_dump(dict(probe)), "probe")
    except ScenarioError as error:
        return str(error)
    return ""


def built(probe: Mapping[str, object]) -> tuple[object, ...] | None:
    """All that is in the processes of a probe, in order; ``None`` if it is refused."""
    return _built(yaml.safe_dump(dict(probe)))


@lru_cache(maxsize=64)
def _built(text: str) -> tuple[object, ...] | None:
    try:
        scenario = load_text(text, "probe")
    except ScenarioError:
        return None
    with TemporaryDirectory() as directory:
        run = RunDirectory(Path(directory) / "run", force=False)
        try:
            work = Work(scenario, 1, run, "facts", keeps=False)
            parts = (work, *work._others)
            return tuple(
                each
                for part in parts
                for owner in (
                    part.cluster.processes, part.admin, part.producers, part.consumers,
                    part.processors, part.connectors, part.regions,
                )
                for each in _leaves(owner, directory)
            )  # fmt: skip
        finally:
            run.release()


forget = _built.cache_clear
"""Lets what was built be built again, after a change of the code."""

_SKIPPED = (Scenario, Config, Kernel, Trace, Streams, Work, ServerFile, Path, ModuleType, type)
"""What was read from the scenario as it is, and what has nothing of it."""


def _leaves(root: object, directory: str) -> Iterator[object]:
    """Numbers, words and codes of an object and all that it has, in order; each object once."""
    seen: set[int] = set()
    kept: list[object] = []
    todo = [root]
    while todo:
        each = todo.pop()
        if each is None or isinstance(each, int | float | str | bytes | enum.Enum):
            yield each.replace(directory, "") if isinstance(each, str) else each
            continue
        if id(each) in seen or isinstance(each, _SKIPPED):
            continue
        seen.add(id(each))
        kept.append(each)
        if type(each).__module__.startswith(("sim.scenario.model", "sim.scenario.build.cluster")):
            continue
        todo += reversed(list(_parts_of(each)))


def _parts_of(each: object) -> Iterator[object]:
    if isinstance(each, Mapping):
        for key, value in each.items():
            yield key
            yield value
    elif isinstance(each, list | tuple | set | frozenset) or type(each).__name__ == "deque":
        yield from each
    elif isinstance(each, partial):
        yield from (each.func, each.args, each.keywords)
    elif isinstance(each, MethodType):
        yield from (each.__self__, each.__func__)
    elif isinstance(each, FunctionType):
        yield each.__qualname__
        yield from each.__closure__ or ()
        yield each.__defaults__
    elif isinstance(each, CellType):
        yield from [each.cell_contents] if _is_filled(each) else ()
    elif isinstance(each, BuiltinFunctionType):
        yield each.__qualname__
        yield each.__self__
    else:
        for name in _attributes(type(each)):
            yield getattr(each, name, None)
        yield from vars(each).values() if hasattr(each, "__dict__") else ()


def _is_filled(cell: CellType) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


@cache
def _attributes(kind: type) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for base in kind.__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name.startswith("__") and not name.endswith("__"):
                found[f"_{base.__name__.lstrip('_')}{name}"] = None
            elif not re.fullmatch(r"__(dict|weakref)__", name):
                found[name] = None
    return tuple(found)


def effect(scope: str, setting: Setting, names: Mapping[str, Mapping[str, object]]) -> str:
    """A probe, and a value with which other things are built; empty if there is none."""
    for name, probe in names.items():
        if _PLACES[scope][0] not in probe:
            continue
        usual: tuple[object, ...] | None = None
        for value in (None, *values_of(setting)):
            found = built(moved(probe, scope, setting.name, value))
            if usual is None:
                usual = found
            elif found is not None and found != usual:
                return f"{name}: {value}"
    return ""
