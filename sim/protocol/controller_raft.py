"""The controller of a cluster whose partitions are Raft groups.

It decides what exists and where, and writes down who leads; it elects nobody, and no broker's
coming or going changes a partition. A leader epoch is the group's term: a term of whose leader
nobody told is written as one without a leader.

Source: Redpanda v25.1 ``cluster/{controller,partition_leaders_table}.cc``.
"""

from dataclasses import replace

from sim.error_codes import ErrorCode
from sim.ids import NO_LEADER
from sim.protocol.controller import Controller
from sim.protocol.controller_state import Decision
from sim.protocol.elections import ElectionKind
from sim.protocol.events import RequestReceived
from sim.protocol.messages import BrokerRegistrationRequest, Request
from sim.protocol.messages_raft import RaftLeadersRequest, RaftLeadersResponse
from sim.protocol.metadata import MetadataImage
from sim.protocol.metadata_records import (
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
)
from sim.units import Micros


class RaftController(Controller):
    """One controller process of such a cluster."""

    def _on_request(self, event: RequestReceived) -> None:
        """A broker that comes back is registered at once: no session has to end before that."""
        if isinstance(event.request, BrokerRegistrationRequest):
            self._sessions.forget(event.request.broker)
        super()._on_request(event)

    def _administer(self, image: MetadataImage, request: Request) -> Decision:
        if not isinstance(request, RaftLeadersRequest):
            return super()._administer(image, request)
        sender = image.brokers.get(request.broker)
        if sender is None or sender.epoch != request.broker_epoch:
            return Decision((), RaftLeadersResponse(ErrorCode.STALE_BROKER_EPOCH))
        super()._write(new_leaders(image, request))
        return Decision((), RaftLeadersResponse(ErrorCode.NONE))

    def _write(self, records: tuple[MetadataRecord, ...]) -> None:
        kept = (without_election(record) for record in records)
        super()._write(tuple(record for record in kept if record is not None))

    def _sweep(
        self, image: MetadataImage, name: str, kind: ElectionKind, interval_us: Micros
    ) -> None:
        """Leaders are balanced by the brokers, and there are no unclean elections."""


def new_leaders(
    image: MetadataImage, request: RaftLeadersRequest
) -> tuple[PartitionChangeRecord, ...]:
    """What to write of the leaders that a broker tells of; nothing of what is old news."""
    records: list[PartitionChangeRecord] = []
    for led in request.leaders:
        registration = image.partitions.get(led.partition)
        if registration is None or request.broker not in registration.replicas:
            continue
        change = PartitionChangeRecord(
            led.partition.partition, registration.topic_id, leader=request.broker
        )
        missed = led.term - registration.leader_epoch - 1
        if missed >= 0:
            records.extend([replace(change, leader=NO_LEADER)] * missed)
            records.append(change)
    return tuple(records)


def without_election(record: MetadataRecord) -> MetadataRecord | None:
    """The record without what it says of leaders and their ISR; ``None`` if nothing is left."""
    if isinstance(record, PartitionRecord):
        return replace(record, leader=NO_LEADER)
    if not isinstance(record, PartitionChangeRecord):
        return record
    left = replace(
        record,
        in_sync=None,
        leader=None,
        recovering=None,
        eligible=None,
        last_known_eligible=None,
    )
    empty = PartitionChangeRecord(record.partition, record.topic_id)
    return None if left == empty else left
