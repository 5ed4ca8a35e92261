"""Share groups at the coordinator: heartbeats, epochs, assignments (KIP-932).

Members come and go as in the consumer protocol, but partitions are nobody's own: a member has its
target at once, and nobody waits for anybody. Left out: the states of share partitions that the
coordinator has initialized (record type 15), and limits that a group sets for itself.

Source: ``GroupMetadataManager.shareGroupHeartbeat``, ``ShareGroupAssignmentBuilder``.
"""

from collections.abc import Mapping
from dataclasses import replace

from sim.protocol.assignors.registry import Assignments
from sim.protocol.coordinator.group.assignors import TopicDescription
from sim.protocol.coordinator.group.consumer_group_state import ConsumerGroup, ConsumerGroupMember
from sim.protocol.coordinator.group.heartbeat_groups import ModernGroups
from sim.protocol.coordinator.group.simple_assignor import simple_assignor
from sim.protocol.messages.share import (
    ShareGroupHeartbeatRequest,
)


class ShareGroups(ModernGroups[ShareGroupHeartbeatRequest]):
    """The share groups that one broker coordinates."""

    share = True

    def _reconciled(
        self,
        group: ConsumerGroup,
        member: ConsumerGroupMember,
        request: ShareGroupHeartbeatRequest,  # noqa: ARG002 - it owns nothing
        *,
        changed: bool,
    ) -> ConsumerGroupMember:
        """The member with what the target assignment gives it."""
        if not changed and member.epoch == group.assignment_epoch:
            return member
        return replace(
            member,
            epoch=group.assignment_epoch,
            previous_epoch=member.epoch,
            assigned=self._target(group, member),
        )

    def _shares(
        self,
        group: ConsumerGroup,
        subscriptions: Mapping[str, tuple[str, ...]],
        topics: Mapping[str, TopicDescription],
    ) -> Assignments:
        return simple_assignor(subscriptions, group.target, topics)
