"""What a follower does that is ahead of its leader: today, and before."""

import pytest

from sim.error_codes import ErrorCode
from sim.protocol import effects as fx
from sim.protocol.broker.replication.config import ReplicaManagerConfig
from sim.protocol.broker.replication.events import MetadataApplied, RegisteredWithEpoch
from sim.protocol.broker.replication.replica_manager import ReplicaManager
from sim.protocol.broker.truncation.out_of_range import OutOfRange, TruncationForbidden
from sim.protocol.broker.truncation.registry import TRUNCATIONS
from sim.protocol.events import ResponseReceived
from sim.protocol.messages.data import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    FetchRequest,
    FetchResponse,
    FetchResult,
    ListOffsetsRequest,
    ListOffsetsResponse,
)
from tests.protocol.broker.replica_kit import P, ToyLog, image, state

END = 10


class RestartableLog(ToyLog):
    def truncate_fully_and_start_at(self, offset):
        self.batches = []
        self.epochs = []
        self.log_start_offset = self.started_at = offset


class Follower:
    """Broker 2 with ten records follows broker 1, which is given by hand."""

    def __init__(self, rule, *, unclean=False):
        self.log = RestartableLog([(0, 0)], END)
        config = ReplicaManagerConfig(truncation=TRUNCATIONS["hw"], out_of_range=rule)
        self.manager = ReplicaManager(2, config, lambda *_: self.log, {P: END})
        known = image(state(leader=1, epoch=1, partition_epoch=1, in_sync=(1,)))
        known.topic_configs["orders"]["unclean.leader.election.enable"] = str(unclean).lower()
        self.effects = []
        self.tell(RegisteredWithEpoch(102))
        self.tell(MetadataApplied(known, (P,)))

    def tell(self, event):
        self.effects = self.manager.handle(event, 0)

    def asked(self, kind):
        (send,) = [e for e in self.effects if isinstance(e, fx.Send)]
        assert isinstance(send.request, kind)
        return send

    def answer(self, send, response):
        self.tell(ResponseReceived(1, send.correlation, response))

    def refuse_fetch(self):
        send = self.asked(FetchRequest)
        assert self.log.log_end_offset == END, "the high watermark is its end: nothing is cut"
        result = FetchResult(P, ErrorCode.OFFSET_OUT_OF_RANGE)
        self.answer(send, FetchResponse(ErrorCode.NONE, 7, (result,)))

    def listed(self, timestamp, offset):
        send = self.asked(ListOffsetsRequest)
        assert send.request.timestamp == timestamp
        self.answer(send, ListOffsetsResponse(P, ErrorCode.NONE, offset))


def behind_by(rule, lost, **more):
    """The leader's log ends before the follower's, when it is asked."""
    follower = Follower(rule, **more)
    follower.refuse_fetch()
    follower.listed(LATEST_TIMESTAMP, END - lost)
    return follower


@pytest.mark.parametrize("rule", [OutOfRange.HALT, OutOfRange.RESTART])
def test_a_follower_that_must_not_cut_its_log_ends_its_process(rule):
    """Catalogue: shutdown-on-forbidden-truncation (KAFKA-4039)."""
    follower = behind_by(rule, 3)
    (forbidden,) = [e for e in follower.effects if isinstance(e, TruncationForbidden)]
    assert forbidden.partition == P
    assert follower.log.log_end_offset == END, "nothing is cut"


@pytest.mark.parametrize(
    ("rule", "unclean"), [(OutOfRange.TRUNCATE, False), (OutOfRange.HALT, True)]
)
def test_it_cuts_its_log_today_and_always_where_unclean_elections_are_on(rule, unclean):
    follower = behind_by(rule, 3, unclean=unclean)
    assert not [e for e in follower.effects if isinstance(e, TruncationForbidden)]
    assert follower.log.log_end_offset == END - 3
    follower.asked(FetchRequest)


@pytest.mark.parametrize(("rule", "kept"), [(r, r is not OutOfRange.RESTART) for r in OutOfRange])
def test_a_leader_that_has_caught_up_meanwhile_costs_the_log_before_0_9_only(rule, kept):
    """Catalogue: replica-truncates-to-zero-on-migration (KAFKA-2143)."""
    follower = behind_by(rule, -2)
    follower.listed(EARLIEST_TIMESTAMP, 0)
    assert follower.log.log_end_offset == (END if kept else 0)
    follower.asked(FetchRequest)


@pytest.mark.parametrize("rule", list(OutOfRange))
def test_a_leader_whose_log_begins_behind_the_followers_end_makes_everybody_start_there(rule):
    follower = behind_by(rule, -90)
    follower.listed(EARLIEST_TIMESTAMP, END + 50)
    assert follower.log.started_at == END + 50
