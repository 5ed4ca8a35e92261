"""Iteration order of Java's hash tables.

Kafka's server-side assignors iterate over ``HashMap`` and ``HashSet``, so assignments follow from
hash codes. Simplified: a table begins with 16 buckets and doubles above three quarters full, and
keys of one bucket stay in the order of insertion (``computeIfAbsent`` puts a key first, and from
eight on Java makes the bucket a tree).

Source: ``java.util.HashMap``, ``String.hashCode``, ``org.apache.kafka.common.Uuid.hashCode``.
"""

from base64 import urlsafe_b64decode
from collections.abc import Callable, Iterable
from typing import TypeVar

from sim.protocol.java.hash import java_string_hash

_Key = TypeVar("_Key")

_LEAST_BUCKETS = 16
_WORD = 0xFFFF_FFFF


def hash_order(keys: Iterable[_Key], hash_code: Callable[[_Key], int]) -> list[_Key]:
    """Keys in a table's iteration order, given in the order of insertion.

    Args:
        keys: Each once.
        hash_code: Java's, of any sign.
    """
    put = list(keys)
    buckets = _LEAST_BUCKETS
    while len(put) * 4 > buckets * 3:
        buckets *= 2

    def bucket(key: _Key) -> int:
        code = hash_code(key) & _WORD
        return (code ^ code >> 16) & (buckets - 1)

    return sorted(put, key=bucket)


def string_order(keys: Iterable[str]) -> list[str]:
    """As :func:`hash_order`, of strings."""
    return hash_order(keys, java_string_hash)


def uuid_words(text: str) -> tuple[int, int]:
    """The two signed halves of a Uuid, the high one first; they order Uuids as Kafka does.

    Args:
        text: 22 characters, as Kafka prints it.
    """
    data = urlsafe_b64decode(text + "==")
    return int.from_bytes(data[:8], "big", signed=True), int.from_bytes(
        data[8:], "big", signed=True
    )


def uuid_hash(text: str) -> int:
    """``Uuid.hashCode``, of its printed form."""
    high, low = uuid_words(text)
    both = (high ^ low) & 0xFFFF_FFFF_FFFF_FFFF
    return both >> 32 ^ both & _WORD
