"""Time in which partitions had no leader that served.

A partition is offline while the committed metadata have no leader for it, and while their leader
cannot serve:

* its process is down (crashed, halted, stopped, its host without power), or is stopped (SIGSTOP, a
  collector's pause);
* its process runs, and is not registered and unfenced since it was started: until then it is
  fenced, and with every controller dead it stays so.

So an outage begins with the leader's death, not with the end of its session, and lasts until
another one is committed or it is back in service. It need not delay clients: a producer without
keys avoids such a partition, and has no gap.

Left out: networks. A leader that one client cannot reach may be reached by another;
:mod:`sim.checking.outcomes.service` has the clients' view. Nor does the time count in which
metadata of an election spread.

Source: Kafka's gauge ``kafka.controller:OfflinePartitionsCount`` counts the first of these alone,
and only while there is an active controller; ``BrokerLifecycleManager`` for the last.
"""

from typing import Final, TypedDict

from sim.ids import NodeId, server_name
from sim.trace.rows.cluster import (
    BrokerStates,
    BrokerStatesRow,
    NodeStates,
    NodeStatesRow,
    PartitionChanges,
    PartitionChangesRow,
    TopicDeletions,
    TopicDeletionsRow,
)
from sim.units import LONG_AGO, NEVER, Micros

_BEGIN: Micros = 0
"""Topics get their first leaders while the cluster is set up, before the run."""

_DELETED: Final[NodeId] = -2
"""Leader of a partition whose topic is deleted: it does not count as offline."""

_DOWN: Final = frozenset({"crashed", "powered_off", "stopped", "failed"})

_Stretch = tuple[Micros, Micros]
"""From, to."""


class Offline(TypedDict):
    """One partition's time without a leader that served."""

    max_us: Micros
    """Length of the longest stretch, the earliest of equal ones."""
    from_us: Micros
    """Its beginning."""
    total_us: Micros


class _Server:
    """Stretches in which a broker did not serve."""

    __slots__ = ("is_in_service", "is_still", "is_up", "since", "stretches")

    def __init__(self) -> None:
        self.is_up = True
        self.is_still = False
        self.is_in_service = True
        """True if its registration is unfenced, as far as this process has one."""
        self.since: Micros = NEVER
        """Instant at which it ceased to serve; NEVER while it does."""
        self.stretches: list[_Stretch] = []

    def settle(self, at: Micros) -> None:
        """Updates the stretches after a change at that instant."""
        serves = self.is_up and self.is_in_service and not self.is_still
        if serves and self.since < NEVER:
            self.stretches.append((self.since, at))
            self.since = NEVER
        elif not serves and self.since == NEVER:
            self.since = at


class OfflinePartitions:
    """Stretches of time without a leader that served, of each partition."""

    def __init__(self) -> None:
        self._leaders: dict[tuple[str, int], list[tuple[Micros, NodeId]]] = {}
        self._servers: dict[str, _Server] = {}

    def change(self, row: PartitionChangesRow) -> None:
        """Sets the leader that the controller committed."""
        key = row[PartitionChanges.TOPIC], row[PartitionChanges.PARTITION]
        leaders, leader = self._leaders.setdefault(key, []), row[PartitionChanges.LEADER]
        if not leaders or leaders[-1][1] != leader:
            leaders.append((row[PartitionChanges.T_US], leader))

    def deletion(self, row: TopicDeletionsRow) -> None:
        """Marks a topic as deleted, so that its partitions are not offline."""
        for key, leaders in self._leaders.items():
            if key[0] == row[TopicDeletions.TOPIC]:
                leaders.append((row[TopicDeletions.T_US], _DELETED))

    def state(self, row: NodeStatesRow) -> None:
        """Follows the state of a process."""
        server, state = self._server(row[NodeStates.NODE]), row[NodeStates.STATE]
        if state == "started":
            server.is_up, server.is_still, server.is_in_service = True, False, False
        elif state in _DOWN:
            server.is_up = server.is_still = False
        elif state in ("paused", "resumed"):
            server.is_still = state == "paused"
        server.settle(row[NodeStates.T_US])

    def registration(self, row: BrokerStatesRow) -> None:
        """Follows a broker's registration; one that shuts down leads until others are elected."""
        server = self._server(server_name(row[BrokerStates.BROKER]))
        if row[BrokerStates.STATE] != "controlled_shutdown":
            server.is_in_service = row[BrokerStates.STATE] == "unfenced"
        server.settle(row[BrokerStates.T_US])

    def report(
        self, end_us: Micros, from_us: Micros = LONG_AGO, to_us: Micros = NEVER
    ) -> dict[str, Offline]:
        """Partitions that were offline at some time of the run, by their names.

        Args:
            end_us: End of the run.
            from_us: Begin of the counted time.
            to_us: End of the counted time, exclusive.
        """
        low, high = max(from_us, _BEGIN), min(to_us, end_us)
        found: dict[str, Offline] = {}
        for key in sorted(self._leaders):
            clipped = [
                (max(since, low), min(until, high))
                for since, until in self._without(self._leaders[key], end_us)
            ]
            inside = [(until - since, since) for since, until in clipped if since < until]
            if inside:
                length, begin = max(inside, key=lambda each: (each[0], -each[1]))
                total = sum(length for length, _ in inside)
                found["{}-{}".format(*key)] = Offline(max_us=length, from_us=begin, total_us=total)
        return found

    def _without(self, leaders: list[tuple[Micros, NodeId]], end_us: Micros) -> list[_Stretch]:
        """Stretches without a leader that served, those that touch joined."""
        joined: list[_Stretch] = []
        for place, (since, leader) in enumerate(leaders):
            until = leaders[place + 1][0] if place + 1 < len(leaders) else end_us
            for begin, end in self._unserved(leader, since, until):
                if begin >= end:
                    continue
                if joined and joined[-1][1] == begin:
                    begin = joined.pop()[0]  # noqa: PLW2901 - one stretch with the one before
                joined.append((begin, end))
        return joined

    def _unserved(self, leader: NodeId, since: Micros, until: Micros) -> list[_Stretch]:
        if leader == _DELETED:
            return []
        if leader < 0:
            return [(since, until)]
        server = self._servers.get(server_name(leader))
        if server is None:
            return []
        stretches = [(max(begin, since), min(end, until)) for begin, end in server.stretches]
        if server.since < until:
            stretches.append((max(server.since, since), until))
        return stretches

    def _server(self, name: str) -> _Server:
        server = self._servers.get(name)
        if server is None:
            server = self._servers[name] = _Server()
        return server


def longest(partitions: dict[str, Offline]) -> Micros:
    """Maximum over all partitions; 0 if each had a leader all the time."""
    return max((each["max_us"] for each in partitions.values()), default=0)
