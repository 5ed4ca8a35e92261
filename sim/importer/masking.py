"""Keeps secrets of a cluster's files out of scenarios, listings and messages.

A value is shown only if its name is one of Kafka's settings, the name is not that of a secret, and
the value has none in it; of anything else the name alone is shown, and that only if it has the form
of a setting's name.
"""

import re
from typing import Final

HIDDEN: Final = "(hidden)"
"""Text in place of a hidden value; Kafka's tools print ``null`` or ``[hidden]``."""

LONG: Final = 200
"""Longer values are cut."""

_WORDS: Final = (
    *("password", "passwd", "passphrase", "jaas", "secret", "credential", "token"),
    *("apikey", "licence", "license", "userinfo"),
)
_PART: Final = re.compile(r"[._\-]+")
_NAME: Final = re.compile(r"[a-z][a-z0-9]*([._-][A-Za-z0-9]+){1,24}")
_ADDRESS: Final = re.compile(r"(//)[^/?#\s,]*@")
_QUERY: Final = re.compile(r"(://[^\s?,]*\?)\S+")
_SECRET_VALUE: Final = re.compile(
    r"loginmodule|-----begin|(password|passwd|passphrase|secret|token|credential)\w*['\"]?\s*[=:]",
    re.IGNORECASE,
)


def is_secret(name: str) -> bool:
    """True if a setting of that name may hold a secret: by a word in it, or ``key`` as a part.

    Public halves and paths that are named alike (``ssl.keystore.certificate.chain`` is not,
    ``key.serializer`` is) count as secret too: hiding them costs nothing.
    """
    lower = name.lower()
    return any(word in lower for word in _WORDS) or any(
        part in {"key", "keys"} for part in _PART.split(lower)
    )


def shown(name: str, value: str) -> str:
    """A setting's value for people, on one line, without what is secret in it."""
    if is_secret(name) or _SECRET_VALUE.search(value) is not None:
        return HIDDEN
    masked = _ADDRESS.sub(rf"\1{HIDDEN}@", value)
    masked = " ".join(_QUERY.sub(rf"\1{HIDDEN}", masked).split())
    return masked if len(masked) <= LONG else f"{masked[:LONG]}..."


def is_setting_name(text: str) -> bool:
    """True if a text is formed as settings' names are; lines of a key or a password are not."""
    return len(text) <= LONG and _NAME.fullmatch(text) is not None
