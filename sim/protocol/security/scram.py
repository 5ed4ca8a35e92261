"""SCRAM's arithmetic: salted passwords, proofs and signatures.

A salt follows from the user and the mechanism, where Kafka draws it; everything else is computed as
both ends compute it.

Source: RFC 5802; ``ScramFormatter``, ``ScramCredential``; KIP-84.
"""

import hashlib
import hmac
from base64 import b64decode, b64encode
from dataclasses import dataclass
from functools import lru_cache

from sim.protocol.security.config import SCRAM

ITERATIONS = 4_096
"""``ScramMechanism.minIterations``, with which ``kafka-configs`` makes credentials."""


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """A server's knowledge of a password."""

    salt: bytes
    stored_key: bytes
    server_key: bytes


@lru_cache(maxsize=256)
def salted_password(mechanism: str, password: str, salt: bytes) -> bytes:
    """``Hi(password, salt, i)``: the slow part, for a client on each of its connections."""
    return hashlib.pbkdf2_hmac(SCRAM[mechanism], password.encode(), salt, ITERATIONS)


def credential(mechanism: str, user: str, password: str) -> ScramCredential:
    """The credential that ``kafka-configs --alter --add-config`` keeps."""
    salt = hashlib.sha256(f"{mechanism}/{user}".encode()).digest()[:20]
    salted = salted_password(mechanism, password, salt)
    client_key = sign(mechanism, salted, b"Client Key")
    server_key = sign(mechanism, salted, b"Server Key")
    return ScramCredential(salt, hashed(mechanism, client_key), server_key)


def sign(mechanism: str, key: bytes, text: bytes) -> bytes:
    """HMAC of the mechanism."""
    return hmac.new(key, text, SCRAM[mechanism]).digest()


def hashed(mechanism: str, text: bytes) -> bytes:
    """Hash of the mechanism."""
    return hashlib.new(SCRAM[mechanism], text).digest()


def xor(left: bytes, right: bytes) -> bytes:
    """Bytes of two equally long texts, exclusive or."""
    return bytes(one ^ other for one, other in zip(left, right, strict=True))


def attributes(message: bytes) -> dict[str, str]:
    """Attributes of a SCRAM message, as in ``r=nonce,s=salt,i=4096``."""
    pairs = (each.partition("=") for each in message.decode().split(","))
    return {name: value for name, _, value in pairs}


def to_text(value: bytes) -> str:
    """Base64 of a salt, a proof or a signature."""
    return b64encode(value).decode()


def from_text(value: str) -> bytes:
    """The reverse of :func:`to_text`."""
    return b64decode(value)


def escaped(user: str) -> str:
    """``saslname``: a user's name, in which commas and equals signs are escaped."""
    return user.replace("=", "=3D").replace(",", "=2C")


def unescaped(name: str) -> str:
    """The reverse of :func:`escaped`."""
    return name.replace("=2C", ",").replace("=3D", "=")
