"""Purgatory of produce requests with acks=all, and their responses.

Source: ``kafka.server.DelayedProduce``, ``DelayedOperationPurgatory``.
"""

from sim.error_codes import ErrorCode
from sim.ids import Offset, TopicPartition
from sim.protocol import effects as fx
from sim.protocol.broker.purgatory import DelayedProduce, ProducePurgatory
from sim.protocol.broker.replica import Replica
from sim.protocol.broker.replication.effects import Effects
from sim.protocol.broker.replication.events import InternalAppended
from sim.protocol.broker.replication.hosted import HostedPartitions
from sim.protocol.broker.replication.leader.markers import MarkerRequests
from sim.protocol.messages.data import ProduceResponse, ProduceResult
from sim.trace.rows.log import Acknowledgements
from sim.units import Micros

_MARKER_TOKENS = -(1 << 40)
"""Tokens from here downwards are those of WriteTxnMarkers requests."""


class DelayedProduces:
    """Delayed produce requests of one broker. Internal appends and markers have negative tokens.

    Args:
        hosted: The broker's partitions.
        markers: WriteTxnMarkers requests, which have a response of their own.
    """

    def __init__(self, hosted: HostedPartitions, markers: MarkerRequests) -> None:
        self._hosted = hosted
        self._broker = hosted.broker
        self._markers = markers
        self._purgatory = ProducePurgatory()

    def park(self, operation: DelayedProduce) -> None:
        """Waits for every partition of the request."""
        self._purgatory.park(operation)

    def high_watermark_moved(self, replica: Replica, now: Micros, out: Effects) -> None:
        """Completes requests whose offsets are committed now."""
        watching = self._purgatory.watching(replica.partition)
        high_watermark = replica.high_watermark
        while watching and watching[0].waiting[replica.partition][0] <= high_watermark:
            operation = watching[0]
            _, base, last = operation.waiting[replica.partition]
            error = ErrorCode.NONE
            too_few = len(replica.maximal_in_sync) < replica.min_in_sync
            if too_few and not operation.follows_watermark:
                error = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
            acks = 1 if operation.follows_watermark else -1
            self.acknowledge(replica, acks, error, base, last, out)
            result = ProduceResult(replica.partition, error, base, replica.log.log_start_offset)
            self._decided(operation, result, out)
        del now

    def leadership_lost(
        self,
        partition: TopicPartition,
        now: Micros,
        out: Effects,
        *,
        spares_coordinators: bool = False,
    ) -> None:
        """This broker no longer leads: waiting requests fail, but for a coordinator's if spared."""
        del now
        hosted = self._hosted
        error = hosted.led(partition)
        assert isinstance(error, ErrorCode), "leadership has been taken from it already"
        for operation in list(self._purgatory.watching(partition)):
            if spares_coordinators and _MARKER_TOKENS < operation.token < 0:
                continue
            hint = hosted.hint(partition, error)
            self._decided(operation, ProduceResult(partition, error, hint=hint), out)

    def complete_below_high_watermark(self, replica: Replica, out: Effects) -> None:
        """Completes a coordinator's appends below a follower's high watermark, unchecked."""
        for operation in list(self._purgatory.watching(replica.partition)):
            required, base, _ = operation.waiting[replica.partition]
            if required <= replica.high_watermark:
                start = replica.log.log_start_offset
                result = ProduceResult(replica.partition, ErrorCode.NONE, base, start)
                self._decided(operation, result, out)

    def expire(self, now: Micros, out: Effects) -> None:
        """Answers expired requests with REQUEST_TIMED_OUT; their records stay in the log."""
        for operation in self._purgatory.expired(now):
            if operation.follows_watermark:
                token = internal_token(operation.token)
                out.append(InternalAppended(token, ErrorCode.REQUEST_TIMED_OUT, -1, final=False))
                continue
            for partition in list(operation.waiting):
                result = ProduceResult(partition, ErrorCode.REQUEST_TIMED_OUT)
                self._decided(operation, result, out)
        self.set_timer(out)

    def set_timer(self, out: Effects) -> None:
        """Sets the timer for the next deadline."""
        out.append(fx.SetTimer("produce", self._purgatory.next_deadline()))

    def _decided(self, operation: DelayedProduce, result: ProduceResult, out: Effects) -> None:
        self._purgatory.decided(operation, result)
        if operation.is_done:
            self.answer(operation.token, operation.results, out)

    # -- responses ---------------------------------------------------------------------------------

    def answer(self, token: int, results: list[ProduceResult], out: Effects) -> None:
        """Answers a request with all partitions decided: a client's, or a coordinator's."""
        if token >= 0:
            out.append(fx.Reply(token, ProduceResponse(tuple(results))))
        elif token > _MARKER_TOKENS:
            out.append(
                InternalAppended(internal_token(token), results[0].error, results[0].base_offset)
            )
        else:
            self._markers.answer(marker_token(token), results, out)

    def acknowledge(
        self,
        replica: Replica,
        acks: int,
        error: ErrorCode,
        base: Offset,
        last: Offset,
        out: Effects,
    ) -> None:
        """Trace row of an append that is acknowledged or refused."""
        partition = replica.partition
        out.append(
            Acknowledgements.row(
                self._broker,
                partition.topic,
                partition.partition,
                leader_epoch=replica.leader_epoch,
                acks=acks,
                error=error.name,
                base_offset=base,
                last_offset=last,
                high_watermark=replica.high_watermark,
                maximal_in_sync_count=len(replica.maximal_in_sync),
                min_in_sync=replica.min_in_sync,
            )
        )


def internal_token(token: int) -> int:
    """Token of a coordinator's append, which is no request; and back."""
    return -1 - token


def marker_token(token: int) -> int:
    """Token of a WriteTxnMarkers request; and back."""
    return _MARKER_TOKENS - token
