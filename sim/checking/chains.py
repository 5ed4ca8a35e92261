"""Batches of each epoch by offset, kept only until every replica has them.

Within one leader epoch offsets are assigned once, by one leader, so its batches form one chain: two
arrays in order of offset. Sixteen bytes for each batch that some replica still lacks.
"""

from array import array
from bisect import bisect_left
from typing import Final, NamedTuple

from sim.ids import LeaderEpoch, Offset

_PRUNE_AT: Final = 4_096
"""Batches of a chain before it is worth dropping what every replica has."""


class Mismatch(NamedTuple):
    """The chain's batch in the place of the appended one."""

    base_offset: Offset
    crc: int


class Chain:
    """The batches of one epoch: base offsets, ascending, and their checksums."""

    __slots__ = ("bases", "checksums", "forgotten", "next_prune")

    def __init__(self) -> None:
        self.bases = array("q")
        self.checksums = array("q")
        self.forgotten: Offset = -1
        """Base offsets up to this one were dropped: every replica had them."""
        self.next_prune = _PRUNE_AT


class Chains:
    """All epochs of one partition."""

    __slots__ = ("_chains", "_cursors")

    def __init__(self) -> None:
        self._chains: dict[LeaderEpoch, Chain] = {}
        self._cursors: dict[int, int] = {}

    def meet(
        self, broker: int, base_offset: Offset, epoch: LeaderEpoch, crc: int
    ) -> Mismatch | bool:
        """Adds a batch to the end of its epoch, or compares it with the one at its place.

        Returns:
            ``True`` if it is new or the same, ``False`` if the place was dropped, and else the
            batch there.
        """
        chain = self._chains.get(epoch)
        if chain is None:
            chain = self._chains[epoch] = Chain()
        bases = chain.bases
        if not bases or base_offset > bases[-1]:
            if base_offset <= chain.forgotten:
                return False
            bases.append(base_offset)
            chain.checksums.append(crc)
            return True
        # A replica mostly appends the batch after its last one.
        place = self._cursors.get(broker, 0)
        if place >= len(bases) or bases[place] != base_offset:
            place = bisect_left(bases, base_offset)
        self._cursors[broker] = place + 1
        if bases[place] == base_offset and chain.checksums[place] == crc:
            return True
        if base_offset <= chain.forgotten:
            return False
        return Mismatch(bases[place], chain.checksums[place])

    def is_prune_due(self, epoch: LeaderEpoch) -> bool:
        """True if the epoch's chain has grown enough for :meth:`prune`."""
        chain = self._chains[epoch]
        return len(chain.bases) >= chain.next_prune

    def prune(self, lowest_end: Offset) -> None:
        """Drops all batches below the offset, but the last one of each chain."""
        for epoch in list(self._chains):
            chain = self._chains[epoch]
            count = min(bisect_left(chain.bases, lowest_end), len(chain.bases) - 1)
            if count > 0:
                chain.forgotten = chain.bases[count - 1]
                del chain.bases[:count]
                del chain.checksums[:count]
            chain.next_prune = max(_PRUNE_AT, 2 * len(chain.bases))
