"""Outcomes of records that share groups acquired, from rows of the leaders (KIP-932).

Definitions, for each share group, of records that one of its members ever acquired:

* ``accepted``, ``rejected``: by a member, and written by the share coordinator.
* ``archived``: after the greatest allowed number of deliveries.
* ``unfinished``: none of the three at the end of the run.

The last row about a record counts. A leader may die without a row of what was written: the next one
finds it so, which counts in the absence of others.
"""

from typing import Final

from sim.trace.rows.share import ShareStates, ShareStatesRow

COUNTS: Final = ("accepted", "rejected", "archived", "unfinished")
"""The numbers of the verdict, in its order."""

_CODES: Final = {"accept": 1, "reject": 2, "limit": 3, "gap": 5, "removed from the log": 5}
"""5: offsets without a record for the application, and records that the log has lost lawfully."""
_FOUND: Final = {"found accepted": 1, "found rejected": 2, "found at the limit": 3}
_UNFINISHED: Final = 4


_UNREPORTED: Final = {
    code: bytes(code if before in {0, _UNFINISHED} else before for before in range(256))
    for code in _FOUND.values()
}
"""By code: the code of a record without a row of its end."""


class Sharing:
    """Listens to rows of leaders of share partitions, and judges them at the end of the run."""

    def __init__(self) -> None:
        self._states: dict[tuple[str, str, int], bytearray] = {}

    def state(self, row: ShareStatesRow) -> None:
        """Handles a change of records' state."""
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
        else:  # a row of the leader that wrote it is more precise
            codes[first:stop] = codes[first:stop].translate(_UNREPORTED[found])

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
