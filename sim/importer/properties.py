"""Java properties, as ``server.properties`` and clients' configurations are written.

Left out: unicode escapes, which no setting of Kafka needs.

Source: ``java.util.Properties.load``.
"""

import re
from typing import Final

_ESCAPE: Final = re.compile(r"\\(.)")
_NAMED: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def parse(text: str) -> dict[str, str]:
    """Keys and values; of a repeated key the last value counts, as in Java.

    A line ends with its line break unless an odd number of backslashes precedes it. A key ends
    at the first ``=``, ``:`` or blank that no backslash escapes.
    """
    found: dict[str, str] = {}
    for line in _logical_lines(text):
        key, value = _split(line)
        found[_plain(key)] = _plain(value)
    return found


def _logical_lines(text: str) -> list[str]:
    lines: list[str] = []
    continues = False
    for raw in text.splitlines():
        line = raw.lstrip(" \t\f")
        if not continues and (not line or line[0] in "#!"):
            continue
        if continues:
            lines[-1] += line
        else:
            lines.append(line)
        backslashes = len(line) - len(line.rstrip("\\"))
        continues = backslashes % 2 == 1
        if continues:
            lines[-1] = lines[-1][:-1]
    return lines


def _split(line: str) -> tuple[str, str]:
    at = 0
    while at < len(line) and line[at] not in "=: \t\f":
        at += 2 if line[at] == "\\" else 1
    key, rest = line[:at], line[at:].lstrip(" \t\f")
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(" \t\f")
    return key, rest


def _plain(text: str) -> str:
    return _ESCAPE.sub(lambda match: _NAMED.get(match[1], match[1]), text).strip()
