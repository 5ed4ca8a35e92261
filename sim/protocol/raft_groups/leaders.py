"""Which groups a broker leads: it tells the controller, and says which another is to lead.

Every so often each broker counts who leads how much, as the metadata says, and hands over what is
its own part of evening that out. A broker that shuts down hands over all it leads.

Source: Redpanda v25.1 ``cluster/{metadata_dissemination_service,scheduling/leader_balancer}.cc``.
"""

from sim.error_codes import ErrorCode
from sim.ids import NO_LEADER, LeaderEpoch, NodeId, TopicPartition
from sim.protocol import effects as fx
from sim.protocol.broker.replication.effects import Effects
from sim.protocol.broker.replication.hosted import HostedPartitions
from sim.protocol.messages.raft_groups import RaftLeader, RaftLeadersRequest, RaftLeadersResponse
from sim.protocol.raft_groups.balance import leaders_to_move
from sim.protocol.raft_groups.group import RaftGroup
from sim.protocol.raft_groups.membership import electors
from sim.units import NEVER, SECOND, Micros

TIMEOUT_US: Micros = 5 * SECOND
"""How long the controller may take to answer."""


class RaftLeaders:
    """The leaderships of one broker.

    Args:
        hosted: The broker's partitions.
        groups: Their groups.
        balance_interval_us: How often to look; NEVER if leaders stay where they are.
    """

    def __init__(
        self,
        hosted: HostedPartitions,
        groups: dict[TopicPartition, RaftGroup],
        balance_interval_us: Micros,
    ) -> None:
        self._hosted = hosted
        self._groups = groups
        self._untold: dict[TopicPartition, LeaderEpoch] = {}
        self._moving: dict[TopicPartition, None] = {}
        """Partitions that the controller moves, as far as this broker has heard."""
        self._asked: tuple[RaftLeader, ...] = ()
        self._correlation = -1
        self._balance_interval_us = balance_interval_us
        self._balance_at: Micros = -1

    def led(self, partition: TopicPartition, term: LeaderEpoch) -> None:
        """This broker leads the term."""
        self._untold[partition] = term

    def lost(self, partition: TopicPartition) -> None:
        """It leads no more: another one tells the controller."""
        self._untold.pop(partition, None)

    def moves(self, partition: TopicPartition, *, is_moving: bool) -> None:
        """The controller moves a partition, or has written down that it is where it should be."""
        if is_moving:
            self._moving[partition] = None
        else:
            self._moving.pop(partition, None)

    def forget(self, partition: TopicPartition) -> None:
        """The partition's group has no member here any more."""
        self._untold.pop(partition, None)
        self._moving.pop(partition, None)

    def look(self, now: Micros, out: Effects) -> list[tuple[RaftGroup, NodeId]]:
        """With each heartbeat: tell the controller what is new; returns what is to be handed over.

        Each group is to be handed to the broker beside it.
        """
        due: list[tuple[RaftGroup, NodeId]] = []
        if self._untold or self._moving:
            self.tell(out)
        if self._hosted.stopping:
            due = [(g, g.successor()) for g in self._groups.values() if g.is_leader]
        elif self._balance_interval_us < NEVER:
            due = self._unbalanced(now)
        return [(group, to) for group, to in due if to != NO_LEADER]

    def tell(self, out: Effects) -> None:
        """Tell the controller, if it is known and not being told."""
        hosted, groups = self._hosted, self._groups
        controller = hosted.controller
        if self._correlation >= 0 or controller < 0 or hosted.broker_epoch < 0:
            return
        # A group that has arrived says so until the controller is known to have heard.
        arrived = {p: None for p in self._moving if p in groups and groups[p].has_arrived}
        self._asked = tuple(
            RaftLeader(p, groups[p].term, electors(groups[p].membership), p in arrived)
            for p in dict.fromkeys((*self._untold, *arrived))
        )
        if not self._asked:
            return
        self._correlation = hosted.next_correlation()
        request = RaftLeadersRequest(hosted.broker, hosted.broker_epoch, self._asked)
        out.append(fx.Send(controller, self._correlation, request, TIMEOUT_US, "raft-leaders"))

    def answered(self, correlation: int, response: RaftLeadersResponse) -> None:
        """The controller has written it down, or is not the controller."""
        if correlation != self._correlation:
            return
        self._correlation = -1
        if response.error is ErrorCode.NONE:
            for told in self._asked:
                if self._untold.get(told.partition) == told.term:
                    del self._untold[told.partition]

    def failed(self, correlation: int) -> bool:
        """Whether the request that failed was this one; it is sent again with a heartbeat."""
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
        wanted = leaders_to_move(self._hosted.image).items()
        found = [(self._groups.get(partition), to) for partition, to in wanted]
        return [(group, to) for group, to in found if group is not None and group.is_leader]
