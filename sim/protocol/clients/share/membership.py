"""Membership of a share group: heartbeats as in KIP-848, with fewer fields (KIP-932).

Source: ``ShareMembershipManager``, ``ShareHeartbeatRequestManager``.
"""

from sim.protocol.clients.consumer.consumer_protocol import (
    ConsumerMembershipManager,
    HeartbeatState,
)
from sim.protocol.messages.base import Request
from sim.protocol.messages.consumer_group import LEAVE_EPOCH
from sim.protocol.messages.share import ShareGroupHeartbeatRequest


class ShareMembershipManager(ConsumerMembershipManager):
    """One share consumer's membership of its group."""

    def _goodbye(self) -> Request:
        return ShareGroupHeartbeatRequest(self._link.config.group_id, self.member_id, LEAVE_EPOCH)

    def _request(self) -> Request:
        """A full heartbeat for a coordinator that may not know the member; else a minimal one."""
        config = self._link.config
        if self.state is HeartbeatState.JOINING or self._sent is None:
            return ShareGroupHeartbeatRequest(
                config.group_id, self.member_id, self.generation, config.topics, config.client_rack
            )
        return ShareGroupHeartbeatRequest(config.group_id, self.member_id, self.generation)
