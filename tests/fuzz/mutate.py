"""Scenario files as nobody meant them: a seeded mutator, by structure and by bytes.

A mutant is made from a shipped file and a number alone, so that whatever it finds can be made
again. Structural mutations keep the file YAML and change keys, values and shape; textual ones
change characters, bytes and the way YAML is written.
"""

import copy
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import yaml

from sim.faults.registry import KINDS as FAULTS

NUMBERS = (
    0, -1, 1, 2, 3, 7, 255, 65_536, 2**31 - 1, 2**31, 2**63 - 1, 2**63, 10**18, 10**39, 10**60,
    0.0, -0.0, 0.5, 1.5, 1e308, float("inf"), float("-inf"), float("nan"),
)  # fmt: skip
DURATIONS = (
    "0s", "0us", "1us", "3us", "1ms", "20ms", "1s", "2s", "5s", "59s", "1min", "1h", "10y",
    "366d", "10d", "99999999999999999999d", "-1s", "-0s", "1.5s", "0.0000001s", "1e9s", " 5s ",
    "5 s", "5s..2s", "1s..3s", "1s..", "..1s", "5S", "5\xb5s", "\uff15s", "\u0665s", "5\u200bs",
    "infs", "nans", "s", "5",
)  # fmt: skip
SIZES = (
    "0B", "1B", "24B", "100B", "1KiB", "1kB", "1MB", "2GB", "999TB", "99999999999999999TiB",
    "-1B", "1.5B", "0.5KiB", "1 GiB", "1GB/s", "10Gbit/s", "0bit/s", "1bit/s", "0/s", "1/s",
    "1/h", "100/s", "999999/s", "99999999999999/s", "1/d", "100%", "0%", "101%", "0.00001%",
    "-5%",
)  # fmt: skip
TARGETS = (
    "broker-1", "broker-0", "broker-99", "broker--1", "controller-1", "controller leader",
    "random broker", "random rack", "each broker", "each rack", "all brokers",
    "leader of orders-0", "follower of orders-0", "leader of orders-999999", "leader of",
    "leader of orders", "rack a", "rack", "group coordinator of billing",
    "transaction coordinator of shop", "zookeeper leader", "admin", "orders", "orders-0",
)  # fmt: skip
WORDS = (
    *TARGETS,
    "", " ", "none", "all", "null", "~", "true", "false", "yes", "on", "off", "12:30",
    "2001-12-14", "2001-12-14t21:59:43.10-05:00", "0x1F", "0o17", "1_000", ".inf", "-.INF",
    ".nan", "=", "<<", "*", "&", "../../etc/passwd", "/tmp/elsewhere", "..", ".", "a/b", "a\\b",
    "con", "x" * 300, "x" * 5_000, "\u0430cks", "\u043erders", "orders\u200b", "\u202eorders",
    "cafe\u0301", "\U0001f4a9", "{{7*7}}", "%s%n", "${HOME}", "$(id)", "{found}", "at least 1",
    "> 0", "< 5s", "0..10", "10..0", "1..", "at most", "\x00", "\x1b[31m", "a\nb", "\t",
    "__consumer_offsets", "kip320", "elr", "isr", "4.1", "0.10", "9.9", "static", "dynamic",
    "raft",
)  # fmt: skip
KEYS = (
    *[
        "claim",
        "cluster",
        "topics",
        "producers",
        "consumers",
        "faults",
        "run",
        "expect",
        "behaviours",
        "quotas",
        "processors",
        "clusters",
        "mirrors",
        "config",
        "acks",
        "linger.ms",
        "min.insync.replicas",
        "partitions",
        "replication.factor",
        "replicas",
        "brokers",
        "racks",
        "controllers",
        "combined",
        "zookeeper",
        "quorum",
        "replication",
        "network",
        "disk",
        "cpu",
        "at",
        "do",
        "for",
        "every",
        "times",
        "mtbf",
        "mttr",
        "target",
        "between",
        "and",
        "one-way",
        "by",
        "to",
        "from",
        "message",
        "count",
        "factor",
        "ratio",
        "of",
        "name",
        "topic",
        "group",
        "rate",
        "record.size",
        "record.headers",
        "keys",
        "key.count",
        "key.skew",
        "arrivals",
        "burst",
        "transaction",
        "tombstones",
        "start",
        "stop",
        "rack",
        "seed",
        "then",
        "drain.timeout",
        "lost_acked",
        "produce.p99",
        "divergence",
        "num.io.threads",
        "num.network.threads",
        "offsets.topic.num.partitions",
        "max.request.size",
        "batch.size",
        "buffer.memory",
        "segment.bytes",
        "broker.heartbeat.interval.ms",
        "dirty.writeback",
        "capacity",
        "directories",
        "kafka",
        "Cluster",
        "__class__",
        "<<",
    ],
    "\u0441luster",
    "cluster ",
)
KINDS = (*FAULTS, "nothing")


