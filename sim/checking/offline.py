"""How long partitions had no leader, as the controller had committed it.

Nobody can write to such a partition or read from it, whether or not somebody tries: a producer
without keys goes round it, and has no gap to show for it. A leader that died leads on here until
its session ends; who waits for it meanwhile is told by :mod:`sim.checking.service`.

Source: Kafka's gauge ``kafka.controller:OfflinePartitionsCount``.
"""

from typing import TypedDict

from sim.checking.rows import ChangeRow, DeletionRow
from sim.units import LONG_AGO, NEVER, Micros

_BEGIN: Micros = 0
"""Topics get their first leaders while the cluster is set up, before the run."""


class Offline(TypedDict):
    """One partition's time without a leader."""

    max_us: Micros
    """Of the longest stretch; of equal ones the earliest is told."""
    from_us: Micros
    """When that one began."""
    total_us: Micros


class OfflinePartitions:
    """Stretches of time without a leader, of each partition."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, int], Micros] = {}
        self._stretches: dict[tuple[str, int], list[tuple[Micros, Micros]]] = {}

    def change(self, row: ChangeRow) -> None:
        """The controller has committed who leads."""
        at, _, topic, partition, leader, *_ = row
        if leader < 0:
            self._since.setdefault((topic, partition), at)
        else:
            self._end((topic, partition), at)

    def deletion(self, row: DeletionRow) -> None:
        """A topic is gone: nobody misses its leaders."""
        for key in [key for key in self._since if key[0] == row[2]]:
            self._end(key, row[0])

    def report(
        self, end_us: Micros, from_us: Micros = LONG_AGO, to_us: Micros = NEVER
    ) -> dict[str, Offline]:
        """Partitions that had no leader at some time of the run, by their names.

        Args:
            end_us: When the run ended.
            from_us: What lies before counts for nothing.
            to_us: Nor does what lies at this instant or behind it.
        """
        low, high = max(from_us, _BEGIN), min(to_us, end_us)
        found: dict[str, Offline] = {}
        for key in sorted({**self._stretches, **self._since}):
            stretches = list(self._stretches.get(key, ()))
            if key in self._since:
                stretches.append((self._since[key], end_us))
            clipped = [(max(since, low), min(until, high)) for since, until in stretches]
            inside = [(until - since, since) for since, until in clipped if since < until]
            if inside:
                length, begin = max(inside, key=lambda each: (each[0], -each[1]))
                total = sum(length for length, _ in inside)
                found["{}-{}".format(*key)] = Offline(max_us=length, from_us=begin, total_us=total)
        return found

    def _end(self, key: tuple[str, int], at: Micros) -> None:
        since = self._since.pop(key, None)
        if since is not None:
            self._stretches.setdefault(key, []).append((since, at))


def longest(partitions: dict[str, Offline]) -> Micros:
    """Of all partitions; 0 if each had a leader all the time."""
    return max((each["max_us"] for each in partitions.values()), default=0)
