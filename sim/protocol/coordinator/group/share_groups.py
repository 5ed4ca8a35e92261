"""Share groups at the coordinator: heartbeats, epochs, assignments (KIP-932).

Members join and leave as in the consumer protocol, but partitions have no owners: a member gets its
target at once, and none waits for another. Left out: the states of share partitions that the
coordinator has initialized (record type 15), and group-level limits.

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
    """Share groups of one broker."""

    share = True

    def _reconciled(
        self,
        group: ConsumerGroup,
        member: ConsumerGroupMember,
        request: ShareGroupHeartbeatRequest,  # noqa: ARG002 - it owns nothing
        *,
        changed: bool,
    ) -> ConsumerGroupMember:
        """The member with its target assignment."""
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
