"""Share groups at the coordinator: heartbeats, epochs, assignments (KIP-932).

Members join and leave as in the consumer protocol, but partitions have no owners: a member gets its
target at once, and none waits for another. A partition is assigned only when it has a state at its
share coordinator: a heartbeat that meets one without notes it as initializing and has its state
requested; once all that were requested together are made, they are noted as initialized, and the
next heartbeat begins an epoch with them. After an error the next heartbeat requests again, and
after an interval without an answer, too. Left out: deletion of share groups and of their states.

Source: ``GroupMetadataManager.shareGroupHeartbeat``, ``subscribedTopicsChangeMap``,
``GroupCoordinatorService.persisterInitialize`` (4.3); ``ShareGroupAssignmentBuilder``.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from sim.error_codes import ErrorCode
from sim.protocol import effects as fx
from sim.protocol.assignors.registry import Assignments
from sim.protocol.coordinator.group.assignors.registry import TopicDescription
from sim.protocol.coordinator.group.assignors.simple import simple_assignor
from sim.protocol.coordinator.group.consumer_group_records import (
    ConsumerGroupRecord,
    SharedTopic,
    ShareStatePartitionsRecord,
)
from sim.protocol.coordinator.group.consumer_group_state import ConsumerGroup, ConsumerGroupMember
from sim.protocol.coordinator.group.context import CoordinatorContext, Outcome
from sim.protocol.coordinator.group.coordinated import Coordinated, nobody_waits
from sim.protocol.coordinator.group.heartbeat_groups import ModernGroups
from sim.protocol.coordinator.group.records import GroupRecord
from sim.protocol.coordinator.share.persister import SharePersister
from sim.protocol.events import RequestFailed, ResponseReceived
from sim.protocol.messages.base import Response
from sim.protocol.messages.share import (
    InitializeShareGroupStateRequest,
    ShareGroupHeartbeatRequest,
)
from sim.protocol.messages.share_records import ShareKey
from sim.protocol.metadata.image import MetadataImage
from sim.units import Micros


@dataclass(slots=True)
class _Initialization:
    """Share partitions whose states were requested together."""

    group: str
    topics: tuple[SharedTopic, ...]
    unanswered: int
    error: ErrorCode = ErrorCode.NONE
    """The first error among the answers."""


class ShareGroups(ModernGroups[ShareGroupHeartbeatRequest]):
    """Share groups of one broker.

    Args:
        context: The coordinator's effects, timers and writes.
        image: The broker's metadata.
        unit: Draws numbers in [0, 1), for the waits of requests that are sent again.
    """

    share = True

    def __init__(
        self,
        context: CoordinatorContext[GroupRecord],
        image: Callable[[], MetadataImage],
        unit: Callable[[], float],
    ) -> None:
        super().__init__(context, image)
        self._config = context.config.share_states
        self._persister = SharePersister(image, self._config.request_timeout_us, unit)

    def answered(self, event: ResponseReceived | RequestFailed, now: Micros) -> None:
        """A share coordinator has answered, or a request to one has failed."""
        self._persister.handle(event, now)
        self._flush()

    def loaded(self, partition: int, now: Micros) -> None:
        """All records of the partition have been loaded: intervals begin again with the sessions.

        Source: ``GroupMetadataManager.replay`` of ``ShareGroupStatePartitionMetadataValue``.
        """
        for group in self._groups.values():
            if group.live.partition == partition:
                group.live.initializing_since_us = now
        super().loaded(partition, now)

    # -- assignments ------------------------------------------------------------------------------

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
        known = {topic.topic_id: topic.partitions for topic in group.initialized}
        assignable = {
            topic_id: replace(topic, assignable=known[topic_id])
            for topic_id, topic in topics.items()
            if topic_id in known
        }
        return simple_assignor(subscriptions, group.target, assignable)

    def _is_pending(self, group: ConsumerGroup) -> bool:
        """True if the target assignment has not all initialized partitions.

        Source: ``GroupMetadataManager.initializedAssignmentPending``.
        """
        if not group.initialized or not group.members:
            return False
        if self._config.waits_for_target and group.assignment_epoch < group.epoch:
            return False
        assigned: dict[str, dict[int, None]] = {}
        for places in group.target.values():
            for place in places:
                assigned.setdefault(place.topic, {})[place.partition] = None
        found = {topic_id: tuple(sorted(numbers)) for topic_id, numbers in assigned.items()}
        if not self._config.of_subscribed:
            return found != {topic.topic_id: topic.partitions for topic in group.initialized}
        subscribed = _subscribed(group)
        return any(
            topic.topic in subscribed and found.get(topic.topic_id) != topic.partitions
            for topic in group.initialized
        )

    # -- states of share partitions ----------------------------------------------------------------

    def _initialize(
        self, group: Coordinated, records: list[ConsumerGroupRecord], now: Micros
    ) -> Outcome | None:
        """Notes subscribed partitions without a state as initializing.

        Returns what is to be done once that is committed; ``None`` if there are none.

        Source: ``GroupMetadataManager.maybeCreateInitializeShareGroupStateRequest``.
        """
        live = group.live
        topics = self._without_state(live, now)
        if not topics:
            return None
        initializing = _united(live.initializing, topics)
        record = ShareStatePartitionsRecord(live.name, initializing, live.initialized, now)
        self._change(group, records, record)
        return partial(self._request_states, live.name, live.epoch, topics)

    def _without_state(self, group: ConsumerGroup, now: Micros) -> tuple[SharedTopic, ...]:
        """Partitions of subscribed topics that have no state, and for which nobody waits.

        Source: ``GroupMetadataManager.subscribedTopicsChangeMap``.
        """
        image = self._image()
        is_fresh = now - group.initializing_since_us < self._config.retry_us
        known = _united(group.initialized, group.initializing if is_fresh else ())
        has = {topic.topic_id: topic.partitions for topic in known}
        found: list[SharedTopic] = []
        for name in _subscribed(group):
            topic_id = image.topic_ids.get(name)
            if topic_id is None:
                continue
            mine = has.get(topic_id, ())
            missing = tuple(n for n in range(image.partition_counts[name]) if n not in mine)
            if missing:
                found.append(SharedTopic(topic_id, name, missing))
        return tuple(found)

    def _request_states(
        self,
        name: str,
        epoch: int,
        topics: tuple[SharedTopic, ...],
        error: ErrorCode,
        now: Micros,
    ) -> None:
        """The note is committed: asks the share coordinators."""
        if error is not ErrorCode.NONE:
            return
        count = sum(len(topic.partitions) for topic in topics)
        batch = _Initialization(name, topics, count)
        for topic in topics:
            for number in topic.partitions:
                key = ShareKey(name, topic.topic_id, number)
                request = InitializeShareGroupStateRequest(key, epoch)
                self._persister.send(request, partial(self._made, batch), now)
        self._flush()

    def _made(
        self,
        batch: _Initialization,
        _response: Response | None,
        error: ErrorCode,
        now: Micros,
    ) -> None:
        """A state is made, or will not be; the last answer settles all of them.

        Source: ``GroupCoordinatorService.handlePersisterInitializeResponse``.
        """
        batch.unanswered -= 1
        if batch.error is ErrorCode.NONE:
            batch.error = error
        group = self._groups.get(batch.group)
        if batch.unanswered or group is None:
            return
        if batch.error is not ErrorCode.NONE:
            self._uninitialize(group, batch.topics, batch.error, now)
            return
        live = group.live
        record = ShareStatePartitionsRecord(
            live.name,
            _without(live.initializing, batch.topics),
            _united(live.initialized, batch.topics),
            now,
        )
        records: list[ConsumerGroupRecord] = []
        self._change(group, records, record)
        self._write(group, records, partial(self._initialized, group, batch.topics), now)

    def _initialized(
        self,
        group: Coordinated,
        topics: tuple[SharedTopic, ...],
        error: ErrorCode,
        now: Micros,
    ) -> None:
        if self._groups.get(group.live.name) is not group:
            return
        if error is ErrorCode.NONE:
            self._note(group, "share partitions initialized")
        else:
            self._uninitialize(group, topics, error, now)

    def _uninitialize(
        self,
        group: Coordinated,
        topics: tuple[SharedTopic, ...],
        error: ErrorCode,
        now: Micros,
    ) -> None:
        """The next heartbeat asks again.

        Source: ``GroupMetadataManager.uninitializeShareGroupState``.
        """
        self._note(group, f"share partitions not initialized: {error.name}")
        live = group.live
        if not live.initializing:
            return
        left = _without(live.initializing, topics)
        records: list[ConsumerGroupRecord] = []
        record = ShareStatePartitionsRecord(live.name, left, live.initialized, now)
        self._change(group, records, record)
        self._write(group, records, nobody_waits, now)

    def _flush(self) -> None:
        """Passes on requests and timers of the persister."""
        effects, self._persister.out = self._persister.out, []
        for effect in effects:
            if isinstance(effect, fx.Send):
                self._context.send(effect)
            else:
                self._context.set_alarm(effect.name, effect.at, partial(self._wake, effect.name))

    def _wake(self, name: str, now: Micros) -> None:
        self._persister.wake(name, now)
        self._flush()


def _subscribed(group: ConsumerGroup) -> tuple[str, ...]:
    """Topics that members subscribe to, sorted."""
    names = {topic: None for member in group.members.values() for topic in member.topics}
    return tuple(sorted(names))


def _united(known: Iterable[SharedTopic], others: Iterable[SharedTopic]) -> tuple[SharedTopic, ...]:
    """Partitions of both.

    Source: ``GroupMetadataManager.combineInitMaps``.
    """
    found: dict[str, SharedTopic] = {}
    for topic in (*known, *others):
        before = found.get(topic.topic_id)
        numbers = topic.partitions if before is None else (*before.partitions, *topic.partitions)
        partitions = tuple(sorted(dict.fromkeys(numbers)))
        found[topic.topic_id] = topic._replace(partitions=partitions)
    return tuple(found.values())


def _without(
    known: Iterable[SharedTopic], others: Iterable[SharedTopic]
) -> tuple[SharedTopic, ...]:
    """Partitions of the first that are not among the others."""
    removed = {topic.topic_id: topic.partitions for topic in others}
    left: list[SharedTopic] = []
    for topic in known:
        out = removed.get(topic.topic_id, ())
        partitions = tuple(number for number in topic.partitions if number not in out)
        if partitions:
            left.append(topic._replace(partitions=partitions))
    return tuple(left)