def mutant(sources: Sequence[str], number: int) -> tuple[int, bytes]:
    """The mutant of that number: of which source it is made, and a file's content."""
    chance = Random(number)
    source = chance.randrange(len(sources))
    text = sources[source]
    way = chance.choices((_structural, _textual, _binary, _hostile), weights=(70, 15, 8, 7))[0]
    return source, way(text, chance)


def _structural(text: str, chance: Random) -> bytes:
    """A few changes of the data, written as YAML again."""
    data = yaml.safe_load(text)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        chance.choice(_CHANGES)(data, chance)
    return _written(data, chance)


def _written(data: object, chance: Random) -> bytes:
    told = yaml.safe_dump(
        data, sort_keys=False, allow_unicode=chance.random() < 0.5,
        default_flow_style=chance.choice((False, None, True)),
    )  # fmt: skip
    encoding = chance.choices(("utf-8", "utf-8-sig", "utf-16", "latin-1"), weights=(92, 3, 3, 2))[0]
    return told.encode(encoding, errors="replace")


def _places(data: Any, path: tuple = ()) -> list[tuple]:
    found = [path] if path else []
    items = (
        data.items()
        if isinstance(data, dict)
        else enumerate(data)
        if isinstance(data, list)
        else ()
    )
    for key, value in items:
        found += _places(value, (*path, key))
    return found


def _parent(data: Any, path: tuple) -> Any:
    for key in path[:-1]:
        data = data[key]
    return data


def _value(chance: Random) -> Any:
    kind = chance.randrange(9)
    if kind < 2:
        return chance.choice(NUMBERS)
    if kind < 4:
        return chance.choice(DURATIONS)
    if kind == 4:
        return chance.choice(SIZES)
    if kind < 7:
        return chance.choice(WORDS)
    if kind == 7:
        return chance.choice((None, True, False, [], {}))
    return chance.choice(
        (
            [_value(chance)],
            {chance.choice(KEYS): _value(chance)},
            [[[]]],
            [1, "a", None],
            {"a": {"b": {}}},
        )
    )


def _replace(data: Any, chance: Random) -> None:
    path = chance.choice(_places(data) or [()])
    if path:
        _parent(data, path)[path[-1]] = _value(chance)


def _same_kind(data: Any, chance: Random) -> None:
    """A value near the old one: what most often stays a scenario."""
    path = chance.choice(_places(data) or [()])
    if not path:
        return
    above = _parent(data, path)
    old = above[path[-1]]
    if isinstance(old, bool):
        above[path[-1]] = not old
    elif isinstance(old, int):
        above[path[-1]] = chance.choice((0, 1, 2, 3, old + 1, old * 2, old * 10, old * 1_000, -old))
    elif isinstance(old, str) and old[:1].isdigit():
        near = f"{chance.randrange(99)}{old.lstrip('0123456789')}"
        above[path[-1]] = chance.choice((*DURATIONS[:14], *SIZES[:7], near))
    elif isinstance(old, str):
        above[path[-1]] = chance.choice((*TARGETS, *KINDS, old.upper(), old[:-1], old + "s"))


