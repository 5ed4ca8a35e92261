"""Groups that a broker leads: reports to the controller, and leader balancing.

Periodically each broker counts the leaders of all brokers in the metadata, and transfers its own
part of the balancing. A broker that shuts down transfers all that it leads.

Source: Redpanda v25.1 ``cluster/{metadata_dissemination_service,scheduling/leader_balancer}.cc``.
"""

from sim.error_codes import ErrorCode
from sim.ids import NO_LEADER, LeaderEpoch, NodeId, TopicPartition
from sim.protocol import effects as fx
from sim.protocol.broker.replication.effects import Effects
from sim.protocol.broker.replication.hosted import HostedPartitions
from sim.protocol.messages.raft_groups import RaftLeader, RaftLeadersRequest, RaftLeadersResponse
from sim.protocol.raft_groups.group import RaftGroup
from sim.protocol.raft_groups.leader_balancer import leaders_to_move
from sim.protocol.raft_groups.membership import electors
from sim.units import NEVER, SECOND, Micros

TIMEOUT_US: Micros = 5 * SECOND
"""Timeout of the controller's response."""


class RaftLeaders:
    """The leaderships of one broker.

    Args:
        hosted: The broker's partitions.
        groups: Their groups.
        balance_interval_us: Interval of balancing; NEVER without it.
    """

    def __init__(
        self,
        hosted: HostedPartitions,
        groups: dict[TopicPartition, RaftGroup],
        balance_interval_us: Micros,
    ) -> None:
        self._hosted = hosted
        self._groups = groups
        self._unreported: dict[TopicPartition, LeaderEpoch] = {}
        self._moving: dict[TopicPartition, None] = {}
        """Partitions that the controller moves, as far as this broker knows."""
        self._reported: tuple[RaftLeader, ...] = ()
        self._correlation = -1
        self._balance_interval_us = balance_interval_us
        self._balance_at: Micros = -1

    def led(self, partition: TopicPartition, term: LeaderEpoch) -> None:
        """This broker leads the term."""
        self._unreported[partition] = term

    def lost(self, partition: TopicPartition) -> None:
        """It no longer leads: the next leader reports to the controller."""
        self._unreported.pop(partition, None)

    def moves(self, partition: TopicPartition, *, is_moving: bool) -> None:
        """The controller moves a partition, or has recorded that the move is complete."""
        if is_moving:
            self._moving[partition] = None
        else:
            self._moving.pop(partition, None)

    def forget(self, partition: TopicPartition) -> None:
        """The partition's group has no member here any more."""
        self._unreported.pop(partition, None)
        self._moving.pop(partition, None)

    def look(self, now: Micros, out: Effects) -> list[tuple[RaftGroup, NodeId]]:
        """Reports news to the controller with each heartbeat; returns leaderships to transfer.

        Each group with its new leader.
        """
        due: list[tuple[RaftGroup, NodeId]] = []
        if self._unreported or self._moving:
            self.report(out)
        if self._hosted.stopping:
            due = [(g, g.successor()) for g in self._groups.values() if g.is_leader]
        elif self._balance_interval_us < NEVER:
            due = self._unbalanced(now)
        return [(group, to) for group, to in due if to != NO_LEADER]

    def report(self, out: Effects) -> None:
        """Reports to the controller, if it is known and no report is in flight."""
        hosted, groups = self._hosted, self._groups
        controller = hosted.controller
        if self._correlation >= 0 or controller < 0 or hosted.broker_epoch < 0:
            return
        # A completed move is reported until the controller has acknowledged it.
        arrived = {p: None for p in self._moving if p in groups and groups[p].has_reached_target}
        self._reported = tuple(
            RaftLeader(p, groups[p].term, electors(groups[p].membership), p in arrived)
            for p in dict.fromkeys((*self._unreported, *arrived))
        )
        if not self._reported:
            return
        self._correlation = hosted.next_correlation()
        request = RaftLeadersRequest(hosted.broker, hosted.broker_epoch, self._reported)
        out.append(fx.Send(controller, self._correlation, request, TIMEOUT_US, "raft-leaders"))

    def answered(self, correlation: int, response: RaftLeadersResponse) -> None:
        """The controller has recorded it, or is not the controller."""
        if correlation != self._correlation:
            return
        self._correlation = -1
        if response.error is ErrorCode.NONE:
            for reported in self._reported:
                if self._unreported.get(reported.partition) == reported.term:
                    del self._unreported[reported.partition]

    def failed(self, correlation: int) -> bool:
        """True if the failed request was this one; it is sent again with a heartbeat."""
        if correlation != self._correlation:
            return False
        self._correlation = -1
        return True

    def _unbalanced(self, now: Micros) -> list[tuple[RaftGroup, NodeId]]:
        if self._balance_at < 0:
            self._balance_at = now + self._balance_interval_us
        if now < self._balance_at:
            return []
        self._balance_at = now + self._balance_interval_us
        transfers = leaders_to_move(self._hosted.image).items()
        found = [(self._groups.get(partition), to) for partition, to in transfers]
        return [(group, to) for group, to in found if group is not None and group.is_leader]
