"""The hash of Kafka's partitioners.

Source: ``org.apache.kafka.common.utils.Utils.murmur2``.
"""

SEED = 0x9747B28C
MULTIPLIER = 0x5BD1E995
_MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """The 32-bit murmur2 hash that Kafka's clients agree on, as Java shows it (signed)."""
    length = len(data)
    state = (SEED ^ length) & _MASK
    whole = length & ~3
    for start in range(0, whole, 4):
        word = int.from_bytes(data[start : start + 4], "little") * MULTIPLIER & _MASK
        word = (word ^ word >> 24) * MULTIPLIER & _MASK
        state = (state * MULTIPLIER & _MASK) ^ word
    if length > whole:
        state ^= int.from_bytes(data[whole:], "little")
        state = state * MULTIPLIER & _MASK
    state = (state ^ state >> 13) * MULTIPLIER & _MASK
    state ^= state >> 15
    return state - (1 << 32) if state & 0x80000000 else state
