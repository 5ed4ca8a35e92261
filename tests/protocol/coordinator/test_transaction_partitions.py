"""Which partitions a client adds to its transactions, with version 0: all, or one by mistake."""

import pytest

from sim.error_codes import ErrorCode as E
from sim.ids import TopicPartition
from sim.protocol.clients.producer.transaction_manager import TransactionManager
from sim.protocol.messages.metadata import InitProducerIdRequest, InitProducerIdResponse
from sim.protocol.messages.transaction import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnResponse,
)
from sim.units import MS, SECOND

PLACES = tuple(TopicPartition("orders", number) for number in range(3))


def added(manager):
    """Partitions of the AddPartitionsToTxn requests that are sent now."""
    found = []
    while (ask := manager.next_request(has_incomplete=False)) is not None:
        manager.in_flight = ask
        if isinstance(ask.request, InitProducerIdRequest):
            manager.on_response(InitProducerIdResponse(E.NONE, 1_000, 5))
        elif isinstance(ask.request, AddPartitionsToTxnRequest):
            found.extend(ask.request.partitions)
            manager.on_response(AddPartitionsToTxnResponse(E.NONE))
        else:
            manager.on_response(EndTxnResponse(E.NONE))
    return tuple(found)


@pytest.mark.parametrize("adds", [True, False])
@pytest.mark.parametrize("together", [True, False])
def test_the_coordinator_hears_of_every_partition_unless_the_client_has_a_defect(adds, together):
    manager = TransactionManager("till", 60 * SECOND, 100 * MS, 0, adds_partitions=adds)
    manager.initialize()
    added(manager)
    for _ in range(2):
        manager.begin()
        told = ()
        for place in PLACES:
            manager.add_partition(place)
            if not together:
                told += added(manager)
        told += added(manager)
        assert told == (PLACES if adds else PLACES[:1])
        assert all(manager.may_send(place.partition) for place in PLACES)
        manager.commit()
        assert added(manager) == ()
        assert manager.outcome == "committed"
