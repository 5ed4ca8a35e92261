"""What a follower in leader epoch 0 does with batches of a later one (KAFKA-18723)."""

import pytest

from sim.error_codes import ErrorCode
from sim.protocol.events import ResponseReceived
from sim.protocol.messages.data import FetchResponse, FetchResult
from sim.scenario.behaviours.registry import DEFAULTS
from sim.scenario.behaviours.registry import resolve as resolve_behaviours
from sim.scenario.build import translate
from sim.scenario.settings.registry import resolve as resolve_settings
from tests.protocol.broker.replica_kit import Bench, P, ToyBatch


def answer_with(bench, *epochs):
    """Answer broker 2's open fetch with a batch of each epoch, from its log end on."""
    (send,) = bench.fetches(2)[-1:]
    end = bench.logs[2].log_end_offset
    batches = tuple(ToyBatch(n, n, epoch) for n, epoch in enumerate(epochs, end))
    result = FetchResult(P, ErrorCode.NONE, 0, 0, batches)
    response = FetchResponse(ErrorCode.NONE, 7, (result,))
    bench.tell(2, ResponseReceived(send.to, send.correlation, response))
    return send.request


def epochs_of(bench):
    return [batch.leader_epoch for batch in bench.logs[2].batches]


def test_a_follower_leaves_batches_of_a_later_epoch_and_all_that_lies_behind_them():
    bench = Bench()
    answer_with(bench, 0, 0, 1, 0)
    assert epochs_of(bench) == [0, 0]
    (send,) = bench.fetches(2)
    assert [listed.fetch_offset for listed in send.request.partitions] == [2]


def test_where_nothing_is_left_the_same_fetch_goes_out_at_once_and_without_a_back_off():
    bench = Bench()
    for _ in range(3):
        answer_with(bench, 1, 1)
        assert epochs_of(bench) == []
    (send,) = bench.fetches(2)
    # Nothing about the partition has changed, so its session goes on without naming it.
    assert send.request.partitions == ()
    assert send.request.session_epoch == 3
    assert bench.now == 0


def test_before_4_1_a_follower_appends_batches_of_a_later_epoch():
    bench = Bench(skips_later_epochs=False)
    answer_with(bench, 0, 1)
    assert epochs_of(bench) == [0, 1]
    assert bench.logs[2].latest_epoch == 1


@pytest.mark.parametrize(
    ("version", "skips"), [("0.10", False), ("3.9", False), ("4.0", False), ("4.1", True)]
)
def test_a_version_chooses_what_becomes_of_later_epochs(version, skips):
    config = resolve_settings("broker", {})
    made = translate.replica_config(config, resolve_behaviours({}, version))
    assert made.skips_later_epochs is skips
    asked = {**DEFAULTS, "follower.later_epochs": "append"}
    assert not translate.replica_config(config, asked).skips_later_epochs
