"""Costs of TLS on a connection: the handshake, work for each byte at both ends, larger messages.

Source: RFC 8446 (one round trip more than TCP; records of 16 KiB with 5 bytes of header, 16 of tag
and 1 of content type); 1 ns a byte is a modelling default for AES-GCM with a copy on one core.
"""

from dataclasses import dataclass

from sim.units import KIB, MS, NEVER, SECOND, Bytes, Micros

RECORD: Bytes = 16 * KIB
"""Largest plaintext of one TLS record."""

RECORD_OVERHEAD: Bytes = 22
"""Bytes that a record adds."""


@dataclass(frozen=True, slots=True)
class TlsSpec:
    """Speed of one core, in bytes per second each way, and the server's part of a handshake."""

    bytes_per_s: int = 1_000_000_000
    handshake_us: Micros = 1 * MS

    def crypt_us(self, size: Bytes) -> Micros:
        """Time to encrypt or decrypt so many bytes, rounded up."""
        return -(-size * SECOND // self.bytes_per_s)


@dataclass(slots=True)
class Validity:
    """Ends of the certificates with which a connection was made; NEVER: they have none."""

    client_us: Micros = NEVER
    server_us: Micros = NEVER


def sealed(size: Bytes) -> Bytes:
    """Bytes on the wire for so many bytes of a message."""
    return size + -(-size // RECORD) * RECORD_OVERHEAD
