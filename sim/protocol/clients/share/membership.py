"""A share consumer as a member of its group: heartbeats as in KIP-848, with less to say (KIP-932).

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
        """All that there is to say to a coordinator that may not know it; else that it lives."""
        config = self._link.config
        if self.state is HeartbeatState.JOINING or self._sent is None:
            return ShareGroupHeartbeatRequest(
                config.group_id, self.member_id, self.generation, config.topics, config.client_rack
            )
        return ShareGroupHeartbeatRequest(config.group_id, self.member_id, self.generation)
