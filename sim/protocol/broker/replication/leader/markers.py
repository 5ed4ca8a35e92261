"""Open WriteTxnMarkers requests of transaction coordinators.

Source: ``KafkaApis.handleWriteTxnMarkersRequest``; KIP-98.
"""

from sim.error_codes import ErrorCode
from sim.ids import OFFSETS_TOPIC
from sim.protocol import effects as fx
from sim.protocol.broker.replication.effects import Effects
from sim.protocol.coordinator.group.records import TransactionEnded
from sim.protocol.messages.data import ProduceResult
from sim.protocol.messages.transaction import WriteTxnMarkersRequest, WriteTxnMarkersResponse


class MarkerRequests:
    """The open requests of one broker."""

    def __init__(self) -> None:
        self._open: dict[int, WriteTxnMarkersRequest] = {}

    def add(self, token: int, request: WriteTxnMarkersRequest) -> None:
        """Adds a request whose markers are about to be appended."""
        self._open[token] = request

    def answer(self, token: int, results: list[ProduceResult], out: Effects) -> None:
        """Every partition of a request is decided: the group coordinator gets the outcome first."""
        request = self._open.pop(token)
        ended = request.producer_id, request.producer_epoch, request.committed
        out.extend(
            TransactionEnded(result.partition.partition, *ended)
            for result in results
            if result.error is ErrorCode.NONE and result.partition.topic == OFFSETS_TOPIC
        )
        errors = tuple((result.partition, result.error) for result in results)
        out.append(fx.Reply(token, WriteTxnMarkersResponse(errors)))
