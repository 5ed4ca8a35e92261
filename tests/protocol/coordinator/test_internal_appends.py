"""How coordinators write: with acks=all, or as one that follows the high watermark (KIP-848)."""

import pytest

from sim.error_codes import ErrorCode as E
from sim.protocol import effects as fx
from sim.protocol.broker.replication.events import (
    AppendInternal,
    InternalAppended,
    InternalVerified,
    VerifyInternal,
)
from sim.protocol.coordinator.log import InTransaction
from sim.protocol.events import TimerFired
from sim.units import SECOND
from tests.protocol.broker.replica_kit import Bench, P, ToyBatch, state


class Writer(Bench):
    """Three brokers of which the first leads, and two must be in sync."""

    def write(self, *, follows):
        event = AppendInternal(1, P, ToyBatch(), 5 * SECOND, follows_watermark=follows)
        self.tell(1, event)

    def outcomes(self):
        return [(e.error, e.final) for e in self.take(1, InternalAppended)]

    def too_late(self):
        self.now = 5 * SECOND
        self.tell(1, TimerFired("produce"))


@pytest.mark.parametrize("follows", [True, False])
def test_a_write_counts_when_it_is_replicated(follows):
    bench = Writer()
    bench.write(follows=follows)
    assert bench.outcomes() == []
    bench.settle()
    assert bench.outcomes() == [(E.NONE, True)]
    asked = [e.row[4] for e in bench.take(1, fx.Emit) if e.table == "acknowledgements"]
    assert asked == [1 if follows else -1]


@pytest.mark.parametrize("follows", [True, False])
def test_with_too_few_in_sync_it_is_written_by_who_follows_the_watermark(follows):
    bench = Writer(in_sync=(1,))
    bench.write(follows=follows)
    assert bench.logs[1].log_end_offset == (1 if follows else 0)
    assert bench.outcomes() == ([] if follows else [(E.NOT_ENOUGH_REPLICAS, True)])


@pytest.mark.parametrize("follows", [True, False])
def test_what_is_committed_after_its_time_is_told_to_who_follows_the_watermark(follows):
    bench = Writer()
    bench.write(follows=follows)
    bench.too_late()
    assert bench.outcomes() == [(E.REQUEST_TIMED_OUT, not follows)]
    bench.settle()
    assert bench.outcomes() == ([(E.NONE, True)] if follows else [])


def test_what_is_not_committed_before_another_leads_has_failed_also_after_its_time():
    bench = Writer()
    bench.write(follows=True)
    bench.too_late()
    bench.outcomes()
    bench.apply(state(leader=2, epoch=1, partition_epoch=1))
    assert bench.outcomes() == [(E.NOT_LEADER_OR_FOLLOWER, True)]


def test_no_transaction_is_verified_where_nobody_leads():
    bench = Writer()
    bench.apply(state(leader=2, epoch=1, partition_epoch=1))
    bench.tell(1, VerifyInternal(4, P, InTransaction("till", 7, 0)))
    (told,) = bench.take(1, InternalVerified)
    assert (told.token, told.error) == (4, E.NOT_LEADER_OR_FOLLOWER)
