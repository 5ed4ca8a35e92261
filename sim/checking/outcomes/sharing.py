"""What became of records that share groups were given, from what the leaders told (KIP-932).

Definitions, for each share group, of records that were ever given to one of its members:

* ``accepted``, ``rejected``: a member said so, and the share coordinator has it.
* ``archived``: given up because they were delivered as often as the limit allows.
* ``unfinished``: none of the three, when the run ended.

What was said last of a record counts. A leader that dies may not have told of what was written: the
next one finds it so, which counts where nobody said more.
"""

from typing import Final

from sim.trace.rows.share import ShareStates, ShareStatesRow

COUNTS: Final = ("accepted", "rejected", "archived", "unfinished")
"""The numbers of the verdict, in its order."""

_CODES: Final = {"accept": 1, "reject": 2, "limit": 3, "gap": 5, "removed from the log": 5}
"""5: offsets without a record for the application, and records that the log has lost lawfully."""
_FOUND: Final = {"found accepted": 1, "found rejected": 2, "found at the limit": 3}
_UNFINISHED: Final = 4


_UNTOLD: Final = {
    code: bytes(code if before in {0, _UNFINISHED} else before for before in range(256))
    for code in _FOUND.values()
}
"""By code: what becomes of codes of records that nobody told the end of."""


class Sharing:
    """Listens to what leaders of share partitions tell, and judges it when the run is over."""

    def __init__(self) -> None:
        self._states: dict[tuple[str, str, int], bytearray] = {}

    def state(self, row: ShareStatesRow) -> None:
        """Records came into another state."""
        key = row[ShareStates.GROUP], row[ShareStates.TOPIC], row[ShareStates.PARTITION]
        first, stop = row[ShareStates.FIRST_OFFSET], row[ShareStates.LAST_OFFSET] + 1
        codes = self._states.get(key)
        if codes is None:
            codes = self._states[key] = bytearray()
        if len(codes) < stop:
            codes.extend(bytes(stop - len(codes)))
        reason = row[ShareStates.REASON]
        found = _FOUND.get(reason)
        if found is None:
            code = _CODES.get(reason, _UNFINISHED)
            codes[first:stop] = bytes((code,)) * (stop - first)
        else:  # what was told of a record by who did it says more
            codes[first:stop] = codes[first:stop].translate(_UNTOLD[found])

    def verdict(self) -> dict[str, object]:
        """Counts in total and by group; empty without share groups."""
        if not self._states:
            return {}
        groups: dict[str, dict[str, int]] = {}
        for (group, _, _), codes in self._states.items():
            counts = groups.setdefault(group, dict.fromkeys(COUNTS, 0))
            for code, name in enumerate(COUNTS, 1):
                counts[name] += codes.count(code)
        totals = {name: sum(counts[name] for counts in groups.values()) for name in COUNTS}
        return {**totals, "groups": groups}