def _remove(data: Any, chance: Random) -> None:
    path = chance.choice(_places(data) or [()])
    if path:
        del _parent(data, path)[path[-1]]


def _rename(data: Any, chance: Random) -> None:
    paths = [path for path in _places(data) if isinstance(path[-1], str)]
    if paths:
        path = chance.choice(paths)
        above = _parent(data, path)
        old = path[-1]
        alike = old.replace("a", "\u0430")
        others = (chance.choice(KEYS), old.upper(), old + " ", old[:-1], old * 50, alike, 7, None)
        new = chance.choice(others)
        above[new] = above.pop(old)


def _add(data: Any, chance: Random) -> None:
    places = [data, *(_parent(data, (*path, None)) for path in _places(data))]
    homes = [place for place in places if isinstance(place, dict | list)]
    home = chance.choice(homes)
    if isinstance(home, dict):
        home[chance.choice(KEYS)] = _value(chance)
    else:
        home.insert(chance.randint(0, len(home)), _value(chance))


def _repeat(data: Any, chance: Random) -> None:
    paths = [path for path in _places(data) if isinstance(_parent(data, path), list)]
    if paths:
        path = chance.choice(paths)
        above = _parent(data, path)
        for _ in range(chance.choice((1, 2, 50))):
            above.append(copy.deepcopy(above[path[-1]]))


def _swap(data: Any, chance: Random) -> None:
    paths = _places(data)
    if len(paths) > 1:
        one, other = chance.sample(paths, 2)
        if one[: len(other)] == other or other[: len(one)] == one:
            return
        first, second = _parent(data, one), _parent(data, other)
        first[one[-1]], second[other[-1]] = second[other[-1]], first[one[-1]]


_FAULT_VALUES: dict[str, Sequence[Any]] = {
    "target": TARGETS,
    "between": TARGETS,
    "for": DURATIONS,
    "factor": (2, 9, 10**6),
    "by": DURATIONS,
    "ratio": (0.1, 0.99, 1),
    "to": ("1kB/s", "1bit/s", "broker-1"),
    "partition": ("orders-0", "orders-7"),
    "topic": ("orders", "bills"),
    "message": ("FetchResponse", "ProduceRequest", "Nothing"),
    "from": ("all brokers", "shop"),
    "every": ("1us", "1ms", "1s"),
    "times": (2, 10_000, 10**9),
    "mtbf": ("1us", "1s", "1000d"),
    "mttr": ("1us", "1s"),
    "count": (1, 9),
    "config": ({"segment.bytes": 2**20}, {"min.insync.replicas": 1}),
}


def _fault(data: Any, chance: Random) -> None:
    """A line of the calendar, most of them nearly right."""
    if not isinstance(data, dict):
        return
    at = chance.choice(("1s", "0s", "2s..3s", "5s"))
    line: dict[str, Any] = {"at": at, "do": chance.choice(KINDS)}
    for key in chance.sample(tuple(_FAULT_VALUES), chance.randint(1, 4)):
        line[key] = chance.choice(_FAULT_VALUES[key])
    faults = data.get("faults")
    data["faults"] = [*(faults if isinstance(faults, list) else []), line]


_CHANGES: tuple[Callable[[Any, Random], None], ...] = (
    _replace, _replace, _same_kind, _same_kind, _same_kind, _remove, _rename, _add, _add, _repeat,
    _swap, _fault,
)  # fmt: skip


_PIECES = (
    *"{}[]:,#&*!|>'\"%@`-?\\\t \n", "\x00", "\u2028", "\x85", "\ufeff", "\ud7ff", "<<: *a", "---\n",
    "...\n", "!!python/object:os.system ", "&a ", "*a ", "? ", "\\UFFFFFFFF", '"\\ud800"',
)  # fmt: skip


