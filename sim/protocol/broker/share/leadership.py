"""A share partition under one leadership: its state and its trace rows."""

from collections.abc import Mapping

from sim.error_codes import ErrorCode
from sim.ids import LeaderEpoch, NodeId, Offset, TopicPartition
from sim.protocol import effects as fx
from sim.protocol.broker.share.effects import Effects
from sim.protocol.broker.share.limits import ShareLimits
from sim.protocol.broker.share.partition import SharePartition
from sim.protocol.messages.share import WriteShareGroupStateRequest
from sim.protocol.messages.share_records import ShareKey, StateBatch
from sim.trace.rows.share import SharePartitions, ShareRenewals, ShareStates
from sim.units import NEVER, Micros


class LedShare:
    """One share partition under one leadership; ``share`` is ``None`` while its state is read."""

    __slots__ = (
        "_traced_start",
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
        """Error of reading its state; reported once."""
        self.timer = f"share-lock/{key.group}/{place}"
        """Timer of acquisition locks."""
        self._traced_start: Offset = -1

    def begin(self, state_epoch: int, start: Offset, batches: tuple[StateBatch, ...]) -> None:
        """Begins with the state that was read."""
        self.state_epoch = state_epoch
        self.share = SharePartition(self.limits, start, batches)

    def write_request(self, states: tuple[StateBatch, ...]) -> WriteShareGroupStateRequest:
        """Request that writes its state to the share coordinator."""
        assert self.share is not None, "it is loaded"
        share = self.share
        return WriteShareGroupStateRequest(
            self.key,
            self.state_epoch,
            self.epoch,
            share.start_offset,
            states,
            share.completed_in_flight(),
        )

    def write_rows(
        self, broker: NodeId, names: Mapping[str, str], now: Micros, out: Effects
    ) -> None:
        """Writes changes to the trace, and sets the timer of locks. ``names`` are the members'."""
        share = self.share
        assert share is not None, "it is loaded"
        self.write_state_rows(broker, names, out)
        if share.renewals:
            self._write_renewals(broker, names, out)
        if share.start_offset != self._traced_start:
            self.write_start_row(broker, "moved", out)
        deadline = share.next_deadline()
        if deadline < NEVER:
            out.append(fx.SetTimer(self.timer, max(deadline, now)))
        else:
            out.append(fx.CancelTimer(self.timer))

    def use(self, limits: ShareLimits) -> None:
        """Takes other settings of its group."""
        self.limits = limits
        if self.share is not None:
            self.share.use(limits)

    def _write_renewals(self, broker: NodeId, names: Mapping[str, str], out: Effects) -> None:
        share = self.share
        assert share is not None, "it is loaded"
        for renewal in share.renewals:
            out.append(
                ShareRenewals.row(
                    broker,
                    self.key.group,
                    *self.place,
                    leader_epoch=self.epoch,
                    first_offset=renewal.first,
                    last_offset=renewal.last,
                    consumer=names.get(renewal.member, renewal.member),
                    until_us=renewal.until,
                )
            )
        share.renewals.clear()

    def write_state_rows(self, broker: NodeId, names: Mapping[str, str], out: Effects) -> None:
        """Writes records' state changes to the trace."""
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

    def write_start_row(self, broker: NodeId, reason: str, out: Effects) -> None:
        """Writes start and end offset to the trace."""
        share = self.share
        assert share is not None, "it is loaded"
        self._traced_start = share.start_offset
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
