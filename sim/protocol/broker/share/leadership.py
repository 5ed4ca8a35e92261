"""A share partition as its leader holds it: the leadership, its state, and what is told of it."""

from collections.abc import Mapping

from sim.error_codes import ErrorCode
from sim.ids import LeaderEpoch, NodeId, Offset, TopicPartition
from sim.protocol import effects as fx
from sim.protocol.broker.share.effects import Effects
from sim.protocol.broker.share.partition import ShareLimits, SharePartition
from sim.protocol.messages.share import WriteShareGroupStateRequest
from sim.protocol.messages.share_records import ShareKey, StateBatch
from sim.trace.rows.share import SharePartitions, ShareStates
from sim.units import NEVER, Micros


class LedShare:
    """One share partition under one leadership; ``share`` is ``None`` while its state is read."""

    __slots__ = (
        "_told_start",
        "epoch",
        "error",
        "key",
        "limits",
        "place",
        "share",
        "state_epoch",
        "timer",
    )

    def __init__(
        self, key: ShareKey, place: TopicPartition, epoch: LeaderEpoch, limits: ShareLimits
    ) -> None:
        self.key = key
        self.place = place
        self.epoch = epoch
        self.limits = limits
        self.state_epoch = 0
        self.share: SharePartition | None = None
        self.error = ErrorCode.NONE
        """Why its state could not be read; told once."""
        self.timer = f"share-lock/{key.group}/{place}"
        """Name of the timer that ends locks."""
        self._told_start: Offset = -1

    def begin(self, state_epoch: int, start: Offset, batches: tuple[StateBatch, ...]) -> None:
        """Its state is read."""
        self.state_epoch = state_epoch
        self.share = SharePartition(self.limits, start, batches)

    def write_request(self, states: tuple[StateBatch, ...]) -> WriteShareGroupStateRequest:
        """What the share coordinator is to write."""
        assert self.share is not None, "it is loaded"
        start = self.share.start_offset
        return WriteShareGroupStateRequest(self.key, self.state_epoch, self.epoch, start, states)

    def tell(self, broker: NodeId, names: Mapping[str, str], now: Micros, out: Effects) -> None:
        """Say what has changed in the trace, and watch the locks. ``names`` are the members'."""
        share = self.share
        assert share is not None, "it is loaded"
        self.tell_states(broker, names, out)
        if share.start_offset != self._told_start:
            self.tell_start(broker, "moved", out)
        deadline = share.next_deadline()
        if deadline < NEVER:
            out.append(fx.SetTimer(self.timer, max(deadline, now)))
        else:
            out.append(fx.CancelTimer(self.timer))

    def tell_states(self, broker: NodeId, names: Mapping[str, str], out: Effects) -> None:
        """Say in the trace which records have come into another state."""
        share = self.share
        assert share is not None, "it is loaded"
        place = self.place
        for change in share.changes:
            out.append(
                ShareStates.row(
                    broker,
                    self.key.group,
                    place.topic,
                    place.partition,
                    leader_epoch=self.epoch,
                    first_offset=change.first,
                    last_offset=change.last,
                    state=change.state.name,
                    delivery_count=change.delivery_count,
                    consumer=names.get(change.member, change.member),
                    reason=change.reason,
                )
            )
        share.changes.clear()

    def tell_start(self, broker: NodeId, reason: str, out: Effects) -> None:
        """Say in the trace where it begins and ends."""
        share = self.share
        assert share is not None, "it is loaded"
        self._told_start = share.start_offset
        out.append(
            SharePartitions.row(
                broker,
                self.key.group,
                *self.place,
                leader_epoch=self.epoch,
                start_offset=share.start_offset,
                end_offset=share.end_offset,
                delivery_limit=self.limits.deliveries_max,
                reason=reason,
            )
        )