def _textual(text: str, chance: Random) -> bytes:
    """Characters and lines, without regard to what they mean."""
    for _ in range(chance.choice((1, 2, 5, 20))):
        lines = text.splitlines(keepends=True) or ["\n"]
        at = chance.randrange(len(text) + 1)
        way = chance.randrange(8)
        if way == 0:
            piece = chance.choice(_PIECES)
            text = text[:at] + piece + text[at:]
        elif way == 1:
            text = text[:at] + text[at + chance.randint(1, 40) :]
        elif way == 2:
            text = "".join([*lines, chance.choice(lines)])
        elif way == 3:
            chance.shuffle(lines)
            text = "".join(lines)
        elif way == 4:
            del lines[chance.randrange(len(lines))]
            text = "".join(lines)
        elif way == 5:
            where = chance.randrange(len(lines))
            lines[where] = chance.choice((" ", "  ", "\t", "- ", "\u00a0")) + lines[where]
            text = "".join(lines)
        elif way == 6:
            text = text[:at] + str(chance.choice(NUMBERS)) + text[at + chance.randint(0, 5) :]
        else:
            text = text[:at] + chance.choice(WORDS) + text[at:]
    return text.encode(errors="surrogatepass")


def _binary(text: str, chance: Random) -> bytes:
    """Bytes of any kind."""
    raw = bytearray(text.encode())
    for _ in range(chance.choice((1, 1, 3, 30))):
        at = chance.randrange(len(raw) + 1)
        way = chance.randrange(4)
        if way == 0 and at < len(raw):
            raw[at] ^= 1 << chance.randrange(8)
        elif way == 1:
            raw[at:at] = chance.randbytes(chance.randint(1, 8))
        elif way == 2:
            del raw[at : at + chance.randint(1, 100)]
        else:
            raw[at:at] = b"\x00" * chance.randint(1, 3)
    return bytes(raw[: chance.randint(0, len(raw))] if chance.random() < 0.1 else raw)


def _hostile(text: str, chance: Random) -> bytes:
    """What brings parsers down: each stands before, behind or in place of a scenario."""
    size = chance.choice((10, 60, 1_000, 30_000))
    pieces = (
        _bomb("[x, x]", "[*{0}, *{0}]", min(size, 300)),
        _bomb("{k: 1}", "{<<: [*{0}, *{0}]}", min(size, 300)),
        _bomb("{}", "{<<: [*{0}, *{0}]}", min(size, 300)),
        _bomb("x", "[*{0}]", min(size, 3_000)),
        "s: &s {<<: *s}\n",
        "s: &s {<<: [*s, *s], a: 1}\n",
        "s: &s [*s]\n",
        "? &s [*s]\n: 1\n",
        "[" * size,
        "{a: " * size,
        "- " * size + "x\n",
        "".join(f"k{n}: {n}\n" for n in range(size)),
        "k: 1\n" * size,
        "k" * size + ": 1\n",
        f"claim: {'x ' * size}\n",
        f"run: {{for: {'9' * size}s}}\n",
        f"run: {{for: '1 s{' ' * size}x'}}\n",
        f"expect: {{lost_acked: '{'9' * size}'}}\n",
        '"' + "\\x41" * size + '": 1\n',
        'claim: "' + "x\n" * size,
        'claim: "\\UFFFFFFFF"\n',
        'claim: "\\ud800"\n',
        f"%YAML 1.{'1' * size}\n---\n",
        "--- 1\n" * min(size, 1_000),
        "claim: !!python/object/apply:os.system ['touch tagged']\n",
        "#" + " x" * size + "\n",
        "",
        " \n" * size,
    )
    piece = chance.choice(pieces)
    told = chance.choice((piece, piece + text, text + "\n" + piece))
    return told.encode(errors="surrogatepass")


def _bomb(first: str, next_one: str, levels: int) -> str:
    """Each level holds the one before, by alias."""
    lines = [f"a0: &a0 {first}"]
    lines += [f"a{n}: &a{n} {next_one.replace('{0}', f'a{n - 1}')}" for n in range(1, levels)]
    return "\n".join(lines) + "\n"
