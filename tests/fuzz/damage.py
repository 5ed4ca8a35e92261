"""Files of a run as a broken disk or a half copy leaves them: a seeded mutator."""

import json
from collections.abc import Callable
from random import Random
from typing import Any

VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 2**31, 2**63, 10**30, 1.5, float("nan"), "", "x", "-1", "\ud800",
    "\x1b[31m", [], {}, [[]], [None], {"a": 1}, [{"a": []}],
)  # fmt: skip
"""What stands in place of a value in JSON."""

NESTED = 20_000
"""Brackets in a text that no parser may follow to its end."""


def damaged(content: bytes, number: int) -> tuple[str, bytes]:
    """The mutant of that number: what was done to the content, and the new content."""
    chance = Random(number)
    ways = (*_BYTES, *(_JSON if content[:1] == b"{" else ())) or _BYTES
    way = ways[number % len(ways)]
    return way.__name__.strip("_"), way(content, chance)


def _truncated(content: bytes, chance: Random) -> bytes:
    return content[: chance.randrange(max(len(content), 1))]


def _empty(_content: bytes, _chance: Random) -> bytes:
    return b""


def _flipped(content: bytes, chance: Random) -> bytes:
    found = bytearray(content)
    for _ in range(chance.choice((1, 1, 3, 40))):
        if found:
            found[chance.randrange(len(found))] ^= 1 << chance.randrange(8)
    return bytes(found)


def _zeroed(content: bytes, chance: Random) -> bytes:
    start = chance.randrange(len(content) + 1)
    return content[:start] + bytes(min(4096, len(content) - start)) + content[start + 4096 :]


def _noise(content: bytes, chance: Random) -> bytes:
    return chance.randbytes(chance.choice((1, 12, 61, 200, len(content) % 5000)))


def _appended(content: bytes, chance: Random) -> bytes:
    return content + chance.choice((content[:200], chance.randbytes(70), b"\n]", b"\0" * 99))


def _recoded(content: bytes, chance: Random) -> bytes:
    text = content.decode("latin-1") + "\u00e9"
    return text.encode(chance.choice(("utf-16", "utf-32", "cp037", "latin-1")))


def _nested(_content: bytes, chance: Random) -> bytes:
    return chance.choice((b"[", b'{"a":', b'{"examples":{"lost_acked":[')) * NESTED


def _other_type(_content: bytes, chance: Random) -> bytes:
    return json.dumps(chance.choice(VALUES)).encode()


def _edited(content: bytes, chance: Random) -> bytes:
    """One value of the tree is another one, or is not there."""
    data = json.loads(content)
    for _ in range(chance.choice((1, 1, 2))):
        places = list(_places(data))
        if not places:
            break
        above, key = chance.choice(places)
        if chance.random() < 0.3:
            del above[key]
        else:
            above[key] = chance.choice(VALUES)
    return json.dumps(data).encode()


def _places(data: Any) -> Any:
    items = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in items:
        yield data, key
        if isinstance(value, dict | list):
            yield from _places(value)


_BYTES: tuple[Callable[[bytes, Random], bytes], ...] = (
    _truncated, _flipped, _empty, _flipped, _zeroed, _noise, _appended, _recoded,
)  # fmt: skip
_JSON: tuple[Callable[[bytes, Random], bytes], ...] = (
    _edited, _nested, _edited, _other_type, _edited, _edited,
)  # fmt: skip
